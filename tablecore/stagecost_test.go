package tablecore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tabletest"
)

// TestStagedCost counts the store requests of staged appends: a stage waits for
// the file and its manifest, a commit for its claim and the log, and reads each
// manifest and looks for each file once.
func TestStagedCost(t *testing.T) {
	const tasks = 20
	meter := meterstore.Wrap(memstore.New())
	w := tabletest.Warehouse(t, meter, memory.DefaultAllocator)
	createWeather(t, w)
	var tokens []string
	for i := range tasks + 1 {
		meter.Reset()
		r, err := stageWeather(t.Context(), t, w, rowAt("EWR", i, "1"))
		if err != nil {
			t.Fatal(err)
		}
		if c := meter.Counts(); i > 0 && (c.DurableWrites() != 2 || c.Requests() > 6 || c.List != 0) {
			t.Errorf("a stage makes %d requests: %s", c.Requests(), c)
		}
		tokens = append(tokens, r.Staged)
	}
	if _, err := commitStaged(t.Context(), w, "first", tokens[0]); err != nil {
		t.Fatal(err)
	}
	w.WaitForBackground()
	meter.Reset()
	if _, err := commitStaged(t.Context(), w, "job", tokens[1:]...); err != nil {
		t.Fatal(err)
	}
	// Here the files were written by this process, so it need not read them.
	if c := meter.Counts(); c.DurableWrites() != 2 || c.Requests() > 3*tasks+12 || c.List != 0 || c.Open != 0 {
		t.Errorf("a commit of %d tokens makes %d requests: %s", tasks, c.Requests(), c)
	}
}

// TestIncrementalCost counts what planning reads: the commits behind the start,
// each once, however long the history is.
func TestIncrementalCost(t *testing.T) {
	meter := meterstore.Wrap(memstore.New())
	w := tabletest.Warehouse(t, meter, memory.DefaultAllocator)
	o := weatherOptions()
	o.Properties = map[string]string{"contrail.maintenance": "off"} // every version is an append
	if _, err := w.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for hour := range 300 {
		if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", hour, "1")); err != nil {
			t.Fatal(err)
		}
	}
	w.WaitForBackground()
	table := openWeather(t, w)
	for _, commits := range []int64{0, 1, 10} {
		for _, most := range []int64{commits + 2, 2} { // the second endpoint knows the commits
			meter.Reset()
			plan, err := table.PlanScan(t.Context(), tablecore.ScanOptions{SinceVersion: ptr(300 - commits)})
			if err != nil || plan.Rows() != commits {
				t.Fatalf("%+v, %v", plan, err)
			}
			if c := meter.Counts(); c.Get > most || c.Requests() > most || c.List != 0 {
				t.Errorf("behind %d commits the plan makes %d requests: %s", commits, c.Requests(), c)
			}
		}
	}
}

// TestStageBeyondMemory stages more rows than the budget of all appends holds.
func TestStageBeyondMemory(t *testing.T) {
	const many = 100_000
	dir := filepath.Join(t.TempDir(), "scratch")
	table := openWeather(t, littleMemory(t, memstore.New(), dir))
	var tokens []string
	for _, origin := range []string{"EWR", "JFK"} {
		rows := manyRows(origin, many)
		var parts []arrow.RecordBatch
		const piece = 10_000
		for end := int64(many); end > 0; end -= piece {
			parts = append(parts, rows.NewSlice(end-piece, end))
		}
		r, err := table.Stage(t.Context(), tabletest.NewReader(weather, parts...), tablecore.StageOptions{})
		for _, p := range parts {
			p.Release()
		}
		rows.Release()
		if err != nil || r.Rows != many {
			t.Fatalf("%+v, %v", r, err)
		}
		tokens = append(tokens, r.Staged)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("scratch holds %v, %v", left, err)
	}
	if r, err := table.CommitStaged(t.Context(), tablecore.CommitStagedOptions{RequestID: "job", Staged: tokens}); err != nil || r.Rows != 2*many {
		t.Fatalf("%+v, %v", r, err)
	}
	rows, _, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
	if err != nil || len(rows) != 2*many {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
}

// BenchmarkIncrementalPlan plans scans behind many commits on a disk.
func BenchmarkIncrementalPlan(b *testing.B) {
	store, err := localfs.Open(b.TempDir(), localfs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w := tabletest.Warehouse(b, store, memory.DefaultAllocator)
	o := weatherOptions()
	o.Properties = map[string]string{"contrail.maintenance": "off"}
	if _, err := w.CreateTable(b.Context(), o); err != nil {
		b.Fatal(err)
	}
	table := openWeather(b, w)
	for hour := range 1000 {
		batch := tabletest.Batch(b, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", hour, "1")))
		if _, err := table.Append(b.Context(), tabletest.NewReader(weather, batch), tablecore.AppendOptions{}); err != nil {
			b.Fatal(err)
		}
		batch.Release()
	}
	for _, commits := range []int64{1, 100, 1000} {
		b.Run(fmt.Sprint("commits=", commits), func(b *testing.B) {
			for b.Loop() {
				for _, change := range []string{"", tablecore.ChangesIgnore} { // what is kept is of the other
					if _, err := table.PlanScan(b.Context(), tablecore.ScanOptions{SinceVersion: ptr(1000 - commits), Changes: change}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
