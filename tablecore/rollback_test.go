package tablecore_test

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// rollback takes the fixture's table back to a version from its newest one.
func (f *fixture) rollback(version int64) *tablecore.RollbackReport {
	f.t.Helper()
	r, err := f.table.Rollback(f.t.Context(), tablecore.RollbackOptions{Version: version, ExpectedVersion: f.version()})
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fixture) version() int64 {
	f.t.Helper()
	d, err := f.table.Describe(f.t.Context(), tablecore.At{})
	if err != nil {
		f.t.Fatal(err)
	}
	return d.Version
}

// threeHours appends hour 0, 1 and 2 as versions 1, 2 and 3.
func (f *fixture) threeHours() {
	f.t.Helper()
	for hour := range 3 {
		f.mustAppend(rowsOf(rowAt("EWR", hour, fmt.Sprint(hour))))
	}
}

// wantRows compares the rows of a version, nil for the newest, with rows of
// jsonRow.
func (f *fixture) wantRows(version *int64, want ...string) {
	f.t.Helper()
	if got, _ := f.scan(tablecore.ScanOptions{Version: version}); !slices.Equal(got, want) {
		f.t.Errorf("got %v, want %v", got, want)
	}
}

func TestRollback(t *testing.T) {
	f := newFixture(t)
	f.threeHours()
	dry, err := f.table.Rollback(t.Context(), tablecore.RollbackOptions{Version: 1, ExpectedVersion: 3, DryRun: true})
	if err != nil || dry.CommittedVersion != 3 || !dry.DryRun || f.version() != 3 {
		t.Fatalf("a dry run gives %+v, %v", dry, err)
	}
	r := f.rollback(1)
	if dry.CommittedVersion, dry.DryRun = 4, false; len(r.Undone) != 2 {
		t.Fatalf("got %+v", r)
	}
	want := &tablecore.RollbackReport{StartingVersion: 3, CommittedVersion: 4, TargetVersion: 1, FilesRemoved: 2, Rows: 1, FormatVersion: "0.3.0",
		Undone: []tablecore.Undone{{Version: 3, Operation: "append", RowsAdded: 1}, {Version: 2, Operation: "append", RowsAdded: 1}}}
	if !reflect.DeepEqual(r, want) || !reflect.DeepEqual(dry, want) {
		t.Errorf("got %+v, dry %+v, want %+v", r, dry, want)
	}
	f.wantRows(nil, jsonRow("EWR", 0, "0"))
	f.wantRows(ptr(int64(3)), jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("EWR", 2, "2"))

	// What was undone may be appended anew, and the rollback undone in its turn.
	f.mustAppend(rowsOf(rowAt("EWR", 1, "9")))
	redo := f.rollback(3)
	if redo.FilesAdded != 2 || redo.FilesRemoved != 1 || redo.Rows != 3 || len(redo.Undone) != 2 || redo.Undone[1].Operation != "rollback" {
		t.Errorf("the redo gives %+v", redo)
	}
	f.wantRows(nil, jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("EWR", 2, "2"))
	if _, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 2, "8"))); tableerr.TokenOf(err) != tableerr.TokenIntervalOverlap {
		t.Errorf("a row that came back is not in the way: %v", err)
	}
	// Versions that were taken back already are not undone again.
	if r := f.rollback(0); r.Rows != 0 || len(r.Undone) != 4 {
		t.Errorf("got %+v", r)
	}
	if r := f.rollback(f.version()); !r.NoOp || r.CommittedVersion != 7 || len(r.Undone) != 0 {
		t.Errorf("to the newest version: %+v", r)
	}
}

// TestRollbackAdoption takes a table back to when it had no schema.
func TestRollbackAdoption(t *testing.T) {
	f := newFixture(t)
	o := weatherOptions()
	o.Name.Table, o.Schema, o.IndexType = "bare", nil, "timestamp"
	if _, err := f.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.table, err = f.house.Table(t.Context(), o.Name); err != nil {
		t.Fatal(err)
	}
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0")))
	f.rollback(0)
	if d, err := f.table.Describe(t.Context(), tablecore.At{}); err != nil || d.Columns != nil || d.Rows != 0 {
		t.Errorf("got %+v, %v", d, err)
	}
	f.rollback(1)
	f.wantRows(nil, jsonRow("EWR", 0, "0"))
}

func TestRollbackRefusals(t *testing.T) {
	f := newFixture(t)
	f.threeHours()
	for what, c := range map[string]struct {
		o    tablecore.RollbackOptions
		want tableerr.Token
	}{
		"another version":    {tablecore.RollbackOptions{Version: 1, ExpectedVersion: 2}, tableerr.TokenVersionConflict},
		"a version to come":  {tablecore.RollbackOptions{Version: 4, ExpectedVersion: 3}, tableerr.TokenVersionNotFound},
		"no version":         {tablecore.RollbackOptions{Version: -1, ExpectedVersion: 3}, tableerr.TokenVersionNotFound},
		"another table":      {tablecore.RollbackOptions{Version: 1, ExpectedVersion: 3, TableID: "other"}, tableerr.TokenTableNotFound},
		"nothing to release": {tablecore.RollbackOptions{Version: 1, ExpectedVersion: 3, Release: true}, tableerr.TokenInvalid},
	} {
		if _, err := f.table.Rollback(t.Context(), c.o); tableerr.TokenOf(err) != c.want {
			t.Errorf("%s: got %v, want %s", what, err, c.want)
		}
	}
	if f.version() != 3 {
		t.Error("a refusal changed the table")
	}
}

func TestRollbackAppendOnly(t *testing.T) {
	f := newFixture(t)
	o := weatherOptions()
	o.Name.Table, o.Properties = "kept", map[string]string{"delta.appendOnly": "true"}
	if _, err := f.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.table, err = f.house.Table(t.Context(), o.Name); err != nil {
		t.Fatal(err)
	}
	f.threeHours()
	_, err = f.table.Rollback(t.Context(), tablecore.RollbackOptions{Version: 1, ExpectedVersion: 3})
	if tableerr.TokenOf(err) != tableerr.TokenUnsupported || f.version() != 3 {
		t.Errorf("got %v at version %d", err, f.version())
	}
}

// TestRollbackMissingFile refuses before anything changes.
func TestRollbackMissingFile(t *testing.T) {
	table, store := looseTable(t)
	f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), table: table}
	lost := f.mustAppend(rowsOf(rowAt("EWR", 0, "0"))).DataFiles[0].Path
	f.rollback(0)
	key := "default/weather/" + lost
	data, err := store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(want tableerr.Token) {
		t.Helper()
		_, err := table.Rollback(t.Context(), tablecore.RollbackOptions{Version: 1, ExpectedVersion: 2})
		if tableerr.TokenOf(err) != want || f.version() != 2 {
			t.Errorf("got %v at version %d, want %s", err, f.version(), want)
		}
	}
	if err := store.Put(t.Context(), key, data[1:]); err != nil {
		t.Fatal(err)
	}
	refused(tableerr.TokenCorrupt)
	if err := store.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	refused(tableerr.TokenFileMissing)
}

// TestRollbackRequestIDs: ids of versions that were taken back are forgotten,
// and remembered again when those come back, also by a table opened anew.
func TestRollbackRequestIDs(t *testing.T) {
	table, store := looseTable(t)
	f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), table: table}
	send := func(id string, hour int) *tablecore.AppendReport {
		t.Helper()
		r, err := f.append(tablecore.AppendOptions{RequestID: id}, rowsOf(rowAt("EWR", hour, "0")))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	again := func(id string, hour int, want int64) {
		t.Helper()
		if r := send(id, hour); !r.Replayed || r.CommittedVersion != want {
			t.Errorf("%s gives %+v, want a replay of version %d", id, r, want)
		}
	}
	send("a", 0) // version 1
	f.rollback(0)
	if r := send("a", 0); r.Replayed || r.CommittedVersion != 3 {
		t.Errorf("an id that was taken back gives %+v", r)
	}
	send("b", 1) // version 4
	if undone := f.rollback(1).Undone; *undone[0].RequestID != "b" || *undone[1].RequestID != "a" || undone[2].RequestID != nil {
		t.Errorf("got %+v", undone)
	}
	// That was version 5: a's own action says 3, which is abandoned, so it is written again
	again("a", 0, 1)
	f.table = anotherProcess(t, store)
	again("a", 0, 1)
	if r := send("b", 1); r.Replayed {
		t.Errorf("b gives %+v", r)
	}
	f.rollback(4) // version 7
	again("a", 0, 3)
	again("b", 1, 4)
	f.table = anotherProcess(t, store)
	again("b", 1, 4)
}

// TestRollbackAmongAppends takes a table back again and again while others
// append: a row that was acknowledged is there unless an accepted rollback
// named its version. Each of 100 rollbacks meets a few appends and is repeated
// until they are through.
func TestRollbackAmongAppends(t *testing.T) {
	const rounds, clients, most = 100, 4, 3
	table, _ := looseTable(t)
	var mu sync.Mutex
	acknowledged, undone := map[int64]string{}, map[int64]bool{}
	turns := make(chan int, most)
	var appenders sync.WaitGroup
	for range clients {
		appenders.Go(func() {
			f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), table: table}
			for turn := range turns {
				r, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 0, fmt.Sprint(turn))))
				if err != nil {
					t.Error(err)
					continue
				}
				mu.Lock()
				acknowledged[r.CommittedVersion] = fmt.Sprint(turn)
				mu.Unlock()
			}
		})
	}
	for turn := range rounds * most {
		turns <- turn
		if turn%most != 0 {
			continue
		}
		r, err := rollbackThree(t, table, undone)
		for tableerr.TokenOf(err) == tableerr.TokenVersionConflict {
			r, err = rollbackThree(t, table, undone)
		}
		if err != nil {
			t.Error(err)
			break
		}
		for _, u := range r.Undone {
			undone[u.Version] = true
		}
	}
	close(turns)
	appenders.Wait()
	stored := map[string]bool{}
	for _, row := range brief(t, mustScan(t, table)) {
		stored[row] = true
	}
	for version, temp := range acknowledged {
		if row := "EWR 00 " + temp; stored[row] == undone[version] {
			t.Errorf("version %d: undone %t, stored %t", version, undone[version], stored[row])
		}
	}
}

// rollbackThree takes a table three versions back, or further to one that was
// not taken back before, so that nothing comes again.
func rollbackThree(t *testing.T, table *tablecore.Table, undone map[int64]bool) (*tablecore.RollbackReport, error) {
	d, err := table.Describe(t.Context(), tablecore.At{})
	if err != nil {
		return nil, err
	}
	target := max(0, d.Version-3)
	for undone[target] {
		target--
	}
	return table.Rollback(t.Context(), tablecore.RollbackOptions{Version: target, ExpectedVersion: d.Version})
}

func mustScan(t *testing.T, table *tablecore.Table) []string {
	t.Helper()
	rows, _, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestRollbackFaults(t *testing.T) {
	before := []string{jsonRow("EWR", 1, "1")}
	after := []string{jsonRow("EWR", 0, "0")}
	walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			createWeather(t, w)
			if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", 0, "0")); err != nil {
				t.Fatal(err)
			}
			if _, err := openWeather(t, w).Rollback(t.Context(), tablecore.RollbackOptions{Version: 0, ExpectedVersion: 1}); err != nil {
				t.Fatal(err)
			}
			if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", 1, "1")); err != nil {
				t.Fatal(err)
			}
		},
		cold: true,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			table, err := w.Table(t.Context(), weatherName)
			if err != nil {
				return err
			}
			_, err = table.Rollback(t.Context(), tablecore.RollbackOptions{Version: 1, ExpectedVersion: 3})
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			rows, version, scanErr := scanWeather(t, w)
			if scanErr != nil {
				t.Fatal(scanErr)
			}
			switch {
			case version == 4 && slices.Equal(rows, after):
			case version == 3 && slices.Equal(rows, before) && err != nil:
			default:
				t.Fatalf("after %v version %d holds %v", err, version, rows)
			}
		},
		write: writeWeather,
	}.all(t)
}
