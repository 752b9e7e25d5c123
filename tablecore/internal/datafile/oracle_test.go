package datafile

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// stockRead reads a file with arrow-go's own reader.
func stockRead(t testing.TB, raw []byte, mem memory.Allocator, schema *arrow.Schema) arrow.RecordBatch {
	t.Helper()
	pq, err := file.NewParquetReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := pqarrow.NewFileReader(pq, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := reader.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	columns := make([]arrow.Array, schema.NumFields())
	for i := range columns {
		chunks := table.Column(i).Data().Chunks()
		if columns[i], err = array.Concatenate(chunks, mem); err != nil {
			t.Fatal(err)
		}
		defer columns[i].Release()
	}
	return array.NewRecordBatch(schema, columns, table.NumRows())
}

// stockWrite writes a file with arrow-go's own writer.
func stockWrite(t testing.TB, batch arrow.RecordBatch, rowGroup int64, props ...parquet.WriterProperty) []byte {
	t.Helper()
	var out bytes.Buffer
	props = append([]parquet.WriterProperty{parquet.WithMaxRowGroupLength(rowGroup)}, props...)
	w, err := pqarrow.NewFileWriter(batch.Schema(), &out, parquet.NewWriterProperties(props...), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestStockReaderReadsOurFiles(t *testing.T) {
	for _, schema := range []*arrow.Schema{flatSchema(), nestedSchema()} {
		for _, n := range []int{1, 7, 500, 33000} {
			for _, compression := range []Compression{Auto, Zstd, LZ4Raw, Cold} {
				if n > 500 && compression != Auto {
					continue
				}
				t.Run(fmt.Sprintf("columns=%d/rows=%d/%s", schema.NumFields(), n, compression), func(t *testing.T) {
					mem := checkedMem(t)
					batch := randomBatch(rand.New(rand.NewPCG(uint64(n), 5)), mem, schema, n)
					defer batch.Release()
					raw, _ := writeFile(t, schema, WriteOptions{Mem: mem, Compression: compression}, batch)
					got := stockRead(t, raw, mem, schema)
					defer got.Release()
					sameBatch(t, batch, got)
				})
			}
		}
	}
}

func TestOurReaderReadsStockFiles(t *testing.T) {
	variants := map[string][]parquet.WriterProperty{
		"v1":          {parquet.WithDataPageVersion(parquet.DataPageV1), parquet.WithDataPageSize(4 << 10)},
		"v2":          {parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithDataPageSize(4 << 10), parquet.WithCompression(compress.Codecs.Snappy)},
		"index":       {parquet.WithPageIndexEnabled(true), parquet.WithDataPageSize(4 << 10), parquet.WithBatchSize(64), parquet.WithCompression(compress.Codecs.Zstd)},
		"plain":       {parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Gzip)},
		"brotli":      {parquet.WithCompression(compress.Codecs.Brotli), parquet.WithDataPageVersion(parquet.DataPageV2)},
		"old":         {parquet.WithVersion(parquet.V1_0), parquet.WithDataPageVersion(parquet.DataPageV1)},
		"fallback":    {parquet.WithDictionaryPageSizeLimit(512), parquet.WithPageIndexEnabled(true), parquet.WithBatchSize(64), parquet.WithDataPageSize(2 << 10)},
		"intdecimals": {parquet.WithStoreDecimalAsInteger(true)},
	}
	for name, props := range variants {
		for _, schema := range []*arrow.Schema{flatSchema(), nestedSchema()} {
			t.Run(fmt.Sprintf("%s/columns=%d", name, schema.NumFields()), func(t *testing.T) {
				mem := checkedMem(t)
				batch := randomBatch(rand.New(rand.NewPCG(11, 5)), mem, schema, 2500)
				defer batch.Release()
				f := openFile(t, stockWrite(t, batch, 1000, props...), mem)
				checkReads(t, f, batch, mem)
			})
		}
	}
}

// checkReads reads a file whole and in random ranges and compares with what
// it must hold.
func checkReads(t *testing.T, f *File, want arrow.RecordBatch, mem memory.Allocator) {
	t.Helper()
	fields := want.Schema().Fields()
	got := readAll(t, f, mem, ReadRequest{Fields: fields, BatchRows: 999})
	sameBatch(t, want, got)
	got.Release()
	rng := rand.New(rand.NewPCG(9, 9))
	for i := range 4 {
		ranges := []RowRange{}
		var parts []arrow.RecordBatch
		step := want.NumRows()/5 + 2
		for row := rng.Int64N(step); row < want.NumRows(); row += rng.Int64N(step) {
			end := min(want.NumRows(), row+rng.Int64N(step))
			ranges = append(ranges, RowRange{row, end})
			parts = append(parts, want.NewSlice(row, end))
			row = end
		}
		part := joinBatches(t, mem, want.Schema(), parts)
		got := readAll(t, f, mem, ReadRequest{Fields: fields, Ranges: ranges, Join: i%2 == 0, BatchRows: 500})
		sameBatch(t, part, got)
		part.Release()
		got.Release()
		for _, p := range parts {
			p.Release()
		}
	}
}

func TestNonDefaultEncodings(t *testing.T) {
	encodings := map[string]struct {
		encoding parquet.Encoding
		types    []arrow.DataType
	}{
		"delta binary":      {parquet.Encodings.DeltaBinaryPacked, []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64}},
		"delta length":      {parquet.Encodings.DeltaLengthByteArray, []arrow.DataType{arrow.BinaryTypes.String}},
		"delta byte array":  {parquet.Encodings.DeltaByteArray, []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.Binary}},
		"byte stream split": {parquet.Encodings.ByteStreamSplit, []arrow.DataType{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.PrimitiveTypes.Int64}},
		"rle booleans":      {parquet.Encodings.RLE, []arrow.DataType{arrow.FixedWidthTypes.Boolean}},
	}
	for name, c := range encodings {
		t.Run(name, func(t *testing.T) {
			mem := checkedMem(t)
			var fields []arrow.Field
			for i, typ := range c.types {
				fields = append(fields, arrow.Field{Name: fmt.Sprint("a", i), Type: typ, Nullable: true}, arrow.Field{Name: fmt.Sprint("b", i), Type: typ})
			}
			schema := arrow.NewSchema(fields, nil)
			batch := randomBatch(rand.New(rand.NewPCG(21, 5)), mem, schema, 3000)
			defer batch.Release()
			raw := stockWrite(t, batch, 1000, parquet.WithDictionaryDefault(false), parquet.WithEncoding(c.encoding),
				parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithDataPageSize(2<<10), parquet.WithBatchSize(100), parquet.WithPageIndexEnabled(true))
			checkReads(t, openFile(t, raw, mem), batch, mem)
		})
	}
}

func nestedSchema() *arrow.Schema {
	ints := arrow.ListOf(arrow.PrimitiveTypes.Int64)
	required := arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.BinaryTypes.String})
	point := arrow.StructOf(
		arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float64},
		arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "tags", Type: arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.BinaryTypes.String, Nullable: true}), Nullable: true})
	types := []arrow.DataType{
		arrow.ListOfField(arrow.Field{Name: "element", Type: ints.Elem(), Nullable: true}),
		required,
		point,
		arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32),
		arrow.ListOfField(arrow.Field{Name: "element", Type: point, Nullable: true}),
		arrow.ListOfField(arrow.Field{Name: "element", Nullable: true,
			Type: arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.FixedWidthTypes.Boolean, Nullable: true})}),
		arrow.MapOf(arrow.PrimitiveTypes.Int32, point),
		arrow.StructOf(arrow.Field{Name: "a", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "d", Type: &arrow.Decimal128Type{Precision: 12, Scale: 3}, Nullable: true},
			arrow.Field{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}})}),
	}
	var fields []arrow.Field
	for i, typ := range types {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("n", i), Type: typ, Nullable: true}, arrow.Field{Name: fmt.Sprint("r", i), Type: typ})
	}
	return arrow.NewSchema(fields, nil)
}
