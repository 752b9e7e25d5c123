package tablecore_test

import (
	"fmt"
	"testing"
	"time"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
)

// BenchmarkMaintenance appends 1,000 rows a thousand times, with and without
// maintenance beside it, and reads what has come of it.
func BenchmarkMaintenance(b *testing.B) {
	const appends, rows = 1000, 1000
	for _, off := range []bool{true, false} {
		b.Run(fmt.Sprintf("off=%v/appends=%d/rows=%d", off, appends, rows), func(b *testing.B) {
			var ack, settle, scan time.Duration
			var files int64
			for b.Loop() {
				store, err := localfs.Open(b.TempDir(), localfs.Options{Create: true})
				if err != nil {
					b.Fatal(err)
				}
				w, err := tablecore.Open(b.Context(), tablecore.Options{Store: store, Maintenance: tablecore.Maintenance{Off: off}})
				if err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				table := fillTrades(b, w, appends, rows, false)
				ack += time.Since(began)
				w.WaitForBackground()
				settle += time.Since(began)
				began = time.Now()
				if got := drain(b, table, tablecore.ScanOptions{}); got != appends*rows {
					b.Fatal(got)
				}
				scan += time.Since(began)
				d, err := table.Describe(b.Context(), tablecore.At{})
				if err != nil {
					b.Fatal(err)
				}
				files += d.Files
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(ack.Microseconds())/1000/appends/float64(b.N), "ms/append")
			b.ReportMetric(float64(settle.Milliseconds())/float64(b.N), "ms/settled")
			b.ReportMetric(float64(scan.Milliseconds())/float64(b.N), "ms/scan")
			b.ReportMetric(float64(files)/float64(b.N), "files")
		})
	}
}
