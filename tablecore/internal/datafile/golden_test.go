package datafile

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGoldenBytes compares what the writer makes of fixed rows with files that
// were checked with Spark, DuckDB, Polars and pyarrow. A difference means that
// the format on disk has changed: read the new files with all four, then run
// with -update. The files are not compressed, since compressors may improve.
func TestGoldenBytes(t *testing.T) {
	for name, schema := range map[string]*arrow.Schema{"flat": flatSchema(), "nested": nestedSchema()} {
		mem := memory.DefaultAllocator
		batch := randomBatch(rand.New(rand.NewPCG(2013, 11)), mem, schema, 12)
		var out bytes.Buffer
		_, err := WriteTable(&out, schema, []arrow.RecordBatch{batch, batch.NewSlice(3, 9)}, map[string]string{"contrail.b": "2", "contrail.a": "1"},
			WriteOptions{Compression: Uncompressed, MaxRowsPerRowGroup: 10})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "golden", name+".parquet")
		if *update {
			if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s: %d bytes were written that differ from the %d golden ones", name, out.Len(), len(want))
		}
		got := readAll(t, openFile(t, want, mem), mem, ReadRequest{Fields: schema.Fields(), Ranges: []RowRange{{0, 12}}})
		sameBatch(t, batch, got)
	}
}
