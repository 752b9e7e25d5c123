package convert_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// fromJSON builds an array of a type from JSON values.
func fromJSON(t testing.TB, mem memory.Allocator, dt arrow.DataType, text string) arrow.Array {
	t.Helper()
	arr, _, err := array.FromJSON(mem, dt, strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s from %s: %v", dt, text, err)
	}
	return arr
}

// record builds a batch of a schema from one JSON array a column.
func record(t testing.TB, mem memory.Allocator, s *arrow.Schema, columns ...string) arrow.RecordBatch {
	t.Helper()
	arrays := make([]arrow.Array, len(columns))
	for i, text := range columns {
		arrays[i] = fromJSON(t, mem, s.Field(i).Type, text)
		defer arrays[i].Release()
	}
	return array.NewRecordBatch(s, arrays, int64(arrays[0].Len()))
}

func checked(t *testing.T) memory.Allocator {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

func TestRowChecks(t *testing.T) {
	secs := &arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}
	def := define(false, arrow.Field{Name: "size", Type: arrow.PrimitiveTypes.Int64},
		arrow.Field{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "when", Type: secs, Nullable: true})
	stream := schema(field("ts", usUTC), field("sym", arrow.BinaryTypes.String), field("size", arrow.PrimitiveTypes.Int64),
		field("note", arrow.BinaryTypes.String), field("when", secs), field("_ingest_ts", tabledef.IngestTimeType))
	const fine = `[1,2,3]`
	cases := []struct {
		name                             string
		ts, sym, size, note, when, stamp string
		want                             error
	}{
		{"fine", fine, `["a","b","c"]`, fine, `["x",null,"é"]`, `[1,null,3]`, `[1,null,3]`, nil},
		{"entity null", fine, `["a",null,"c"]`, fine, `["x","y","z"]`, fine, fine, &tableerr.NullKey{Column: "sym", Row: 101}},
		{"index null", `[1,2,null]`, `["a","b","c"]`, fine, `["x","y","z"]`, fine, fine, &tableerr.NullKey{Column: "ts", Row: 102}},
		{"first row wins", `[1,null,3]`, `["a","b",null]`, fine, `["x","y","z"]`, fine, fine, &tableerr.NullKey{Column: "ts", Row: 101}},
		{"entity before index in a row", `[1,null,3]`, `["a",null,"c"]`, `[1,null,3]`, `["x","y","z"]`, fine, fine, &tableerr.NullKey{Column: "sym", Row: 101}},
		{"payload null", fine, `["a","b","c"]`, `[null,2,3]`, `["x","y","z"]`, fine, fine, &tableerr.SchemaMismatch{Column: "size"}},
		{"bad text", fine, `["a","b","c"]`, fine, "[\"x\",\"\xff\",\"z\"]", fine, fine, &tableerr.Invalid{Column: "note"}},
		{"bad time", fine, `["a","b","c"]`, fine, `["x","y","z"]`, `[1,9223372036854,9223372036855]`, fine, &tableerr.Invalid{Column: "when", Value: int64(9223372036855)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			mem := checked(t)
			a, err := convert.NewAligner(stream, def)
			if err != nil {
				t.Fatal(err)
			}
			first := record(t, mem, stream, zeros(100), texts(100), zeros(100), texts(100), zeros(100), zeros(100))
			defer first.Release()
			b, err := a.Align(mem, first)
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
			second := record(t, mem, stream, c.ts, c.sym, c.size, fixText(c.note), c.when, c.stamp)
			if strings.Contains(c.note, "\xff") {
				second = withBadText(mem, second, 3)
			}
			defer second.Release()
			b, err = a.Align(mem, second)
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				if b.FirstRow != 100 || b.Rows != 3 || a.Rows() != 103 {
					t.Errorf("rows %d from %d, seen %d", b.Rows, b.FirstRow, a.Rows())
				}
				b.Release()
				return
			}
			sameRowError(t, err, c.want)
		})
	}
}

func sameRowError(t *testing.T, err, want error) {
	t.Helper()
	switch want := want.(type) {
	case *tableerr.NullKey:
		var got *tableerr.NullKey
		if !errors.As(err, &got) || got.Column != want.Column || got.Row != want.Row {
			t.Errorf("got %v, want %v", err, want)
		}
	case *tableerr.SchemaMismatch:
		var got *tableerr.SchemaMismatch
		if !errors.As(err, &got) || got.Column != want.Column || got.Row == nil || *got.Row != 100 {
			t.Errorf("got %v, want %v", err, want)
		}
	case *tableerr.Invalid:
		var got *tableerr.Invalid
		if !errors.As(err, &got) || got.Column != want.Column || got.Row == nil || *got.Row != 101 && *got.Row != 102 || got.Value != want.Value {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func zeros(n int) string { return "[" + strings.Repeat("0,", n-1) + "0]" }
func texts(n int) string { return "[" + strings.Repeat(`"a",`, n-1) + `"a"]` }

func fixText(s string) string { return strings.ReplaceAll(s, "\xff", "?") }

// withBadText replaces "?" in a string column by a byte that is no UTF-8.
func withBadText(mem memory.Allocator, batch arrow.RecordBatch, column int) arrow.RecordBatch {
	defer batch.Release()
	old := batch.Column(column).(*array.String)
	b := array.NewStringBuilder(mem)
	defer b.Release()
	for i := range old.Len() {
		if old.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(strings.ReplaceAll(old.Value(i), "?", "\xff"))
		}
	}
	arr := b.NewArray()
	defer arr.Release()
	columns := append([]arrow.Array{}, batch.Columns()...)
	columns[column] = arr
	return array.NewRecordBatch(batch.Schema(), columns, batch.NumRows())
}

func TestAlignWidensValues(t *testing.T) {
	p := arrow.PrimitiveTypes
	cases := []struct {
		from, to arrow.DataType
		in       string
		want     string // as JSON of the declared type; "" = same as in
	}{
		{p.Int8, p.Int16, `[-128,null,127]`, ""}, {p.Int8, p.Int32, `[-128,null,127]`, ""}, {p.Int8, p.Int64, `[-128,null,127]`, ""},
		{p.Int16, p.Int32, `[-32768,null,7]`, ""}, {p.Int16, p.Int64, `[-32768,null,7]`, ""}, {p.Int32, p.Int64, `[-2147483648,null,7]`, ""},
		{p.Uint8, p.Uint16, `[255,null,7]`, ""}, {p.Uint8, p.Uint32, `[255,null,7]`, ""}, {p.Uint8, p.Uint64, `[255,null,7]`, ""},
		{p.Uint16, p.Uint32, `[65535,null,7]`, ""}, {p.Uint16, p.Uint64, `[65535,null,7]`, ""}, {p.Uint32, p.Uint64, `[4294967295,null,7]`, ""},
		{arrow.FixedWidthTypes.Float16, p.Float32, `[-1.5,null,0.25]`, ""}, {arrow.FixedWidthTypes.Float16, p.Float64, `[-1.5,null,0.25]`, ""},
		{p.Float32, p.Float64, `[-1.5,null,0.25]`, ""},
	}
	for _, c := range cases {
		t.Run(c.from.String()+" to "+c.to.String(), func(t *testing.T) {
			mem := checked(t)
			stream := schema(field("ts", usUTC), field("sym", arrow.BinaryTypes.String), field("v", c.from))
			a, err := convert.NewAligner(stream, define(false, arrow.Field{Name: "v", Type: c.to, Nullable: true}))
			if err != nil {
				t.Fatal(err)
			}
			whole := record(t, mem, stream, `[0,0,0]`, `["a","a","a"]`, c.in)
			defer whole.Release()
			want := fromJSON(t, mem, c.to, c.in)
			defer want.Release()
			for from := range int64(3) { // slices must keep their validity
				part := whole.NewSlice(from, 3)
				b, err := a.Align(mem, part)
				part.Release()
				if err != nil {
					t.Fatal(err)
				}
				if !array.SliceEqual(b.Columns[2], 0, int64(b.Rows), want, from, 3) || !arrow.TypeEqual(b.Columns[2].DataType(), c.to) {
					t.Errorf("from row %d: got %v", from, b.Columns[2])
				}
				if b.Columns[3] != nil {
					t.Error("the stream has no insertion time")
				}
				b.Release()
			}
		})
	}
}

func TestWideningKeepsNaNAndNegativeZero(t *testing.T) {
	mem := checked(t)
	b := array.NewFloat32Builder(mem)
	defer b.Release()
	quiet := math.Float32frombits(0x7FC12345)
	b.AppendValues([]float32{quiet, float32(math.Copysign(0, -1)), float32(math.Inf(-1))}, nil)
	v := b.NewArray()
	defer v.Release()
	stream := schema(field("ts", usUTC), field("sym", arrow.BinaryTypes.String), field("v", v.DataType()))
	ts, sym := fromJSON(t, mem, usUTC, `[0,0,0]`), fromJSON(t, mem, arrow.BinaryTypes.String, `["a","a","a"]`)
	defer ts.Release()
	defer sym.Release()
	batch := array.NewRecordBatch(stream, []arrow.Array{ts, sym, v}, 3)
	defer batch.Release()
	a, err := convert.NewAligner(stream, define(false, field("v", arrow.PrimitiveTypes.Float64)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.Align(mem, batch)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	got := out.Columns[2].(*array.Float64)
	if math.Float64bits(got.Value(0)) != 0x7FF82468A0000000 || math.Float64bits(got.Value(1)) != 1<<63 || !math.IsInf(got.Value(2), -1) {
		t.Errorf("got %x %x %v", math.Float64bits(got.Value(0)), math.Float64bits(got.Value(1)), got.Value(2))
	}
}

// TestAlignKeepsTextLayouts checks that text passes without a needless copy
// and that views become plain.
func TestAlignKeepsTextLayouts(t *testing.T) {
	cases := []struct{ in, out arrow.DataType }{
		{arrow.BinaryTypes.String, arrow.BinaryTypes.String},
		{arrow.BinaryTypes.LargeString, arrow.BinaryTypes.LargeString},
		{arrow.BinaryTypes.StringView, arrow.BinaryTypes.String},
		{dictT, dictT},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint64, ValueType: arrow.BinaryTypes.StringView},
			&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint64, ValueType: arrow.BinaryTypes.String}},
	}
	for _, c := range cases {
		t.Run(tabledef.TypeName(c.in), func(t *testing.T) {
			mem := checked(t)
			stream := schema(field("ts", usUTC), field("sym", c.in))
			a, err := convert.NewAligner(stream, define(false))
			if err != nil {
				t.Fatal(err)
			}
			ts := fromJSON(t, mem, usUTC, `[0,0,0]`)
			defer ts.Release()
			sym := textArray(t, mem, c.in, []string{"short", "a text of more than twelve bytes", "short"})
			defer sym.Release()
			batch := array.NewRecordBatch(stream, []arrow.Array{ts, sym}, 3)
			defer batch.Release()
			b, err := a.Align(mem, batch)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Release()
			if !arrow.TypeEqual(b.Columns[1].DataType(), c.out) {
				t.Fatalf("got %s", b.Columns[1].DataType())
			}
			for i := range 3 {
				if b.Columns[1].ValueStr(i) != sym.ValueStr(i) {
					t.Errorf("row %d: got %s", i, b.Columns[1].ValueStr(i))
				}
			}
		})
	}
}

// textArray builds a text array of any layout.
func textArray(t testing.TB, mem memory.Allocator, dt arrow.DataType, values []string) arrow.Array {
	t.Helper()
	if d, ok := dt.(*arrow.DictionaryType); ok {
		dict := textArray(t, mem, d.ValueType, values)
		defer dict.Release()
		text := "["
		for i := range values {
			text += string(rune('0'+i)) + ","
		}
		indices := fromJSON(t, mem, d.IndexType, strings.TrimSuffix(text, ",")+"]")
		defer indices.Release()
		return array.NewDictionaryArray(d, indices, dict)
	}
	b := array.NewBuilder(mem, dt)
	defer b.Release()
	for _, v := range values {
		if err := b.AppendValueFromString(v); err != nil {
			t.Fatal(err)
		}
	}
	return b.NewArray()
}

func TestBatchOfAnotherSchema(t *testing.T) {
	mem := checked(t)
	stream := schema(field("ts", usUTC), field("sym", arrow.BinaryTypes.String))
	a, err := convert.NewAligner(stream, define(false))
	if err != nil {
		t.Fatal(err)
	}
	others := []*arrow.Schema{
		schema(field("ts", usUTC)),
		schema(field("ts", arrow.PrimitiveTypes.Int64), field("sym", arrow.BinaryTypes.String)),
	}
	for _, s := range others {
		batch := record(t, mem, s, []string{`[1]`, `["a"]`}[:s.NumFields()]...)
		var got *tableerr.SchemaMismatch
		if _, err := a.Align(mem, batch); !errors.As(err, &got) {
			t.Errorf("got %v", err)
		}
		batch.Release()
	}
}
