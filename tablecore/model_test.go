package tablecore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabletest"
)

// The model test's size. SEEDS sets the number of scripts, SEED the first one.
const (
	modelSeeds   = 20
	modelSteps   = 300
	modelTimeout = 15 * time.Minute // of one script, on a slow machine
	shrinkTime   = 30 * time.Second // for one failure
)

// numberFrom reads a number from the environment.
func numberFrom(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s is no number: %v", name, err)
	}
	return n
}

// workersOf gives every fourth script one worker, so that each of its answers
// is foreseen exactly.
func workersOf(seed uint64) int { return int(seed%4) + 1 }

// TestModel runs random scripts against the reference. A failing seed is shown
// with a script, as short as it could be made, that fails too.
func TestModel(t *testing.T) {
	first := numberFrom(t, "SEED", 1)
	for seed := first; seed < first+numberFrom(t, "SEEDS", modelSeeds); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			script := newScript(seed, modelSteps, workersOf(seed))
			err := runModel(script)
			if err == nil {
				return
			}
			tries := 1
			if workersOf(seed) > 1 {
				tries = 5 // a race does not come out each time
			}
			last := err
			small := shrink(script, func(s []step) bool {
				for range tries {
					if err := runModel(s); err != nil {
						last = err
						return true
					}
				}
				return false
			}, time.Now().Add(shrinkTime))
			t.Fatalf("SEED=%d SEEDS=1: %v\nshrunk script:\n%s\nwhich gave\n%v", seed, err, scriptText(small), last)
		})
	}
}

// runModel runs a script on a store in memory and judges it.
func runModel(script []step) error {
	ctx, cancel := context.WithTimeout(context.Background(), modelTimeout)
	defer cancel()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	run := &modelRun{store: memstore.New(), mem: mem, clock: tabletest.NewClock()}
	records, err := run.run(ctx, script, func(int) bool { return true })
	if err == nil {
		err = run.check(ctx)
	}
	if err == nil && mem.CurrentAlloc() != 0 {
		err = fmt.Errorf("%d bytes of Arrow memory were not given back", mem.CurrentAlloc())
	}
	if err != nil {
		return err
	}
	return checkRun(script, records)
}

// TestModelNotices makes sure that the reference finds a wrong answer in every
// kind of record.
func TestModelNotices(t *testing.T) {
	script := newScript(4, 3*modelSteps, 1)
	run := &modelRun{store: memstore.New(), mem: memory.DefaultAllocator, clock: tabletest.NewClock()}
	records, err := run.run(t.Context(), script, func(int) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(r *record) bool{
		"a lost row":     func(r *record) bool { return spoilIf(len(r.Rows) > 1, func() { r.Rows = r.Rows[1:] }) },
		"an old version": func(r *record) bool { return spoilIf(len(r.Rows) > 0 && r.Asked == nil, func() { r.Version-- }) },
		"a version twice": func(r *record) bool {
			return spoilIf(r.RowCount > 0 && r.Starting > 0 && r.Rows == nil, func() { r.Version-- })
		},
		"another refusal": func(r *record) bool { return spoilIf(r.Token == "NULL_KEY", func() { r.Token = "INVALID" }) },
		"another row":     func(r *record) bool { return spoilIf(r.Token == "NULL_KEY", func() { r.Detail += "1" }) },
		"no refusal": func(r *record) bool {
			return spoilIf(r.Token == "DUPLICATE_INTERVAL", func() { *r = record{Step: r.Step, Start: r.Start, End: r.End, ID: r.ID, Version: 1, RowCount: 1} })
		},
		"another property":  func(r *record) bool { return spoilIf(r.Team != "", func() { r.Team += "x" }) },
		"another replay":    func(r *record) bool { return spoilIf(r.Replayed, func() { r.Version++ }) },
		"a missing entity":  func(r *record) bool { return spoilIf(r.Summary.Entities > 1, func() { r.Summary.Entities-- }) },
		"a missing table":   func(r *record) bool { return spoilIf(len(r.Tables) > 1, func() { r.Tables = r.Tables[1:] }) },
		"a table not found": func(r *record) bool { return spoilIf(len(r.Rows) > 0, func() { r.Token = "TABLE_NOT_FOUND" }) },
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := append([]record{}, records...)
			for i := range spoiled {
				if spoil(&spoiled[i]) {
					if checkRun(script, spoiled) == nil {
						t.Fatalf("step %d was not noticed: %+v", spoiled[i].Step, spoiled[i])
					}
					return
				}
			}
			t.Fatal("the script has no such step")
		})
	}
	if err := checkRun(script, records); err != nil {
		t.Fatal(err)
	}
}

func spoilIf(on bool, spoil func()) bool {
	if on {
		spoil()
	}
	return on
}

// childVariable tells a process of the model test which part of which script it
// runs: "<seed> <process> <directory>".
const childVariable = "CONTRAIL_MODEL_CHILD"

const modelProcesses = 2

// TestModelProcesses runs scripts whose workers are divided between two
// processes on one directory.
func TestModelProcesses(t *testing.T) {
	seeds := max(2, numberFrom(t, "SEEDS", modelSeeds)/10)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			script := newScript(seed, modelSteps, 2*modelProcesses)
			dir := fastDir(t)
			store, err := localfs.Open(filepath.Join(dir, "warehouse"), localfs.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := checkRun(script, runProcesses(t, seed, dir)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			run := &modelRun{store: store, mem: memory.DefaultAllocator, clock: tabletest.NewClock()}
			if err := errors.Join(run.check(t.Context()), store.Close()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		})
	}
}

// runProcesses starts the processes, lets them begin together, and returns
// their records.
func runProcesses(t *testing.T, seed uint64, dir string) []record {
	t.Helper()
	type child struct {
		cmd  *exec.Cmd
		said io.Reader
		path string
	}
	var children []child
	var starts []func() error
	for p := range modelProcesses {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestModelChild$", "-test.timeout=30m")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s", childVariable, seed, p, dir))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(out)
		if line, err := said.ReadString('\n'); line != "ready\n" {
			t.Fatalf("a process said %q, %v", line, err)
		}
		starts = append(starts, in.Close)
		children = append(children, child{cmd, said, recordsPath(dir, p)})
	}
	for _, start := range starts {
		if err := start(); err != nil {
			t.Fatal(err)
		}
	}
	var all []record
	for _, c := range children {
		said, _ := io.ReadAll(c.said)
		if err := c.cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		text, err := os.ReadFile(c.path)
		if err != nil {
			t.Fatal(err)
		}
		var records []record
		if err := json.Unmarshal(text, &records); err != nil {
			t.Fatal(err)
		}
		all = append(all, records...)
	}
	return all
}

func recordsPath(dir string, process int) string {
	return filepath.Join(dir, fmt.Sprintf("records-%d.json", process))
}

// TestModelChild is the main function of a process of TestModelProcesses; by
// itself it has nothing to do.
func TestModelChild(t *testing.T) {
	words := strings.SplitN(os.Getenv(childVariable), " ", 3)
	if len(words) < 3 {
		return
	}
	seed, err := strconv.ParseUint(words[0], 10, 64)
	process, err2 := strconv.Atoi(words[1])
	store, err3 := localfs.Open(filepath.Join(words[2], "warehouse"), localfs.Options{})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err == nil {
		t.Fatal("the start signal is the end of the input")
	}
	run := &modelRun{store: store, mem: memory.DefaultAllocator, clock: tabletest.NewClock()}
	records, err := run.run(t.Context(), newScript(seed, modelSteps, 2*modelProcesses), func(worker int) bool { return worker%modelProcesses == process })
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recordsPath(words[2], process), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// fastDir returns a directory of the test's own, on a file system in memory
// where there is one.
func fastDir(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/dev/shm"); err == nil {
		dir, err := os.MkdirTemp("/dev/shm", "contrail-test-")
		if err == nil {
			t.Cleanup(func() {
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
			})
			return dir
		}
	}
	return t.TempDir()
}
