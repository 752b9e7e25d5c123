package tablecore_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// asSoftware makes this process behave like software of another format version
// until the test ends.
func asSoftware(t *testing.T, major, minor uint32) {
	t.Helper()
	now := tabledef.CurrentFormat
	t.Cleanup(func() { tabledef.CurrentFormat = now })
	tabledef.CurrentFormat = tabledef.FormatVersion{Major: major, Minor: minor}
}

// formatCalls are all ways to a table. What they ask for is wrong besides, or
// stale, so that they show whether the format is judged first.
func formatCalls(t *testing.T, w *tablecore.Warehouse, table *tablecore.Table) (reads, writes map[string]func() error) {
	ctx, stale := t.Context(), ptr(int64(77))
	empty := columnsOf()
	second := func(_ any, err error) error { return err }
	listing := func(_ *tablecore.Listing, err error) error { return err }
	reads = map[string]func() error{
		"describe": func() error { return second(table.Describe(ctx, tablecore.At{})) },
		"scan":     func() error { return second(table.PlanScan(ctx, tablecore.ScanOptions{})) },
		"history":  func() error { return listing(table.History(ctx, "")) },
		"files":    func() error { return listing(table.Files(ctx, tablecore.At{})) },
		"entities": func() error { return listing(table.Entities(ctx, tablecore.At{})) },
		"latest":   func() error { return listing(table.Latest(ctx, tablecore.LatestOptions{})) },
		"coverage": func() error { return listing(table.Coverage(ctx, tablecore.CoverageOptions{Kind: "summary"})) },
		"check":    func() error { return second(w.Check(ctx, weatherName, tablecore.CheckOptions{})) },
	}
	writes = map[string]func() error{
		"append": func() error {
			return second(table.Append(ctx, tabletest.NewReader(empty), tablecore.AppendOptions{Compression: "rar", ExpectedVersion: stale}))
		},
		"check of an append": func() error { return table.CheckAppend(ctx, weatherOptions().Schema, tablecore.AppendOptions{}) },
		"stage": func() error {
			return second(table.Stage(ctx, tabletest.NewReader(weatherOptions().Schema), tablecore.StageOptions{}))
		},
		"append of a known id": func() error {
			return second(table.Append(ctx, tabletest.NewReader(empty), tablecore.AppendOptions{RequestID: "known"}))
		},
		"update_rows": func() error {
			return second(table.UpdateRows(ctx, tabletest.NewReader(empty), tablecore.UpdateOptions{Columns: []string{"origin"}, ExpectedVersion: *stale}))
		},
		"add_columns": func() error {
			return second(table.AddColumns(ctx, tablecore.AddColumnsOptions{Schema: empty, ExpectedVersion: stale}))
		},
		"set_properties": func() error {
			return second(table.SetProperties(ctx, tablecore.SetPropertiesOptions{Properties: properties("contrail.x", "y"), ExpectedVersion: stale}))
		},
		"checkpoint": func() error {
			return second(table.Checkpoint(ctx, tablecore.CheckpointOptions{ExpectedVersion: stale}))
		},
		"optimize": func() error {
			return second(table.Optimize(ctx, tablecore.OptimizeOptions{Layout: "none", ExpectedVersion: stale}))
		},
		"vacuum": func() error {
			return second(table.Vacuum(ctx, tablecore.VacuumOptions{Apply: true, Expire: true, ExpectedVersion: stale}))
		},
		"repair": func() error {
			return second(w.Check(ctx, weatherName, tablecore.CheckOptions{Repair: true}))
		},
		"commit_staged": func() error {
			return second(table.CommitStaged(ctx, tablecore.CommitStagedOptions{Staged: []string{"none"}, ExpectedVersion: stale}))
		},
		"abort_staged": func() error {
			return second(table.AbortStaged(ctx, tablecore.AbortStagedOptions{Staged: []string{"none"}}))
		},
		"upgrade": func() error {
			return second(table.Upgrade(ctx, tablecore.UpgradeOptions{KeepSnapshots: "soon", ExpectedVersion: stale}))
		},
		"rollback": func() error {
			return second(table.Rollback(ctx, tablecore.RollbackOptions{Version: 99, ExpectedVersion: *stale}))
		},
		"drop": func() error {
			return second(w.DropTable(ctx, weatherName, tablecore.DropOptions{ExpectedVersion: stale}))
		},
	}
	return reads, writes
}

// earlierReads read versions that a process has in memory.
func earlierReads(t *testing.T, table *tablecore.Table) map[string]func() error {
	ctx, first, second := t.Context(), ptr(int64(0)), ptr(int64(1))
	return map[string]func() error{
		"scan of a version": func() error {
			_, err := table.PlanScan(ctx, tablecore.ScanOptions{Version: second})
			return err
		},
		"latest of a version": func() error {
			_, err := table.Latest(ctx, tablecore.LatestOptions{Version: first})
			return err
		},
		"coverage of a version": func() error {
			_, err := table.Coverage(ctx, tablecore.CoverageOptions{Kind: "summary", Version: second})
			return err
		},
	}
}

// formatTable makes a table of format 1.0.0 with a row, as software of that
// format, and has another writer move it to a format.
func formatTable(t *testing.T, format string) (*tablecore.Warehouse, *tablecore.Table, objstore.Store) {
	t.Helper()
	asSoftware(t, 1, 0)
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	createWeather(t, w)
	table := openWeather(t, w)
	if _, err := putRows(t, table, tablecore.AppendOptions{RequestID: "known"}, rowsOf(rowAt("EWR", 0, "0"))); err != nil {
		t.Fatal(err)
	}
	rewrite(t, store, set("contrail.format-version", format))
	return w, table, store
}

// TestUnreadableFormat makes sure that a format that cannot be read is the first
// thing told, on every path, to who opens the table and to who holds it.
func TestUnreadableFormat(t *testing.T) {
	for _, format := range []string{"2.0.0", "abc", ""} {
		t.Run(format, func(t *testing.T) {
			w, table, store := formatTable(t, format)
			reads, writes := formatCalls(t, w, table)
			maps.Copy(reads, earlierReads(t, table))
			reads["open"] = func() error {
				_, err := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator).Table(t.Context(), weatherName)
				return err
			}
			for _, calls := range []map[string]func() error{reads, writes} {
				for name, call := range calls {
					if err := call(); tableerr.TokenOf(err) != tableerr.TokenFormatUnreadable {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
			// It is this table's affair alone.
			o := weatherOptions()
			o.Name = typesName
			if _, err := w.CreateTable(t.Context(), o); err != nil {
				t.Error(err)
			}
			if tables, err := w.ListTables(t.Context(), ""); err != nil || len(tables) != 2 || tables[1].Version != nil || tables[0].Version == nil {
				t.Errorf("listed %+v, %v", tables, err)
			}
		})
	}
}

// TestUnwritableFormat makes sure that a format that can only be read is read,
// and that nothing of a write is looked at.
func TestUnwritableFormat(t *testing.T) {
	w, table, store := formatTable(t, "1.1.0")
	reads, writes := formatCalls(t, w, table)
	maps.Copy(reads, earlierReads(t, table))
	for name, call := range reads {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := keysUnder(t, store, "default/")
	for name, call := range writes {
		if err := call(); tableerr.TokenOf(err) != tableerr.TokenFormatUnwritable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := keysUnder(t, store, "default/"); len(after) != len(before) {
		t.Errorf("the store holds %q, it held %q", after, before)
	}
}

// TestFormatAtPublish has the format move between the checks of a write and its
// put.
func TestFormatAtPublish(t *testing.T) {
	asSoftware(t, 1, 0)
	for format, token := range map[string]tableerr.Token{"1.1.0": tableerr.TokenFormatUnwritable, "2.0.0": tableerr.TokenFormatUnreadable} {
		writes := map[string]func(*tablecore.Table) error{
			"append": func(table *tablecore.Table) error {
				_, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 1, "1")))
				return err
			},
			"append with expected_version": func(table *tablecore.Table) error {
				_, err := putRows(t, table, tablecore.AppendOptions{ExpectedVersion: ptr(int64(0))}, rowsOf(rowAt("EWR", 1, "1")))
				return err
			},
		}
		for verb, alter := range alterations {
			writes[verb] = func(table *tablecore.Table) error { _, err := alter(t.Context(), table, nil); return err }
		}
		for name, write := range writes {
			t.Run(format+"/"+name, func(t *testing.T) {
				inner := memstore.New()
				store := &ambush{Store: inner}
				w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
				createWeather(t, w)
				table := openWeather(t, w)
				store.theirs = func() { rewrite(t, inner, set("contrail.format-version", format)) }
				if err := write(table); tableerr.TokenOf(err) != token {
					t.Errorf("got %v", err)
				}
				if left := dataFiles(t, inner); len(left) != 0 {
					t.Errorf("%q are left", left)
				}
			})
		}
	}
}

// TestOldFormatsStay makes sure that tables of older formats are read and
// written, and stay what they are.
func TestOldFormatsStay(t *testing.T) {
	for _, format := range []string{"0.1.0", "0.2.0", "2", "0.3.9"} {
		t.Run(format, func(t *testing.T) {
			store := memstore.New()
			w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
			createWeather(t, w)
			rewrite(t, store, set("contrail.format-version", format))
			table := openWeather(t, w)
			if _, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 0, "0"))); err != nil {
				t.Fatal(err)
			}
			for verb, alter := range alterations {
				if _, err := alter(t.Context(), table, nil); err != nil {
					t.Errorf("%s: %v", verb, err)
				}
			}
			want := map[string]string{"2": "0.2.0"}[format]
			if want == "" {
				want = format
			}
			d, err := anotherProcess(t, store).Describe(t.Context(), tablecore.At{})
			if err != nil || d.FormatVersion != want || d.Rows != 1 || len(d.Columns) != 4 || d.Properties["team"] != "ops" {
				t.Errorf("described %+v, %v", d, err)
			}
			if data, err := store.Get(t.Context(), commitName(4)); err != nil || !strings.Contains(string(data), fmt.Sprintf(`"contrail.format-version":%q`, format)) {
				t.Errorf("the property is not as it was: %s, %v", data, err)
			}
		})
	}
}

// TestFormatAsNumber reads a version that another writer has put as a number.
func TestFormatAsNumber(t *testing.T) {
	for number, want := range map[int]tableerr.Token{3: "", 4: tableerr.TokenFormatUnreadable} {
		store := memstore.New()
		createWeather(t, tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator))
		rewrite(t, store, func(newest map[string]action) []action {
			newest["metaData"]["configuration"].(action)["contrail.format-version"] = number
			return []action{{"metaData": newest["metaData"]}}
		})
		_, err := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator).Table(t.Context(), weatherName)
		if tableerr.TokenOf(err) != want {
			t.Errorf("%d: %v", number, err)
		}
	}
}

// TestTwoSoftwareVersions has software of two formats take turns on one table.
func TestTwoSoftwareVersions(t *testing.T) {
	store := memstore.New()
	as := func(minor uint32) *tablecore.Table {
		t.Helper()
		asSoftware(t, 1, minor)
		return anotherProcess(t, store)
	}
	asSoftware(t, 1, 0)
	createWeather(t, tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator))
	hour := 0
	put := func(table *tablecore.Table) error {
		hour++
		_, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", hour, "1")))
		return err
	}
	for _, minor := range []uint32{1, 0, 1} { // newer software leaves the format as it is
		if err := put(as(minor)); err != nil {
			t.Fatalf("software 1.%d: %v", minor, err)
		}
	}
	old := as(0)
	rewrite(t, store, set("contrail.format-version", "1.1.0")) // an upgrade by the newer
	if err := put(old); tableerr.TokenOf(err) != tableerr.TokenFormatUnwritable {
		t.Errorf("the older: %v", err)
	}
	if rows, _, err := tabletest.Scan(t.Context(), old, tablecore.ScanOptions{}); err != nil || len(rows) != 3 {
		t.Errorf("the older reads %q, %v", rows, err)
	}
	if err := put(as(1)); err != nil {
		t.Errorf("the newer: %v", err)
	}
}
