package tablecore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// plainWeather makes the weather table as another Delta writer would, of a file
// for each text of JSON rows, all in version 0. Its key columns may be null and
// its files say nothing of themselves.
func plainWeather(t testing.TB, store objstore.Store, files ...string) {
	t.Helper()
	var log bytes.Buffer
	line := func(a action) {
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		log.Write(append(text, '\n'))
	}
	schema := `{"type":"struct","fields":[{"name":"origin","type":"string","nullable":true,"metadata":{"comment":"where"}},` +
		`{"name":"time_hour","type":"timestamp","nullable":true,"metadata":{}},{"name":"temp","type":"double","nullable":true,"metadata":{}}]}`
	line(action{"protocol": action{"minReaderVersion": 1, "minWriterVersion": 2}})
	line(action{"metaData": action{"id": "plain", "format": action{"provider": "parquet", "options": action{}}, "schemaString": schema,
		"partitionColumns": []string{}, "configuration": action{"team": "data"}}})
	for i, rows := range files {
		name := fmt.Sprintf("part-%d.parquet", i)
		data := parquetOf(t, plainSchema(), rows)
		if err := store.Put(t.Context(), weatherKey(name), data); err != nil {
			t.Fatal(err)
		}
		line(action{"add": action{"path": name, "partitionValues": action{}, "size": len(data), "modificationTime": 0, "dataChange": true,
			"stats": fmt.Sprintf(`{"numRecords":%d}`, strings.Count(rows, "origin"))}})
	}
	line(action{"commitInfo": action{"timestamp": 1, "operation": "WRITE"}})
	if err := store.Put(t.Context(), commitName(0), log.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// plainSchema is the schema of the plain weather table's files.
func plainSchema() *arrow.Schema {
	fields := slices.Clone(tabledef.StorageSchema(weather).Fields())
	for i := range fields {
		fields[i].Nullable = true
	}
	return arrow.NewSchema(fields, nil)
}

// parquetOf is a Parquet file of JSON rows, none where the text is empty.
func parquetOf(t testing.TB, schema *arrow.Schema, rows string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := datafile.NewWriter(&out, schema, datafile.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if rows != "" {
		batch := tabletest.Batch(t, memory.DefaultAllocator, schema, rows)
		defer batch.Release()
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// plainFixture is a fixture whose weather table is a plain one.
func plainFixture(t *testing.T, files ...string) (*fixture, objstore.Store) {
	t.Helper()
	store := memstore.New()
	plainWeather(t, store, files...)
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	f := &fixture{t: t, mem: mem, house: tabletest.Warehouse(t, sharedStore{store}, mem)}
	f.table = openWeather(t, f.house)
	return f, store
}

// adoption asks for the keys of weatherOptions.
func adoption() tablecore.UpgradeOptions {
	return tablecore.UpgradeOptions{IndexColumn: "time_hour", IndexGranularity: "1h", EntityColumns: []string{"origin"}}
}

func TestAdoptPlainTable(t *testing.T) {
	f, store := plainFixture(t, rowsOf(rowAt("JFK", 1, "1"), rowAt("EWR", 0, "2"), rowAt("EWR", 1, "3")), "", rowsOf(rowAt("EWR", 7, "4")))
	dry := adoption()
	dry.DryRun = true
	wantSteps(t, f.upgrade(dry), "hold_snapshots record_format rewrite_files:3 build_derived_data:3 write_head:1")
	r := f.upgrade(adoption())
	wantSteps(t, r, "hold_snapshots@1 record_format@1 rewrite_files@2:3 build_derived_data:1 write_head:1")
	if r.FromFormat != "0.1.0" || r.RollbackTo != 0 {
		t.Errorf("got %+v", r)
	}
	wantSteps(t, f.upgrade(adoption()), "")
	rows := []string{jsonRow("EWR", 0, "2"), jsonRow("EWR", 1, "3"), jsonRow("EWR", 7, "4"), jsonRow("JFK", 1, "1")}
	f.wantRows(nil, rows...)
	f.wantRows(ptr(int64(0)), jsonRow("JFK", 1, "1"), jsonRow("EWR", 0, "2"), jsonRow("EWR", 1, "3"), jsonRow("EWR", 7, "4"))
	if d := f.describe(); d.IndexColumn != "time_hour" || d.Columns[0].Nullable || d.Columns[1].Nullable || !d.Columns[2].Nullable || d.Properties["team"] != "data" ||
		d.IngestTimeColumn != "" || d.Entities != 2 || d.Uniqueness != "reject" || d.IndexMin != "1970-01-01T00:00:00Z" {
		t.Errorf("described as %+v", d)
	}
	if _, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("JFK", 1, "9"))); tableerr.TokenOf(err) != tableerr.TokenIntervalOverlap {
		t.Errorf("a row in an interval that was filled gives %v", err)
	}
	f.mustAppend(rowsOf(rowAt("JFK", 2, "5")))
	f.table = anotherProcess(t, store)
	f.wantRows(nil, append(rows, jsonRow("JFK", 2, "5"))...)
	f.upgradedSeries()
	// Commits carry times from the adoption on.
	commit := string(mustGet(t, store, commitName(1)))
	for _, want := range []string{`"delta.enableInCommitTimestamps":"true"`, `"delta.inCommitTimestampEnablementVersion":"1"`, `"delta.inCommitTimestampEnablementTimestamp":"`, `"comment":"where"`} {
		if !strings.Contains(strings.ReplaceAll(commit, `\"`, `"`), want) {
			t.Errorf("%s is not in %s", want, commit)
		}
	}
}

// upgradedSeries asks for all that derived data answers.
func (f *fixture) upgradedSeries() {
	f.t.Helper()
	latest, err := f.table.Latest(f.t.Context(), tablecore.LatestOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	if rows := listedRows(f.t, latest); len(rows) != 2 || rows[0]["temp"] != 4.0 || rows[1]["temp"] != 5.0 {
		f.t.Errorf("the newest rows are %v", rows)
	}
	covered, err := f.table.Coverage(f.t.Context(), tablecore.CoverageOptions{Kind: "summary"})
	if err != nil {
		f.t.Fatal(err)
	}
	if rows := listedRows(f.t, covered); len(rows) != 2 || rows[0]["covered_intervals"] != rowsOfEntity(f, "EWR") || rows[1]["covered_intervals"] != rowsOfEntity(f, "JFK") {
		f.t.Errorf("covered are %v", rows)
	}
}

// rowsOfEntity counts the rows of an entity.
func rowsOfEntity(f *fixture, origin string) float64 {
	rows, _ := f.scan(tablecore.ScanOptions{Entities: []tablecore.EntityFilter{{"origin": json.RawMessage(`"` + origin + `"`)}}})
	return float64(len(rows))
}

// TestAdoptUncompacted keeps the files as they are.
func TestAdoptUncompacted(t *testing.T) {
	f, store := plainFixture(t, rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1"), rowAt("JFK", 0, "2")), rowsOf(rowAt("EWR", 5, "3"), rowAt("EWR", 7, "4")))
	o := adoption()
	o.NoCompact = true
	wantSteps(t, f.upgrade(o), "hold_snapshots@1 record_format@1 build_derived_data:2 write_head:1")
	wantSteps(t, f.upgrade(o), "")
	files, err := f.table.Files(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	if rows := listedRows(t, files); len(rows) != 2 || rows[0]["layout"] != "mixed" || rows[1]["layout"] != "single" || rows[0]["sorted"] != true || rows[1]["index_max"] != "1970-01-01T07:00:00Z" {
		t.Errorf("the files are %v", rows)
	}
	f.mustAppend(rowsOf(rowAt("JFK", 2, "5")))
	f.table = anotherProcess(t, store)
	f.upgradedSeries()
	if _, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("JFK", 0, "9"))); tableerr.TokenOf(err) != tableerr.TokenIntervalOverlap {
		t.Errorf("a row in an interval that was filled gives %v", err)
	}
}

func TestAdoptRefusals(t *testing.T) {
	with := func(change func(*tablecore.UpgradeOptions)) tablecore.UpgradeOptions {
		o := adoption()
		change(&o)
		return o
	}
	for what, c := range map[string]struct {
		rows []string
		o    tablecore.UpgradeOptions
		want string
	}{
		"no index":            {nil, tablecore.UpgradeOptions{}, `INVALID field="index_column"`},
		"an index that is no": {nil, with(func(o *tablecore.UpgradeOptions) { o.IndexColumn = "hour" }), `INVALID field="index_column"`},
		"a double index":      {nil, with(func(o *tablecore.UpgradeOptions) { o.IndexColumn = "temp" }), `INVALID column="temp" type="double"`},
		"a double entity":     {nil, with(func(o *tablecore.UpgradeOptions) { o.EntityColumns = []string{"temp"} }), `INVALID column="temp" type="double"`},
		"no granularity":      {nil, with(func(o *tablecore.UpgradeOptions) { o.IndexGranularity = "" }), `INVALID field="index_granularity"`},
		"two holds":           {nil, with(func(o *tablecore.UpgradeOptions) { o.KeepSnapshots, o.KeepSnapshotsUntil = "1d", &time.Time{} }), `INVALID field="keep_snapshots_until"`},
		"a hold in the past": {nil, with(func(o *tablecore.UpgradeOptions) {
			o.KeepSnapshotsUntil = ptr(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))
		}),
			`INVALID field="keep_snapshots_until" value="2020-01-02T03:04:05Z"`},
		"no duration":     {nil, with(func(o *tablecore.UpgradeOptions) { o.KeepSnapshots = "soon" }), `INVALID field="keep_snapshots" value="soon"`},
		"another version": {nil, with(func(o *tablecore.UpgradeOptions) { o.ExpectedVersion = ptr(int64(4)) }), `VERSION_CONFLICT expected=4 found=0`},
		"another table":   {nil, with(func(o *tablecore.UpgradeOptions) { o.TableID = "x" }), `TABLE_NOT_FOUND`},
		"a null index":    {[]string{rowsOf(rowAt("EWR", 0, "0")), `[{"origin":"EWR","time_hour":3600000000},{"origin":"EWR"}]`}, adoption(), `NULL_KEY column="time_hour" row=2`},
		"only nulls":      {[]string{`[{"origin":"EWR"}]`}, adoption(), `NULL_KEY column="time_hour" row=0`},
		"a null entity":   {[]string{rowsOf(rowAt("EWR", 0, "0"), `{"time_hour":0}`, `{"origin":"EWR"}`)}, adoption(), `NULL_KEY column="origin" row=1`},
		"a row twice": {[]string{rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 0, "1"))}, adoption(),
			`UNIQUENESS_VIOLATED violations=1 entity={"origin":"EWR"} interval="[1970-01-01T00:00:00Z, 1970-01-01T01:00:00Z)"`},
		"rows of an hour in files": {[]string{rowsOf(rowAt("JFK", 3, "0"), rowAt("EWR", 2, "0")), rowsOf(rowAt("JFK", 3, "0")), rowsOf(rowAt("JFK", 3, "0"), rowAt("EWR", 2, "1"), rowAt("EWR", 2, "2"))}, adoption(),
			`UNIQUENESS_VIOLATED violations=4 entity={"origin":"EWR"} interval="[1970-01-01T02:00:00Z, 1970-01-01T03:00:00Z)"`},
	} {
		t.Run(what, func(t *testing.T) {
			f, store := plainFixture(t, append([]string{}, c.rows...)...)
			before := keysUnder(t, store, "")
			_, err := f.table.Upgrade(t.Context(), c.o)
			var typed tableerr.Error
			if !errors.As(err, &typed) {
				t.Fatalf("got %v", err)
			}
			got := string(typed.Token())
			for _, field := range typed.Fields()[1:] { // behind the table
				value, err := json.Marshal(field.Value)
				if err != nil {
					t.Fatal(err)
				}
				got += " " + field.Key + "=" + string(value)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if after := keysUnder(t, store, ""); !reflect.DeepEqual(after, before) {
				t.Errorf("the store holds %q, it held %q", after, before)
			}
		})
	}
}

// TestAdoptUnsorted leaves unsorted files as they are: what is derived from their
// rows does not need an order.
func TestAdoptUnsorted(t *testing.T) {
	f, store := plainFixture(t, rowsOf(rowAt("JFK", 2, "5"), rowAt("EWR", 0, "0"), rowAt("EWR", 7, "4")), rowsOf(rowAt("EWR", 8, "1"), rowAt("EWR", 1, "1")))
	o := adoption()
	o.NoCompact = true
	f.upgrade(o)
	if d := f.describe(); d.Entities != 2 {
		t.Errorf("described as %+v", d)
	}
	if _, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 8, "9"))); tableerr.TokenOf(err) != tableerr.TokenIntervalOverlap {
		t.Errorf("a row in an interval that was filled gives %v", err)
	}
	f.mustAppend(rowsOf(rowAt("EWR", 9, "9")))
	f.table = anotherProcess(t, store)
	if rows, _ := f.scan(tablecore.ScanOptions{Order: "unordered"}); len(rows) != 6 {
		t.Errorf("it holds %q", rows)
	}
	if rows, _ := f.scan(tablecore.ScanOptions{}); len(rows) != 6 || rows[5] != jsonRow("JFK", 2, "5") {
		t.Errorf("a sorted scan gives %q", rows)
	}
	latest, err := f.table.Latest(t.Context(), tablecore.LatestOptions{})
	if err == nil {
		err = latest.Run(t.Context(), func(arrow.RecordBatch) error { return nil })
	}
	if tableerr.TokenOf(err) != tableerr.TokenUnsupported {
		t.Errorf("latest gives %v", err)
	}
	wantSteps(t, f.upgrade(tablecore.UpgradeOptions{}), "rewrite_files@3:3 build_derived_data:1 write_head:1")
	if rows, _ := f.scan(tablecore.ScanOptions{}); len(rows) != 6 {
		t.Errorf("sorted it holds %q", rows)
	}
}
