package ingest

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sys/unix"

	"contrail/tablecore/internal/interval"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
)

// batches is a RowReader over batches in memory.
type batches struct {
	schema *arrow.Schema
	left   []arrow.RecordBatch
}

func (b *batches) Schema() *arrow.Schema { return b.schema }

func (b *batches) Next(context.Context) (arrow.RecordBatch, error) {
	if len(b.left) == 0 {
		return nil, io.EOF
	}
	next := b.left[0]
	b.left = b.left[1:]
	return next, nil
}

// testConfig is a Config with a fixed clock and counted file names.
func testConfig(tb testing.TB, def *tabledef.Definition, mem memory.Allocator) Config {
	tb.Helper()
	domain, err := interval.New(def.IndexType, def.IndexUnit(), def.Granularity)
	if err != nil {
		tb.Fatal(err)
	}
	var names atomic.Int64
	return Config{Def: def, Domain: domain, Mem: mem, Software: "contrail/test",
		Now: func() time.Time { return time.UnixMicro(1_800_000_000_123_456) },
		NewID: func() (string, error) {
			n := names.Add(1)
			return fmt.Sprintf("%02x-file-%04d", n%256, n), nil
		}}
}

// cpuTime is what the process has used; unlike the wall clock it means the same
// on a machine that others use too.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRun measures an append from batches in memory to fsynced files on
// local disk.
func BenchmarkRun(b *testing.B) {
	for _, rows := range []int{1_000_000, 10_000_000} {
		for _, shuffled := range []bool{false, true} {
			order := "time"
			if shuffled {
				order = "shuffled"
			}
			b.Run(fmt.Sprintf("rows=%d/order=%s", rows, order), func(b *testing.B) {
				input := ticks(b, rows, shuffled)
				store, err := localfs.Open(b.TempDir(), localfs.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer store.Close()
				cfg := testConfig(b, tickDefinition(), memory.DefaultAllocator)
				cfg.Store = store
				b.ReportAllocs()
				b.ResetTimer()
				var bytes int64
				used := -cpuTime()
				for range b.N {
					result, err := Run(context.Background(), cfg, &batches{tickSchema, input})
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					used += cpuTime()
					bytes = 0
					for _, f := range result.Files {
						bytes += f.Bytes
					}
					result.Discard(context.Background(), store)
					used -= cpuTime()
					b.StartTimer()
				}
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
				b.ReportMetric((used+cpuTime()).Seconds()/float64(b.N), "cpu-s/op")
				b.ReportMetric(float64(bytes)/float64(rows), "filebytes/row")
			})
		}
	}
}

// BenchmarkRunSmall measures what a small append costs without a disk.
func BenchmarkRunSmall(b *testing.B) {
	for _, rows := range []int{1, 1000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			input := ticks(b, rows, false)
			cfg := testConfig(b, tickDefinition(), memory.DefaultAllocator)
			cfg.Store = memstore.New()
			b.ReportAllocs()
			for b.Loop() {
				result, err := Run(context.Background(), cfg, &batches{tickSchema, input})
				if err != nil {
					b.Fatal(err)
				}
				result.Discard(context.Background(), cfg.Store)
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
