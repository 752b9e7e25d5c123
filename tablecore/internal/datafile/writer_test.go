package datafile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// batchOf makes a batch of one nullable column from JSON.
func batchOf(t testing.TB, mem memory.Allocator, typ arrow.DataType, values string) arrow.RecordBatch {
	t.Helper()
	arr, _, err := array.FromJSON(mem, typ, strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	defer arr.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: typ, Nullable: true}}, nil)
	return array.NewRecordBatch(schema, []arrow.Array{arr}, int64(arr.Len()))
}

func TestColumnStats(t *testing.T) {
	us := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	long := strings.Repeat("é", 40)
	cases := []struct {
		name   string
		typ    arrow.DataType
		values string
		want   ColumnStats
	}{
		{"bool", arrow.FixedWidthTypes.Boolean, `[true, null, false]`, ColumnStats{Min: false, Max: true, NullCount: 1}},
		{"bool of one value", arrow.FixedWidthTypes.Boolean, `[true, true]`, ColumnStats{Min: true, Max: true}},
		{"int8", arrow.PrimitiveTypes.Int8, `[5, -128, 127]`, ColumnStats{Min: int8(-128), Max: int8(127)}},
		{"int16", arrow.PrimitiveTypes.Int16, `[5, null, -7]`, ColumnStats{Min: int16(-7), Max: int16(5), NullCount: 1}},
		{"int32", arrow.PrimitiveTypes.Int32, `[5]`, ColumnStats{Min: int32(5), Max: int32(5)}},
		{"int64", arrow.PrimitiveTypes.Int64, `[-9223372036854775808, 9223372036854775807]`, ColumnStats{Min: int64(math.MinInt64), Max: int64(math.MaxInt64)}},
		{"date", arrow.FixedWidthTypes.Date32, `[3, 1]`, ColumnStats{Min: arrow.Date32(1), Max: arrow.Date32(3)}},
		{"timestamp", us, `[3, 1]`, ColumnStats{Min: arrow.Timestamp(1), Max: arrow.Timestamp(3)}},
		{"float32", arrow.PrimitiveTypes.Float32, `[1.5, -2]`, ColumnStats{Min: float32(-2), Max: float32(1.5)}},
		{"float64", arrow.PrimitiveTypes.Float64, `[1.5, -2]`, ColumnStats{Min: -2.0, Max: 1.5}},
		{"decimal", &arrow.Decimal128Type{Precision: 10, Scale: 2}, `["1.00", "-3.25"]`, ColumnStats{Min: decimal128.FromI64(-325), Max: decimal128.FromI64(100)}},
		{"string", arrow.BinaryTypes.String, `["b", "a", null, "c"]`, ColumnStats{Min: "a", Max: "c", NullCount: 1}},
		{"long string", arrow.BinaryTypes.String, `["` + long + `"]`,
			ColumnStats{Min: strings.Repeat("é", 32), Max: strings.Repeat("é", 32) + "\U0010FFFF", MinCut: true, MaxCut: true}},
		{"string beyond the greatest character", arrow.BinaryTypes.String, `["` + strings.Repeat("x", 32) + "\U0010FFFF" + `z"]`,
			ColumnStats{Min: strings.Repeat("x", 32), Max: strings.Repeat("x", 32) + "\U0010FFFF\U0010FFFF", MinCut: true, MaxCut: true}},
		{"binary", arrow.BinaryTypes.Binary, `["AQI=", "AQ=="]`, ColumnStats{Min: []byte{1}, Max: []byte{1, 2}}},
		{"no value", arrow.PrimitiveTypes.Int64, `[null, null]`, ColumnStats{NullCount: 2}},
		{"nested", arrow.ListOf(arrow.PrimitiveTypes.Int64), `[null, [1]]`, ColumnStats{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			mem := checkedMem(t)
			batch := batchOf(t, mem, c.typ, c.values)
			defer batch.Release()
			_, written := writeFile(t, batch.Schema(), WriteOptions{Mem: mem, MaxRowsPerRowGroup: 2}, batch)
			c.want.Name = "v"
			if !reflect.DeepEqual(written.Columns, []ColumnStats{c.want}) {
				t.Errorf("got %+v, want %+v", written.Columns[0], c.want)
			}
		})
	}
}

func TestStatsOfNaN(t *testing.T) {
	mem := checkedMem(t)
	b := array.NewFloat64Builder(mem)
	b.AppendValues([]float64{math.NaN(), 2, math.Inf(1), 0}, nil)
	arr := b.NewArray()
	b.Release()
	defer arr.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Float64}}, nil)
	batch := array.NewRecordBatch(schema, []arrow.Array{arr}, 4)
	defer batch.Release()
	raw, written := writeFile(t, schema, WriteOptions{Mem: mem}, batch)
	if s := written.Columns[0]; !s.HasNaN || s.Min.(float64) != 0 || s.Max.(float64) != math.Inf(1) {
		t.Errorf("%+v", s)
	}
	if s := stockStats(t, raw); s.HasMinMax() {
		t.Errorf("a chunk with NaN has bounds: %v", s)
	}
}

func TestZeroBoundsCoverBothSigns(t *testing.T) {
	batch := batchOf(t, memory.DefaultAllocator, arrow.PrimitiveTypes.Float64, `[0, 0]`)
	raw, _ := writeFile(t, batch.Schema(), WriteOptions{}, batch)
	encoded, err := stockStats(t, raw).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encoded.Min, plainFloat64(math.Copysign(0, -1))) || !bytes.Equal(encoded.Max, plainFloat64(0)) {
		t.Errorf("%x to %x", encoded.Min, encoded.Max)
	}
}

func stockStats(t *testing.T, raw []byte) interface {
	HasMinMax() bool
	Encode() (metadata.EncodedStatistics, error)
} {
	t.Helper()
	pq, err := file.NewParquetReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := pq.MetaData().RowGroup(0).ColumnChunk(0)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := chunk.Statistics()
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

func TestLongBoundsAreCutInThePageIndexOnly(t *testing.T) {
	long := strings.Repeat("k", 300)
	batch := batchOf(t, memory.DefaultAllocator, arrow.BinaryTypes.String, `["`+long+`1", "`+long+`2"]`)
	raw, _ := writeFile(t, batch.Schema(), WriteOptions{}, batch)
	if stockStats(t, raw).HasMinMax() {
		t.Error("the chunk has bounds that are too long")
	}
	pq, err := file.NewParquetReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	group, err := pq.GetPageIndexReader().RowGroup(0)
	if err != nil {
		t.Fatal(err)
	}
	index, err := group.GetColumnIndex(0)
	if err != nil {
		t.Fatal(err)
	}
	low, high := string(index.GetMinValues()[0]), string(index.GetMaxValues()[0])
	if low != long[:64] || high != long[:64]+"\U0010FFFF" {
		t.Errorf("%q to %q", low, high)
	}
}

// dictOf makes a dictionary array of strings; index -1 is null.
func dictOf(mem memory.Allocator, values []string, nullValue int, indices ...int32) arrow.Array {
	vb := array.NewStringBuilder(mem)
	defer vb.Release()
	for i, v := range values {
		if i == nullValue {
			vb.AppendNull()
		} else {
			vb.Append(v)
		}
	}
	ib := array.NewInt32Builder(mem)
	defer ib.Release()
	for _, i := range indices {
		if i < 0 {
			ib.AppendNull()
		} else {
			ib.Append(i)
		}
	}
	dict, index := vb.NewArray(), ib.NewArray()
	defer dict.Release()
	defer index.Release()
	return array.NewDictionaryArray(dictString, index, dict)
}

func TestDictionaryArrays(t *testing.T) {
	mem := checkedMem(t)
	shared := dictOf(mem, []string{"a", "b", "never used", "b"}, -1, 0, 1, -1, 3, 0, 0, 1)
	other := dictOf(mem, []string{"b", "", "c"}, 1, 0, 1, 2, 2, -1, 0)
	sliced := array.NewSlice(shared, 2, 6)
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	var batches []arrow.RecordBatch
	for _, arr := range []arrow.Array{shared, shared, other, sliced} {
		dictSchema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: dictString, Nullable: true}}, nil)
		batches = append(batches, array.NewRecordBatch(dictSchema, []arrow.Array{arr}, int64(arr.Len())))
	}
	plain := batchOf(t, mem, arrow.BinaryTypes.String, `["c", "z", null, "a"]`)
	batches = append(batches, plain)
	defer func() {
		shared.Release()
		other.Release()
		sliced.Release()
		for _, b := range batches {
			b.Release()
		}
	}()
	raw, written := writeFile(t, schema, WriteOptions{Mem: mem}, batches...)
	want := batchOf(t, mem, arrow.BinaryTypes.String,
		`["a","b",null,"b","a","a","b", "a","b",null,"b","a","a","b", "b",null,"c","c",null,"b", null,"b","a","a", "c","z",null,"a"]`)
	defer want.Release()
	f := openFile(t, raw, mem)
	got := readAll(t, f, mem, ReadRequest{Fields: schema.Fields()})
	defer got.Release()
	sameBatch(t, want, got)
	if s := written.Columns[0]; s.NullCount != 6 || s.Min != "a" || s.Max != "z" {
		t.Errorf("%+v", s)
	}
}

func TestRowGroupLimits(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	mem := checkedMem(t)
	batch := batchOf(t, mem, arrow.PrimitiveTypes.Int64, "["+strings.Repeat("7,", 99)+"7]")
	defer batch.Release()
	var out bytes.Buffer
	w, err := NewWriter(&out, schema, WriteOptions{MaxRowsPerRowGroup: 60, Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	w.SetMeta("contrail.test", "ü")
	for i, end := range []bool{false, true, true} {
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
		if end {
			if err := w.EndRowGroup(); err != nil {
				t.Fatal(err)
			}
		}
		if want := []int{1, 4, 6}[i]; w.RowGroups() != want || w.Rows() != int64(100*(i+1)) {
			t.Fatalf("%d row groups, %d rows after batch %d", w.RowGroups(), w.Rows(), i)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(batch); !errors.Is(err, errClosed) {
		t.Errorf("writing after Close: %v", err)
	}
	f := openFile(t, out.Bytes(), mem)
	var rows []int64
	for _, g := range f.RowGroups() {
		rows = append(rows, g.Rows)
	}
	if fmt.Sprint(rows) != "[60 60 60 20 60 40]" {
		t.Errorf("row groups of %v rows", rows)
	}
	if v, ok := f.Meta("contrail.test"); v != "ü" || !ok {
		t.Errorf("metadata %q %v", v, ok)
	}
	if _, ok := f.Meta("absent"); ok {
		t.Error("absent metadata found")
	}
	small, _ := writeFile(t, schema, WriteOptions{MaxBytesPerRowGroup: 200, Mem: mem}, batch)
	if n := len(openFile(t, small, mem).RowGroups()); n < 4 || n > 6 {
		t.Errorf("%d row groups of 200 bytes for 100 rows of 8", n)
	}
}

// TestRowGroupWithoutRows reads what pyarrow 26.0.1 writes of a table without
// rows.
func TestRowGroupWithoutRows(t *testing.T) {
	raw, err := os.ReadFile("testdata/norows.parquet")
	if err != nil {
		t.Fatal(err)
	}
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	f := openFile(t, raw, mem)
	if groups := f.RowGroups(); len(groups) != 1 || groups[0].Rows != 0 {
		t.Fatalf("row groups %+v", groups)
	}
	fields := []arrow.Field{{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}, {Name: "i", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}}
	rows, err := f.Read(t.Context(), ReadRequest{Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	if batch, err := rows.Next(t.Context()); err != io.EOF {
		t.Errorf("got %v, %v", batch, err)
	}
}

func TestEmptyFile(t *testing.T) {
	raw, written := writeFile(t, flatSchema(), WriteOptions{})
	if written.Rows != 0 || written.RowGroups != 0 || len(written.Columns) != flatSchema().NumFields() {
		t.Errorf("%+v", written)
	}
	got := readAll(t, openFile(t, raw, nil), memory.DefaultAllocator, ReadRequest{Fields: flatSchema().Fields()})
	if got.NumRows() != 0 {
		t.Error("rows in an empty file")
	}
}

func TestLongStringsCutPages(t *testing.T) {
	mem := checkedMem(t)
	b := array.NewStringBuilder(mem)
	for i := range 40 {
		b.Append(fmt.Sprint(i, strings.Repeat("x", 200_000)))
	}
	arr := b.NewArray()
	b.Release()
	defer arr.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.BinaryTypes.String}}, nil)
	batch := array.NewRecordBatch(schema, []arrow.Array{arr}, 40)
	defer batch.Release()
	raw, _ := writeFile(t, schema, WriteOptions{Mem: mem}, batch)
	f := openFile(t, raw, mem)
	pages, err := f.footer.pageLocations(exactSource{f.src}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(pages[0]); n < 5 || n > 9 {
		t.Errorf("%d pages for 8 MB", n)
	}
	checkReads(t, f, batch, mem)
}

// TestEqualPaths writes a column whose name is the dotted path of another's
// child, each with its own encoding and codec.
func TestEqualPaths(t *testing.T) {
	mem := checkedMem(t)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "a.b", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "a", Type: arrow.StructOf(arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}), Nullable: true},
		{Name: "a.b.c", Type: arrow.PrimitiveTypes.Float64},
	}, nil)
	batch := randomBatch(rand.New(rand.NewPCG(3, 3)), mem, schema, 2000)
	defer batch.Release()
	raw, _ := writeFile(t, schema, WriteOptions{Mem: mem}, batch)
	checkReads(t, openFile(t, raw, mem), batch, mem)
	got := stockRead(t, raw, mem, schema)
	defer got.Release()
	sameBatch(t, batch, got)
}

func TestWriterRefuses(t *testing.T) {
	int64s := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Int64}}, nil)
	strs := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.BinaryTypes.String}}, nil)
	badIndex := func() arrow.RecordBatch {
		arr := dictOf(memory.DefaultAllocator, []string{"a"}, -1, 0, 5)
		return array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "v", Type: dictString}}, nil), []arrow.Array{arr}, 2)
	}()
	two := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}, {Name: "b", Type: arrow.PrimitiveTypes.Int64}}, nil),
		[]arrow.Array{array.MakeArrayOfNull(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, 1), array.MakeArrayOfNull(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, 1)}, 1)
	nullInside := batchOf(t, memory.DefaultAllocator, arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1, null]]`)
	strict := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64), Nullable: true}}, nil)
	cases := []struct {
		name   string
		schema *arrow.Schema
		batch  arrow.RecordBatch
		want   string
	}{
		{"another type", int64s, batchOf(t, memory.DefaultAllocator, arrow.PrimitiveTypes.Int32, `[1]`), `column "v" is stored as int64, not as int32`},
		{"a null", int64s, batchOf(t, memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, `[null]`), `column "v" may not be null`},
		{"more columns", int64s, two, "a batch of 2 columns cannot be written to a file of 1"},
		{"an index outside its dictionary", strs, badIndex, "refers to value 5 of a dictionary of 1"},
		{"another nullability inside", strict, nullInside, "is stored as"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w, err := NewWriter(&bytes.Buffer{}, c.schema, WriteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			err = w.Write(c.batch)
			if err == nil {
				err = w.EndRowGroup()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
			if _, again := w.Close(); again != err {
				t.Errorf("Close says %v after %v", again, err)
			}
		})
	}
}

func TestNewWriterRefuses(t *testing.T) {
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Uint64, arrow.FixedWidthTypes.Duration_ns, arrow.Null, arrow.StructOf(), arrow.ListOf(arrow.PrimitiveTypes.Uint8)} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: typ, Nullable: true}}, nil)
		if _, err := NewWriter(&bytes.Buffer{}, schema, WriteOptions{}); err == nil {
			t.Errorf("%s was accepted", typ)
		}
	}
}

// failingWriter fails once it has taken so many bytes.
type failingWriter struct{ left int }

var errDisk = errors.New("disk full")

func (f *failingWriter) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return f.left, errDisk
	}
	f.left -= len(p)
	return len(p), nil
}

func TestWriteErrorsPassThrough(t *testing.T) {
	mem := checkedMem(t)
	batch := batchOf(t, mem, arrow.PrimitiveTypes.Int64, `[1, 2, 3]`)
	defer batch.Release()
	raw, _ := writeFile(t, batch.Schema(), WriteOptions{Mem: mem}, batch)
	for n := range len(raw) {
		w, err := NewWriter(&failingWriter{n}, batch.Schema(), WriteOptions{Mem: mem})
		if err == nil {
			err = w.Write(batch)
		}
		if err == nil {
			_, err = w.Close()
		}
		if !errors.Is(err, errDisk) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	w, err := NewWriter(&failingWriter{len(raw)}, batch.Schema(), WriteOptions{Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	w.SetMeta("k", "\xff")
	if _, err := w.Close(); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("metadata that is no UTF-8: %v", err)
	}
}

// TestCold: columns that gain much by Zstandard are compressed by it, whether an
// append would compress them or not; others are as an append writes them.
func TestCold(t *testing.T) {
	const rows = 40_000
	schema := arrow.NewSchema([]arrow.Field{{Name: "random", Type: arrow.PrimitiveTypes.Int64}, {Name: "periodic", Type: arrow.PrimitiveTypes.Int64},
		{Name: "price", Type: arrow.PrimitiveTypes.Float64}, {Name: "note", Type: arrow.BinaryTypes.String},
		{Name: "long", Type: arrow.BinaryTypes.String}, {Name: "short", Type: arrow.BinaryTypes.String}}, nil)
	mem := checkedMem(t)
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(rng.Int64())
		b.Field(1).(*array.Int64Builder).Append(int64(i % 7 * 1000))
		b.Field(2).(*array.Float64Builder).Append(rng.Float64() * float64(i/1000%2)) // thousands of zeros, of random values
		note := ""
		for range 8 {
			note += fmt.Sprintf("word %d ", rng.IntN(50))
		}
		b.Field(3).(*array.StringBuilder).Append(note)
		b.Field(4).(*array.StringBuilder).Append(strings.Repeat(fmt.Sprint("value ", i%1000), 40))
		b.Field(5).(*array.StringBuilder).Append(fmt.Sprint(i % 7))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	raw, _ := writeFile(t, schema, WriteOptions{Mem: mem, Compression: Cold}, batch)
	f := openFile(t, raw, mem)
	none, snappy, zstd := compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Zstd
	for i, want := range []compress.Compression{none, zstd, snappy, zstd, zstd, none} {
		if got := f.footer.chunks[i].codec; got != want {
			t.Errorf("column %s: %s", schema.Field(i).Name, got)
		}
	}
	got := readAll(t, f, mem, ReadRequest{Fields: schema.Fields()})
	defer got.Release()
	sameBatch(t, batch, got)
}

func TestCompressionNames(t *testing.T) {
	for _, c := range []Compression{Auto, Zstd, Snappy, LZ4Raw, Uncompressed} {
		if got, err := ParseCompression(strings.ToUpper(c.String())); err != nil || got != c {
			t.Errorf("%s: %v %v", c, got, err)
		}
	}
	if c, err := ParseCompression(""); c != Auto || err != nil {
		t.Errorf("no name: %v %v", c, err)
	}
	if _, err := ParseCompression("gzip"); err == nil || !strings.Contains(err.Error(), "zstd") {
		t.Errorf("gzip: %v", err)
	}
	if _, err := ParseCompression(Cold.String()); err == nil {
		t.Error("files are made cold by name")
	}
	if s := Compression(99).String(); s != "compression(99)" {
		t.Error(s)
	}
}
