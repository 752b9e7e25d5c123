package tablecore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// action is a line of a commit, as JSON.
type action = map[string]any

// rewrite writes the next commit of the weather table as another writer would:
// change is given the newest action of each kind and returns the actions behind
// commitInfo.
func rewrite(t *testing.T, store objstore.Store, change func(newest map[string]action) []action) {
	t.Helper()
	newest := map[string]action{}
	version := 0
	for ; ; version++ {
		data, err := store.Get(context.Background(), commitName(version))
		if errors.Is(err, objstore.ErrNotExist) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			var a map[string]action
			if err := json.Unmarshal(line, &a); err != nil {
				t.Fatal(err)
			}
			for name, body := range a {
				newest[name] = body
			}
		}
	}
	var out bytes.Buffer
	ms := tabletest.NewClock().Now().Add(time.Hour).UnixMilli() + int64(version)
	info := action{"commitInfo": action{"timestamp": ms, "inCommitTimestamp": ms, "operation": "WRITE"}}
	for _, a := range append([]action{info}, change(newest)...) {
		line, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	if err := store.PutIfAbsent(context.Background(), commitName(version), out.Bytes()); err != nil {
		t.Fatal(err)
	}
}

func commitName(version int) string {
	digits := []byte("00000000000000000000")
	for i := len(digits) - 1; version > 0; i-- {
		digits[i] = byte('0' + version%10)
		version /= 10
	}
	return "default/weather/_delta_log/" + string(digits) + ".json"
}

// set changes a property.
func set(key, value string) func(newest map[string]action) []action {
	return func(newest map[string]action) []action {
		metadata := newest["metaData"]
		metadata["configuration"].(action)[key] = value
		return []action{{"metaData": metadata}}
	}
}

// schema gives the table other columns, in Delta's words: the Arrow schema that
// refines them is left out.
func schema(text string) func(newest map[string]action) []action {
	return func(newest map[string]action) []action {
		metadata := newest["metaData"]
		configuration := metadata["configuration"].(action)
		delete(configuration, "contrail.arrow-schema")
		configuration["contrail.columns-added"] = "true"
		metadata["schemaString"] = text
		return []action{{"metaData": metadata}}
	}
}

// columns is a Delta schema of the weather table with more columns behind it.
func columns(more string) string {
	return `{"type":"struct","fields":[{"name":"origin","type":"string","nullable":false,"metadata":{}},` +
		`{"name":"time_hour","type":"timestamp","nullable":false,"metadata":{}},{"name":"temp","type":"double","nullable":true,"metadata":{}},` +
		`{"name":"_ingest_ts","type":"timestamp","nullable":true,"metadata":{}}` + more + `]}`
}

// during calls a function when the stream has been read to its end, which is
// after an append's first checks and before its commit.
type during struct {
	tablecore.RowReader
	call func()
}

func (d during) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := d.RowReader.Next(ctx)
	if errors.Is(err, io.EOF) && d.call != nil {
		d.call()
	}
	return b, err
}

// TestRevalidate has others commit while an append is under way: the append
// repeats every check on what they have left, and the error is the check's.
func TestRevalidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		theirs func(t *testing.T, table *tablecore.Table, store objstore.Store)
		token  tableerr.Token // "" where the append goes on
	}{
		{"disjoint append", func(t *testing.T, table *tablecore.Table, _ objstore.Store) {
			if _, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("LGA", 1, "1"))); err != nil {
				t.Error(err)
			}
		}, ""},
		{"overlapping append", func(t *testing.T, table *tablecore.Table, _ objstore.Store) {
			if _, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 1, "9"))); err != nil {
				t.Error(err)
			}
		}, tableerr.TokenIntervalOverlap},
		{"rows removed", func(t *testing.T, _ *tablecore.Table, store objstore.Store) { removeNewest(t, store) }, ""},
		{"rows that a rollback brings back", func(t *testing.T, table *tablecore.Table, store objstore.Store) {
			if _, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 1, "9"))); err != nil {
				t.Error(err)
			}
			removeNewest(t, store)
			rewrite(t, store, func(newest map[string]action) []action { return []action{{"add": newest["add"]}} })
		}, tableerr.TokenIntervalOverlap},
		{"property set", func(t *testing.T, _ *tablecore.Table, store objstore.Store) { rewrite(t, store, set("team", "ops")) }, ""},
		{"nullable column added", func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, schema(columns(`,{"name":"more","type":"long","nullable":true,"metadata":{}}`)))
		}, ""},
		{"column added that takes no null", func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, schema(columns(`,{"name":"more","type":"long","nullable":false,"metadata":{}}`)))
		}, tableerr.TokenSchemaMismatch},
		{"column of another type", func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, schema(strings.Replace(columns(""), `"double"`, `"float"`, 1)))
		}, tableerr.TokenSchemaMismatch},
		{"column gone", func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, schema(strings.Replace(columns(""), `{"name":"temp","type":"double","nullable":true,"metadata":{}},`, "", 1)))
		}, tableerr.TokenSchemaMismatch},
		{"other intervals", func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, set("contrail.index-granularity", "2h"))
		}, tableerr.TokenVersionConflict},
		{"no uniqueness any more", func(t *testing.T, table *tablecore.Table, store objstore.Store) {
			if _, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 1, "9"))); err != nil {
				t.Error(err)
			}
			rewrite(t, store, set("contrail.uniqueness", "none"))
		}, ""},
		{"newer format", func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, set("contrail.format-version", "0.4.0"))
		}, tableerr.TokenFormatUnreadable},
		{"newer format with a feature nobody knows", func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, newerFormat)
		}, tableerr.TokenFormatUnreadable},
		{"writer feature nobody knows", func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, func(newest map[string]action) []action {
				protocol := newest["protocol"]
				protocol["writerFeatures"] = append(protocol["writerFeatures"].([]any), "clairvoyance")
				return []action{{"protocol": protocol}}
			})
		}, tableerr.TokenUnsupported},
		{"another table", func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, func(newest map[string]action) []action {
				metadata := newest["metaData"]
				metadata["id"] = "another"
				return []action{{"metaData": metadata}}
			})
		}, tableerr.TokenTableNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := memstore.New()
			w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
			if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
				t.Fatal(err)
			}
			table, other := openWeather(t, w), anotherProcess(t, store)
			if _, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 0, "0"))); err != nil {
				t.Fatal(err)
			}
			b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", 1, "1"), rowAt("JFK", 0, "10")))
			defer b.Release()
			before := len(dataFiles(t, store))
			r, err := table.Append(t.Context(), during{tabletest.NewReader(weather, b), func() {
				c.theirs(t, other, store)
				before = len(dataFiles(t, store))
			}}, tablecore.AppendOptions{})
			if tableerr.TokenOf(err) != c.token || c.token == "" && (err != nil || r.StartingVersion != 1 || r.CommittedVersion < 3) {
				t.Fatalf("got %+v, %v", r, err)
			}
			if n := len(dataFiles(t, store)); c.token != "" && n != before {
				t.Errorf("%d data files are left behind, %d were there", n, before)
			}
		})
	}
}

// newerFormat moves a table to a format that needs features nobody knows.
func newerFormat(newest map[string]action) []action {
	protocol, metadata := newest["protocol"], newest["metaData"]
	protocol["minReaderVersion"] = 3
	protocol["readerFeatures"] = []any{"clairvoyance"}
	protocol["writerFeatures"] = append(protocol["writerFeatures"].([]any), "clairvoyance")
	metadata["configuration"].(action)["contrail.format-version"] = "9.0.0"
	return []action{{"protocol": protocol}, {"metaData": metadata}}
}

// removeNewest removes the file that was added last.
func removeNewest(t *testing.T, store objstore.Store) {
	t.Helper()
	rewrite(t, store, func(newest map[string]action) []action {
		return []action{{"remove": action{"path": newest["add"]["path"], "dataChange": true, "deletionTimestamp": 1}}}
	})
}

// TestFormatFirst makes sure that a table of a newer format is refused for that,
// whatever features it uses besides: when it is opened and on a handle that is
// open.
func TestFormatFirst(t *testing.T) {
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	table := openWeather(t, w)
	rewrite(t, store, newerFormat)
	rows := rowsOf(rowAt("EWR", 0, "0"))
	zero := int64(0)
	for what, call := range map[string]func() error{
		"open": func() error {
			_, err := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator).Table(t.Context(), weatherName)
			return err
		},
		"append": func() error { _, err := putRows(t, table, tablecore.AppendOptions{}, rows); return err },
		"append with settings that make no sense": func() error {
			_, err := putRows(t, table, tablecore.AppendOptions{Compression: "rar"}, rows)
			return err
		},
		"append with expected version": func() error {
			_, err := putRows(t, table, tablecore.AppendOptions{ExpectedVersion: &zero}, rows)
			return err
		},
		"append with request id": func() error { _, err := putRows(t, table, tablecore.AppendOptions{RequestID: "x"}, rows); return err },
		"scan":                   func() error { _, err := table.PlanScan(t.Context(), tablecore.ScanOptions{}); return err },
		"describe":               func() error { _, err := table.Describe(t.Context(), tablecore.At{}); return err },
		"checkpoint":             func() error { return table.WriteCheckpoint(t.Context()) },
		"drop": func() error {
			_, err := w.DropTable(t.Context(), weatherName, tablecore.DropOptions{})
			return err
		},
	} {
		var unreadable *tableerr.FormatUnreadable
		if err := call(); !errors.As(err, &unreadable) || unreadable.TableFormat != "9.0.0" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestAdoptionKeepsWhatOthersSet has somebody set a property while the append
// that brings the schema is under way.
func TestAdoptionKeepsWhatOthersSet(t *testing.T) {
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	o := weatherOptions()
	o.Schema, o.IndexType = nil, "timestamp"
	if _, err := w.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	table := openWeather(t, w)
	b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", 1, "1")))
	defer b.Release()
	rows := during{tabletest.NewReader(weather, b), func() { rewrite(t, store, set("team", "ops")) }}
	if _, err := table.Append(t.Context(), rows, tablecore.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	d, err := anotherProcess(t, store).Describe(t.Context(), tablecore.At{})
	if err != nil || d.Properties["team"] != "ops" || len(d.Columns) != 3 || d.Version != 2 {
		t.Errorf("described %+v, %v", d, err)
	}
}

// TestStaleRefusal makes sure that an append is not refused because of rows
// that are gone by now.
func TestStaleRefusal(t *testing.T) {
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	table := openWeather(t, w)
	if _, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 0, "0"))); err != nil {
		t.Fatal(err)
	}
	removeNewest(t, store)
	if r, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 0, "5"))); err != nil || r.CommittedVersion != 3 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if got := contents(t, table); got != "3: EWR 00 5" {
		t.Errorf("the table is %s", got)
	}
}

// TestSharedMemory makes sure that the appends of a warehouse share its memory:
// one that is under way leaves less for another.
func TestSharedMemory(t *testing.T) {
	const budget = 9 << 20
	w, err := tablecore.Open(t.Context(), tablecore.Options{Store: memstore.New(), MemoryBudget: budget, Clock: tabletest.NewClock().Now, Random: tabletest.Random(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	table := openWeather(t, w)
	const many = 200_000
	first, second := manyRows("EWR", many), manyRows("JFK", many)
	defer first.Release()
	defer second.Release()
	_, err = table.Append(t.Context(), during{tabletest.NewReader(weather, first), func() {
		_, err := table.Append(t.Context(), tabletest.NewReader(weather, second), tablecore.AppendOptions{})
		var large *tableerr.MessageTooLarge
		if !errors.As(err, &large) || large.LimitBytes != budget || !strings.Contains(large.Text(), "together") {
			t.Errorf("beside another: %v", err)
		}
	}}, tablecore.AppendOptions{})
	if err != nil {
		t.Fatalf("the first: %v", err)
	}
	if _, err := table.Append(t.Context(), tabletest.NewReader(weather, second), tablecore.AppendOptions{}); err != nil {
		t.Errorf("alone: %v", err)
	}
}

// manyRows is a batch of hourly rows of one origin.
func manyRows(origin string, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, weather)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.StringBuilder).Append(origin)
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(int64(i) * 3600e6))
		b.Field(2).(*array.Float64Builder).Append(float64(i))
	}
	return b.NewRecordBatch()
}

// TestCreateIsTold makes sure that a created table is an event like every other
// commit.
func TestCreateIsTold(t *testing.T) {
	var told []string
	w, err := tablecore.Open(t.Context(), tablecore.Options{Store: memstore.New(), Events: tablecore.Events{
		Committed: func(_ context.Context, table string, version int64, operation string) {
			told = append(told, table+" "+string(rune('0'+version))+" "+operation)
		}}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateTable(t.Context(), weatherOptions()); tableerr.TokenOf(err) != tableerr.TokenTableExists {
		t.Fatal(err)
	}
	if _, err := putRows(t, openWeather(t, w), tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 0, "0"))); err != nil {
		t.Fatal(err)
	}
	if strings.Join(told, ", ") != "default.weather 0 create_table, default.weather 1 append" {
		t.Errorf("told %q", told)
	}
}
