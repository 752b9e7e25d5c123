package tablecore

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// listingRows is the most rows a batch of a listing has.
const listingRows = 8192

// Listing is a table about a table, or about all of a warehouse, or an answer
// about a table's series, ready to be made. Nothing but the version was read so far. It is safe for concurrent use.
type Listing struct {
	table   *Table        // nil where it is about all tables
	name    tabledef.Name // zero for the listing of the tables
	id      string
	version int64 // −1 where there is none
	schema  *arrow.Schema
	mem     memory.Allocator
	wrap    func(error) error
	run     func(ctx context.Context, w *listingWriter) error
	stream  func(ctx context.Context, yield func(arrow.RecordBatch) error) error // in place of run
}

// Table is the name of the table that the listing is about, "" when it is about
// all tables.
func (l *Listing) Table() string {
	if l.name == (tabledef.Name{}) {
		return ""
	}
	return l.name.String()
}

// TableID is the identity of the table, "" when it is about all tables.
func (l *Listing) TableID() string { return l.id }

// Version is the version that is listed, −1 when it is about all tables.
func (l *Listing) Version() int64 { return l.version }

// Schema is the schema of every batch.
func (l *Listing) Schema() *arrow.Schema { return l.schema }

// SchemaID is a short fingerprint of Schema: 16 hex digits.
func (l *Listing) SchemaID() string { return schemaID(l.schema) }

// Run makes the rows and gives them to yield batch by batch; an error of yield
// ends it. A batch is valid until yield returns.
func (l *Listing) Run(ctx context.Context, yield func(arrow.RecordBatch) error) error {
	if l.stream != nil {
		return l.wrap(storeError(l.stream(ctx, yield)))
	}
	w := &listingWriter{builder: array.NewRecordBuilder(l.mem, l.schema), yield: yield}
	defer w.builder.Release()
	if err := l.run(ctx, w); err != nil {
		return l.wrap(storeError(err))
	}
	return w.flush()
}

// listing begins the description of a listing of one version of t.
func (t *Table) listing(s *snapshot.Snapshot, fields []arrow.Field) *Listing {
	return &Listing{table: t, name: t.name, id: s.Def.ID, version: s.Version(), schema: arrow.NewSchema(fields, nil),
		mem: t.warehouse.opts.Allocator, wrap: t.wrap}
}

// streamed is a listing whose batches are made elsewhere.
func (t *Table) streamed(s *snapshot.Snapshot, schema *arrow.Schema, stream func(context.Context, func(arrow.RecordBatch) error) error) *Listing {
	return &Listing{table: t, name: t.name, id: s.Def.ID, version: s.Version(), schema: schema, wrap: t.wrap, stream: stream}
}

// listingWriter gathers rows into batches.
type listingWriter struct {
	builder *array.RecordBuilder
	rows    int
	yield   func(arrow.RecordBatch) error
}

// add appends a row: one value a column, nil for null, of these kinds: string,
// bool, int32, int64, uint64, Time, ordinal.
func (w *listingWriter) add(ctx context.Context, values ...any) error {
	for i, v := range values {
		appendListed(w.builder.Field(i), v)
	}
	if w.rows++; w.rows < listingRows {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.flush()
}

func (w *listingWriter) flush() error {
	if w.rows == 0 {
		return nil
	}
	batch := w.builder.NewRecordBatch()
	defer batch.Release()
	w.rows = 0
	return w.yield(batch)
}

// ordinal is an index value in a listing.
type ordinal uint64

// signed is the value of an ordinal of a signed domain.
func (o ordinal) signed() int64 { return int64(o ^ 1<<63) }

func appendListed(b array.Builder, v any) {
	switch b := b.(type) {
	case *array.StringBuilder:
		if s, ok := v.(string); ok {
			b.Append(s)
			return
		}
	case *array.BooleanBuilder:
		if x, ok := v.(bool); ok {
			b.Append(x)
			return
		}
	case *array.Int32Builder:
		if x, ok := v.(int32); ok {
			b.Append(x)
			return
		}
	case *array.Int64Builder:
		switch x := v.(type) {
		case int64:
			b.Append(x)
			return
		case ordinal:
			b.Append(x.signed())
			return
		}
	case *array.Uint64Builder:
		switch x := v.(type) {
		case uint64:
			b.Append(x)
			return
		case ordinal:
			b.Append(uint64(x))
			return
		}
	case *array.TimestampBuilder:
		switch x := v.(type) {
		case Time:
			if !x.IsZero() {
				b.Append(arrow.Timestamp(x.UnixMicro()))
				return
			}
		case ordinal:
			b.Append(arrow.Timestamp(x.signed()))
			return
		}
	}
	b.AppendNull()
}

// The types of listings' columns.
var (
	listedTime = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	listedText = arrow.BinaryTypes.String
	listedI32  = arrow.PrimitiveTypes.Int32
	listedI64  = arrow.PrimitiveTypes.Int64
	listedU64  = arrow.PrimitiveTypes.Uint64
	listedBool = arrow.FixedWidthTypes.Boolean
)

func listed(name string, typ arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: typ} }

func listedNullable(name string, typ arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: typ, Nullable: true}
}

// indexType is the type of index values in listings: the index column's, or
// before there is a schema the one that goes with the table's kind of index.
func indexType(s *snapshot.Snapshot) arrow.DataType {
	switch {
	case s.Def.Stored != nil && s.Def.IndexColumn != "":
		return s.IndexField().Type
	case s.Def.IndexType == tabledef.IndexUint64:
		return listedU64
	case s.Def.IndexType == tabledef.IndexInt64:
		return listedI64
	}
	return listedTime
}

// indexBound is a bound of a file's index as it stands in a listing.
func indexBound(f *snapshot.File, value uint64) any {
	if !f.Bounded {
		return nil
	}
	return ordinal(value)
}

// Tables lists the tables of the warehouse by name; all but the name is null
// for one that cannot be opened.
func (w *Warehouse) Tables() *Listing {
	l := &Listing{version: -1, mem: w.opts.Allocator, wrap: func(err error) error { return err }, schema: arrow.NewSchema([]arrow.Field{
		listed("table", listedText), listedNullable("version", listedI64), listedNullable("committed_at", listedTime),
		listedNullable("format_version", listedText), listedNullable("rows", listedI64), listedNullable("files", listedI64),
		listedNullable("bytes", listedI64)}, nil)}
	l.run = func(ctx context.Context, out *listingWriter) error {
		tables, err := w.ListTables(ctx, "")
		if err != nil {
			return err
		}
		for _, t := range tables {
			if err := out.add(ctx, t.Table, value(t.Version), value(t.CommittedAt), value(t.FormatVersion), value(t.Rows), value(t.Files), value(t.Bytes)); err != nil {
				return err
			}
		}
		return nil
	}
	return l
}

// value is what p points to, nil for nothing.
func value[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}
