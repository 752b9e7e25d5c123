package tablecore_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// optimizeAnswer is what the child process of TestOptimizeMemory tells, in bytes.
type optimizeAnswer struct {
	Start, Peak int64
	Rows        int64
}

const optimizeDirVariable = "CONTRAIL_TEST_OPTIMIZE_DIR"

// TestOptimizeMemory sorts files that overlap, together many times as large as
// their memory budget, in a child process, and looks at the most memory it ever
// had.
func TestOptimizeMemory(t *testing.T) {
	if dir := os.Getenv(optimizeDirVariable); dir != "" {
		optimizeChild(t, dir)
		return
	}
	dir := t.TempDir()
	rows := 200_000 // of each file
	if raceDetector {
		rows = 20_000
	}
	fillTrades(t, smallBudget(t, dir), 4, rows, true)
	for _, layout := range []string{tablecore.LayoutMixed, tablecore.LayoutEntity} {
		child := exec.Command(os.Args[0], "-test.run=^TestOptimizeMemory$", "-test.v=false", "-test.timeout=0")
		child.Env = append(os.Environ(), optimizeDirVariable+"="+dir, "LAYOUT="+layout)
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		line, _, _ := strings.Cut(string(out), "\n")
		var got optimizeAnswer
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("layout %s, %d rows: peak %d MiB over %d", layout, got.Rows, (got.Peak-got.Start)>>20, got.Start>>20)
		if over := got.Peak - got.Start; got.Rows != int64(4*rows) || over > 300_000_000 && !raceDetector {
			t.Errorf("layout %s: the optimize of %d rows took %d bytes", layout, got.Rows, over)
		}
	}
}

func smallBudget(t *testing.T, dir string) *tablecore.Warehouse {
	t.Helper()
	store, err := localfs.Open(dir, localfs.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w := tabletest.Open(t, tablecore.Options{Store: store, MemoryBudget: 16 << 20, Scratch: t.TempDir()})
	return w
}

func optimizeChild(t *testing.T, dir string) {
	table, err := smallBudget(t, dir).Table(t.Context(), tabledef.Name{Namespace: "default", Table: "ticks"})
	if err != nil {
		t.Fatal(err)
	}
	answer := optimizeAnswer{Start: peakMemory()}
	r, err := table.Optimize(t.Context(), tablecore.OptimizeOptions{Layout: os.Getenv("LAYOUT")})
	if err != nil {
		t.Fatal(err)
	}
	answer.Rows, answer.Peak = r.Rows, peakMemory()
	line, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
}
