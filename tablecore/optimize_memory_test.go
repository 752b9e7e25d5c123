package tablecore_test

import (
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/internal/childtest"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// optimizeRun is what the child process of TestOptimizeMemory does to a table in a
// directory.
type optimizeRun struct{ Dir, Layout string }

// optimizeAnswer is what it tells, in bytes.
type optimizeAnswer struct {
	Start, Peak int64
	Rows        int64
}

// TestOptimizeMemory sorts files that overlap, together many times as large as
// their memory budget, in a child process, and looks at the most memory it ever
// had.
func TestOptimizeMemory(t *testing.T) {
	var asked optimizeRun
	if childtest.Asked(t, &asked) {
		childtest.Answer(t, asked.optimize(t))
		return
	}
	dir := t.TempDir()
	rows := 200_000 // of each file
	if raceDetector {
		rows = 20_000
	}
	fillTrades(t, smallBudget(t, dir), 4, rows, true)
	for _, layout := range []string{tablecore.LayoutMixed, tablecore.LayoutEntity} {
		var got optimizeAnswer
		childtest.Run(t, optimizeRun{dir, layout}, &got)
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
	return tabletest.Open(t, tablecore.Options{Store: store, MemoryBudget: 16 << 20, Scratch: t.TempDir()})
}

// optimize optimizes the table.
func (run optimizeRun) optimize(t *testing.T) optimizeAnswer {
	t.Helper()
	table, err := smallBudget(t, run.Dir).Table(t.Context(), tabledef.Name{Namespace: "default", Table: "ticks"})
	if err != nil {
		t.Fatal(err)
	}
	answer := optimizeAnswer{Start: childtest.PeakMemory()}
	r, err := table.Optimize(t.Context(), tablecore.OptimizeOptions{Layout: run.Layout})
	if err != nil {
		t.Fatal(err)
	}
	answer.Rows, answer.Peak = r.Rows, childtest.PeakMemory()
	return answer
}
