package tablecore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/tabletest"
)

// BenchmarkAppend measures small appends of several clients to one table on
// disk, behind a short and a long history: each is a commit of its own.
func BenchmarkAppend(b *testing.B) {
	for _, history := range []int{10, 10_000} {
		store, err := localfs.Open(b.TempDir(), localfs.Options{})
		if err != nil {
			b.Fatal(err)
		}
		w := tabletest.Warehouse(b, store, memory.DefaultAllocator)
		if _, err := w.CreateTable(b.Context(), weatherOptions()); err != nil {
			b.Fatal(err)
		}
		table := openWeather(b, w)
		a := &appender{table: table}
		a.run(b, 64, history, false)
		for _, clients := range []int{1, 16} {
			for _, ids := range []bool{false, true} {
				b.Run(fmt.Sprintf("history=%d/clients=%d/request_id=%v", history, clients, ids), func(b *testing.B) {
					resetPeak(b)
					a.run(b, clients, b.N, ids)
					reportPeak(b)
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
				})
			}
		}
	}
}

// appender appends one row after the other.
type appender struct {
	table *tablecore.Table
	hour  atomic.Int64
}

func (a *appender) run(b *testing.B, clients, n int, ids bool) {
	var left atomic.Int64
	left.Store(int64(n))
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				at := int(a.hour.Add(1))
				var o tablecore.AppendOptions
				if ids {
					o.RequestID = fmt.Sprint("id-", at)
				}
				if _, err := appendJSON(a.table, rowsOf(rowAt("EWR", at, "1")), o); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}
