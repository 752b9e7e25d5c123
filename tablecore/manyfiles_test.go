package tablecore_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/internal/childtest"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tabletest"
)

// interleaved appends files whose rows take turns: row k of each entity lies in
// file k mod files.
func interleaved(t testing.TB, table *tablecore.Table, files, entities, rowsEach int) {
	t.Helper()
	for file := range files {
		b := array.NewRecordBuilder(memory.DefaultAllocator, pointSchema)
		for e := range entities {
			for k := range rowsEach {
				b.Field(0).(*array.StringBuilder).Append("e")
				b.Field(1).(*array.Int64Builder).Append(int64(e))
				b.Field(2).(*array.Int64Builder).Append(int64(k*files + file))
				b.Field(3).(*array.Int64Builder).Append(int64(e)*int64(rowsEach*files) + int64(k*files+file))
			}
		}
		batch := b.NewRecordBatch()
		b.Release()
		reader := &oneBatch{batch: batch}
		if _, err := table.Append(t.Context(), reader, tablecore.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		batch.Release()
	}
}

type oneBatch struct {
	batch arrow.RecordBatch
	given bool
}

func (r *oneBatch) Schema() *arrow.Schema { return r.batch.Schema() }

func (r *oneBatch) Next(context.Context) (arrow.RecordBatch, error) {
	if r.given {
		return nil, io.EOF
	}
	r.given = true
	return r.batch, nil
}

// ascending runs a scan whose rows are numbered in its order, and returns how
// many there were.
func ascending(t testing.TB, table *tablecore.Table, o tablecore.ScanOptions) int64 {
	t.Helper()
	plan, err := table.PlanScan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	next := int64(0)
	_, err = tabletest.EachBatch(t.Context(), plan, func(batch arrow.RecordBatch) error {
		for _, v := range batch.Column(int(batch.NumCols()) - 1).(*array.Int64).Int64Values() {
			if v != next {
				return fmt.Errorf("row %d follows %d", v, next-1)
			}
			next++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// Two thousand files of one entity that all overlap.
func TestSortedScanOverManyOverlappingFiles(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	const files, rows = 2000, 20
	table := pointTable(t, mem)
	interleaved(t, table, files, 1, rows)
	if got := ascending(t, table, tablecore.ScanOptions{}); got != files*rows {
		t.Errorf("%d rows, want %d", got, files*rows)
	}
}

// peak is the greatest heap seen by watch.
type peak struct{ bytes atomic.Uint64 }

// watch looks at the heap until stop is closed.
func (p *peak) watch(stop chan struct{}, done chan struct{}) {
	defer close(done)
	for {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		p.bytes.Store(max(p.bytes.Load(), m.HeapAlloc))
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// A thousand files of two hundred entities each, all overlapping, stay within
// the scan's bounds. The measuring is done in a child, so that no other test's
// heap counts.
func TestSortedScanMemory(t *testing.T) {
	const files, entities, rows = 1000, 200, 4
	var asked bool
	if childtest.Asked(t, &asked) {
		childtest.Answer(t, scanPeak(t, files, entities, rows))
		return
	}
	var over int64
	childtest.Run(t, true, &over)
	const most = 150 << 20
	if t.Logf("peak over baseline: %d MB", over>>20); over > most {
		t.Errorf("the scan took %d bytes over its start, more than %d", over, int64(most))
	}
}

// scanPeak scans files that overlap and returns by how many bytes the heap has
// grown.
func scanPeak(t *testing.T, files, entities, rows int) int64 {
	t.Helper()
	table := pointTable(t, memory.DefaultAllocator)
	interleaved(t, table, files, entities, rows)
	runtime.GC()
	debug.SetGCPercent(20) // what is garbage shall not count for long
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var p peak
	stop, done := make(chan struct{}), make(chan struct{})
	go p.watch(stop, done)
	got := ascending(t, table, tablecore.ScanOptions{})
	close(stop)
	<-done
	if got != int64(files*entities*rows) {
		t.Errorf("%d rows", got)
	}
	return int64(p.bytes.Load()) - int64(before.HeapAlloc)
}

// A scan of one entity reads little of files that hold many.
func TestOneEntityReadsLittle(t *testing.T) {
	store := meterstore.Wrap(memstore.New())
	table := pointTableOn(t, store, memory.DefaultAllocator)
	interleaved(t, table, 1, 100, 20000)
	o := tablecore.ScanOptions{Entities: []tablecore.EntityFilter{{"a": []byte(`"e"`), "b": []byte("7")}}}
	run := func(o tablecore.ScanOptions) (rows int, bytes int64) {
		store.Reset()
		numbers, _ := scanRows(t, table, o)
		return len(numbers), store.Counts().BytesRead
	}
	if _, err := table.PlanScan(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	_, whole := run(tablecore.ScanOptions{})
	rows, part := run(o)
	if rows != 20000 || part*20 > whole {
		t.Errorf("%d rows took %d bytes, all %d", rows, part, whole)
	}
	o.Start, o.End = []byte("10000"), []byte("10200") // 1 % of it
	rows, part = run(o)
	if rows != 200 || part*20 > whole {
		t.Errorf("%d rows took %d bytes, all %d", rows, part, whole)
	}
}
