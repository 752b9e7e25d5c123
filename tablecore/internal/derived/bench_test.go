package derived

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/objstore/memstore"
)

func BenchmarkLoad(b *testing.B) {
	for _, c := range []struct{ entities, each int }{{1, 1_000_000}, {1000, 1000}, {100_000, 10}} {
		for _, stored := range []bool{true, false} {
			b.Run(fmt.Sprintf("rows=%d/entities=%d/stored=%v", c.entities*c.each, c.entities, stored), func(b *testing.B) {
				def, rows := hourly(), sortedRows(c.entities, c.each, hour)
				file, store, _ := packedFile(b, memory.DefaultAllocator, def, rows)
				if !stored {
					file, store = fileOf(b, memory.DefaultAllocator, def, rows, nil), memstore.New()
				}
				for b.Loop() {
					if _, err := Load(context.Background(), store, file, "f", def, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(rows))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}
