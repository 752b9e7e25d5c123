package tablecore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/tabletest"
)

// The table of BenchmarkOverwrite: one row a symbol and second.
const (
	tickSymbols = 1000
	tickSeconds = 1000
)

var tickSchema = arrow.NewSchema([]arrow.Field{
	{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{Name: "symbol", Type: arrow.BinaryTypes.String},
	{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "size", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "venue", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// tickRows makes rows of the symbols and seconds numbered by cells, a batch at a
// time.
func tickRows(cells []int) []arrow.RecordBatch {
	rng := rand.New(rand.NewPCG(3, 3))
	b := array.NewRecordBuilder(memory.DefaultAllocator, tickSchema)
	defer b.Release()
	var out []arrow.RecordBatch
	for part := range slices.Chunk(cells, 65536) {
		for _, cell := range part {
			b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(cell/tickSymbols*1_000_000 + rng.IntN(1_000_000)))
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("S%04d", cell%tickSymbols))
			b.Field(2).(*array.Float64Builder).Append(float64(rng.IntN(100_000)) / 100)
			b.Field(3).(*array.Int32Builder).Append(int32(rng.IntN(1000)))
			b.Field(4).(*array.StringBuilder).Append([]string{"XNYS", "XNAS", "ARCX", "BATS"}[rng.IntN(4)])
		}
		out = append(out, b.NewRecordBatch())
	}
	return out
}

// BenchmarkOverwrite measures appends that replace a part of a million rows: a
// stretch of time, or rows here and there, beside an append of as many new rows.
// Between two appends the table is rolled back.
func BenchmarkOverwrite(b *testing.B) {
	const all = tickSymbols * tickSeconds
	for _, percent := range []int{1, 10, 100} {
		n := all * percent / 100
		stretch := make([]int, n)
		for i := range stretch {
			stretch[i] = i
		}
		fresh := make([]int, n)
		for i := range fresh {
			fresh[i] = all + i
		}
		scattered := rand.New(rand.NewPCG(5, 5)).Perm(all)[:n]
		slices.Sort(scattered)
		for _, kind := range []struct {
			name  string
			cells []int
		}{{"new", fresh}, {"stretch", stretch}, {"scattered", scattered}} {
			b.Run(fmt.Sprintf("percent=%d/rows=%s", percent, kind.name), func(b *testing.B) { benchmarkOverwrite(b, kind.cells) })
		}
	}
}

func benchmarkOverwrite(b *testing.B, cells []int) {
	store, err := localfs.Open(b.TempDir(), localfs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w := tabletest.Warehouse(b, store, memory.DefaultAllocator)
	if _, err := w.CreateTable(b.Context(), tablecore.CreateOptions{Name: weatherName, IndexColumn: "ts", IndexGranularity: "1s", EntityColumns: []string{"symbol"},
		Uniqueness: "overwrite", Schema: tickSchema}); err != nil {
		b.Fatal(err)
	}
	table := openWeather(b, w)
	base := make([]int, tickSymbols*tickSeconds)
	for i := range base {
		base[i] = i
	}
	if _, err := table.Append(b.Context(), tabletest.NewReader(tickSchema, tickRows(base)...), tablecore.AppendOptions{}); err != nil {
		b.Fatal(err)
	}
	rows := tickRows(cells)
	resetPeak(b)
	b.ResetTimer()
	for range b.N {
		r, err := table.Append(b.Context(), tabletest.NewReader(tickSchema, rows...), tablecore.AppendOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if r.RowsReplaced != 0 && r.RowsReplaced != int64(len(cells)) {
			b.Fatalf("%d rows were replaced", r.RowsReplaced)
		}
		b.StopTimer()
		if _, err := table.Rollback(b.Context(), tablecore.RollbackOptions{Version: 1, ExpectedVersion: r.CommittedVersion}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.StopTimer()
	reportPeak(b)
	b.ReportMetric(float64(len(cells))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
