package tablecore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// trades is the schema of a table of trades.
var trades = arrow.NewSchema([]arrow.Field{
	{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{Name: "symbol", Type: arrow.BinaryTypes.String},
	{Name: "price", Type: arrow.PrimitiveTypes.Float64},
	{Name: "size", Type: arrow.PrimitiveTypes.Int64},
	{Name: "venue", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// fillTrades appends files of rows of 1,000 symbols, one after another in time or
// all of the same time.
func fillTrades(tb testing.TB, w *tablecore.Warehouse, files, rows int, overlap bool) *tablecore.Table {
	tb.Helper()
	name := tabledef.Name{Namespace: "default", Table: "ticks"}
	if _, err := w.CreateTable(tb.Context(), tablecore.CreateOptions{Name: name, IndexColumn: "ts", EntityColumns: []string{"symbol"},
		Uniqueness: "none", Schema: trades}); err != nil {
		tb.Fatal(err)
	}
	table, err := w.Table(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for file := range files {
		b := array.NewRecordBuilder(memory.DefaultAllocator, trades)
		for i := range rows {
			at := file*rows + i
			if overlap {
				at = i*files + file
			}
			b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(at * 100))
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("SYM%04d", r.IntN(1000)))
			b.Field(2).(*array.Float64Builder).Append(float64(10_000+r.IntN(1000)) / 100)
			b.Field(3).(*array.Int64Builder).Append(int64(r.IntN(100)) * 100)
			if r.IntN(10) == 0 {
				b.Field(4).(*array.StringBuilder).AppendNull()
			} else {
				b.Field(4).(*array.StringBuilder).Append([]string{"XNAS", "XNYS", "ARCX"}[r.IntN(3)])
			}
		}
		batch := b.NewRecordBatch()
		b.Release()
		_, err := table.Append(tb.Context(), tabletest.NewReader(trades, batch), tablecore.AppendOptions{})
		batch.Release()
		if err != nil {
			tb.Fatal(err)
		}
	}
	return table
}

// BenchmarkOptimize merges small files, and cuts large ones that overlap by ranges
// of the index.
func BenchmarkOptimize(b *testing.B) {
	for _, c := range []struct {
		files, rows int
		overlap     bool
	}{{1000, 1000, false}, {10, 1_000_000, true}} {
		b.Run(fmt.Sprintf("files=%d/rows=%d", c.files, c.files*c.rows), func(b *testing.B) {
			store, err := localfs.Open(b.TempDir(), localfs.Options{Create: true})
			if err != nil {
				b.Fatal(err)
			}
			w, err := tablecore.Open(b.Context(), tablecore.Options{Store: store, Maintenance: unmaintained})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			table := fillTrades(b, w, c.files, c.rows, c.overlap)
			w.WaitForBackground()
			b.ReportAllocs()
			var last *tablecore.OptimizeReport
			for b.Loop() {
				if last, err = table.Optimize(b.Context(), tablecore.OptimizeOptions{}); err != nil || last.NoOp {
					b.Fatal(last, err)
				}
				b.StopTimer()
				if _, err := table.Rollback(b.Context(), tablecore.RollbackOptions{Version: int64(c.files), ExpectedVersion: last.CommittedVersion}); err != nil {
					b.Fatal(err)
				}
				w.WaitForBackground()
				b.StartTimer()
			}
			b.ReportMetric(float64(last.Rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(last.BytesOut)/float64(last.Rows), "B/row")
			b.ReportMetric(float64(last.BytesIn)/float64(last.Rows), "B/row_before")
		})
	}
}

// distantStore takes a moment to open an object, as one over a network does.
type distantStore struct{ objstore.Store }

func (s distantStore) Sub(ctx context.Context, prefix string, create bool) (objstore.Store, error) {
	sub, err := s.Store.Sub(ctx, prefix, create)
	return distantStore{sub}, err
}

func (s distantStore) Open(ctx context.Context, key string) (objstore.Reader, error) {
	time.Sleep(5 * time.Millisecond)
	return s.Store.Open(ctx, key)
}

// BenchmarkOptimizeDistant merges small files of a store that answers slowly.
func BenchmarkOptimizeDistant(b *testing.B) {
	const files = 100
	w, err := tablecore.Open(b.Context(), tablecore.Options{Store: distantStore{memstore.New()}})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	table := fillTrades(b, w, files, 100, false)
	w.WaitForBackground()
	for b.Loop() {
		last, err := table.Optimize(b.Context(), tablecore.OptimizeOptions{})
		if err != nil || last.NoOp {
			b.Fatal(last, err)
		}
		b.StopTimer()
		if _, err := table.Rollback(b.Context(), tablecore.RollbackOptions{Version: files, ExpectedVersion: last.CommittedVersion}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(files*float64(b.N)/b.Elapsed().Seconds(), "files/s")
}
