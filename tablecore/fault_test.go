package tablecore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// appendOutcome is what a walk of an append expects: the rows of the table
// without it and with it.
type appendOutcome struct {
	version       int64 // that the append would make
	before, after []string
	files         int // data files and what lies beside them, before
}

// verify makes sure that the append is there or not, as it was answered.
func (o appendOutcome) verify(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
	table, openErr := w.Table(t.Context(), weatherName)
	if openErr != nil {
		t.Fatal(openErr)
	}
	got, stats, scanErr := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
	if scanErr != nil {
		t.Fatal(scanErr)
	}
	landed := stats.Version == o.version
	want := o.before
	if landed {
		want = o.after
	}
	if !slices.Equal(got, want) {
		t.Fatalf("version %d holds %d rows %.200q, want %d %.200q", stats.Version, len(got), got, len(want), want)
	}
	unclear := stopped || tableerr.TokenOf(err) == tableerr.TokenCommitUnknown
	left := tableFiles(t, store)
	switch {
	case err == nil && !landed:
		t.Fatal("the append was acknowledged and is lost")
	case err != nil && landed && !unclear:
		t.Fatalf("the append was refused with %v and is there", err)
	case err != nil && !landed && !unclear && len(left) != o.files:
		t.Fatalf("after %v these files are left: %q", err, left)
	}
}

// dataFiles lists the data files in a store, committed or not.
func dataFiles(t *testing.T, store objstore.Store) []string {
	t.Helper()
	return keysUnder(t, store, "default/weather/data/")
}

// tableFiles lists the data files in a store and what lies beside them.
func tableFiles(t *testing.T, store objstore.Store) []string {
	t.Helper()
	return append(dataFiles(t, store), keysUnder(t, store, "default/weather/_contrail/files/")...)
}

func keysUnder(t *testing.T, store objstore.Store, prefix string) []string {
	t.Helper()
	var keys []string
	for info, err := range store.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// jsonRow is a row of the weather table at an hour of 1970-01-01 as scans
// give it.
func jsonRow(origin string, hour int, temp string) string {
	return fmt.Sprintf(`{"origin":%q,"temp":%s,"time_hour":"1970-01-01T%02d:00:00Z"}`, origin, temp, hour)
}

func createWeather(t *testing.T, w *tablecore.Warehouse) {
	t.Helper()
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
}

func openWeather(t testing.TB, w *tablecore.Warehouse) *tablecore.Table {
	t.Helper()
	table, err := w.Table(t.Context(), weatherName)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestAppendFaults(t *testing.T) {
	outcome := appendOutcome{
		version: 2, files: 1,
		before: []string{jsonRow("EWR", 0, "0"), jsonRow("JFK", 0, "10")},
		after:  []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("JFK", 0, "10"), jsonRow("JFK", 1, "11")},
	}
	walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			createWeather(t, w)
			if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", 0, "0"), rowAt("JFK", 0, "10")); err != nil {
				t.Fatal(err)
			}
		},
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("JFK", 1, "11"), rowAt("EWR", 1, "1"))
			return err
		},
		verify: outcome.verify, write: writeWeather,
	}.all(t)
}

// TestAdoptionFaults walks the first append to a table without a schema.
func TestAdoptionFaults(t *testing.T) {
	outcome := appendOutcome{version: 1, after: []string{jsonRow("EWR", 1, "1"), jsonRow("JFK", 1, "11")}}
	walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			o := weatherOptions()
			o.Schema, o.IndexType = nil, "timestamp"
			if _, err := w.CreateTable(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		},
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("JFK", 1, "11"), rowAt("EWR", 1, "1"))
			return err
		},
		verify: outcome.verify, write: writeWeather,
	}.all(t)
}

// TestSidecarFaults walks an append whose coverage and entities are too large
// for the data file's footer.
func TestSidecarFaults(t *testing.T) {
	outcome := appendOutcome{version: 1}
	var rows []string
	for i := range 4000 {
		origin := fmt.Sprintf("station-%05d-of-the-network", i)
		rows = append(rows, rowAt(origin, i%24, "1"))
		outcome.after = append(outcome.after, jsonRow(origin, i%24, "1"))
	}
	walk{
		prepare: createWeather,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rows...)
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			outcome.verify(t, w, store, stopped, err)
			if files := tableFiles(t, store); err == nil && len(files) != 2 {
				t.Fatalf("the append has written %q, not a data file and one beside it", files)
			}
		},
		write: writeWeather,
	}.all(t)
}

// TestCheckpointFaults walks the writing of a checkpoint: whatever happens to
// it, the table is the same.
func TestCheckpointFaults(t *testing.T) {
	walk{
		prepare: prepareCheckpoint,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			table, err := w.Table(t.Context(), weatherName)
			if err != nil {
				return err
			}
			return table.WriteCheckpoint(t.Context())
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, _ objstore.Store, _ bool, _ error) {
			table := openWeather(t, w)
			checkSixHours(t, w)
			if err := table.WriteCheckpoint(t.Context()); err != nil {
				t.Fatalf("no further checkpoint can be written: %v", err)
			}
			checkSixHours(t, w)
		},
		write: writeWeather,
	}.all(t)
}

// prepareCheckpoint makes a table of six commits with a checkpoint at the
// third.
func prepareCheckpoint(t *testing.T, w *tablecore.Warehouse) {
	t.Helper()
	createWeather(t, w)
	for hour := range 6 {
		if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", hour, "1")); err != nil {
			t.Fatal(err)
		}
		if hour != 2 {
			continue
		}
		table, err := w.Table(t.Context(), weatherName)
		if err == nil {
			err = table.WriteCheckpoint(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checkSixHours makes sure that the table is what prepareCheckpoint has made.
func checkSixHours(t *testing.T, w *tablecore.Warehouse) {
	t.Helper()
	var want []string
	for hour := range 6 {
		want = append(want, jsonRow("EWR", hour, "1"))
	}
	if got, version, err := scanWeather(t, w); err != nil || version != 6 || !slices.Equal(got, want) {
		t.Fatalf("version %d holds %q, %v", version, got, err)
	}
}

func scanWeather(t *testing.T, w *tablecore.Warehouse) ([]string, int64, error) {
	t.Helper()
	table, err := w.Table(t.Context(), weatherName)
	if err != nil {
		return nil, -1, err
	}
	rows, stats, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
	return rows, stats.Version, err
}

// TestOpenFaults walks the opening of a table and a scan with nothing in
// memory: it gives the right rows or an error, and changes nothing.
func TestOpenFaults(t *testing.T) {
	walk{
		prepare: prepareCheckpoint,
		cold:    true,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			rows, _, err := scanWeather(t, w)
			if err == nil && len(rows) != 6 {
				t.Fatalf("the scan gave %q", rows)
			}
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, _ objstore.Store, _ bool, _ error) { checkSixHours(t, w) },
		write:  writeWeather,
	}.all(t)
}

func TestCreateFaults(t *testing.T) {
	without := weatherOptions()
	without.Schema, without.IndexType = nil, "timestamp"
	for name, o := range map[string]tablecore.CreateOptions{"with schema": weatherOptions(), "without": without} {
		t.Run(name, func(t *testing.T) { createWalk(o).all(t) })
	}
}

func createWalk(o tablecore.CreateOptions) walk {
	create := func(t *testing.T, w *tablecore.Warehouse) error {
		_, err := w.CreateTable(t.Context(), o)
		return err
	}
	return walk{
		prepare: func(*testing.T, *tablecore.Warehouse) {},
		run:     create,
		verify: func(t *testing.T, w *tablecore.Warehouse, _ objstore.Store, _ bool, err error) {
			table, openErr := w.Table(t.Context(), weatherName)
			switch {
			case openErr == nil:
				if d, err := table.Describe(t.Context(), tablecore.At{}); err != nil || d.Version != 0 || (d.Columns == nil) != (o.Schema == nil) {
					t.Fatalf("described %+v, %v", d, err)
				}
			case tableerr.TokenOf(openErr) != tableerr.TokenTableNotFound:
				t.Fatal(openErr)
			case err == nil:
				t.Fatal("the table was acknowledged and is lost")
			default: // nothing may stand in the way of another try
				if err := create(t, w); err != nil {
					t.Fatal(err)
				}
			}
		},
		write: writeWeather,
	}
}

func TestDropFaults(t *testing.T) {
	walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
				t.Fatal(err)
			}
		},
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := w.DropTable(t.Context(), weatherName, tablecore.DropOptions{})
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			_, openErr := w.Table(t.Context(), weatherName)
			gone := tableerr.TokenOf(openErr) == tableerr.TokenTableNotFound
			if openErr != nil && !gone {
				t.Fatal(openErr)
			}
			if err == nil && !gone {
				t.Fatal("the drop was acknowledged and the table is there")
			}
			for info, err := range store.List(t.Context(), "default/", "") {
				if err != nil {
					t.Fatal(err)
				}
				if gone && strings.HasPrefix(info.Key, "default/weather/") {
					t.Fatalf("%s is left", info.Key)
				}
			}
		},
		write: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := w.CreateTable(t.Context(), weatherOptions())
			if err != nil && tableerr.TokenOf(err) != tableerr.TokenTableExists {
				return err
			}
			return writeWeather(t, w)
		},
	}.all(t)
}
