package tablecore_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/tabletest"
)

// BenchmarkOpen measures the first plan of a process on a table of 10,000
// files, from the log's listing to the one file that is wanted.
func BenchmarkOpen(b *testing.B) {
	const files = 10_000
	dir := b.TempDir()
	a := &appender{table: weatherIn(b, dir, true)}
	a.run(b, 64, files, false)
	b.Run("files=10000/cold", func(b *testing.B) {
		resetPeak(b)
		for b.Loop() {
			plan, err := weatherIn(b, dir, false).PlanScan(b.Context(), tablecore.ScanOptions{
				Start: []byte(`"1970-06-01T00:00:00Z"`), End: []byte(`"1970-06-01T01:00:00Z"`)})
			if err != nil || plan.Rows() != 1 {
				b.Fatalf("plan %v, %v", plan, err)
			}
		}
		reportPeak(b)
	})
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
	table, err := w.Table(b.Context(), weatherName)
	if err != nil {
		b.Fatal(err)
	}
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
