package tablecore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// paused runs a verb of one process which stops before the put of its commit,
// its files written, for some virtual time, and then calls meanwhile with the
// table of another process and with its own.
func paused(t *testing.T, pause time.Duration, meanwhile func(own, other *tablecore.Table), verb func(ctx context.Context, table *tablecore.Table) error) (rows []string, err error) {
	t.Helper()
	store := memstore.NewWithClock(time.Now)
	open := func(store objstore.Store, seed byte) *tablecore.Warehouse {
		w, err := tablecore.Open(t.Context(), tablecore.Options{Store: sharedStore{store}, Allocator: memory.DefaultAllocator, Random: tabletest.Random(seed)})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	fault := faultstore.Wrap(store, faultstore.Plan{})
	mine, theirs := open(fault, 1), open(store, 2)
	createWeather(t, mine)
	if _, err := appendWeather(t.Context(), t, mine, tablecore.AppendOptions{}, rowAt("EWR", 0, "0")); err != nil {
		t.Fatal(err)
	}
	own, other := openWeather(t, mine), openWeather(t, theirs)
	fault.Arm(faultstore.Plan{
		Match: func(op objstore.Op, _ string) bool { return op == objstore.OpPutAllIfAbsent },
		Before: func(objstore.Op, string) {
			time.Sleep(pause)
			meanwhile(own, other)
		},
	})
	err = verb(t.Context(), own)
	rows, _, scanErr := scanWeather(t, open(store, 3))
	if scanErr != nil {
		t.Fatal(scanErr)
	}
	if err := errors.Join(mine.Close(), theirs.Close()); err != nil {
		t.Fatal(err)
	}
	return rows, err
}

// writingVerbs are those that write files before their commit.
var writingVerbs = map[string]func(ctx context.Context, t *testing.T, table *tablecore.Table) error{
	"append": func(ctx context.Context, t *testing.T, table *tablecore.Table) error {
		b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", 1, "1")))
		defer b.Release()
		_, err := table.Append(ctx, tabletest.NewReader(weather, b), tablecore.AppendOptions{})
		return err
	},
	"update_rows": func(ctx context.Context, t *testing.T, table *tablecore.Table) error {
		b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", 0, "1")))
		defer b.Release()
		_, err := table.UpdateRows(ctx, tabletest.NewReader(weather, b), tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 1})
		return err
	},
}

// TestVacuumBesidePausedWriter: a writer that pauses between its files and its
// commit finds them there, whichever process vacuums, and even with force.
func TestVacuumBesidePausedWriter(t *testing.T) {
	for name, verb := range writingVerbs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rows, err := paused(t, 100*time.Second, func(own, other *tablecore.Table) {
					for _, table := range []*tablecore.Table{own, other} {
						now := time.Now()
						r, err := table.Vacuum(t.Context(), tablecore.VacuumOptions{Apply: true, OlderThan: &now, Force: true})
						if err != nil || r.Deleted.Files > 0 || r.Retained.Files != 3 { // the other data file and the attempt's own
							t.Errorf("%+v, %v", r, err)
						}
					}
				}, func(ctx context.Context, table *tablecore.Table) error { return verb(ctx, t, table) })
				if err != nil || len(rows) != map[string]int{"append": 2, "update_rows": 1}[name] || !strings.Contains(rows[len(rows)-1], `"temp":1`) {
					t.Errorf("%q, %v", rows, err)
				}
			})
		})
	}
}

// TestVacuumOwnYoungWriter: the vacuum of a server knows its own writers from
// their first moment.
func TestVacuumOwnYoungWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows, err := paused(t, time.Second, func(own, _ *tablecore.Table) {
			now := time.Now()
			if r, err := own.Vacuum(t.Context(), tablecore.VacuumOptions{Apply: true, OlderThan: &now, Force: true}); err != nil || r.Deleted.Files > 0 {
				t.Errorf("%+v, %v", r, err)
			}
		}, func(ctx context.Context, table *tablecore.Table) error { return writingVerbs["append"](ctx, t, table) })
		if err != nil || len(rows) != 2 {
			t.Errorf("%q, %v", rows, err)
		}
	})
}

// slowReader gives its rows after a while.
type slowReader struct {
	*tabletest.Reader
	wait time.Duration
}

func (r slowReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	time.Sleep(r.wait)
	return r.Reader.Next(ctx)
}

// TestFilesGoneBeforeCommit: a writer of more than a minute looks for its files
// before it publishes them, and publishes nothing where one has gone.
func TestFilesGoneBeforeCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.NewWithClock(time.Now)
		fault := faultstore.Wrap(store, faultstore.Plan{})
		w, err := tablecore.Open(t.Context(), tablecore.Options{Store: sharedStore{fault}, Allocator: memory.DefaultAllocator, Random: tabletest.Random(1)})
		if err != nil {
			t.Fatal(err)
		}
		createWeather(t, w)
		fault.Arm(faultstore.Plan{
			Match: func(op objstore.Op, key string) bool { return op == objstore.OpHead && strings.HasPrefix(key, "data/") },
			Before: func(_ objstore.Op, key string) {
				if err := store.Delete(t.Context(), "default/weather/"+key); err != nil {
					t.Error(err)
				}
			},
		})
		b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", 1, "1")))
		defer b.Release()
		_, err = openWeather(t, w).Append(t.Context(), slowReader{tabletest.NewReader(weather, b), time.Minute}, tablecore.AppendOptions{})
		if tableerr.TokenOf(err) != tableerr.TokenStoreUnavailable || !errors.Is(err, objstore.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		if rows, version, err := scanWeather(t, w); err != nil || version != 0 || len(rows) > 0 {
			t.Errorf("%q at version %d, %v", rows, version, err)
		}
		if left := keysUnder(t, store, "default/weather/_contrail/attempts/"); len(left) > 0 {
			t.Errorf("%q are left", left)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
