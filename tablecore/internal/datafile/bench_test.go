package datafile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"contrail/tablecore/bufpool"
)

var tickSchema = arrow.NewSchema([]arrow.Field{
	{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{Name: "symbol", Type: arrow.BinaryTypes.String},
	{Name: "price", Type: arrow.PrimitiveTypes.Float64},
	{Name: "size", Type: arrow.PrimitiveTypes.Int64},
	{Name: "flag", Type: arrow.FixedWidthTypes.Boolean},
	{Name: "venue", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

var dictString = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}

// ticks makes rows sorted by (symbol, ts) in batches of 64 Ki; strings are
// dictionary arrays where dict is set.
func ticks(rows, symbols int, dict bool) []arrow.RecordBatch {
	mem := memory.DefaultAllocator
	rng := rand.New(rand.NewPCG(7, 7))
	venues := []string{"NYSE", "NASDAQ", "ARCA", "BATS", "IEX", "EDGX", "MEMX", "PHLX"}
	names := array.NewStringBuilder(mem)
	for i := range symbols {
		names.Append(fmt.Sprintf("SYM%04d", i))
	}
	symbolDict := names.NewStringArray()
	for _, v := range venues {
		names.Append(v)
	}
	venueDict := names.NewStringArray()
	perSymbol := rows / symbols
	var out []arrow.RecordBatch
	at, price := int64(1_700_000_000_000_000), 100.0
	for from := 0; from < rows; from += 64 << 10 {
		n := min(64<<10, rows-from)
		ts := array.NewTimestampBuilder(mem, tickSchema.Field(0).Type.(*arrow.TimestampType))
		symbol, venue := array.NewInt32Builder(mem), array.NewInt32Builder(mem)
		prices, sizes, flags := array.NewFloat64Builder(mem), array.NewInt64Builder(mem), array.NewBooleanBuilder(mem)
		for i := from; i < from+n; i++ {
			if i%perSymbol == 0 {
				at, price = 1_700_000_000_000_000, 50+100*rng.Float64()
			}
			at += int64(rng.ExpFloat64() * 2e6)
			price += float64(rng.IntN(21)-10) / 100
			ts.Append(arrow.Timestamp(at))
			symbol.Append(int32(min(i/perSymbol, symbols-1)))
			prices.Append(float64(int(price*100)) / 100)
			sizes.Append(int64(rng.IntN(50)+1) * 100)
			flags.Append(rng.IntN(10) == 0)
			if rng.IntN(20) == 0 {
				venue.AppendNull()
			} else {
				venue.Append(int32(rng.IntN(len(venues))))
			}
		}
		columns := []arrow.Array{ts.NewArray(), nil, prices.NewArray(), sizes.NewArray(), flags.NewArray(), nil}
		columns[1] = array.NewDictionaryArray(dictString, symbol.NewArray(), symbolDict)
		columns[5] = array.NewDictionaryArray(dictString, venue.NewArray(), venueDict)
		fields := tickSchema.Fields()
		fields[1].Type, fields[5].Type = dictString, dictString
		if !dict {
			for _, c := range []int{1, 5} {
				columns[c] = plainStrings(columns[c].(*array.Dictionary))
			}
			fields = tickSchema.Fields()
		}
		out = append(out, array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(n)))
	}
	return out
}

func plainStrings(d *array.Dictionary) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	values := d.Dictionary().(*array.String)
	for i := range d.Len() {
		if d.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(values.Value(d.GetValueIndex(i)))
		}
	}
	return b.NewArray()
}

func writeTicks(b testing.TB, batches []arrow.RecordBatch, opts WriteOptions) []byte {
	var out bytes.Buffer
	w, err := NewWriter(&out, tickSchema, opts)
	if err != nil {
		b.Fatal(err)
	}
	for _, batch := range batches {
		if err := w.Write(batch); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

func BenchmarkWrite(b *testing.B) {
	const rows = 1 << 20
	for _, dict := range []bool{true, false} {
		batches := ticks(rows, 1000, dict)
		for _, c := range []Compression{Auto, Zstd, Cold} {
			b.Run(fmt.Sprintf("rows=%d/dictionaries=%v/%s", rows, dict, c), func(b *testing.B) {
				var size int
				for b.Loop() {
					size = len(writeTicks(b, batches, WriteOptions{Compression: c}))
				}
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
				b.ReportMetric(float64(size)/rows, "B/row")
			})
		}
	}
}

func BenchmarkWriteSmall(b *testing.B) {
	for _, rows := range []int{1, 1000} {
		batch := ticks(rows, 1, true)
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			for b.Loop() {
				writeTicks(b, batch, WriteOptions{})
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	const rows = 1 << 20
	raw := writeTicks(b, ticks(rows, 1000, true), WriteOptions{})
	f := openFile(b, raw, &bufpool.Pool{})
	read := func(b *testing.B, fields []arrow.Field) {
		for b.Loop() {
			if n := drain(b, f, ReadRequest{Fields: fields}); n != rows {
				b.Fatal(n)
			}
		}
		b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
	}
	b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) { read(b, tickSchema.Fields()) })
	for _, field := range tickSchema.Fields() {
		b.Run(fmt.Sprintf("rows=%d/column=%s", rows, field.Name), func(b *testing.B) { read(b, []arrow.Field{field}) })
	}
}

// BenchmarkStockRead reads the same file with arrow-go's record reader, the
// yardstick for BenchmarkRead.
func BenchmarkStockRead(b *testing.B) {
	const rows = 1 << 20
	raw := writeTicks(b, ticks(rows, 1000, true), WriteOptions{})
	b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
		for b.Loop() {
			pq, err := file.NewParquetReader(bytes.NewReader(raw))
			if err != nil {
				b.Fatal(err)
			}
			reader, err := pqarrow.NewFileReader(pq, pqarrow.ArrowReadProperties{BatchSize: DefaultBatchRows}, memory.DefaultAllocator)
			if err != nil {
				b.Fatal(err)
			}
			records, err := reader.GetRecordReader(context.Background(), nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			n := int64(0)
			for records.Next() {
				n += records.RecordBatch().NumRows()
			}
			records.Release()
			if n != rows {
				b.Fatal(n)
			}
		}
		b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
	})
}

func BenchmarkReadEntity(b *testing.B) {
	const rows = 1 << 20
	raw := writeTicks(b, ticks(rows, 100, true), WriteOptions{})
	f := openFile(b, raw, &bufpool.Pool{})
	rng := rand.New(rand.NewPCG(1, 1))
	b.Run("rows=10485", func(b *testing.B) {
		for b.Loop() {
			at := int64(rng.IntN(100)) * 10485
			if n := drain(b, f, ReadRequest{Fields: tickSchema.Fields(), Ranges: []RowRange{{at, at + 10485}}}); n != 10485 {
				b.Fatal(n)
			}
		}
	})
	b.Run("latest=100", func(b *testing.B) {
		var ranges []RowRange
		for i := range int64(100) {
			ranges = append(ranges, RowRange{i*10485 + 10484, i*10485 + 10485})
		}
		for b.Loop() {
			if n := drain(b, f, ReadRequest{Fields: tickSchema.Fields(), Ranges: ranges, Join: true}); n != 100 {
				b.Fatal(n)
			}
		}
	})
}

func drain(b testing.TB, f *File, req ReadRequest) int64 {
	rows, err := f.Read(context.Background(), req)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Release()
	n := int64(0)
	for {
		batch, err := rows.Next(context.Background())
		if err == io.EOF {
			return n
		}
		if err != nil {
			b.Fatal(err)
		}
		n += batch.NumRows()
	}
}
