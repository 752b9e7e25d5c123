package tabledef

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"contrail/tablecore/tableerr"
)

// CheckFieldName refuses a column name that Delta or its readers cannot take:
// blank, with control characters, or not UTF-8. The error is a plain sentence;
// the caller says where the name stood.
func CheckFieldName(name string) error {
	switch {
	case !utf8.ValidString(name):
		return errors.New("a column name is not valid UTF-8")
	case strings.TrimSpace(name) == "":
		return errors.New("a column name is blank")
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("a column name holds a control character")
	default:
		return nil
	}
}

// FoldName maps names that are equal up to case or Unicode normal form to one
// text; no table has two columns with the same.
func FoldName(name string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(name)))
}

// CheckSchema refuses a schema that a table of this definition cannot have:
// names, column types, missing or mistyped key columns, an insertion-time
// column of another type, and a granularity that is no whole number of the
// index column's ticks. d's own schema does not count. Errors are
// *tableerr.Invalid and name the column, and the type where it is refused.
func CheckSchema(schema *arrow.Schema, d *Definition) error {
	if err := checkNames(schema.Fields()); err != nil {
		return err
	}
	if err := checkTypes(schema); err != nil {
		return err
	}
	schema = WithoutExtensions(schema)
	if err := d.checkIndex(schema); err != nil {
		return err
	}
	if err := d.checkEntities(schema); err != nil {
		return err
	}
	return d.checkIngestType(schema)
}

// checkTypes refuses columns of types that no table stores.
func checkTypes(schema *arrow.Schema) error {
	for _, f := range schema.Fields() {
		if TooDeep(f.Type) {
			return tableerr.InvalidType(f.Name, f.Type.Name(), "it is nested deeper than "+strconv.Itoa(MaxTypeDepth)+" levels")
		}
	}
	for _, f := range WithoutExtensions(schema).Fields() {
		if err := checkType(f.Name, f.Type); err != nil {
			return err
		}
		if err := checkExtensions(f); err != nil {
			return err
		}
	}
	return nil
}

// CheckAdoption is CheckSchema for the schema of a table's first append: key
// columns that are missing, given twice or of another index type are
// *tableerr.SchemaMismatch, as they are in later appends.
func CheckAdoption(schema *arrow.Schema, d *Definition) error {
	keys := append([]string{d.IndexColumn}, d.EntityColumns...)
	for i, name := range keys {
		if !schema.HasField(name) {
			want := "string, int32, int64 or uint64"
			if i == 0 {
				want = string(d.IndexType)
			}
			return &tableerr.SchemaMismatch{Column: name, Expected: want, Msg: "key column " + quote(name) + " is missing"}
		}
	}
	seen := map[string]bool{}
	for _, f := range schema.Fields() {
		if seen[f.Name] {
			return &tableerr.SchemaMismatch{Column: f.Name, Found: TypeName(f.Type), Msg: "column " + quote(f.Name) + " is given twice"}
		}
		seen[f.Name] = true
	}
	index := schema.Field(schema.FieldIndices(d.IndexColumn)[0])
	if has, ok := IndexTypeOf(index.Type); ok && has != d.IndexType {
		return &tableerr.SchemaMismatch{Column: index.Name, Expected: string(d.IndexType), Found: TypeName(index.Type),
			Msg: "the table's index is of type " + string(d.IndexType) + ", column " + quote(index.Name) + " of type " + TypeName(index.Type)}
	}
	return CheckSchema(schema, d)
}

// EntityType returns the type that an entity column sent as t is declared
// with: t itself, or plain strings for views and dictionaries of strings.
func EntityType(t arrow.DataType) (arrow.DataType, bool) {
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.INT32, arrow.INT64, arrow.UINT64:
		return t, true
	case arrow.STRING_VIEW:
		return arrow.BinaryTypes.String, true
	case arrow.DICTIONARY:
		values := t.(*arrow.DictionaryType).ValueType
		switch values.ID() {
		case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
			return EntityType(values)
		}
	}
	return nil, false
}

func quote(name string) string { return `"` + name + `"` }

// checkNames refuses names of the columns, or with a path in front of the
// fields of a struct, that no table can have together.
func checkNames(fields []arrow.Field) error { return checkNamesIn("", fields) }

func checkNamesIn(path string, fields []arrow.Field) error {
	seen := make(map[string]string, len(fields))
	for _, f := range fields {
		if err := CheckFieldName(f.Name); err != nil {
			return &tableerr.Invalid{Column: path + f.Name, Msg: err.Error() + inside(path), Cause: err}
		}
		fold := FoldName(f.Name)
		other, taken := seen[fold]
		switch {
		case taken && other == f.Name:
			return tableerr.InvalidColumn(path+f.Name, "column %q is given twice", path+f.Name)
		case taken:
			return tableerr.InvalidColumn(path+f.Name, "column names %q and %q are equal up to case or Unicode normal form", path+other, path+f.Name)
		}
		seen[fold] = f.Name
	}
	return nil
}

// inside says in which column a path that ends in a dot is.
func inside(path string) string {
	if path == "" {
		return ""
	}
	return ", inside column " + quote(strings.TrimSuffix(path, "."))
}

func (d *Definition) checkIndex(schema *arrow.Schema) error {
	found := schema.FieldIndices(d.IndexColumn)
	if len(found) == 0 {
		return tableerr.InvalidColumn(d.IndexColumn, "index column %q is not among the columns", d.IndexColumn)
	}
	t := schema.Field(found[0]).Type
	has, ok := IndexTypeOf(t)
	if !ok {
		return tableerr.InvalidType(d.IndexColumn, TypeName(t), "an index column is a timestamp, int64 or uint64")
	}
	if has != d.IndexType {
		return tableerr.InvalidType(d.IndexColumn, TypeName(t), "the table's index is of type "+string(d.IndexType))
	}
	if ts, ok := t.(*arrow.TimestampType); ok && !d.Granularity.wholeTicks(ts.Unit) {
		return tableerr.InvalidField("index_granularity", "index granularity %s is no whole number of ticks of column %q of type %s",
			d.Granularity, d.IndexColumn, TypeName(t))
	}
	return nil
}

// wholeTicks says whether the width is a whole number of a unit's ticks. The
// width in nanoseconds may exceed 64 bits, its remainder does not.
func (g Granularity) wholeTicks(unit arrow.TimeUnit) bool {
	tick := uint64(unit.Multiplier())
	return (g.N%tick)*(g.Nanos()%tick)%tick == 0
}

func (d *Definition) checkEntities(schema *arrow.Schema) error {
	for _, name := range d.EntityColumns {
		found := schema.FieldIndices(name)
		if len(found) == 0 {
			return tableerr.InvalidColumn(name, "entity column %q is not among the columns", name)
		}
		if t := schema.Field(found[0]).Type; !isEntityType(t) {
			return tableerr.InvalidType(name, TypeName(t), "an entity column is string, large_string, int32, int64 or uint64")
		}
	}
	return nil
}

func isEntityType(t arrow.DataType) bool {
	_, ok := EntityType(t)
	return ok
}

// checkIngestType lets a schema bring the insertion-time column only under its
// own name and type.
func (d *Definition) checkIngestType(schema *arrow.Schema) error {
	if d.IngestTimeColumn == "" {
		return nil
	}
	fold := FoldName(d.IngestTimeColumn)
	i := slices.IndexFunc(schema.Fields(), func(f arrow.Field) bool { return FoldName(f.Name) == fold })
	if i < 0 {
		return nil
	}
	f := schema.Field(i)
	if f.Name != d.IngestTimeColumn {
		return tableerr.InvalidColumn(f.Name, "column %q is equal to the insertion-time column %q up to case or Unicode normal form", f.Name, d.IngestTimeColumn)
	}
	if !arrow.TypeEqual(f.Type, IngestTimeType) {
		return tableerr.InvalidType(f.Name, TypeName(f.Type), "the insertion-time column has type "+TypeName(IngestTimeType))
	}
	return nil
}
