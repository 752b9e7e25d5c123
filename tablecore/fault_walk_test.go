package tablecore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/bufpool"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// walk runs an operation once for each store operation it makes and each kind
// of fault, on a store in memory and in a directory. prepare fills the store
// before the fault is armed. verify looks at the store afterwards, through a
// process that starts anew and through the one that was hit, and is told what
// the operation answered. write, where it is set, stores a row at last: the
// table must take it, whatever was left behind.
type walk struct {
	prepare func(t *testing.T, w *tablecore.Warehouse)
	cold    bool // run through a warehouse that has nothing in memory
	// maintenance is how its tables are maintained.
	maintenance tablecore.Maintenance
	run         func(t *testing.T, w *tablecore.Warehouse) error
	// contested, in run's place, may use another process on the same store, which
	// no fault hits.
	contested func(t *testing.T, w, rival *tablecore.Warehouse) error
	// leaves, where it is set, is the beginning of operations whose failure may
	// leave a file behind as a stop does.
	leaves string
	// later is how much time passes between prepare and run.
	later  time.Duration
	verify func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error)
	write  func(t *testing.T, w *tablecore.Warehouse) error
}

// walkStore is a store that a walk may open as often as it likes.
type walkStore struct {
	dir    string // "" for one in memory
	memory objstore.Store
}

func (s walkStore) open(t *testing.T) objstore.Store {
	t.Helper()
	if s.dir == "" {
		return sharedStore{s.memory}
	}
	store, err := localfs.Open(s.dir, localfs.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (k walk) all(t *testing.T) {
	for _, kind := range []string{"memory", "directory"} {
		t.Run(kind, func(t *testing.T) {
			number := 0
			dir := ""
			if kind == "directory" {
				dir = fastDir(t)
			}
			fresh := func() walkStore {
				number++
				if dir == "" {
					return walkStore{memory: memstore.New()}
				}
				return walkStore{dir: filepath.Join(dir, fmt.Sprint(number))}
			}
			k.faults(t, fresh)
		})
	}
}

// walkStep is how many store operations the walks take at a time under the race
// detector, which is after other faults.
const walkStep = 4

// faults runs the operation under every plan.
func (k walk) faults(t *testing.T, fresh func() walkStore) {
	trace := k.once(t, fresh(), faultstore.Plan{})
	if len(trace) == 0 {
		t.Fatal("the operation does not use the store")
	}
	for number, kind := range faultstore.Kinds() {
		for i, op := range trace {
			if raceDetector && i%walkStep != number%walkStep {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", kind, i), func(t *testing.T) {
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("%s at %q", kind, op)
					}
				})
				k.once(t, fresh(), faultstore.Plan{At: i, Kind: kind})
			})
		}
	}
}

// once runs the operation under one plan and returns the store operations it
// made.
func (k walk) once(t *testing.T, store walkStore, plan faultstore.Plan) []string {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	clock := tabletest.NewClock()
	open := func(store objstore.Store, seed byte) *tablecore.Warehouse {
		w := tabletest.Open(t, tablecore.Options{Store: store, Allocator: mem, Batches: bufpool.Poison(mem), Clock: clock.Now, Random: tabletest.Random(seed), Maintenance: k.maintenance})
		return w
	}
	fault := faultstore.Wrap(store.open(t), faultstore.Plan{})
	w := open(fault, 1)
	k.prepare(t, w)
	w.WaitForBackground()
	clock.Advance(k.later)
	if k.cold {
		w = open(sharedStore{fault}, 3)
	}
	run := k.run
	if k.contested != nil {
		rival := open(store.open(t), 4)
		run = func(t *testing.T, w *tablecore.Warehouse) error { return k.contested(t, w, rival) }
	}
	fault.Arm(plan)
	err := run(t, w)
	w.WaitForBackground()
	trace := fault.Trace()
	stopped := plan.Kind == faultstore.Stop || plan.Kind == faultstore.StopAfterEffect
	left := k.leaves != "" && plan.Kind != faultstore.None && plan.At < len(trace) && strings.HasPrefix(trace[plan.At], k.leaves)
	checkTyped(t, err)
	if !stopped {
		fault.Arm(faultstore.Plan{})
		noTemporaries(t, store)
	}
	inner := store.open(t)
	defer func() {
		if err := inner.Close(); err != nil {
			t.Error(err)
		}
	}()
	users := []*tablecore.Warehouse{open(store.open(t), 2)}
	if !stopped {
		users = append(users, w)
	}
	for _, user := range users {
		k.verify(t, user, inner, stopped || left, err)
	}
	for _, user := range users {
		if k.write == nil {
			break
		}
		if err := k.write(t, user); err != nil {
			t.Fatalf("the table takes no more rows: %v", err)
		}
		user.WaitForBackground()
	}
	if err := clean(t.Context(), users[0], true); err != nil {
		t.Error(err)
	}
	return trace
}

// noTemporaries makes sure that a process that lives has left no temporary
// file. Stores in memory have none.
func noTemporaries(t *testing.T, store walkStore) {
	t.Helper()
	if store.dir == "" {
		return
	}
	err := filepath.WalkDir(store.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.Contains(filepath.ToSlash(path), "/"+objstore.TempDir+"/") {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkTyped makes sure that a fault surfaces as a typed error.
func checkTyped(t *testing.T, err error) {
	t.Helper()
	if err != nil && tableerr.TokenOf(err) == "" && !errors.Is(err, faultstore.ErrStopped) {
		t.Fatalf("the error %v (%T) has no token", err, err)
	}
}

// appendWeather appends JSON rows to the weather table.
func appendWeather(ctx context.Context, t *testing.T, w *tablecore.Warehouse, o tablecore.AppendOptions, rows ...string) (*tablecore.AppendReport, error) {
	t.Helper()
	table, err := w.Table(ctx, weatherName)
	if err != nil {
		return nil, err
	}
	b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rows...))
	defer b.Release()
	return table.Append(ctx, tabletest.NewReader(weather, b), o)
}

// writeWeather appends a row that no table has yet to the weather table.
func writeWeather(t *testing.T, w *tablecore.Warehouse) error {
	t.Helper()
	table, err := w.Table(t.Context(), weatherName)
	if err != nil {
		return err
	}
	d, err := table.Describe(t.Context(), tablecore.At{})
	if err != nil {
		return err
	}
	r, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("ZRH", int(d.Version)*2+50_000, "1"))
	if err == nil && r.CommittedVersion != d.Version+1 {
		return fmt.Errorf("version %d follows %d", r.CommittedVersion, d.Version)
	}
	return err
}
