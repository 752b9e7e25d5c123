package tablecore_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

var update = flag.Bool("update", false, "write the format fixtures and golden bytes that are missing, and replace the golden bytes")

// formatDir holds tables of every format version; compatibility.md says how they
// came about and when they change.
const formatDir = "../integration/testdata/format"

// formats are the format versions that have fixtures.
var formats = []tabledef.FormatVersion{{Minor: 1}, {Minor: 2}, {Minor: 3}}

// fixtureTable is one table among the fixtures of a format.
type fixtureTable struct {
	index    tabledef.IndexType
	entities []string
}

// fixtureTables are all combinations of index type and entity columns.
func fixtureTables() map[string]fixtureTable {
	tables := map[string]fixtureTable{}
	for _, index := range []tabledef.IndexType{tabledef.IndexTimestamp, tabledef.IndexInt64, tabledef.IndexUint64} {
		for name, entities := range map[string][]string{"none": nil, "single": {"site"}, "composite": {"site", "sensor"}} {
			tables[string(index)+"-"+name] = fixtureTable{index, entities}
		}
	}
	return tables
}

func (f fixtureTable) schema() *arrow.Schema {
	index := map[tabledef.IndexType]arrow.DataType{tabledef.IndexTimestamp: arrow.FixedWidthTypes.Timestamp_us,
		tabledef.IndexInt64: arrow.PrimitiveTypes.Int64, tabledef.IndexUint64: arrow.PrimitiveTypes.Uint64}[f.index]
	var fields []arrow.Field
	for _, name := range f.entities {
		typ := arrow.DataType(arrow.BinaryTypes.String)
		if name == "sensor" {
			typ = arrow.PrimitiveTypes.Int64
		}
		fields = append(fields, arrow.Field{Name: name, Type: typ})
	}
	return columnsOf(append(fields, arrow.Field{Name: "at", Type: index}, nullableOf("value", arrow.PrimitiveTypes.Float64), nullableOf("note", arrow.BinaryTypes.String))...)
}

// at is the index value of interval n, as JSON; the numbers are at the ends of
// what fits.
func (f fixtureTable) at(n int) string {
	switch f.index {
	case tabledef.IndexTimestamp:
		return fmt.Sprintf(`"2026-01-01T%02d:00:00Z"`, n)
	case tabledef.IndexInt64:
		return fmt.Sprintf(`"%d"`, math.MinInt64+10*n)
	}
	return fmt.Sprintf(`"%d"`, uint64(math.MaxUint64)-1000+10*uint64(n))
}

// rows are one row for each entity in the intervals from … to−1.
func (f fixtureTable) rows(from, to int, value string) string {
	entities := []string{""}
	if len(f.entities) > 0 {
		entities = []string{`"site":"a","sensor":1,`, `"site":"b","sensor":2,`}
	}
	var rows []string
	for _, entity := range entities {
		if len(f.entities) == 1 {
			entity = strings.Split(entity, `"sensor"`)[0]
		}
		for n := from; n < to; n++ {
			rows = append(rows, fmt.Sprintf(`{%s"at":%s,"value":%s,"note":"interval %d"}`, entity, f.at(n), value, n))
		}
	}
	return rowsOf(rows...)
}

func (f fixtureTable) append(t *testing.T, table *tablecore.Table, o tablecore.AppendOptions, rows string) {
	t.Helper()
	batch := tabletest.Batch(t, memory.DefaultAllocator, f.schema(), rows)
	defer batch.Release()
	if _, err := table.Append(t.Context(), tabletest.NewReader(f.schema(), batch), o); err != nil {
		t.Fatal(err)
	}
}

// update sets the values in the intervals from … to−1.
func (f fixtureTable) update(t *testing.T, table *tablecore.Table, from, to int, value string) {
	t.Helper()
	schema := arrow.NewSchema(f.schema().Fields()[:len(f.entities)+2], nil)
	batch := tabletest.Batch(t, memory.DefaultAllocator, schema, withoutNotes(t, f.rows(from, to, value)))
	defer batch.Release()
	d, err := table.Describe(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	o := tablecore.UpdateOptions{Columns: []string{"value"}, ExpectedVersion: d.Version}
	if _, err := table.UpdateRows(t.Context(), tabletest.NewReader(schema, batch), o); err != nil {
		t.Fatal(err)
	}
}

func withoutNotes(t *testing.T, rows string) string {
	t.Helper()
	var parsed []map[string]any
	if err := json.Unmarshal([]byte(rows), &parsed); err != nil {
		t.Fatal(err)
	}
	for _, row := range parsed {
		delete(row, "note")
	}
	text, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// deterministic opens a warehouse on a store whose clock, ids and name are
// fixed.
func deterministic(t *testing.T, store objstore.Store, clock *tabletest.Clock) *tablecore.Warehouse {
	t.Helper()
	return tabletest.Open(t, tablecore.Options{Store: sharedStore{store}, Clock: clock.Now, Random: tabletest.Random(1), Software: "Contrail/fixture"})
}

// make writes the table as software of a format does: created, two appends, an
// update, and what is derived of it.
func (f fixtureTable) make(t *testing.T, format tabledef.FormatVersion) objstore.Store {
	t.Helper()
	asSoftware(t, format.Major, format.Minor)
	store := memstore.New()
	w := deterministic(t, store, tabletest.NewClock())
	o := tablecore.CreateOptions{Name: weatherName, IndexColumn: "at", IndexGranularity: "10", EntityColumns: f.entities, Schema: f.schema()}
	if f.index == tabledef.IndexTimestamp {
		o.IndexGranularity = "1h"
	}
	if format.Before(tabledef.FormatVersion{Minor: 3}) {
		o.IngestTimeColumn = ptr("")
	}
	if _, err := w.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	table := openWeather(t, w)
	f.append(t, table, tablecore.AppendOptions{RequestID: "first"}, f.rows(0, 3, "1.5"))
	f.append(t, table, tablecore.AppendOptions{}, f.rows(5, 7, "null"))
	f.update(t, table, 1, 2, "-2.25")
	if !format.Before(tabledef.FormatVersion{Minor: 2}) {
		if err := table.WriteState(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// filesOfTable reads the files of a table of a store, by path.
func filesOfTable(t *testing.T, store objstore.Store) map[string][]byte {
	t.Helper()
	const prefix = "default/weather/"
	files := map[string][]byte{}
	for _, key := range keysUnder(t, store, prefix) {
		files[strings.TrimPrefix(key, prefix)] = mustGet(t, store, key)
	}
	return files
}

func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for path, data := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// loadFixture returns a store with a fixture under the name of the weather
// table, and the rows of each of its versions. With -update one that is missing
// is made; one that is there never changes.
func loadFixture(t *testing.T, format tabledef.FormatVersion, name string) (objstore.Store, [][]string) {
	t.Helper()
	dir := filepath.Join(formatDir, format.String(), name)
	if _, err := os.Stat(dir); *update && os.IsNotExist(err) {
		store := fixtureTables()[name].make(t, format)
		rows, err := json.MarshalIndent(rowsByVersion(t, store, 3), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		writeFiles(t, dir, filesOfTable(t, store))
		writeFiles(t, filepath.Dir(dir), map[string][]byte{name + ".json": append(rows, '\n')})
	}
	data, err := os.ReadFile(dir + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	store := memstore.New()
	copyTo(t, store, os.DirFS(dir), "default/weather/")
	return store, rows
}

// rowsByVersion scans each version up to newest.
func rowsByVersion(t *testing.T, store objstore.Store, newest int64) [][]string {
	t.Helper()
	table, rows := anotherProcess(t, store), [][]string{}
	for version := range newest + 1 {
		found, _, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{Version: &version})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, append([]string{}, found...))
	}
	return rows
}

// TestFormatFixtures reads, appends to, updates, upgrades, rolls back and redoes
// tables of every format.
func TestFormatFixtures(t *testing.T) {
	for _, format := range formats {
		for name, fixture := range fixtureTables() {
			t.Run(format.String()+"/"+name, func(t *testing.T) {
				store, want := loadFixture(t, format, name)
				if got := rowsByVersion(t, store, int64(len(want)-1)); !slices.EqualFunc(got, want, slices.Equal) {
					t.Fatalf("got\n%q\nwant\n%q", got, want)
				}
				clock := tabletest.NewClock()
				clock.Advance(24 * time.Hour)
				table := openWeather(t, deterministic(t, store, clock))
				fixture.grow(t, table, format, want[3])
				fixture.upgradeAndBack(t, table, format)
			})
		}
	}
}

// grow writes to a fixture, which stays at its format.
func (f fixtureTable) grow(t *testing.T, table *tablecore.Table, format tabledef.FormatVersion, before []string) {
	t.Helper()
	f.append(t, table, tablecore.AppendOptions{RequestID: "first"}, f.rows(0, 3, "1.5")) // a replay
	f.append(t, table, tablecore.AppendOptions{}, f.rows(7, 9, "8"))
	f.update(t, table, 8, 9, "9.5")
	rows, _, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
	if err != nil || len(rows) != len(before)+2*max(1, min(2, 2*len(f.entities))) || !strings.Contains(rows[len(rows)-1], `"value":9.5`) {
		t.Fatalf("rows are %q, %v", rows, err)
	}
	d, err := table.Describe(t.Context(), tablecore.At{})
	if err != nil || d.FormatVersion != format.String() || d.Version != 5 || (d.IngestTimeColumn == "") != format.Before(tabledef.FormatVersion{Minor: 3}) {
		t.Fatalf("described as %+v, %v", d, err)
	}
}

// upgradeAndBack upgrades a table, undoes that, and does it again.
func (f fixtureTable) upgradeAndBack(t *testing.T, table *tablecore.Table, format tabledef.FormatVersion) {
	t.Helper()
	scan := func() []string {
		rows, _, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	want := scan()
	expect := func(what, version string) {
		t.Helper()
		d, err := table.Describe(t.Context(), tablecore.At{})
		if rows := scan(); err != nil || !slices.Equal(rows, want) || d.FormatVersion != version {
			t.Errorf("%s: %q, %+v, %v; want %q of format %s", what, rows, d, err, want, version)
		}
	}
	report, err := table.Upgrade(t.Context(), tablecore.UpgradeOptions{})
	if err != nil || report.FromFormat != format.String() || report.ToFormat != tabledef.CurrentFormat.String() || report.RollbackTo != 5 {
		t.Fatalf("upgraded: %+v, %v", report, err)
	}
	expect("upgraded", tabledef.CurrentFormat.String())
	if again, err := table.Upgrade(t.Context(), tablecore.UpgradeOptions{}); err != nil || !again.NoOp {
		t.Errorf("upgraded again: %+v, %v", again, err)
	}
	if report.CommittedVersion == report.StartingVersion {
		return // it was current
	}
	back, err := table.Rollback(t.Context(), tablecore.RollbackOptions{Version: report.RollbackTo, ExpectedVersion: report.CommittedVersion})
	if err != nil {
		t.Fatal(err)
	}
	expect("rolled back", format.String())
	if _, err := table.Rollback(t.Context(), tablecore.RollbackOptions{Version: report.CommittedVersion, ExpectedVersion: back.CommittedVersion}); err != nil {
		t.Fatal(err)
	}
	expect("redone", tabledef.CurrentFormat.String())
}

// TestDoctoredFormats gives fixtures format versions that this software has
// never written.
func TestDoctoredFormats(t *testing.T) {
	for _, c := range []struct {
		format string // JSON
		token  tableerr.Token
		means  string
	}{
		{`"0.3.9"`, "", "0.3.9"},
		{`3`, "", "0.3.0"},
		{`"3"`, "", "0.3.0"},
		{`"0.4.0"`, tableerr.TokenFormatUnreadable, ""},
		{`4`, tableerr.TokenFormatUnreadable, ""},
		{`"1.0.0"`, tableerr.TokenFormatUnreadable, ""},
		{`"1.1.0"`, tableerr.TokenFormatUnreadable, ""},
		{`"abc"`, tableerr.TokenFormatUnreadable, ""},
		{`""`, tableerr.TokenFormatUnreadable, ""},
		{`"0.3"`, tableerr.TokenFormatUnreadable, ""},
		{`-3`, tableerr.TokenFormatUnreadable, ""},
		{`3.5`, tableerr.TokenFormatUnreadable, ""},
	} {
		t.Run(c.format, func(t *testing.T) {
			fixture := fixtureTables()["timestamp-single"]
			store, want := loadFixture(t, tabledef.FormatVersion{Minor: 3}, "timestamp-single")
			held := openWeather(t, tabletest.Warehouse(t, sharedStore{store}, memory.NewGoAllocator())) // opened before
			first := mustGet(t, store, commitName(0))
			doctored := bytes.Replace(first, []byte(`"contrail.format-version":"0.3.0"`), []byte(`"contrail.format-version":`+c.format), 1)
			if bytes.Equal(first, doctored) {
				t.Fatal("the commit does not tell the format")
			}
			if err := store.Put(t.Context(), commitName(0), doctored); err != nil {
				t.Fatal(err)
			}
			rewrite(t, store, func(newest map[string]action) []action { return []action{{"metaData": newest["metaData"]}} })
			w := tabletest.Warehouse(t, sharedStore{store}, memory.NewGoAllocator())
			if c.token == "" {
				table := openWeather(t, w)
				rows, _, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
				if err != nil || !slices.Equal(rows, want[3]) {
					t.Errorf("read %q, %v", rows, err)
				}
				fixture.append(t, table, tablecore.AppendOptions{}, fixture.rows(10, 11, "1"))
				if d, err := table.Describe(t.Context(), tablecore.At{}); err != nil || d.FormatVersion != c.means {
					t.Errorf("described as %+v, %v", d, err)
				}
				return
			}
			if _, err := w.Table(t.Context(), weatherName); tableerr.TokenOf(err) != c.token {
				t.Errorf("opened: %v", err)
			}
			reads, writes := formatCalls(t, w, held)
			maps.Copy(reads, writes)
			for verb, call := range reads {
				if err := call(); tableerr.TokenOf(err) != c.token {
					t.Errorf("%s: %v", verb, err)
				}
			}
		})
	}
}
