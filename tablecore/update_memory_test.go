package tablecore_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
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

const updateRunVariable = "CONTRAIL_TEST_UPDATE_RUN"

// TestUpdateMemory updates with sources larger than their memory budget, in no
// order, in a child process, and looks at the most memory it ever had.
// CONTRAIL_TEST_UPDATE_ROWS makes the narrow one larger.
func TestUpdateMemory(t *testing.T) {
	if text := os.Getenv(updateRunVariable); text != "" {
		updateChild(t, text)
		return
	}
	rows := 1_000_000
	if text := os.Getenv("CONTRAIL_TEST_UPDATE_ROWS"); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for name, run := range map[string]updateRun{
		"narrow": {Table: updateBench{Entities: 1000, Each: rows / 1000, Doubles: 2, Files: 4}, Column: "v1", Rows: rows, Budget: 16 << 20},
		"wide":   {Table: updateBench{Entities: 64, Each: 256, TextBytes: 4096, Files: 1}, Column: "text", Rows: 64 * 256, Budget: 64 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			run.Dir = t.TempDir()
			run.Table.fill(t, run.open(t))
			text, err := json.Marshal(run)
			if err != nil {
				t.Fatal(err)
			}
			child := exec.Command(os.Args[0], "-test.run=^TestUpdateMemory$", "-test.v=false", "-test.timeout=0")
			child.Env = append(os.Environ(), updateRunVariable+"="+string(text))
			out, err := child.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			line, _, _ := strings.Cut(string(out), "\n")
			var got updateAnswer
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
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
func (r updateRun) open(t testing.TB) *tablecore.Warehouse {
	t.Helper()
	store, err := localfs.Open(r.Dir, localfs.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	house := tabletest.Open(t, tablecore.Options{Store: store, MemoryBudget: r.Budget, Scratch: t.TempDir()})
	return house
}

func updateChild(t *testing.T, text string) {
	var run updateRun
	if err := json.Unmarshal([]byte(text), &run); err != nil {
		t.Fatal(err)
	}
	table, err := run.open(t).Table(t.Context(), typesName)
	if err != nil {
		t.Fatal(err)
	}
	answer := updateAnswer{Start: peakMemory()}
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
	answer.Rows, answer.Seconds, answer.Peak = r.RowsUpdated, time.Since(began).Seconds(), peakMemory()
	line, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
}
