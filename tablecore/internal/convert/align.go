package convert

import (
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Aligner maps the columns of one stream onto the stored columns of a table
// and checks every row. It belongs to one goroutine.
type Aligner struct {
	def       *tabledef.Definition
	stream    *arrow.Schema // as it comes
	plain     *arrow.Schema // without extension types
	columns   []column      // one for each field of def.Stored
	nullOrder []int         // columns that take no null, in the order of the checks
	rows      int64         // rows seen so far
	unfolded  int64         // bytes that the views and dictionaries of a batch may unfold to
}

// column says where a stored column comes from.
type column struct {
	field  arrow.Field
	source int   // index in the stream, -1 where it has none
	rules  rules // of field's type
}

// NewAligner matches a stream's schema with the table's by exact names, in any
// order. The definition must have a schema. Nullability flags need not match
// and the stream's schema metadata is ignored. Any other difference is a
// *tableerr.SchemaMismatch: missing columns are told first, then extra ones,
// then columns given twice, then types that accept no widening, then field
// metadata that is new or changed.
//
// The insertion-time column may be missing, and once columns were added to the
// table so may any nullable payload column.
func NewAligner(stream *arrow.Schema, def *tabledef.Definition) (*Aligner, error) {
	if err := checkDepth(stream); err != nil {
		return nil, err
	}
	a := &Aligner{def: def, stream: stream, plain: tabledef.WithoutExtensions(stream), unfolded: maxUnfolded}
	sent := stream.Fields() // a copy with each call
	for _, f := range def.Stored.Fields() {
		source := slices.IndexFunc(sent, func(s arrow.Field) bool { return s.Name == f.Name })
		if source < 0 && !a.mayOmit(f) {
			return nil, &tableerr.SchemaMismatch{Column: f.Name, Expected: tabledef.TypeName(f.Type), Msg: "column " + quote(f.Name) + " is missing"}
		}
		a.columns = append(a.columns, column{f, source, rulesOf(f.Type)})
	}
	if err := a.checkExtra(); err != nil {
		return nil, err
	}
	for _, c := range a.columns {
		if err := a.checkField(c); err != nil {
			return nil, err
		}
	}
	a.nullOrder = a.orderNullChecks()
	return a, nil
}

// checkDepth refuses types that must not be walked. No table has such a column.
func checkDepth(stream *arrow.Schema) error {
	for _, f := range stream.Fields() {
		if tabledef.TooDeep(f.Type) {
			return &tableerr.SchemaMismatch{Column: f.Name, Found: f.Type.Name(),
				Msg: "column " + quote(f.Name) + " is nested deeper than " + strconv.Itoa(tabledef.MaxTypeDepth) + " levels"}
		}
	}
	return nil
}

// mayOmit says whether a stream may leave a stored column out.
func (a *Aligner) mayOmit(f arrow.Field) bool {
	if a.def.IsKey(f.Name) {
		return false
	}
	return a.isIngestTime(f.Name) || a.def.ColumnsAdded && f.Nullable
}

func (a *Aligner) isIngestTime(name string) bool {
	return a.def.IngestTimeColumn != "" && name == a.def.IngestTimeColumn
}

// checkExtra refuses columns the table does not have, then columns given twice.
func (a *Aligner) checkExtra() error {
	for _, f := range a.stream.Fields() {
		if !a.def.Stored.HasField(f.Name) {
			return &tableerr.SchemaMismatch{Column: f.Name, Found: tabledef.TypeName(f.Type), Msg: "column " + quote(f.Name) + " is not a column of the table"}
		}
	}
	seen := map[string]bool{}
	for _, f := range a.stream.Fields() {
		if seen[f.Name] {
			want, _ := a.def.Stored.FieldsByName(f.Name)
			return &tableerr.SchemaMismatch{Column: f.Name, Expected: tabledef.TypeName(want[0].Type), Found: tabledef.TypeName(f.Type),
				Msg: "column " + quote(f.Name) + " is given twice"}
		}
		seen[f.Name] = true
	}
	return nil
}

// checkField compares one stored column with the stream's.
func (a *Aligner) checkField(c column) error {
	if c.source < 0 {
		return nil
	}
	found := a.plain.Field(c.source)
	want, got := tabledef.TypeName(c.field.Type), tabledef.TypeName(found.Type)
	if !accepts(found.Type, c.field.Type) {
		return &tableerr.SchemaMismatch{Column: c.field.Name, Expected: want, Found: got,
			Msg: "column " + quote(c.field.Name) + " is " + want + ", the stream has " + got}
	}
	if path, key, differs := metadataDiffers(c.field.Name, found, c.field); differs {
		return &tableerr.SchemaMismatch{Column: path, Expected: want, Found: got,
			Msg: "column " + quote(path) + " has other field metadata under " + quote(key)}
	}
	return nil
}

// metadataDiffers names the first key that a stream's field, or one inside it,
// adds or changes.
func metadataDiffers(path string, found, want arrow.Field) (at, key string, differs bool) {
	for i, key := range found.Metadata.Keys() {
		if key == "PARQUET:field_id" {
			continue
		}
		if value, ok := want.Metadata.GetValue(key); !ok || value != found.Metadata.Values()[i] {
			return path, key, true
		}
	}
	mine, theirs := tabledef.Children(found.Type), tabledef.Children(want.Type)
	for i := range min(len(mine), len(theirs)) {
		if at, key, differs := metadataDiffers(path+"."+theirs[i].Name, mine[i], theirs[i]); differs {
			return at, key, true
		}
	}
	return "", "", false
}

// orderNullChecks lists the columns that take no null: entity columns in their
// declared order, the index column, then payload columns in stored order.
func (a *Aligner) orderNullChecks() []int {
	var order []int
	at := func(name string) int {
		return slices.IndexFunc(a.columns, func(c column) bool { return c.field.Name == name })
	}
	for _, name := range a.def.EntityColumns {
		order = append(order, at(name))
	}
	order = append(order, at(a.def.IndexColumn))
	for i, c := range a.columns {
		if !a.def.IsKey(c.field.Name) && !c.field.Nullable && !a.isIngestTime(c.field.Name) {
			order = append(order, i)
		}
	}
	return order
}

// LimitUnfolding sets how many bytes the views and dictionaries of one batch may
// unfold to, if it is less than the default of 1 GiB.
func (a *Aligner) LimitUnfolding(bytes int64) { a.unfolded = min(bytes, maxUnfolded) }

// Has says whether the stream brings the i-th stored column.
func (a *Aligner) Has(i int) bool { return a.columns[i].source >= 0 }

// Rows returns the number of rows aligned so far.
func (a *Aligner) Rows() int64 { return a.rows }

func quote(name string) string { return strconv.Quote(name) }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
