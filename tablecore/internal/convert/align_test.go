package convert_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

var (
	usUTC = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	dictT = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
)

// define makes a definition with index ts, entity sym and the given payload.
func define(columnsAdded bool, payload ...arrow.Field) *tabledef.Definition {
	fields := append([]arrow.Field{
		{Name: "ts", Type: usUTC},
		{Name: "sym", Type: arrow.BinaryTypes.String},
	}, payload...)
	fields = append(fields, arrow.Field{Name: "_ingest_ts", Type: tabledef.IngestTimeType, Nullable: true})
	return &tabledef.Definition{IndexColumn: "ts", IndexType: tabledef.IndexTimestamp, EntityColumns: []string{"sym"},
		IngestTimeColumn: "_ingest_ts", ColumnsAdded: columnsAdded, Stored: arrow.NewSchema(fields, nil)}
}

func schema(fields ...arrow.Field) *arrow.Schema { return arrow.NewSchema(fields, nil) }

func field(name string, t arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: t} }

func noted(f arrow.Field, kv ...string) arrow.Field {
	m := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	f.Metadata = arrow.MetadataFrom(m)
	return f
}

var (
	ts, sym = field("ts", usUTC), field("sym", arrow.BinaryTypes.String)
	price   = arrow.Field{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true}
	must    = arrow.Field{Name: "size", Type: arrow.PrimitiveTypes.Int64}
)

var alignCases = []struct {
	name         string
	stream       *arrow.Schema
	payload      []arrow.Field
	columnsAdded bool
	want         *tableerr.SchemaMismatch // nil = accepted
}{
	{name: "same", stream: schema(ts, sym, price), payload: []arrow.Field{price}},
	{name: "other order", stream: schema(price, sym, ts), payload: []arrow.Field{price}},
	{name: "with insertion time", stream: schema(ts, sym, field("_ingest_ts", tabledef.IngestTimeType))},
	{name: "nullability need not match", stream: schema(arrow.Field{Name: "ts", Type: usUTC, Nullable: true}, sym)},
	{name: "missing before extra", stream: schema(ts, sym, field("other", usUTC)), payload: []arrow.Field{price},
		want: &tableerr.SchemaMismatch{Column: "price", Expected: "double"}},
	{name: "missing key", stream: schema(sym), want: &tableerr.SchemaMismatch{Column: "ts", Expected: "timestamp[us, tz=UTC]"}},
	{name: "extra before twice", stream: schema(ts, sym, ts, field("other", dictT)),
		want: &tableerr.SchemaMismatch{Column: "other", Found: "dictionary<values=string, indices=int8, ordered=0>"}},
	{name: "names are exact", stream: schema(ts, field("Sym", arrow.BinaryTypes.String)),
		want: &tableerr.SchemaMismatch{Column: "sym", Expected: "string"}},
	{name: "twice", stream: schema(ts, sym, field("sym", arrow.BinaryTypes.LargeString)),
		want: &tableerr.SchemaMismatch{Column: "sym", Expected: "string", Found: "large_string"}},
	{name: "other unit", stream: schema(field("ts", &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}), sym),
		want: &tableerr.SchemaMismatch{Column: "ts", Expected: "timestamp[us, tz=UTC]", Found: "timestamp[ms, tz=UTC]"}},
	{name: "other zone", stream: schema(field("ts", &arrow.TimestampType{Unit: arrow.Microsecond}), sym),
		want: &tableerr.SchemaMismatch{Column: "ts", Expected: "timestamp[us, tz=UTC]", Found: "timestamp[us]"}},
	{name: "insertion time of another type", stream: schema(ts, sym, field("_ingest_ts", arrow.PrimitiveTypes.Int64)),
		want: &tableerr.SchemaMismatch{Column: "_ingest_ts", Expected: "timestamp[us, tz=UTC]", Found: "int64"}},
	{name: "payload missing before columns were added", stream: schema(ts, sym), payload: []arrow.Field{price},
		want: &tableerr.SchemaMismatch{Column: "price", Expected: "double"}},
	{name: "payload missing after columns were added", stream: schema(ts, sym), payload: []arrow.Field{price}, columnsAdded: true},
	{name: "not-null payload missing after columns were added", stream: schema(ts, sym), payload: []arrow.Field{must}, columnsAdded: true,
		want: &tableerr.SchemaMismatch{Column: "size", Expected: "int64"}},
	{name: "key missing after columns were added", stream: schema(ts), columnsAdded: true,
		want: &tableerr.SchemaMismatch{Column: "sym", Expected: "string"}},
	{name: "metadata left out", stream: schema(ts, sym, price), payload: []arrow.Field{noted(price, "unit", "EUR")}},
	{name: "metadata same", stream: schema(ts, sym, noted(price, "unit", "EUR")), payload: []arrow.Field{noted(price, "unit", "EUR", "b", "c")}},
	{name: "field id ignored", stream: schema(ts, sym, noted(price, "PARQUET:field_id", "7")), payload: []arrow.Field{price}},
	{name: "metadata changed", stream: schema(ts, sym, noted(price, "unit", "USD")), payload: []arrow.Field{noted(price, "unit", "EUR")},
		want: &tableerr.SchemaMismatch{Column: "price", Expected: "double", Found: "double"}},
	{name: "metadata new", stream: schema(ts, sym, noted(price, "unit", "USD")), payload: []arrow.Field{price},
		want: &tableerr.SchemaMismatch{Column: "price", Expected: "double", Found: "double"}},
}

func TestNewAligner(t *testing.T) {
	for _, c := range alignCases {
		t.Run(c.name, func(t *testing.T) {
			_, err := convert.NewAligner(c.stream, define(c.columnsAdded, c.payload...))
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var got *tableerr.SchemaMismatch
			if !errors.As(err, &got) {
				t.Fatalf("got %v", err)
			}
			if got.Column != c.want.Column || got.Expected != c.want.Expected || got.Found != c.want.Found || got.Msg == "" || got.Row != nil {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestSchemaMetadataIsIgnored(t *testing.T) {
	md := arrow.MetadataFrom(map[string]string{"pandas": "{}"})
	stream := arrow.NewSchema([]arrow.Field{field("ts", usUTC), field("sym", arrow.BinaryTypes.String)}, &md)
	a, err := convert.NewAligner(stream, define(false))
	if err != nil {
		t.Fatal(err)
	}
	if !a.Has(0) || !a.Has(1) || a.Has(2) {
		t.Error("the stream brings ts and sym, not the insertion time")
	}
}

// TestWidenings checks each pair of types against the list of table-semantics.
func TestWidenings(t *testing.T) {
	p, b := arrow.PrimitiveTypes, arrow.BinaryTypes
	types := []arrow.DataType{p.Int8, p.Int16, p.Int32, p.Int64, p.Uint8, p.Uint16, p.Uint32, p.Uint64,
		arrow.FixedWidthTypes.Float16, p.Float32, p.Float64, b.String, b.LargeString, b.StringView, b.Binary, b.LargeBinary, b.BinaryView,
		dictT, arrow.FixedWidthTypes.Boolean, p.Date32, usUTC}
	allowed := map[string]string{
		"int8": "int16 int32 int64", "int16": "int32 int64", "int32": "int64",
		"uint8": "uint16 uint32 uint64", "uint16": "uint32 uint64", "uint32": "uint64",
		"halffloat": "float double", "float": "double",
		"string": "large_string string_view", "large_string": "string string_view", "string_view": "string large_string",
		tabledef.TypeName(dictT): "string large_string string_view",
	}
	for _, from := range types {
		for _, to := range types {
			want := arrow.TypeEqual(from, to)
			for _, name := range strings.Fields(allowed[tabledef.TypeName(from)]) {
				want = want || name == tabledef.TypeName(to)
			}
			_, err := convert.NewAligner(schema(field("ts", usUTC), field("sym", b.String), field("v", from)), define(false, field("v", to)))
			if (err == nil) != want {
				t.Errorf("%s for %s: got %v", from, to, err)
			}
		}
	}
}
