package ingest

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/objstore/localfs"
)

// BenchmarkSpill compares appends of shuffled ticks in memory with those that
// have a fraction of the memory they need, from batches in memory to fsynced
// files on local disk.
func BenchmarkSpill(b *testing.B) {
	for _, rows := range []int{1_000_000, 10_000_000} {
		var input *batches
		for _, part := range []int64{1, 4, 16} {
			b.Run(fmt.Sprintf("rows=%d/memory=1÷%d", rows, part), func(b *testing.B) {
				if input == nil {
					input = &batches{tickSchema, ticks(b, rows, true)}
				}
				store, err := localfs.Open(b.TempDir(), localfs.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer store.Close()
				cfg := testConfig(b, tickDefinition(), memory.DefaultAllocator)
				cfg.Store, cfg.Rows, cfg.Scratch = store, OffHeap(), scratch.Dir(b.TempDir())
				cfg.MemoryBudget = int64(rows) * (28 + sortBytes) / part
				b.ReportAllocs()
				used := -cpuTime()
				for b.Loop() {
					result, err := Run(context.Background(), cfg, &batches{input.schema, input.left})
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					used += cpuTime()
					result.Discard(context.Background(), store)
					used -= cpuTime()
					b.StartTimer()
				}
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
				b.ReportMetric((used+cpuTime()).Seconds()/float64(b.N), "cpu-s/op")
			})
		}
	}
}
