package tablecore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// century is longer than any retention and than any difference between the
// clock of a test and that of a file system.
const century = 100 * 365 * day

// TestVacuumFaults walks a vacuum that expires versions, removes files and cleans
// up the log: the newest version is whole whatever happens, and it can be run
// again.
func TestVacuumFaults(t *testing.T) {
	walk{
		later: century,
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			createWeather(t, w)
			table := openWeather(t, w)
			if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", 0, "1")); err != nil {
				t.Fatal(err)
			}
			if _, err := table.Rollback(t.Context(), tablecore.RollbackOptions{Version: 0, ExpectedVersion: 1}); err != nil {
				t.Fatal(err)
			}
			if err := table.WriteCheckpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			table, err := w.Table(t.Context(), weatherName)
			if err != nil {
				return err
			}
			_, err = table.Vacuum(t.Context(), tablecore.VacuumOptions{Expire: true, Apply: true})
			return err
		},
		verify: verifyVacuumed,
		write:  writeWeather,
	}.all(t)
}

func verifyVacuumed(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
	rows, version, scanErr := scanWeather(t, w)
	if scanErr != nil || len(rows) > 0 || version < 2 || version > 3 || err == nil && version != 3 {
		t.Fatalf("after %v version %d holds %v, %v", err, version, rows, scanErr)
	}
	if err == nil && !vacuumed(t, store) {
		t.Fatal("the vacuum has left something")
	}
	if vacuumed(t, store) {
		return
	}
	r, err := openWeather(t, w).Vacuum(t.Context(), tablecore.VacuumOptions{Expire: true, Apply: true})
	w.WaitForBackground() // a state that is being written looks old to a vacuum by this clock
	if err != nil || r.CommittedVersion != 3 || !vacuumed(t, store) {
		t.Fatalf("a further vacuum gives %+v, %v", r, err)
	}
}

// vacuumed says whether a store holds what is left of the table of
// TestVacuumFaults.
func vacuumed(t *testing.T, store objstore.Store) bool {
	t.Helper()
	log := keysUnder(t, store, "default/weather/_delta_log/0")
	return len(dataFiles(t, store)) == 0 && log[0] == "default/weather/_delta_log/00000000000000000002.checkpoint.parquet"
}

// TestVacuumIncomplete vacuums with a store that fails at one of the deletions.
func TestVacuumIncomplete(t *testing.T) {
	a := newAged(t)
	a.append(0)
	names := []string{"data/00/00000000-0000-0000-0000-000000000000.parquet", "data/11/11111111-1111-1111-1111-111111111111.parquet", "data/ee/eeeeeeee-eeee-eeee-eeee-eeeeeeeeeeee.parquet"}
	for _, name := range names {
		a.put(name, "12345")
	}
	a.clock.Advance(30 * day)
	fault := faultstore.Wrap(sharedStore{a.store}, faultstore.Plan{Kind: faultstore.Error, Match: func(op objstore.Op, key string) bool {
		return op == objstore.OpDelete && key == names[1]
	}})
	a.table = openWeather(a.t, a.open(fault, 3))
	_, fates, err := a.tryVacuum(tablecore.VacuumOptions{Apply: true})
	var incomplete *tableerr.VacuumIncomplete
	if !errors.As(err, &incomplete) || incomplete.Path != names[1] || !errors.Is(err, faultstore.ErrInjected) || incomplete.Table != "default.weather" {
		t.Fatal(err)
	}
	report := incomplete.PartialReport.(*tablecore.VacuumReport)
	if report.Considered.Files != 4 || report.Removable.Files+report.Deleted.Files != 3 || report.Removable.Files < 1 || report.Retained.Files != 1 || !report.Apply {
		t.Errorf("%+v", report)
	}
	if got := fate(fates[names[1]]); got != "removable invalid_or_unreadable_parquet" {
		t.Errorf("%s is %s", names[1], got)
	}
	r, _ := a.vacuum(tablecore.VacuumOptions{Apply: true})
	if r.Deleted.Files != report.Removable.Files || r.Retained.Files != 1 {
		t.Errorf("%+v after %+v", r, report)
	}
}

// TestVacuumMeanwhile: a file that has changed since it was listed stays, one
// that has gone is told, one that was committed stays, and a table that was
// replaced stops it.
func TestVacuumMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(a *aged)
		want string
	}{
		"another size": {func(a *aged) { a.put(orphan, "longer") }, "retained changed_since_planning"},
		"another time": {func(a *aged) { a.clock.Advance(time.Second); a.put(orphan, "12345") }, "retained changed_since_planning"},
		"gone": {func(a *aged) {
			if err := a.store.Delete(t.Context(), "default/weather/"+orphan); err != nil {
				t.Fatal(err)
			}
		}, "already_absent unreferenced"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAged(t)
			a.put(orphan, "12345")
			a.clock.Advance(30 * day)
			fault := faultstore.Wrap(sharedStore{a.store}, faultstore.Plan{
				Match:  func(op objstore.Op, key string) bool { return op == objstore.OpHead && key == orphan },
				Before: func(objstore.Op, string) { c.do(a) },
			})
			a.table = openWeather(a.t, a.open(fault, 3))
			r, fates := a.vacuum(tablecore.VacuumOptions{Apply: true})
			if got := fate(fates[orphan]); got != c.want || r.Considered.Files != 1 || r.Deleted.Files != 0 {
				t.Errorf("it is %q, %+v", got, r)
			}
		})
	}
}

// TestVacuumRereads: what another process commits while a vacuum runs is taken in
// before files are deleted.
func TestVacuumRereads(t *testing.T) {
	a := newAged(t)
	path := a.append(0)
	a.append(1)
	a.rollback(0)
	a.clock.Advance(30 * day)
	a.append(2) // version 4
	rival := openWeather(a.t, a.open(a.store, 5))
	lists := 0
	fault := faultstore.Wrap(sharedStore{a.store}, faultstore.Plan{
		Match: func(op objstore.Op, key string) bool {
			if op == objstore.OpList && key == "_contrail/attempts/" {
				lists++
				return lists == 2 // in front of the first deletion
			}
			return false
		},
		Before: func(objstore.Op, string) {
			if _, err := rival.Rollback(t.Context(), tablecore.RollbackOptions{Version: 1, ExpectedVersion: 4}); err != nil {
				t.Error(err)
			}
		},
	})
	a.table = openWeather(a.t, a.open(fault, 3))
	if _, fates, err := a.tryVacuum(tablecore.VacuumOptions{Apply: true}); err != nil || fate(fates[path]) != "retained referenced_by_commit 1" {
		t.Errorf("%v, %v", fates, err)
	}
	if rows, _, err := scanWeather(t, a.open(a.store, 7)); err != nil || len(rows) != 2 && len(rows) != 1 {
		t.Errorf("%q, %v", rows, err)
	}
}

// TestVacuumStaged: the files of staged rows stay until they expire.
func TestVacuumStaged(t *testing.T) {
	a := newAged(t)
	b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", 1, "2")))
	defer b.Release()
	staged, err := a.table.Stage(t.Context(), tabletest.NewReader(weather, b), tablecore.StageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.clock.Advance(2 * time.Hour)
	old := a.clock.Now().Add(-time.Hour)
	r, fates := a.vacuum(tablecore.VacuumOptions{Apply: true, OlderThan: &old})
	if r.Deleted.Files != 0 || r.Retained.Files != 2 {
		t.Errorf("%+v, %v", r, fates)
	}
	for path, x := range fates {
		if fate(x) != "retained in_flight" {
			t.Errorf("%s is %s", path, fate(x))
		}
	}
	if _, err := a.table.CommitStaged(t.Context(), tablecore.CommitStagedOptions{RequestID: "r", Staged: []string{staged.Staged}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.table.Stage(t.Context(), tabletest.NewReader(weather, b), tablecore.StageOptions{}); err != nil {
		t.Fatal(err)
	}
	a.clock.Advance(tablecore.DefaultStagedLifetime + 2*time.Hour)
	old = a.clock.Now().Add(-time.Hour)
	if r, fates := a.vacuum(tablecore.VacuumOptions{Apply: true, OlderThan: &old}); r.Deleted.Files != 2 || r.Retained.Files != 1 {
		t.Errorf("%+v, %v", r, fates)
	}
	if rows, _, err := scanWeather(t, a.house); err != nil || len(rows) != 1 {
		t.Errorf("%q, %v", rows, err)
	}
}
