package datafile

import (
	"bytes"
	"context"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/bufpool"
)

// memSource is a file in memory.
type memSource struct{ *bytes.Reader }

func newSource(b []byte) Source { return memSource{bytes.NewReader(b)} }

func (m memSource) Size() int64 { return m.Reader.Size() }

func flatSchema() *arrow.Schema {
	types := []struct {
		name string
		typ  arrow.DataType
	}{
		{"bool", arrow.FixedWidthTypes.Boolean},
		{"int8", arrow.PrimitiveTypes.Int8},
		{"int16", arrow.PrimitiveTypes.Int16},
		{"int32", arrow.PrimitiveTypes.Int32},
		{"int64", arrow.PrimitiveTypes.Int64},
		{"float32", arrow.PrimitiveTypes.Float32},
		{"float64", arrow.PrimitiveTypes.Float64},
		{"string", arrow.BinaryTypes.String},
		{"binary", arrow.BinaryTypes.Binary},
		{"date32", arrow.FixedWidthTypes.Date32},
		{"ts_utc", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
		{"ts_ntz", &arrow.TimestampType{Unit: arrow.Microsecond}},
		{"dec5", &arrow.Decimal128Type{Precision: 5, Scale: 2}},
		{"dec20", &arrow.Decimal128Type{Precision: 20}},
		{"dec38", &arrow.Decimal128Type{Precision: 38, Scale: 10}},
		{"a.b", arrow.PrimitiveTypes.Int64},
	}
	var fields []arrow.Field
	for _, t := range types {
		fields = append(fields,
			arrow.Field{Name: t.name, Type: t.typ, Nullable: true},
			arrow.Field{Name: t.name + " required", Type: t.typ})
	}
	return arrow.NewSchema(fields, nil)
}

// randomArray makes n values of a storage type; every fourth is null where
// nulls are allowed.
func randomArray(rng *rand.Rand, mem memory.Allocator, field arrow.Field, n int) arrow.Array {
	b := array.NewBuilder(mem, field.Type)
	defer b.Release()
	for range n {
		appendField(rng, b, field)
	}
	return b.NewArray()
}

func appendField(rng *rand.Rand, b array.Builder, field arrow.Field) {
	if field.Nullable && rng.IntN(4) == 0 {
		b.AppendNull()
		return
	}
	switch typ := field.Type.(type) {
	case *arrow.StructType:
		b := b.(*array.StructBuilder)
		b.Append(true)
		for i, f := range typ.Fields() {
			appendField(rng, b.FieldBuilder(i), f)
		}
	case *arrow.ListType:
		b := b.(*array.ListBuilder)
		b.Append(true)
		for range rng.IntN(4) {
			appendField(rng, b.ValueBuilder(), typ.ElemField())
		}
	case *arrow.MapType:
		b := b.(*array.MapBuilder)
		b.Append(true)
		for range rng.IntN(3) {
			appendField(rng, b.KeyBuilder(), typ.KeyField())
			appendField(rng, b.ItemBuilder(), typ.ItemField())
		}
	default:
		appendRandom(rng, b)
	}
}

func appendRandom(rng *rand.Rand, b array.Builder) {
	v := rng.Int64()
	switch rng.IntN(8) {
	case 0:
		v = math.MinInt64
	case 1:
		v = math.MaxInt64
	case 2, 3:
		v = int64(rng.IntN(20)) - 10
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v&1 == 0)
	case *array.Int8Builder:
		b.Append(int8(v))
	case *array.Int16Builder:
		b.Append(int16(v))
	case *array.Int32Builder:
		b.Append(int32(v))
	case *array.Int64Builder:
		b.Append(v)
	case *array.Float32Builder:
		b.Append(float32(v) / 7)
	case *array.Float64Builder:
		b.Append(float64(v) / 7)
	case *array.StringBuilder:
		b.Append(randomText(rng))
	case *array.BinaryBuilder:
		b.Append([]byte(randomText(rng)))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v))
	case *array.Decimal128Builder:
		if b.Type().(*arrow.Decimal128Type).Precision < 19 {
			v %= 100000
		}
		b.Append(decimal128.FromI64(v))
	default:
		panic("no random values for " + b.Type().String())
	}
}

func randomText(rng *rand.Rand) string {
	const letters = "aäb€c😀xyz"
	n := rng.IntN(12)
	if rng.IntN(50) == 0 {
		n = 300
	}
	runes := []rune(letters)
	text := make([]rune, n)
	for i := range text {
		text[i] = runes[rng.IntN(len(runes))]
	}
	return string(text)
}

func randomBatch(rng *rand.Rand, mem memory.Allocator, schema *arrow.Schema, n int) arrow.RecordBatch {
	columns := make([]arrow.Array, schema.NumFields())
	for i, f := range schema.Fields() {
		columns[i] = randomArray(rng, mem, f, n)
		defer columns[i].Release()
	}
	return array.NewRecordBatch(schema, columns, int64(n))
}

func checkedMem(t testing.TB) memory.Allocator {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

func writeFile(t testing.TB, schema *arrow.Schema, opts WriteOptions, batches ...arrow.RecordBatch) ([]byte, Written) {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, schema, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	written, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), written
}

// openFile opens a file. Where mem counts what it gives, it is poisoned.
func openFile(t testing.TB, raw []byte, mem memory.Allocator) *File {
	t.Helper()
	if _, checked := mem.(*memory.CheckedAllocator); checked {
		mem = bufpool.Poison(mem)
	}
	src := newSource(raw)
	footer, err := ParseFooter(context.Background(), src, "data/x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	return Open(src, footer, "data/x.parquet", mem)
}

// readAll joins what req reads into one batch.
func readAll(t testing.TB, f *File, mem memory.Allocator, req ReadRequest) arrow.RecordBatch {
	t.Helper()
	rows, err := f.Read(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	var batches []arrow.RecordBatch
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	for {
		b, err := rows.Next(context.Background())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Retain()
		batches = append(batches, b)
	}
	return joinBatches(t, mem, rows.Schema(), batches)
}

func joinBatches(t testing.TB, mem memory.Allocator, schema *arrow.Schema, batches []arrow.RecordBatch) arrow.RecordBatch {
	t.Helper()
	columns := make([]arrow.Array, schema.NumFields())
	n := int64(0)
	for _, b := range batches {
		n += b.NumRows()
	}
	for i := range columns {
		var parts []arrow.Array
		for _, b := range batches {
			parts = append(parts, b.Column(i))
		}
		if len(parts) == 0 {
			columns[i] = array.MakeArrayOfNull(mem, schema.Field(i).Type, 0)
		} else {
			joined, err := array.Concatenate(parts, mem)
			if err != nil {
				t.Fatal(err)
			}
			columns[i] = joined
		}
		defer columns[i].Release()
	}
	return array.NewRecordBatch(schema, columns, n)
}

func sameBatch(t testing.TB, want, got arrow.RecordBatch) {
	t.Helper()
	if want.NumRows() != got.NumRows() {
		t.Fatalf("%d rows came back of %d", got.NumRows(), want.NumRows())
	}
	for i := range want.Columns() {
		if !array.Equal(want.Column(i), got.Column(i)) {
			t.Errorf("column %q differs", want.ColumnName(i))
		}
	}
}

func TestRoundTripOfFlatTypes(t *testing.T) {
	schema := flatSchema()
	for _, compression := range []Compression{Auto, Zstd, Snappy, LZ4Raw, Uncompressed, Cold} {
		t.Run(compression.String(), func(t *testing.T) {
			mem := checkedMem(t)
			rng := rand.New(rand.NewPCG(1, 2))
			batch := randomBatch(rng, mem, schema, 5000)
			defer batch.Release()
			raw, written := writeFile(t, schema, WriteOptions{Compression: compression, MaxRowsPerRowGroup: 2000, Mem: mem}, batch)
			if written.Rows != 5000 || written.RowGroups != 3 || written.Bytes != int64(len(raw)) {
				t.Fatalf("%+v", written)
			}
			got := readAll(t, openFile(t, raw, mem), mem, ReadRequest{Fields: schema.Fields(), BatchRows: 700})
			defer got.Release()
			sameBatch(t, batch, got)
		})
	}
}

func TestRanges(t *testing.T) {
	mem := checkedMem(t)
	schema := flatSchema()
	rng := rand.New(rand.NewPCG(3, 4))
	batch := randomBatch(rng, mem, schema, 3000)
	defer batch.Release()
	raw, _ := writeFile(t, schema, WriteOptions{MaxRowsPerRowGroup: 1000, Mem: mem}, batch)
	f := openFile(t, raw, mem)
	for range 20 {
		var ranges []RowRange
		var parts []arrow.RecordBatch
		for row := int64(rng.IntN(500)); row < 3000; row += int64(rng.IntN(700)) {
			end := min(3000, row+int64(rng.IntN(600)))
			ranges = append(ranges, RowRange{row, end})
			parts = append(parts, batch.NewSlice(row, end))
			row = end
		}
		want := joinBatches(t, mem, schema, parts)
		got := readAll(t, f, mem, ReadRequest{Fields: schema.Fields(), Ranges: ranges, BatchRows: 300})
		sameBatch(t, want, got)
		want.Release()
		got.Release()
		for _, p := range parts {
			p.Release()
		}
	}
}
