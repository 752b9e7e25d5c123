package tablecore_test

import (
	"encoding/json"
	"errors"
	"fmt"
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

func (f *fixture) upgrade(o tablecore.UpgradeOptions) *tablecore.UpgradeReport {
	f.t.Helper()
	r, err := f.table.Upgrade(f.t.Context(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.house.WaitForBackground()
	return r
}

// steps renders the steps of a report as "record_format@3 rewrite_files@4:2".
func steps(r *tablecore.UpgradeReport) string {
	var out []string
	for _, s := range r.Steps {
		text := s.Step
		if s.Version != nil {
			text += fmt.Sprint("@", *s.Version)
		}
		if s.Files > 0 {
			text += fmt.Sprint(":", s.Files)
		}
		if s.Commits != slices.Contains([]string{"hold_snapshots", "record_format", "rewrite_files"}, s.Step) || s.Files > 0 != (s.Bytes > 0) {
			text += "?"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func wantSteps(t *testing.T, r *tablecore.UpgradeReport, want string) {
	t.Helper()
	if got := steps(r); got != want || r.NoOp != (want == "") {
		t.Errorf("got %s (no-op %v), want %s", got, r.NoOp, want)
	}
}

func TestUpgrade(t *testing.T) {
	for _, format := range []string{"0.1.0", "0.2.0", "2"} {
		t.Run(format, func(t *testing.T) {
			store := memstore.New()
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			t.Cleanup(func() { mem.AssertSize(t, 0) })
			f := &fixture{t: t, mem: mem, house: tabletest.Warehouse(t, sharedStore{store}, mem)}
			createWeather(t, f.house)
			rewrite(t, store, set("contrail.format-version", format))
			f.table = openWeather(t, f.house)
			f.mustAppend(rowsOf(rowAt("EWR", 1, "1"), rowAt("JFK", 0, "2")))
			f.mustAppend(rowsOf(rowAt("EWR", 0, "0")))
			rows, _ := f.scan(tablecore.ScanOptions{})
			dry := f.upgrade(tablecore.UpgradeOptions{DryRun: true})
			wantSteps(t, dry, "hold_snapshots record_format rewrite_files:2 build_derived_data:2 write_head:1")
			if f.version() != 3 || !dry.DryRun || dry.CommittedVersion != 3 || dry.RollbackTo != 3 || dry.ToFormat != "0.3.0" {
				t.Errorf("at version %d, %+v", f.version(), dry)
			}
			r := f.upgrade(tablecore.UpgradeOptions{})
			wantSteps(t, r, "hold_snapshots@4 record_format@4 rewrite_files@5:2 build_derived_data:1 write_head:1")
			old := map[string]string{"2": "0.2.0"}[format]
			if old == "" {
				old = format
			}
			if r.StartingVersion != 3 || r.CommittedVersion != 5 || r.FromFormat != old || r.ToFormat != "0.3.0" || r.RollbackTo != 3 || !r.KeepSnapshotsUntil.After(tabletest.NewClock().Now().Add(6*24*time.Hour)) {
				t.Errorf("got %+v", r)
			}
			f.wantRows(nil, rows...)
			// A current table is left alone, and says what would undo the upgrade.
			for _, o := range []tablecore.UpgradeOptions{{}, {DryRun: true}, {NoCompact: true}, {KeepSnapshots: "30d"}} {
				again := f.upgrade(o)
				wantSteps(t, again, "")
				if again.CommittedVersion != 5 || again.RollbackTo != 3 || !again.KeepSnapshotsUntil.Equal(r.KeepSnapshotsUntil.Time) {
					t.Errorf("again: %+v", again)
				}
			}
			f.rollback(r.RollbackTo)
			if d := f.describe(); d.FormatVersion != old || d.Files != 2 {
				t.Errorf("rolled back to %+v", d)
			}
			f.mustAppend(rowsOf(rowAt("EWR", 5, "5")))
			f.rollback(5)
			if d := f.describe(); d.FormatVersion != "0.3.0" || d.Files != 1 {
				t.Errorf("redone as %+v", d)
			}
			f.wantRows(nil, rows...)
			wantSteps(t, f.upgrade(tablecore.UpgradeOptions{}), "")
		})
	}
}

func (f *fixture) describe() *tablecore.Description {
	f.t.Helper()
	d, err := f.table.Describe(f.t.Context(), tablecore.At{})
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

func mustGet(t *testing.T, store objstore.Store, key string) []byte {
	t.Helper()
	data, err := store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestUpgradeOtherKeys refuses keys that a table has otherwise.
func TestUpgradeOtherKeys(t *testing.T) {
	f := newFixture(t)
	same := adoption()
	same.IndexGranularity, same.Uniqueness = " 1 hour", "REJECT"
	f.upgrade(same)
	for field, o := range map[string]tablecore.UpgradeOptions{
		"index_column": {IndexColumn: "temp"}, "index_granularity": {IndexGranularity: "60m"}, "entity_columns": {EntityColumns: []string{}},
		"timezone": {Timezone: "UTC"}, "uniqueness": {Uniqueness: "none"},
	} {
		_, err := f.table.Upgrade(t.Context(), o)
		invalidAt(t, err, field)
	}
	_, err := f.table.Upgrade(t.Context(), tablecore.UpgradeOptions{IndexGranularity: "soon"})
	invalidAt(t, err, "index_granularity")
}

// TestUpgradeHold never shortens a hold, nor lowers a format.
func TestUpgradeHold(t *testing.T) {
	now := tabletest.NewClock().Now()
	far := now.Add(100 * 24 * time.Hour).UTC()
	for what, c := range map[string]struct {
		held string
		o    tablecore.UpgradeOptions
		want time.Time // zero for about a week
		hold bool
	}{
		"none":           {"", tablecore.UpgradeOptions{}, time.Time{}, true},
		"damaged":        {"soon", tablecore.UpgradeOptions{}, time.Time{}, true},
		"shorter":        {now.Format(time.RFC3339), tablecore.UpgradeOptions{}, time.Time{}, true},
		"longer":         {far.Format(time.RFC3339Nano), tablecore.UpgradeOptions{}, far, false},
		"longer than a":  {far.Format(time.RFC3339Nano), tablecore.UpgradeOptions{KeepSnapshots: "99d"}, far, false},
		"asked until":    {"", tablecore.UpgradeOptions{KeepSnapshotsUntil: &far}, far, true},
		"asked for less": {"", tablecore.UpgradeOptions{KeepSnapshotsUntil: ptr(now.Add(72 * time.Hour).UTC())}, now.Add(72 * time.Hour), true},
	} {
		t.Run(what, func(t *testing.T) {
			f, store := olderWeather(t, "0.2.0")
			if c.held != "" {
				rewrite(t, store, set("contrail.keep-snapshots-until", c.held))
			}
			r := f.upgrade(c.o)
			if strings.Contains(steps(r), "hold_snapshots") != c.hold {
				t.Errorf("the steps are %s", steps(r))
			}
			if want := now.Add(7 * 24 * time.Hour); c.want.IsZero() && (r.KeepSnapshotsUntil.Before(want) || r.KeepSnapshotsUntil.After(want.Add(time.Hour))) {
				t.Errorf("held until %s", r.KeepSnapshotsUntil)
			} else if !c.want.IsZero() && !r.KeepSnapshotsUntil.Equal(c.want) {
				t.Errorf("held until %s, want %s", r.KeepSnapshotsUntil, c.want)
			}
			commit := string(mustGet(t, store, commitName(int(r.CommittedVersion))))
			if text, _ := json.Marshal(r.KeepSnapshotsUntil); !strings.Contains(commit, `"contrail.keep-snapshots-until":`+string(text)) {
				t.Errorf("the commit is %s", commit)
			}
		})
	}
	f, store := olderWeather(t, "0.3.9")
	wantSteps(t, f.upgrade(tablecore.UpgradeOptions{}), "write_head:1")
	rewrite(t, store, func(newest map[string]action) []action {
		p := newest["protocol"]
		p["writerFeatures"] = slices.DeleteFunc(p["writerFeatures"].([]any), func(f any) bool { return f == "appendOnly" })
		return []action{{"protocol": p}}
	})
	r := f.upgrade(tablecore.UpgradeOptions{})
	wantSteps(t, r, "hold_snapshots@3 record_format@3 write_head:1")
	if d := f.describe(); d.FormatVersion != "0.3.9" || r.ToFormat != "0.3.9" {
		t.Errorf("the format is %s", d.FormatVersion)
	}
}

// olderWeather is an empty weather table of an older format.
func olderWeather(t *testing.T, format string) (*fixture, objstore.Store) {
	t.Helper()
	store := memstore.New()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	f := &fixture{t: t, mem: mem, house: tabletest.Warehouse(t, sharedStore{store}, mem)}
	createWeather(t, f.house)
	rewrite(t, store, set("contrail.format-version", format))
	f.table = openWeather(t, f.house)
	return f, store
}

// TestUpgradeConflicts has others commit between the plan of an upgrade and its
// put: it is planned anew, or refused where it may follow one version only.
func TestUpgradeConflicts(t *testing.T) {
	for _, pinned := range []bool{false, true} {
		for verb, alter := range alterations {
			t.Run(fmt.Sprint(verb, pinned), func(t *testing.T) {
				inner := memstore.New()
				store := &ambush{Store: inner}
				w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
				createWeather(t, w)
				rewrite(t, inner, set("contrail.format-version", "0.1.0"))
				table, o := openWeather(t, w), tablecore.UpgradeOptions{}
				if pinned {
					o.ExpectedVersion = ptr(int64(1))
				}
				store.theirs = func() {
					if _, err := alter(t.Context(), anotherProcess(t, inner), nil); err != nil {
						t.Error(err)
					}
				}
				r, err := table.Upgrade(t.Context(), o)
				if pinned {
					var conflict *tableerr.VersionConflict
					if !errors.As(err, &conflict) || conflict.Expected != 1 || conflict.Found != 2 {
						t.Errorf("got %+v, %v", r, err)
					}
					return
				}
				if err != nil || r.StartingVersion != 2 || r.CommittedVersion != 3 || r.RollbackTo != 2 {
					t.Fatalf("got %+v, %v", r, err)
				}
				d, err := table.Describe(t.Context(), tablecore.At{})
				if err != nil || d.FormatVersion != "0.3.0" || len(d.Columns) == 3 && d.Properties["team"] == "" {
					t.Errorf("theirs is lost: %+v, %v", d, err)
				}
			})
		}
	}
}

// TestUpgradeWithoutItsFiles has another process rewrite the files between an
// upgrade's last check and its put: the report tells of the first commit alone.
func TestUpgradeWithoutItsFiles(t *testing.T) {
	inner := memstore.New()
	store := &ambush{Store: inner}
	w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
	createWeather(t, w)
	f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), table: openWeather(t, w)}
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 2, "0")))
	f.mustAppend(rowsOf(rowAt("EWR", 1, "0")))
	store.theirs = func() { // before the first commit
		store.theirs = func() {
			if r, err := anotherProcess(t, inner).Optimize(t.Context(), tablecore.OptimizeOptions{}); err != nil || r.CommittedVersion != 4 {
				t.Errorf("optimized: %+v, %v", r, err)
			}
		}
	}
	r, err := f.table.Upgrade(t.Context(), tablecore.UpgradeOptions{})
	if err != nil || r.StartingVersion != 2 || r.CommittedVersion != 3 || r.NoOp || len(r.Steps) == 0 || r.Steps[0].Step != tablecore.StepHoldSnapshots {
		t.Fatalf("got %+v, %v", r, err)
	}
	for _, step := range r.Steps[1:] {
		if step.Commits {
			t.Errorf("a step that has committed nothing: %+v", step)
		}
	}
}

// TestUpgradeMends stores derived data that are damaged, and a head that is gone.
func TestUpgradeMends(t *testing.T) {
	f, store := plainFixture(t, rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1")))
	o := adoption()
	o.NoCompact = true
	f.upgrade(o)
	beside := keysUnder(t, store, "default/weather/_contrail/files/")
	if len(beside) != 1 {
		t.Fatalf("there are %q", beside)
	}
	if err := store.Put(t.Context(), beside[0], []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	wantSteps(t, f.upgrade(o), "build_derived_data:1")
	if err := store.Delete(t.Context(), weatherKey("_contrail/head")); err != nil {
		t.Fatal(err)
	}
	wantSteps(t, f.upgrade(o), "build_derived_data:1 write_head:1")
	wantSteps(t, f.upgrade(o), "")
}
