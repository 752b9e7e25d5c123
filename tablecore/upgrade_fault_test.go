package tablecore_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// upgradeWalk walks an upgrade that begins at a version, records the format in
// the next one and rewrites all files into one in the one behind it.
func upgradeWalk(from int64, rows []string, o tablecore.UpgradeOptions, prepare func(t *testing.T, w *tablecore.Warehouse)) walk {
	before := 0 // data files
	return walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			prepare(t, w)
			before = len(dataFiles(t, w.Store()))
		},
		cold: true,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			table, err := w.Table(t.Context(), weatherName)
			if err != nil {
				return err
			}
			r, err := table.Upgrade(t.Context(), o)
			if err == nil && r.CommittedVersion != from+2 {
				t.Errorf("got %+v", r)
			}
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			table := openWeather(t, w)
			got, stats, scanErr := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{Order: "unordered"})
			if slices.Sort(got); scanErr != nil || !slices.Equal(got, rows) {
				t.Fatalf("version %d holds %q, %v, want %q", stats.Version, got, scanErr, rows)
			}
			if stats.Version < from || stats.Version > from+2 || err == nil && stats.Version != from+2 {
				t.Fatalf("after %v the table is at version %d", err, stats.Version)
			}
			unclear := stopped || tableerr.TokenOf(err) == tableerr.TokenCommitUnknown
			if files := len(dataFiles(t, store)); !unclear && files != before && files != before+1 {
				t.Errorf("after %v there are %d files, %d at first", err, files, before)
			}
			// Run again, it ends as if nothing had happened.
			r, again := table.Upgrade(t.Context(), o)
			if again != nil || r.CommittedVersion != from+2 || r.RollbackTo != from || r.ToFormat != "0.3.0" {
				t.Fatalf("run again after %v: %+v, %v", err, r, again)
			}
			w.WaitForBackground()
			if r, again = table.Upgrade(t.Context(), o); again != nil || !r.NoOp || r.RollbackTo != from {
				t.Fatalf("run once more: %+v, %v", r, again)
			}
			d, describeErr := table.Describe(t.Context(), tablecore.At{})
			if describeErr != nil || d.Files != 1 || d.FormatVersion != "0.3.0" || d.Version != from+2 {
				t.Fatalf("described %+v, %v", d, describeErr)
			}
			if got := mustScan(t, table); !slices.Equal(got, rows) {
				t.Fatalf("at last it holds %q, want %q", got, rows)
			}
		},
		write: writeWeather,
	}
}

func TestUpgradeFaults(t *testing.T) {
	rows := []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("JFK", 0, "2")}
	upgradeWalk(3, rows, tablecore.UpgradeOptions{}, func(t *testing.T, w *tablecore.Warehouse) {
		createWeather(t, w)
		rewrite(t, w.Store(), set("contrail.format-version", "0.1.0"))
		for _, row := range []string{rowAt("EWR", 1, "1"), rowAt("EWR", 0, "0") + "," + rowAt("JFK", 0, "2")} {
			if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, row); err != nil {
				t.Fatal(err)
			}
		}
	}).all(t)
}

func TestPlainTableFaults(t *testing.T) {
	rows := []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("JFK", 0, "2")}
	upgradeWalk(0, rows, adoption(), func(t *testing.T, w *tablecore.Warehouse) {
		plainWeather(t, w.Store(), rowsOf(rowAt("JFK", 0, "2"), rowAt("EWR", 1, "1")), rowsOf(rowAt("EWR", 0, "0")))
	}).faults(t, func() walkStore { return walkStore{memory: memstore.New()} })
}

// TestUpgradeAmongAppends upgrades a table that four writers append to: no row is
// lost, nor left out of what is derived.
func TestUpgradeAmongAppends(t *testing.T) {
	for round := range 3 {
		t.Run(fmt.Sprint(round), upgradeAmongAppends)
	}
}

func upgradeAmongAppends(t *testing.T) {
	const clients, each = 4, 6
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	createWeather(t, w)
	rewrite(t, store, set("contrail.format-version", "0.1.0"))
	table, other := openWeather(t, w), anotherProcess(t, store)
	begun := make(chan struct{}, clients*each)
	var appenders sync.WaitGroup
	for client := range clients {
		appenders.Go(func() {
			f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), table: table}
			for n := range each {
				if _, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt(fmt.Sprint("C", client), n, fmt.Sprint(n)))); err != nil {
					t.Error(err)
				}
				begun <- struct{}{}
			}
		})
	}
	for range clients {
		<-begun
	}
	_, err := other.Upgrade(t.Context(), tablecore.UpgradeOptions{})
	for tableerr.TokenOf(err) == tableerr.TokenVersionConflict {
		_, err = other.Upgrade(t.Context(), tablecore.UpgradeOptions{})
	}
	if err != nil {
		t.Error(err)
	}
	appenders.Wait()
	f := &fixture{t: t, table: anotherProcess(t, store)}
	if d := f.describe(); d.FormatVersion != "0.3.0" || d.Rows != clients*each {
		t.Errorf("described %+v", d)
	}
	latest, err := f.table.Latest(t.Context(), tablecore.LatestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range listedRows(t, latest) {
		if row["temp"] != float64(each-1) {
			t.Errorf("a newest row is %v", row)
		}
	}
	covered, err := f.table.Coverage(t.Context(), tablecore.CoverageOptions{Kind: "summary"})
	if err != nil {
		t.Fatal(err)
	}
	if rows := listedRows(t, covered); len(rows) != clients || rows[0]["covered_intervals"] != float64(each) || rows[clients-1]["covered_intervals"] != float64(each) {
		t.Errorf("covered are %v", rows)
	}
}
