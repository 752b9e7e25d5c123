package tablecore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/internal/childtest"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/tabletest"
)

// updateRun is what the child process of TestUpdateMemory does to a table in a
// directory.
type updateRun struct {
	Table  updateBench
	Column string
	Rows   int
	Budget int64
	Dir    string
}

// updateAnswer is what it tells.
type updateAnswer struct {
	Start, Peak int64 // bytes
	Rows        int64
	Seconds     float64
}

// TestUpdateMemory updates with sources larger than their memory budget, in no
// order, in a child process, and looks at the most memory it ever had.
// CONTRAIL_TEST_UPDATE_ROWS makes the narrow one larger.
func TestUpdateMemory(t *testing.T) {
	var asked updateRun
	if childtest.Asked(t, &asked) {
		childtest.Answer(t, asked.update(t))
		return
	}
	rows := int(numberFrom(t, "CONTRAIL_TEST_UPDATE_ROWS", 1_000_000))
	for name, run := range map[string]updateRun{
		"narrow": {Table: updateBench{Entities: 1000, Each: rows / 1000, Doubles: 2, Files: 4}, Column: "v1", Rows: rows, Budget: 16 << 20},
		"wide":   {Table: updateBench{Entities: 64, Each: 256, TextBytes: 4096, Files: 1}, Column: "text", Rows: 64 * 256, Budget: 64 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			run.Dir = t.TempDir()
			run.Table.fill(t, run.open(t))
			var got updateAnswer
			childtest.Run(t, run, &got)
			t.Logf("%d rows, budget %d MiB: peak %d MiB over %d, %.1f s", got.Rows, run.Budget>>20, (got.Peak-got.Start)>>20, got.Start>>20, got.Seconds)
			if got.Rows != int64(run.Rows) {
				t.Errorf("%d rows, want %d", got.Rows, run.Rows)
			}
			if over := got.Peak - got.Start; over > 400_000_000 && !raceDetector {
				t.Errorf("the update took %d bytes", over)
			}
		})
	}
}

// open opens the warehouse in the run's directory.
func (run updateRun) open(t testing.TB) *tablecore.Warehouse {
	t.Helper()
	store, err := localfs.Open(run.Dir, localfs.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return tabletest.Open(t, tablecore.Options{Store: store, MemoryBudget: run.Budget, Scratch: t.TempDir()})
}

// update updates the rows.
func (run updateRun) update(t *testing.T) updateAnswer {
	t.Helper()
	table, err := run.open(t).Table(t.Context(), typesName)
	if err != nil {
		t.Fatal(err)
	}
	answer := updateAnswer{Start: childtest.PeakMemory()}
	var fields []arrow.Field
	for _, f := range run.Table.schema().Fields() {
		if f.Name == "e" || f.Name == "t" || f.Name == run.Column {
			fields = append(fields, f)
		}
	}
	// Numbers modulo a prime come in no order, and each once.
	const step = 7_919
	stream := &generated{updateBench: run.Table, fields: arrow.NewSchema(fields, nil), rng: rand.New(rand.NewPCG(9, 9)), n: run.Rows,
		number: func(i int) int { return i * step % run.Rows }}
	began := time.Now()
	r, err := table.UpdateRows(t.Context(), stream, tablecore.UpdateOptions{Columns: []string{run.Column}, ExpectedVersion: int64(run.Table.Files)})
	if err != nil {
		t.Fatal(err)
	}
	answer.Rows, answer.Seconds, answer.Peak = r.RowsUpdated, time.Since(began).Seconds(), childtest.PeakMemory()
	return answer
}
