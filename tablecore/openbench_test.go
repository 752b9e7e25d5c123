package tablecore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabletest"
)

// BenchmarkOpen measures the first plan of a process on tables of 2,000 and
// 10,000 files and as many versions, down to the one file that is wanted: by way
// of the head, and from the log alone.
func BenchmarkOpen(b *testing.B) {
	for _, files := range []int{2_000, 10_000} {
		dir := b.TempDir()
		a := &appender{table: weatherIn(b, dir, true)}
		a.run(b, 64, files, false)
		a.table.WaitForBackground()
		head := filepath.Join(dir, filepath.FromSlash(weatherName.Dir()), filepath.FromSlash(derived.HeadPath))
		for _, by := range []string{"head", "log"} {
			if by == "log" {
				if err := os.Remove(head); err != nil {
					b.Fatal(err)
				}
			}
			b.Run(fmt.Sprintf("files=%d/by=%s", files, by), func(b *testing.B) {
				resetPeak(b)
				for b.Loop() {
					openAndPlan(b, dir)
				}
				reportPeak(b)
			})
		}
	}
}

// openAndPlan is what a process does that comes, plans a scan and goes.
func openAndPlan(b *testing.B, dir string) {
	store, err := localfs.Open(dir, localfs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w, err := tablecore.Open(b.Context(), tablecore.Options{Store: store, Maintenance: unmaintained})
	if err != nil {
		b.Fatal(err)
	}
	table := openWeather(b, w)
	plan, err := table.PlanScan(b.Context(), tablecore.ScanOptions{
		Start: []byte(`"1970-02-01T00:00:00Z"`), End: []byte(`"1970-02-01T01:00:00Z"`)})
	if err != nil || plan.Rows() != 1 {
		b.Fatalf("plan %v, %v", plan, err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

// weatherIn opens the weather table in a warehouse of its own.
func weatherIn(b *testing.B, dir string, create bool) *tablecore.Table {
	store, err := localfs.Open(dir, localfs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w := tabletest.Warehouse(b, store, memory.DefaultAllocator)
	if create {
		if _, err := w.CreateTable(b.Context(), weatherOptions()); err != nil {
			b.Fatal(err)
		}
	}
	table := openWeather(b, w)
	return table
}

// resetPeak sets the process's peak of resident memory to what it holds now,
// where the system can.
func resetPeak(b *testing.B) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Logf("the peak counts from the start of the process: %v", err)
	}
}

// reportPeak reports the peak of resident memory since resetPeak.
func reportPeak(b *testing.B) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if fields := strings.Fields(rest); len(fields) > 0 {
		if kb, err := strconv.ParseFloat(fields[0], 64); err == nil {
			b.ReportMetric(kb/1024, "peak-MB")
		}
	}
}

// BenchmarkColdLatest measures the newest rows of all entities for a process that
// knows nothing of the table, from the state that its one append has left.
func BenchmarkColdLatest(b *testing.B) {
	for _, entities := range []int{1_000, 100_000} {
		store := memstore.New()
		table := pointTableOn(b, sharedStore{store}, memory.DefaultAllocator)
		points := array.NewRecordBuilder(memory.DefaultAllocator, pointSchema)
		for i := range 1_000_000 {
			points.Field(0).(*array.StringBuilder).Append("a")
			points.Field(1).(*array.Int64Builder).Append(int64(i % entities))
			points.Field(2).(*array.Int64Builder).Append(int64(i))
			points.Field(3).(*array.Int64Builder).Append(int64(i) * 0x5DEECE66D)
		}
		batch := points.NewRecordBatch()
		points.Release()
		if _, err := table.Append(b.Context(), &oneBatch{batch: batch}, tablecore.AppendOptions{}); err != nil {
			b.Fatal(err)
		}
		table.WaitForBackground()
		batch.Release()
		b.Run(fmt.Sprintf("entities=%d", entities), func(b *testing.B) {
			for b.Loop() {
				w, err := tablecore.Open(b.Context(), tablecore.Options{Store: sharedStore{store}, Maintenance: unmaintained})
				if err != nil {
					b.Fatal(err)
				}
				cold, err := w.Table(b.Context(), table.Name())
				if err != nil {
					b.Fatal(err)
				}
				rows := int64(0)
				l, err := cold.Latest(b.Context(), tablecore.LatestOptions{})
				if err == nil {
					err = l.Run(b.Context(), func(batch arrow.RecordBatch) error { rows += batch.NumRows(); return nil })
				}
				if err != nil || rows != int64(entities) {
					b.Fatalf("%d rows, %v", rows, err)
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
