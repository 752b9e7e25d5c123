package tablecore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(runChild(role, os.Getenv(dirVariable)))
	}
	goleak.VerifyTestMain(m)
}

var weather = arrow.NewSchema([]arrow.Field{
	{Name: "origin", Type: arrow.BinaryTypes.String},
	{Name: "time_hour", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{Name: "temp", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
}, nil)

var weatherName = tabledef.Name{Namespace: "default", Table: "weather"}

func weatherOptions() tablecore.CreateOptions {
	return tablecore.CreateOptions{Name: weatherName, IndexColumn: "time_hour", IndexGranularity: "1h", EntityColumns: []string{"origin"}, Schema: weather}
}

// rowAt is a row of the weather table at an hour of 1970.
func rowAt(origin string, hour int, temp string) string {
	return fmt.Sprintf(`{"origin":%q,"time_hour":%d,"temp":%s}`, origin, int64(hour)*3600e6, temp)
}

func rowsOf(rows ...string) string { return "[" + strings.Join(rows, ",") + "]" }

// fixture is a warehouse in memory with an empty weather table.
type fixture struct {
	t     *testing.T
	mem   *memory.CheckedAllocator
	house *tablecore.Warehouse
	table *tablecore.Table
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	f := &fixture{t: t, mem: mem, house: tabletest.Warehouse(t, memstore.New(), mem)}
	if _, err := f.house.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	f.table = openWeather(t, f.house)
	return f
}

// append stores JSON rows, each argument a batch.
func (f *fixture) append(o tablecore.AppendOptions, batches ...string) (*tablecore.AppendReport, error) {
	f.t.Helper()
	var built []arrow.RecordBatch
	for _, rows := range batches {
		b := tabletest.Batch(f.t, f.mem, weather, rows)
		defer b.Release()
		built = append(built, b)
	}
	return f.table.Append(f.t.Context(), tabletest.NewReader(weather, built...), o)
}

func (f *fixture) mustAppend(batches ...string) *tablecore.AppendReport {
	f.t.Helper()
	r, err := f.append(tablecore.AppendOptions{}, batches...)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fixture) scan(o tablecore.ScanOptions) ([]string, tablecore.ScanStats) {
	f.t.Helper()
	rows, stats, err := tabletest.Scan(f.t.Context(), f.table, o)
	if err != nil {
		f.t.Fatal(err)
	}
	return rows, stats
}

// brief renders scanned weather rows as "EWR 3 1.5".
func brief(t *testing.T, rows []string) []string {
	t.Helper()
	var out []string
	for _, text := range rows {
		var row struct {
			Origin string   `json:"origin"`
			Time   string   `json:"time_hour"`
			Temp   *float64 `json:"temp"`
		}
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			t.Fatal(err)
		}
		temp := "null"
		if row.Temp != nil {
			temp = fmt.Sprint(*row.Temp)
		}
		out = append(out, fmt.Sprintf("%s %s %s", row.Origin, row.Time[11:13], temp))
	}
	return out
}

func TestAppendAndScan(t *testing.T) {
	f := newFixture(t)
	report := f.mustAppend(rowsOf(rowAt("JFK", 2, "5"), rowAt("EWR", 1, "1.5")), rowsOf(rowAt("EWR", 0, "null")))
	if report.StartingVersion != 0 || report.CommittedVersion != 1 || report.Rows != 3 || len(report.DataFiles) != 1 {
		t.Fatalf("report %+v", report)
	}
	f.mustAppend(rowsOf(rowAt("EWR", 3, "3"), rowAt("JFK", 0, "4")))
	rows, stats := f.scan(tablecore.ScanOptions{})
	want := []string{"EWR 00 null", "EWR 01 1.5", "EWR 03 3", "JFK 00 4", "JFK 02 5"}
	if got := brief(t, rows); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if stats.Version != 2 || stats.Rows != 5 || stats.Files != 2 || stats.FilesSkipped != 0 {
		t.Fatalf("stats %+v", stats)
	}
}

func TestScanOptions(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1"), rowAt("JFK", 0, "10"), rowAt("LGA", 1, "21")))
	f.mustAppend(rowsOf(rowAt("EWR", 5, "5"), rowAt("EWR", 6, "6"), rowAt("JFK", 6, "16")))
	one := int64(1)
	entity := func(text string) []tablecore.EntityFilter {
		return []tablecore.EntityFilter{{"origin": json.RawMessage(text)}}
	}
	for _, c := range []struct {
		name string
		o    tablecore.ScanOptions
		want []string
	}{
		{"entity", tablecore.ScanOptions{Entities: entity(`"JFK"`)}, []string{"JFK 00 10", "JFK 06 16"}},
		{"unknown entity", tablecore.ScanOptions{Entities: entity(`"XXX"`)}, nil},
		{"no entity", tablecore.ScanOptions{Entities: []tablecore.EntityFilter{}}, nil},
		{"range", tablecore.ScanOptions{Start: json.RawMessage(`"1970-01-01T01:00:00Z"`), End: json.RawMessage(`"1970-01-01T06:00:00Z"`)},
			[]string{"EWR 01 1", "EWR 05 5", "LGA 01 21"}},
		{"range and entity", tablecore.ScanOptions{Entities: entity(`"EWR"`), Start: json.RawMessage(`3600000000`), End: json.RawMessage(`"18000000001"`)},
			[]string{"EWR 01 1", "EWR 05 5"}},
		{"version", tablecore.ScanOptions{Version: &one}, []string{"EWR 00 0", "EWR 01 1", "JFK 00 10", "LGA 01 21"}},
		{"small batches", tablecore.ScanOptions{BatchRows: 2},
			[]string{"EWR 00 0", "EWR 01 1", "EWR 05 5", "EWR 06 6", "JFK 00 10", "JFK 06 16", "LGA 01 21"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, _ := f.scan(c.o)
			if got := brief(t, rows); !slices.Equal(got, c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestScanSplits(t *testing.T) {
	f := newFixture(t)
	for h := range 4 {
		f.mustAppend(rowsOf(rowAt("EWR", h, "0"), rowAt("JFK", h, "1"), rowAt("LGA", h, "2")))
	}
	whole, _ := f.scan(tablecore.ScanOptions{})
	plan, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	splits, err := plan.Splits(t.Context(), 3)
	if err != nil || len(splits) != 3 {
		t.Fatalf("splits %v, %v", splits, err)
	}
	var parts []string
	for i, info := range splits {
		rows, _ := f.scan(tablecore.ScanOptions{Split: &tablecore.Split{Index: i, Count: 3}})
		if int64(len(rows)) != info.Rows {
			t.Errorf("split %d has %d rows, %d were promised", i, len(rows), info.Rows)
		}
		parts = append(parts, rows...)
	}
	if !slices.Equal(parts, whole) {
		t.Fatalf("the splits give %q, the scan %q", parts, whole)
	}
}

func TestScanRefusals(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0")))
	nine := int64(9)
	for _, c := range []struct {
		o     tablecore.ScanOptions
		token tableerr.Token
		field string
	}{
		{tablecore.ScanOptions{Columns: []string{"nope"}}, tableerr.TokenInvalid, "columns[0]"},
		{tablecore.ScanOptions{Columns: []string{"temp", "temp"}}, tableerr.TokenInvalid, "columns[1]"},
		{tablecore.ScanOptions{Columns: []string{}}, tableerr.TokenInvalid, "columns"},
		{tablecore.ScanOptions{Profile: "odd"}, tableerr.TokenInvalid, "profile"},
		{tablecore.ScanOptions{BatchRows: -1}, tableerr.TokenInvalid, "batch_rows"},
		{tablecore.ScanOptions{Split: &tablecore.Split{Index: 2, Count: 2}}, tableerr.TokenInvalid, "split"},
		{tablecore.ScanOptions{Start: json.RawMessage(`5`), End: json.RawMessage(`5`)}, tableerr.TokenInvalid, "start"},
		{tablecore.ScanOptions{Entities: []tablecore.EntityFilter{{"temp": json.RawMessage(`1`)}}}, tableerr.TokenInvalid, "entities[0].temp"},
		{tablecore.ScanOptions{Version: &nine}, tableerr.TokenVersionNotFound, ""},
		{tablecore.ScanOptions{TableID: "other"}, tableerr.TokenTableNotFound, ""},
	} {
		_, _, err := tabletest.Scan(t.Context(), f.table, c.o)
		if tableerr.TokenOf(err) != c.token {
			t.Errorf("%+v: got %v, want %s", c.o, err, c.token)
			continue
		}
		var invalid *tableerr.Invalid
		if errors.As(err, &invalid) && invalid.Field != c.field {
			t.Errorf("%+v: the error names %q, want %q", c.o, invalid.Field, c.field)
		}
	}
}

func TestAppendRefusals(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1"), rowAt("JFK", 1, "1")))
	seven, zero := int64(7), int64(0)
	for _, c := range []struct {
		name  string
		o     tablecore.AppendOptions
		rows  string
		token tableerr.Token
	}{
		{"overlap", tablecore.AppendOptions{}, rowsOf(rowAt("JFK", 1, "9"), rowAt("EWR", 1, "9"), rowAt("EWR", 2, "9")), tableerr.TokenIntervalOverlap},
		{"duplicate", tablecore.AppendOptions{}, rowsOf(rowAt("LGA", 1, "9"), rowAt("LGA", 1, "8")), tableerr.TokenDuplicateInterval},
		{"version", tablecore.AppendOptions{ExpectedVersion: &seven}, rowsOf(rowAt("EWR", 2, "9")), tableerr.TokenVersionConflict},
		{"compression", tablecore.AppendOptions{Compression: "rar"}, rowsOf(rowAt("EWR", 2, "9")), tableerr.TokenInvalid},
		{"row group rows", tablecore.AppendOptions{MaxRowsPerRowGroup: &zero}, rowsOf(rowAt("EWR", 2, "9")), tableerr.TokenInvalid},
		{"row group bytes", tablecore.AppendOptions{MaxBytesPerRowGroup: &zero}, rowsOf(rowAt("EWR", 2, "9")), tableerr.TokenInvalid},
		{"request id", tablecore.AppendOptions{RequestID: "ä"}, rowsOf(rowAt("EWR", 2, "9")), tableerr.TokenInvalid},
		{"table id", tablecore.AppendOptions{TableID: "other"}, rowsOf(rowAt("EWR", 2, "9")), tableerr.TokenTableNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.append(c.o, c.rows)
			if tableerr.TokenOf(err) != c.token {
				t.Fatalf("got %v, want %s", err, c.token)
			}
			if d, err := f.table.Describe(t.Context(), tablecore.At{}); err != nil || d.Version != 1 || d.Rows != 3 {
				t.Fatalf("the table is %+v, %v", d, err)
			}
		})
	}
	var overlap *tableerr.IntervalOverlap
	_, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("JFK", 1, "9"), rowAt("EWR", 1, "9"), rowAt("EWR", 2, "9")))
	if !errors.As(err, &overlap) || overlap.ConflictCount != 2 || overlap.Interval != "[1970-01-01T01:00:00Z, 1970-01-01T02:00:00Z)" ||
		overlap.Version != 1 || overlap.Entity[0].Value != "EWR" || overlap.Table != "default.weather" {
		t.Fatalf("got %#v", overlap)
	}
}

func TestEmptyAppend(t *testing.T) {
	f := newFixture(t)
	r := f.mustAppend("[]")
	if r.Rows != 0 || r.StartingVersion != 0 || r.CommittedVersion != 0 || r.DataFiles == nil || len(r.DataFiles) != 0 {
		t.Fatalf("report %+v", r)
	}
	one := int64(1)
	if _, err := f.append(tablecore.AppendOptions{ExpectedVersion: &one}); tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
		t.Fatalf("got %v", err)
	}
}

// TestStreamFails makes sure that an append whose stream breaks leaves nothing.
func TestStreamFails(t *testing.T) {
	f := newFixture(t)
	b := tabletest.Batch(t, f.mem, weather, rowsOf(rowAt("EWR", 0, "0")))
	defer b.Release()
	broken := errors.New("the client went away")
	r := tabletest.NewReader(weather, b)
	r.Err = broken
	if _, err := f.table.Append(t.Context(), r, tablecore.AppendOptions{}); !errors.Is(err, broken) || tableerr.TokenOf(err) != "" {
		t.Fatalf("got %v (%T)", err, err)
	}
	if rows, _ := f.scan(tablecore.ScanOptions{}); len(rows) != 0 {
		t.Fatalf("rows %q", rows)
	}
}

func TestAdoptSchema(t *testing.T) {
	f := newFixture(t)
	name := tabledef.Name{Namespace: "plant", Table: "sensors"}
	o := weatherOptions()
	o.Name, o.Schema, o.IndexType = name, nil, "timestamp"
	d, err := f.house.CreateTable(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if d.Columns != nil || d.SchemaIPC != nil {
		t.Fatalf("described %+v", d)
	}
	f.table, err = f.house.Table(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if rows, _ := f.scan(tablecore.ScanOptions{}); len(rows) != 0 {
		t.Fatalf("rows %q", rows)
	}
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0")))
	d, err = f.table.Describe(t.Context(), tablecore.At{})
	if err != nil || len(d.Columns) != 3 || d.Columns[0].Nullable || d.Entities != 1 || d.IndexMin != "1970-01-01T00:00:00Z" {
		t.Fatalf("described %+v, %v", d, err)
	}
	rows, _ := f.scan(tablecore.ScanOptions{Columns: []string{"_ingest_ts"}})
	if len(rows) != 1 || !strings.Contains(rows[0], "2026-01-01") {
		t.Fatalf("insertion times %q", rows)
	}
}

// TestConcurrentAppends makes sure that disjoint appends all succeed, each
// with a version of its own.
func TestConcurrentAppends(t *testing.T) {
	f := newFixture(t)
	const writers, each = 8, 10
	versions := make(chan int64, writers*each)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				b := tabletest.Batch(t, f.mem, weather, rowsOf(rowAt(fmt.Sprint("E", w), i, "1")))
				r, err := f.table.Append(t.Context(), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
				b.Release()
				if err != nil {
					t.Error(err)
					return
				}
				versions <- r.CommittedVersion
			}
		})
	}
	group.Wait()
	close(versions)
	seen := map[int64]bool{}
	for v := range versions {
		seen[v] = true
	}
	if rows, stats := f.scan(tablecore.ScanOptions{}); len(seen) != writers*each || len(rows) != writers*each || stats.Version != writers*each {
		t.Fatalf("%d versions, %d rows at version %d", len(seen), len(rows), stats.Version)
	}
}

func TestCreateRefusals(t *testing.T) {
	f := newFixture(t)
	if _, err := f.house.CreateTable(t.Context(), weatherOptions()); tableerr.TokenOf(err) != tableerr.TokenTableExists {
		t.Fatalf("got %v", err)
	}
	for _, name := range []tabledef.Name{{Namespace: "default", Table: "Weather"}, {Namespace: "Default", Table: "other"}} {
		o := weatherOptions()
		o.Name = name
		_, err := f.house.CreateTable(t.Context(), o)
		var taken *tableerr.TableExists
		if !errors.As(err, &taken) || taken.Table != name.String() || !strings.Contains(err.Error(), "default.weather exists") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	o := weatherOptions()
	o.Name.Table, o.Uniqueness = "bad", "sometimes"
	if _, err := f.house.CreateTable(t.Context(), o); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Fatalf("got %v", err)
	}
	names, err := f.house.TableNames(t.Context(), "")
	if err != nil || !slices.Equal(names, []tabledef.Name{weatherName}) {
		t.Fatalf("tables %v, %v", names, err)
	}
}

func TestRacingCreates(t *testing.T) {
	f := newFixture(t)
	var won, lost sync.Map
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			o := weatherOptions()
			o.Name.Table = "race"
			_, err := f.house.CreateTable(t.Context(), o)
			switch tableerr.TokenOf(err) {
			case "":
				won.Store(i, err)
			case tableerr.TokenTableExists:
				lost.Store(i, err)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	count := func(m *sync.Map) (n int) { m.Range(func(any, any) bool { n++; return true }); return n }
	if count(&won) != 1 || count(&lost) != 15 {
		t.Fatalf("%d creates succeeded, %d were told that the table exists", count(&won), count(&lost))
	}
}

// TestDrop makes sure that the name is free at once, that a running scan goes
// on, and that the new table of the name is not taken for the old one.
func TestDrop(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0")))
	plan, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nine := int64(9)
	if _, err := f.house.DropTable(t.Context(), weatherName, tablecore.DropOptions{ExpectedVersion: &nine}); tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
		t.Fatalf("got %v", err)
	}
	if r, err := f.house.DropTable(t.Context(), weatherName, tablecore.DropOptions{DryRun: true}); err != nil || !r.DryRun || r.Files != 1 {
		t.Fatalf("dry run %+v, %v", r, err)
	}
	if _, err := f.house.DropTable(t.Context(), weatherName, tablecore.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.house.Table(t.Context(), weatherName); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Fatalf("got %v", err)
	}
	old := f.table
	if _, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 1, "1"))); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Fatalf("an append to a dropped table: %v", err)
	}
	if _, err := f.house.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	if f.table, err = f.house.Table(t.Context(), weatherName); err != nil || f.table == old {
		t.Fatalf("the old handle was given: %v", err)
	}
	if _, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{TableID: plan.TableID()}); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Fatalf("a ticket of the old table: %v", err)
	}
	reader, err := plan.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	if b, err := reader.Next(t.Context()); err != nil || b.NumRows() != 1 {
		t.Fatalf("the running scan gave %v, %v", b, err)
	}
}

func TestListTables(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0")))
	list, err := f.house.ListTables(t.Context(), "default")
	if err != nil || len(list) != 1 || *list[0].Version != 1 || *list[0].Rows != 1 || *list[0].Files != 1 || *list[0].FormatVersion != "0.3.0" {
		t.Fatalf("listed %+v, %v", list, err)
	}
	if list, err = f.house.ListTables(t.Context(), "nowhere"); err != nil || len(list) != 0 {
		t.Fatalf("listed %+v, %v", list, err)
	}
}
