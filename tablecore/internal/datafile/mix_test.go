package datafile

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// mixSchema has a column of each encoder.
var mixSchema = arrow.NewSchema([]arrow.Field{
	{Name: "int8", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
	{Name: "int32", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "int64", Type: arrow.PrimitiveTypes.Int64},
	{Name: "time", Type: &arrow.TimestampType{Unit: arrow.Microsecond}, Nullable: true},
	{Name: "float", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
	{Name: "double", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "bytes", Type: arrow.BinaryTypes.Binary, Nullable: true},
	{Name: "bool", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "decimal", Type: &arrow.Decimal128Type{Precision: 20, Scale: 2}, Nullable: true},
	{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
}, nil)

// TestMixedGroups copies one row group of each column and encodes the others:
// the statistics are those of a file all of whose values were encoded.
func TestMixedGroups(t *testing.T) {
	mixed := map[string]int{}
	for seed := range uint64(20) {
		mem := checkedMem(t)
		rng := rand.New(rand.NewPCG(seed, 3))
		batch := randomBatch(rng, mem, mixSchema, 300)
		raw, want := writeFile(t, mixSchema, WriteOptions{Mem: mem, MaxRowsPerRowGroup: 100}, batch)
		f := openFile(t, raw, mem)
		again, written := mixedCopy(t, f, mem, batch, int(seed%3), mixed)
		for i := range written.Columns {
			if !reflect.DeepEqual(written.Columns[i], want.Columns[i]) {
				t.Errorf("seed %d: %+v, encoded %+v", seed, written.Columns[i], want.Columns[i])
			}
		}
		copyFile := openFile(t, again, mem)
		got := readAll(t, copyFile, mem, ReadRequest{Fields: mixSchema.Fields()})
		if !array.RecordEqual(got, batch) {
			t.Errorf("seed %d: other values came back", seed)
		}
		got.Release()
		batch.Release()
	}
	for _, field := range mixSchema.Fields() {
		if mixed[field.Name] == 0 {
			t.Errorf("column %q was never mixed", field.Name)
		}
	}
}

// mixedCopy copies a file; of one row group what may be mixed is not encoded.
func mixedCopy(t *testing.T, f *File, mem memory.Allocator, batch arrow.RecordBatch, group int, mixed map[string]int) ([]byte, Written) {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, mixSchema, WriteOptions{Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.Original(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for g, rows := range f.RowGroups() {
		from := make([]Origin, mixSchema.NumFields())
		for i := range from {
			if g == group && w.CanMix(o, g, i) {
				from[i] = Mixed
				mixed[mixSchema.Field(i).Name]++
			}
		}
		part := batch.NewSlice(rows.FirstRow, rows.FirstRow+rows.Rows)
		rest := only(part, func(i int) bool { return from[i] == Given })
		if err := w.CopyGroup(t.Context(), o, g, from, []arrow.RecordBatch{rest}); err != nil {
			t.Fatal(err)
		}
		rest.Release()
		part.Release()
	}
	written, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), written
}

// TestCanMix refuses values whose bounds the file does not tell.
func TestCanMix(t *testing.T) {
	mem := checkedMem(t)
	schema := arrow.NewSchema([]arrow.Field{{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	for _, c := range []struct {
		value float64
		valid bool
		text  string
		want  [2]bool
	}{
		{1, true, "", [2]bool{true, true}}, {math.NaN(), true, string(make([]byte, maxChunkBound)), [2]bool{false, true}},
		{0, false, string(make([]byte, maxChunkBound+1)), [2]bool{true, false}},
	} {
		b := array.NewRecordBuilder(mem, schema)
		b.Field(0).(*array.Float64Builder).AppendValues([]float64{c.value}, []bool{c.valid})
		b.Field(1).(*array.StringBuilder).Append(c.text)
		batch := b.NewRecordBatch()
		b.Release()
		raw, _ := writeFile(t, schema, WriteOptions{Mem: mem}, batch)
		batch.Release()
		o, err := openFile(t, raw, mem).Original(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w, err := NewWriter(&bytes.Buffer{}, schema, WriteOptions{Mem: mem})
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{w.CanMix(o, 0, 0), w.CanMix(o, 0, 1)}; got != c.want {
			t.Errorf("%v, %d bytes: %v", c.value, len(c.text), got)
		}
	}
}

// TestKnowRefuses gives encoders bounds that are none of their types.
func TestKnowRefuses(t *testing.T) {
	for _, field := range mixSchema.Fields() {
		if isNested(field.Type) || field.Type.ID() == arrow.STRING || field.Type.ID() == arrow.BINARY {
			continue // takes any
		}
		e, err := newLeafEncoder(field.Type)
		if err != nil {
			t.Fatal(err)
		}
		for _, odd := range [][]byte{nil, make([]byte, 3)} {
			if e.know(odd, odd) {
				t.Errorf("%s took %d bytes", field.Type, len(odd))
			}
		}
	}
}
