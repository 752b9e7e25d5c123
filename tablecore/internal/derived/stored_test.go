package derived

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"contrail/tablecore/internal/coverage"
)

// TestGoldenBytes holds what is persisted. A change of these bytes needs a new
// version of the block.
func TestGoldenBytes(t *testing.T) {
	def := hourly()
	x := naive(t, def, []row{{"EWR", 1, 0}, {"EWR", 1, hour}, {"EWR", 1, 5 * hour}, {"JFK", -1, 2 * hour}})
	p, err := Pack(def, x)
	if err != nil {
		t.Fatal(err)
	}
	o := originOf(def, x.Rows)
	both := map[kind][]byte{kindCoverage: x.Coverage.AppendEncoded(nil), kindEntities: appendDirectory(nil, x.Directory)}
	got := fmt.Sprintf("%s\n%s\n%x\n%s\n", p.KV[KeyCoverage], p.KV[KeyEntities], sidecar(both, o, 48211), SidecarPath("data/5c/5c0e.parquet"))
	want, err := os.ReadFile("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func FuzzStoredIndex(f *testing.F) {
	def, rows := hourly(), sortedRows(5, 4, hour)
	x := naive(f, def, rows)
	both := map[kind][]byte{kindCoverage: x.Coverage.AppendEncoded(nil), kindEntities: appendDirectory(nil, x.Directory)}
	f.Add(sidecar(both, originOf(def, x.Rows), 9), both[kindEntities])
	f.Add([]byte{}, []byte{unsortedFile})
	f.Add([]byte{1, 0, 0, 0, 'x'}, []byte{sortedFile, 1, 0, 0, 1, 0, 0})
	f.Fuzz(func(t *testing.T, data, directory []byte) {
		want := originOf(def, x.Rows)
		want.size = 9
		for _, k := range []kind{kindCoverage, kindEntities} {
			payload, why := openBlock(sidecarBlock(data, k), k, want)
			if why == "" && k == kindCoverage {
				_, _ = coverage.Decode(payload)
			}
		}
		d, ok := readDirectory(directory, x.Rows)
		if !ok || d == nil {
			return
		}
		again, ok := readDirectory(appendDirectory(nil, d), x.Rows)
		if !ok || !slices.Equal(again, d) {
			t.Fatalf("%v became %v", d, again)
		}
	})
}
