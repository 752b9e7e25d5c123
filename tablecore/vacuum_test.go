package tablecore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

const day = 24 * time.Hour

// aged is a warehouse whose store and whose clock have the same time, which
// moves when the test says so.
type aged struct {
	t     *testing.T
	clock *tabletest.Clock
	store objstore.Store
	house *tablecore.Warehouse
	table *tablecore.Table
}

func newAged(t *testing.T) *aged {
	t.Helper()
	clock := tabletest.NewClock()
	a := &aged{t: t, clock: clock, store: memstore.NewWithClock(clock.Now)}
	a.house = a.open(a.store, 1)
	createWeather(t, a.house)
	a.table = openWeather(a.t, a.house)
	return a
}

// open opens the store as another process does.
func (a *aged) open(store objstore.Store, seed byte) *tablecore.Warehouse {
	a.t.Helper()
	w := tabletest.Open(a.t, tablecore.Options{Store: sharedStore{store}, Allocator: memory.DefaultAllocator, Clock: a.clock.Now, Random: tabletest.Random(seed)})
	return w
}

// append stores one row and returns its data file.
func (a *aged) append(hour int) string {
	a.t.Helper()
	r, err := appendWeather(a.t.Context(), a.t, a.house, tablecore.AppendOptions{}, rowAt("EWR", hour, "1"))
	if err != nil {
		a.t.Fatal(err)
	}
	return r.DataFiles[0].Path
}

// put lays an object into the table's directory.
func (a *aged) put(key, content string) {
	a.t.Helper()
	if err := a.store.Put(a.t.Context(), "default/weather/"+key, []byte(content)); err != nil {
		a.t.Fatal(err)
	}
}

// rollback goes back to a version, so that the files behind it are dropped.
func (a *aged) rollback(version int64) {
	a.t.Helper()
	d, err := a.table.Describe(a.t.Context(), tablecore.At{})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.table.Rollback(a.t.Context(), tablecore.RollbackOptions{Version: version, ExpectedVersion: d.Version}); err != nil {
		a.t.Fatal(err)
	}
}

// vacuum runs a vacuum and returns its report and what became of each file.
func (a *aged) vacuum(o tablecore.VacuumOptions) (*tablecore.VacuumReport, map[string]tablecore.VacuumArtifact) {
	a.t.Helper()
	r, files, err := a.tryVacuum(o)
	if err != nil {
		a.t.Fatal(err)
	}
	return r, files
}

func (a *aged) tryVacuum(o tablecore.VacuumOptions) (*tablecore.VacuumReport, map[string]tablecore.VacuumArtifact, error) {
	files := map[string]tablecore.VacuumArtifact{}
	last := ""
	o.Artifacts = func(list []tablecore.VacuumArtifact) error {
		for _, x := range list {
			if x.Path <= last || len(list) > 1000 {
				a.t.Errorf("%q follows %q among %d", x.Path, last, len(list))
			}
			last = x.Path
			files[x.Path] = x
		}
		return nil
	}
	r, err := a.table.Vacuum(a.t.Context(), o)
	return r, files, err
}

// fate is a disposition, a reason and a version, as text.
func fate(x tablecore.VacuumArtifact) string {
	if x.Version == nil {
		return x.Disposition + " " + x.Reason
	}
	return fmt.Sprintf("%s %s %d", x.Disposition, x.Reason, *x.Version)
}

const orphan = "data/ab/abababab-abab-abab-abab-abababababab.parquet"

// TestVacuumFates lays every kind of file into a table's directory.
func TestVacuumFates(t *testing.T) {
	a := newAged(t)
	live := a.append(0)
	dropped := a.append(1)
	a.rollback(1) // version 3: dropped's versions are abandoned
	if err := a.table.WriteState(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := map[string]string{
		orphan:              "no Parquet",
		"data/ab/x.parquet": "", "AAA.parquet": "", "duckdb-1.parquet": "", "data/AB/abababab-abab-abab-abab-abababababab.parquet": "",
		"_contrail/files/00000000000000000000000000000000": "", "_contrail/dropped": "", "_contrail/attempts/dead": `{"age_ms":60000}`, "_delta_log_/x": "", "_delta_log/x.crc": "",
	}
	for key, content := range old {
		a.put(key, content)
	}
	fresh := "data/cd/cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd.parquet"
	a.clock.Advance(6 * day)
	a.put(fresh, "")
	a.clock.Advance(2 * day)
	d, err := a.table.Describe(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		live:                "retained referenced_by_commit 1",
		dropped:             "retained referenced_by_commit 2",
		orphan:              "removable invalid_or_unreadable_parquet",
		fresh:               "retained within_retention",
		"data/ab/x.parquet": "retained unrecognized_artifact", "AAA.parquet": "retained unrecognized_artifact", "duckdb-1.parquet": "retained unrecognized_artifact",
		"data/AB/abababab-abab-abab-abab-abababababab.parquet": "retained unrecognized_artifact", "_delta_log_/x": "retained unrecognized_artifact",
		"_contrail/files/00000000000000000000000000000000": "removable unreferenced", "_contrail/dropped": "removable unreferenced", "_contrail/attempts/dead": "removable unreferenced",
		"_contrail/head": "retained referenced_by_commit 3", "_contrail/state/00000000000000000003-" + d.TableID: "retained referenced_by_commit 3",
	}
	check := func(files map[string]tablecore.VacuumArtifact) {
		t.Helper()
		got := map[string]string{}
		for path, x := range files {
			got[path] = fate(x)
		}
		for _, path := range slices.Sorted(maps.Keys(want)) {
			if got[path] != want[path] {
				t.Errorf("%s is %q, want %q", path, got[path], want[path])
			}
			delete(got, path)
		}
		if len(got) > 0 {
			t.Errorf("also %v", got)
		}
	}
	r, files := a.vacuum(tablecore.VacuumOptions{})
	check(files)
	if r.StartingVersion != 3 || r.CommittedVersion != 3 || r.Apply || r.Considered.Files != int64(len(want)) || r.Removable.Files != 4 || r.Retained.Files != int64(len(want)-4) ||
		r.Removable.Bytes != 26 || r.Considered.Bytes != r.Retained.Bytes+26 || r.Deleted.Files != 0 || !r.OlderThan.Equal(a.clock.Now().Add(-7*day)) {
		t.Errorf("report %+v", r)
	}
	for path, x := range want {
		want[path] = strings.Replace(x, "removable", "deleted", 1)
	}
	r, files = a.vacuum(tablecore.VacuumOptions{Apply: true})
	check(files)
	if !r.Apply || r.Removable.Files != 0 || r.Deleted.Files != 4 || r.Deleted.Bytes != 26 {
		t.Errorf("report %+v", r)
	}
	r, files = a.vacuum(tablecore.VacuumOptions{Apply: true})
	if r.Considered.Files != r.Retained.Files || files[orphan].Path != "" {
		t.Errorf("report %+v", r)
	}
	if rows, version, err := scanWeather(t, a.house); err != nil || version != 3 || len(rows) != 1 {
		t.Errorf("%q at version %d, %v", rows, version, err)
	}
	a.rollback(2) // a redo
	if rows, _, err := scanWeather(t, a.open(a.store, 2)); err != nil || len(rows) != 2 {
		t.Errorf("%q, %v", rows, err)
	}
}

// TestVacuumReportJSON is the report as clients see it.
func TestVacuumReportJSON(t *testing.T) {
	a := newAged(t)
	a.append(0)
	a.clock.Advance(time.Hour)
	r, files := a.vacuum(tablecore.VacuumOptions{})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	size := files[slices.Sorted(maps.Keys(files))[0]].Bytes
	want := fmt.Sprintf(`{"starting_version":1,"committed_version":1,"older_than":"2025-12-25T01:00:00Z","apply":false,"considered":{"files":1,"bytes":%d},"retained":{"files":1,"bytes":%d},"removable":{"files":0,"bytes":0},"deleted":{"files":0,"bytes":0},"already_absent":{"files":0,"bytes":0}}`, size, size)
	if string(text) != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	for path, x := range files {
		text, err := json.Marshal(x)
		if want := fmt.Sprintf(`{"path":%q,"bytes":%d,"modified":"2026-01-01T00:00:00Z","disposition":"retained","reason":"referenced_by_commit","version":1}`, path, size); err != nil || string(text) != want {
			t.Errorf("%s, %v", text, err)
		}
	}
}

func TestVacuumOlderThan(t *testing.T) {
	a := newAged(t)
	a.put(orphan, "x")
	a.clock.Advance(2 * time.Hour)
	at := func(ago time.Duration) *time.Time {
		moment := a.clock.Now().Add(-ago)
		return &moment
	}
	for _, c := range []struct {
		ago       time.Duration
		force     bool
		removable int64 // −1: refused
	}{
		{-time.Second, true, -1}, {-time.Second, false, -1}, {time.Hour - time.Millisecond, false, -1}, {0, false, -1},
		{time.Hour, false, 1}, {0, true, 1}, {2 * time.Hour, false, 0}, {2*time.Hour - time.Millisecond, false, 1}, {100 * 365 * day, false, 0},
	} {
		r, _, err := a.tryVacuum(tablecore.VacuumOptions{OlderThan: at(c.ago), Force: c.force})
		var invalid *tableerr.Invalid
		switch {
		case c.removable < 0 && (!errors.As(err, &invalid) || invalid.Field != "older_than"):
			t.Errorf("%s ago, force %t: %v", c.ago, c.force, err)
		case c.removable >= 0 && (err != nil || r.Removable.Files != c.removable):
			t.Errorf("%s ago, force %t: %+v, %v", c.ago, c.force, r, err)
		}
	}
}

// TestVacuumClock: a clock that is behind the newest commit stops a vacuum; one
// that is behind by what quick commits are ahead does not.
func TestVacuumClock(t *testing.T) {
	a := newAged(t)
	a.append(0)
	a.clock.Advance(-999 * time.Millisecond)
	a.vacuum(tablecore.VacuumOptions{Apply: true, Expire: true})
	a.clock.Advance(-time.Millisecond)
	for _, o := range []tablecore.VacuumOptions{{}, {Apply: true}, {Expire: true}, {Apply: true, Expire: true}} {
		_, _, err := a.tryVacuum(o)
		var behind *tableerr.ClockBehind
		if !errors.As(err, &behind) || !behind.Newest.Equal(time.Date(2026, 1, 1, 0, 0, 0, 1e6, time.UTC)) || behind.Table != "default.weather" {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestVacuumChecks(t *testing.T) {
	a := newAged(t)
	zero, one := int64(0), int64(1)
	if _, _, err := a.tryVacuum(tablecore.VacuumOptions{ExpectedVersion: &one}); tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
		t.Error(err)
	}
	a.vacuum(tablecore.VacuumOptions{ExpectedVersion: &zero})
	if _, _, err := a.tryVacuum(tablecore.VacuumOptions{TableID: "other"}); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Error(err)
	}
	gone := errors.New("the client has gone")
	a.append(0)
	if _, err := a.table.Vacuum(t.Context(), tablecore.VacuumOptions{Artifacts: func([]tablecore.VacuumArtifact) error { return gone }}); !errors.Is(err, gone) {
		t.Error(err)
	}
}
