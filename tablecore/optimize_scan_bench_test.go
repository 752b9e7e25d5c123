package tablecore_test

import (
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
)

// BenchmarkScanOptimized compares reading a table as it was appended with reading
// it after an optimize, whose files are compressed for long storage.
func BenchmarkScanOptimized(b *testing.B) {
	store, err := localfs.Open(b.TempDir(), localfs.Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	w, err := tablecore.Open(b.Context(), tablecore.Options{Store: store, Maintenance: unmaintained})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	table := fillTrades(b, w, 4, 1_000_000, true)
	measure := func(b *testing.B) {
		for name, o := range map[string]tablecore.ScanOptions{"unordered": {Order: "unordered"}, "sorted": {}} {
			b.Run(name, func(b *testing.B) {
				rows := int64(0)
				for b.Loop() {
					rows += drain(b, table, o)
				}
				b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
	b.Run("appended", measure)
	if _, err := table.Optimize(b.Context(), tablecore.OptimizeOptions{}); err != nil {
		b.Fatal(err)
	}
	b.Run("optimized", measure)
}
