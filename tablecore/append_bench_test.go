package tablecore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// sensors are the columns of small appends: two measures of ten sensors.
var sensors = arrow.NewSchema([]arrow.Field{
	{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	{Name: "entity", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "v0", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "v1", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
}, nil)

// reading makes n rows: row number first and those behind it, in time order.
func reading(first, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sensors)
	defer b.Release()
	for row := first; row < first+n; row++ {
		b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(int64(row/10) * 1_000_000))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("E%06d", row%10))
		b.Field(2).(*array.Float64Builder).Append(float64(row) / 7)
		b.Field(3).(*array.Float64Builder).Append(float64(row) / 3)
	}
	return b.NewRecordBatch()
}

// BenchmarkSmallAppend measures durable appends of a few rows of ten entities to
// a table on disk. cpu-µs/op is user and system time of the process, the making
// of the rows not included.
func BenchmarkSmallAppend(b *testing.B) {
	for _, rows := range []int{1, 100, 1_000} {
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("rows=%d/clients=%d", rows, clients), func(b *testing.B) { benchSmallAppend(b, rows, clients) })
		}
	}
}

func benchSmallAppend(b *testing.B, rows, clients int) {
	store, err := localfs.Open(b.TempDir(), localfs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w := tabletest.Warehouse(b, store, memory.DefaultAllocator)
	name := tabledef.Name{Namespace: "default", Table: "sensors"}
	o := tablecore.CreateOptions{Name: name, IndexColumn: "ts", IndexGranularity: "1s", EntityColumns: []string{"entity"}, Schema: sensors}
	if _, err := w.CreateTable(b.Context(), o); err != nil {
		b.Fatal(err)
	}
	table, err := w.Table(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	supply := make([]arrow.RecordBatch, b.N)
	for i := range supply {
		supply[i] = reading(10*i*((rows+9)/10), rows)
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	var next atomic.Int64
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				if _, err := table.Append(context.Background(), tabletest.NewReader(sensors, supply[i]), tablecore.AppendOptions{}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// cpuTime is the process's user and system time.
func cpuTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
