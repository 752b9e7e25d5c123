package tablecore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// update gives rows of the weather table, each argument a batch, the
// temperatures of JSON rows.
func (f *fixture) update(o tablecore.UpdateOptions, batches ...string) (*tablecore.UpdateReport, error) {
	f.t.Helper()
	if o.Columns == nil {
		o.Columns = []string{"temp"}
	}
	return f.updateWith(weather, o, batches...)
}

func (f *fixture) updateWith(schema *arrow.Schema, o tablecore.UpdateOptions, batches ...string) (*tablecore.UpdateReport, error) {
	f.t.Helper()
	var built []arrow.RecordBatch
	for _, rows := range batches {
		b := tabletest.Batch(f.t, f.mem, schema, rows)
		defer b.Release()
		built = append(built, b)
	}
	return f.table.UpdateRows(f.t.Context(), tabletest.NewReader(schema, built...), o)
}

func (f *fixture) expect(want ...string) {
	f.t.Helper()
	rows, _ := f.scan(tablecore.ScanOptions{})
	if got := brief(f.t, rows); !slices.Equal(got, want) {
		f.t.Errorf("got %q, want %q", got, want)
	}
}

func TestUpdateRows(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "1"), rowAt("EWR", 1, "2"), rowAt("JFK", 0, "3")))
	f.mustAppend(rowsOf(rowAt("EWR", 5, "4"), rowAt("JFK", 6, "5")))
	report, err := f.update(tablecore.UpdateOptions{ExpectedVersion: 2}, rowsOf(rowAt("JFK", 0, "30"), rowAt("EWR", 1, "null")), rowsOf())
	if err != nil {
		t.Fatal(err)
	}
	if report.SourceFileBytes == 0 || report.ReplacementFileBytes == 0 {
		t.Errorf("got %+v", report)
	}
	report.SourceFileBytes, report.ReplacementFileBytes = 0, 0
	if *report != (tablecore.UpdateReport{StartingVersion: 2, CommittedVersion: 3, RowsUpdated: 2, SegmentsRewritten: 1}) {
		t.Errorf("got %+v", report)
	}
	f.expect("EWR 00 1", "EWR 01 null", "EWR 05 4", "JFK 00 30", "JFK 06 5")

	// Equal values are a commit, too, over several files and batches of one row.
	report, err = f.update(tablecore.UpdateOptions{ExpectedVersion: 3}, rowsOf(rowAt("JFK", 6, "5")), rowsOf(rowAt("EWR", 0, "1")))
	if err != nil || report.CommittedVersion != 4 || report.RowsUpdated != 2 || report.SegmentsRewritten != 2 || report.NoOp {
		t.Errorf("got %+v, %v", report, err)
	}
	f.expect("EWR 00 1", "EWR 01 null", "EWR 05 4", "JFK 00 30", "JFK 06 5")

	// Old versions are as they were, and appends see the same intervals.
	two := int64(2)
	rows, _ := f.scan(tablecore.ScanOptions{Version: &two})
	if got := brief(t, rows); !slices.Equal(got, []string{"EWR 00 1", "EWR 01 2", "EWR 05 4", "JFK 00 3", "JFK 06 5"}) {
		t.Errorf("got %q", got)
	}
	_, err = f.append(tablecore.AppendOptions{}, rowsOf(rowAt("JFK", 0, "9")))
	if tableerr.TokenOf(err) != tableerr.TokenIntervalOverlap {
		t.Errorf("got %v", err)
	}
}

// TestUpdateWithoutRows makes sure that a stream without rows commits nothing,
// but only on the version that was expected.
func TestUpdateWithoutRows(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "1")))
	for _, batches := range [][]string{nil, {rowsOf()}} {
		report, err := f.update(tablecore.UpdateOptions{ExpectedVersion: 1, RequestID: "empty"}, batches...)
		if err != nil || *report != (tablecore.UpdateReport{StartingVersion: 1, CommittedVersion: 1, NoOp: true}) {
			t.Errorf("got %+v, %v", report, err)
		}
	}
	if _, err := f.update(tablecore.UpdateOptions{ExpectedVersion: 0}); tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
		t.Errorf("got %v", err)
	}
	// Another commit while the stream is open.
	stream := &hookedReader{Reader: tabletest.NewReader(weather), before: func() { f.mustAppend(rowsOf(rowAt("JFK", 0, "1"))) }}
	_, err := f.table.UpdateRows(t.Context(), stream, tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 1})
	if want := (tableerr.VersionConflict{Expected: 1, Found: 2}); !conflicts(err, want) {
		t.Errorf("got %v", err)
	}
}

// hookedReader calls before ahead of its first batch, or its end.
type hookedReader struct {
	*tabletest.Reader
	before func()
	read   int
}

func (r *hookedReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.read++; r.read == 1 && r.before != nil {
		r.before()
	}
	return r.Reader.Next(ctx)
}

func conflicts(err error, want tableerr.VersionConflict) bool {
	var conflict *tableerr.VersionConflict
	return errors.As(err, &conflict) && conflict.Expected == want.Expected && conflict.Found == want.Found
}

// keyText is what a key error says, as clients see it.
func keyText(t *testing.T, err error) string {
	t.Helper()
	var typed tableerr.Error
	if !errors.As(err, &typed) {
		return fmt.Sprint(err)
	}
	parts := []string{string(typed.Token())}
	for _, field := range typed.Fields() {
		value, err := json.Marshal(field.Value)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, field.Key+"="+string(value))
	}
	return strings.Join(parts, " ") + ": " + typed.Text()
}

func TestUpdateKeyErrors(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "1"), rowAt("EWR", 1, "2"), rowAt("JFK", 0, "3")))
	half := func(origin string, minutes int) string {
		return fmt.Sprintf(`{"origin":%q,"time_hour":%d,"temp":1}`, origin, int64(minutes)*60e6)
	}
	for _, c := range []struct {
		name    string
		batches []string
		want    string
	}{
		{"within an interval", []string{rowsOf(rowAt("EWR", 0, "1"), half("EWR", 30))},
			`UNMATCHED_SOURCE_KEY table="default.weather" reason="unmatched_source_key" rows_seen=2 violations=1 example_key={"origin":"EWR","time_hour":"1970-01-01T00:30:00Z"}: 1 key is in no row of default.weather`},
		{"several", []string{rowsOf(rowAt("LGA", 0, "1"), rowAt("JFK", 2, "1")), rowsOf(rowAt("JFK", 1, "1"), rowAt("EWR", 0, "1"))},
			`UNMATCHED_SOURCE_KEY table="default.weather" reason="unmatched_source_key" rows_seen=4 violations=3 example_key={"origin":"JFK","time_hour":"1970-01-01T01:00:00Z"}: 3 keys are in no row of default.weather`},
		{"twice, equal", []string{rowsOf(rowAt("EWR", 0, "1"), rowAt("JFK", 0, "1")), rowsOf(rowAt("EWR", 0, "1"))},
			`DUPLICATE_SOURCE_KEY table="default.weather" reason="duplicate_source_key" rows_seen=3 violations=1 example_key={"origin":"EWR","time_hour":"1970-01-01T00:00:00Z"}: 1 key stands more than once in the source`},
		{"twice before unmatched", []string{rowsOf(rowAt("ABC", 0, "1"), rowAt("LGA", 7, "1"), rowAt("LGA", 7, "2"), rowAt("LGA", 7, "2"), rowAt("LGA", 6, "2"), rowAt("LGA", 6, "2"))},
			`DUPLICATE_SOURCE_KEY table="default.weather" reason="duplicate_source_key" rows_seen=6 violations=2 example_key={"origin":"LGA","time_hour":"1970-01-01T06:00:00Z"}: 2 keys stand more than once in the source`},
	} {
		report, err := f.update(tablecore.UpdateOptions{ExpectedVersion: 1}, c.batches...)
		if got := keyText(t, err); got != c.want || report != nil {
			t.Errorf("%s: got %s", c.name, got)
		}
	}
	f.expect("EWR 00 1", "EWR 01 2", "JFK 00 3")
}

// TestUpdateAmbiguousKeys updates a table whose rows may share a key.
func TestUpdateAmbiguousKeys(t *testing.T) {
	f := newFixture(t)
	o := weatherOptions()
	o.Name.Table, o.Uniqueness = "free", "none"
	if _, err := f.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.table, err = f.house.Table(t.Context(), o.Name); err != nil {
		t.Fatal(err)
	}
	f.mustAppend(rowsOf(rowAt("EWR", 0, "1"), rowAt("EWR", 0, "2"), rowAt("JFK", 0, "3"), rowAt("JFK", 1, "4")))
	f.mustAppend(rowsOf(rowAt("JFK", 0, "5"), rowAt("LGA", 0, "6")))
	_, err = f.update(tablecore.UpdateOptions{ExpectedVersion: 2}, rowsOf(rowAt("LGA", 0, "60"), rowAt("JFK", 0, "50"), rowAt("EWR", 0, "10")))
	if got := keyText(t, err); got != `AMBIGUOUS_TARGET_KEY table="default.free" reason="ambiguous_target_key" rows_seen=3 violations=2 example_key={"origin":"EWR","time_hour":"1970-01-01T00:00:00Z"}: 2 keys are in several rows of default.free` {
		t.Errorf("got %s", got)
	}
	if _, err = f.update(tablecore.UpdateOptions{ExpectedVersion: 2}, rowsOf(rowAt("JFK", 0, "50"), rowAt("JFK", 7, "1"))); tableerr.TokenOf(err) != tableerr.TokenUnmatchedSourceKey {
		t.Errorf("got %v", err)
	}
	if _, err = f.update(tablecore.UpdateOptions{ExpectedVersion: 2}, rowsOf(rowAt("LGA", 0, "60"), rowAt("JFK", 1, "40"))); err != nil {
		t.Error(err)
	}
	f.expect("EWR 00 1", "EWR 00 2", "JFK 00 3", "JFK 00 5", "JFK 01 40", "LGA 00 60")
}

// TestUpdateRefusals goes through the checks that precede the rows, in their
// order: each stream would fail at the next step, too.
func TestUpdateRefusals(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "1")))
	at := tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 1}
	with := func(change func(o *tablecore.UpdateOptions)) tablecore.UpdateOptions {
		o := at
		change(&o)
		return o
	}
	short := arrow.NewSchema(weather.Fields()[:2], nil)
	text := arrow.NewSchema([]arrow.Field{weather.Field(0), weather.Field(1), {Name: "temp", Type: arrow.BinaryTypes.String}}, nil)
	extra := arrow.NewSchema(append(slices.Clone(weather.Fields()), arrow.Field{Name: "more", Type: arrow.BinaryTypes.String}), nil)
	for _, c := range []struct {
		name   string
		o      tablecore.UpdateOptions
		schema *arrow.Schema
		want   string
	}{
		{"request id", with(func(o *tablecore.UpdateOptions) { o.RequestID, o.ExpectedVersion = "\t", 9 }), weather, `INVALID table="default.weather" field="request_id"`},
		{"negative version", with(func(o *tablecore.UpdateOptions) { o.ExpectedVersion, o.Columns = -1, nil }), weather, `INVALID table="default.weather" field="expected_version" value=-1`},
		{"table id", with(func(o *tablecore.UpdateOptions) { o.TableID, o.ExpectedVersion = "x", 9 }), weather, `TABLE_NOT_FOUND table="default.weather"`},
		{"version", with(func(o *tablecore.UpdateOptions) { o.ExpectedVersion, o.Columns = 0, nil }), short, `VERSION_CONFLICT table="default.weather" expected=0 found=1`},
		{"version ahead", with(func(o *tablecore.UpdateOptions) { o.ExpectedVersion = 2 }), weather, `VERSION_CONFLICT table="default.weather" expected=2 found=1`},
		{"no columns", with(func(o *tablecore.UpdateOptions) { o.Columns = nil }), short, `INVALID table="default.weather" field="columns"`},
		{"unknown", with(func(o *tablecore.UpdateOptions) { o.Columns = []string{"temp", "Temp"} }), short, `INVALID table="default.weather" field="columns[1]"`},
		{"twice", with(func(o *tablecore.UpdateOptions) { o.Columns = []string{"temp", "temp"} }), short, `INVALID table="default.weather" field="columns[1]"`},
		{"entity", with(func(o *tablecore.UpdateOptions) { o.Columns = []string{"origin"} }), short, `INVALID table="default.weather" field="columns[0]"`},
		{"index", with(func(o *tablecore.UpdateOptions) { o.Columns = []string{"time_hour"} }), short, `INVALID table="default.weather" field="columns[0]"`},
		{"missing", at, short, `SCHEMA_MISMATCH table="default.weather" column="temp" expected="double" found=null`},
		{"extra", at, extra, `SCHEMA_MISMATCH table="default.weather" column="more" expected=null found="string"`},
		{"not chosen", with(func(o *tablecore.UpdateOptions) { o.Columns = []string{"_ingest_ts"} }), weather, `SCHEMA_MISMATCH table="default.weather" column="_ingest_ts" expected="timestamp[us, tz=UTC]" found=null`},
		{"type", at, text, `SCHEMA_MISMATCH table="default.weather" column="temp" expected="double" found="string"`},
	} {
		stream := &hookedReader{Reader: tabletest.NewReader(c.schema)}
		_, err := f.table.UpdateRows(t.Context(), stream, c.o)
		if got, _, _ := strings.Cut(keyText(t, err), ": "); got != c.want {
			t.Errorf("%s: got %s", c.name, got)
		}
		if stream.read > 0 {
			t.Errorf("%s: the stream was read", c.name)
		}
		if err := f.table.CheckUpdate(t.Context(), c.schema, c.o); err == nil {
			t.Errorf("%s: CheckUpdate takes it", c.name)
		}
	}
	if err := f.table.CheckUpdate(t.Context(), weather, at); err != nil {
		t.Error(err)
	}
}

// TestUpdateRowErrors sends rows that no table takes. The first offender is
// named, whatever comes behind it.
func TestUpdateRowErrors(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "1")))
	nullable := arrow.NewSchema([]arrow.Field{{Name: "origin", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "time_hour", Type: weather.Field(1).Type, Nullable: true}, weather.Field(2)}, nil)
	for _, c := range []struct{ rows, want string }{
		{rowsOf(rowAt("EWR", 0, "1"), `{"origin":"EWR","temp":1}`, `{"time_hour":0}`), `NULL_KEY table="default.weather" column="time_hour" row=1`},
		{rowsOf(rowAt("EWR", 0, "1"), rowAt("EWR", 0, "1"), `{"time_hour":0}`), `NULL_KEY table="default.weather" column="origin" row=2`},
	} {
		_, err := f.updateWith(nullable, tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 1}, c.rows)
		if got, _, _ := strings.Cut(keyText(t, err), ": "); got != c.want {
			t.Errorf("got %s", got)
		}
	}
	bad := tabletest.NewReader(weather)
	bad.Err = io.ErrUnexpectedEOF
	if _, err := f.table.UpdateRows(t.Context(), bad, tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 1}); !errors.Is(err, io.ErrUnexpectedEOF) || tableerr.TokenOf(err) != "" {
		t.Errorf("a stream's error became %v", err)
	}
	f.expect("EWR 00 1")
}

// TestUpdateOfAnEmptyTable updates tables that cannot have the row.
func TestUpdateOfAnEmptyTable(t *testing.T) {
	f := newFixture(t)
	if _, err := f.update(tablecore.UpdateOptions{}, rowsOf(rowAt("EWR", 0, "1"))); tableerr.TokenOf(err) != tableerr.TokenUnmatchedSourceKey {
		t.Errorf("got %v", err)
	}
	o := weatherOptions()
	o.Name.Table, o.Schema, o.IndexType = "later", nil, "timestamp"
	if _, err := f.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	later, err := f.house.Table(t.Context(), o.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := later.CheckUpdate(t.Context(), weather, tablecore.UpdateOptions{Columns: []string{"temp"}}); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("got %v", err)
	}
}

// TestUpdateRequestID repeats updates.
func TestUpdateRequestID(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "1"), rowAt("EWR", 1, "2")))
	o := tablecore.UpdateOptions{ExpectedVersion: 1, RequestID: "fix"}
	first, err := f.update(o, rowsOf(rowAt("EWR", 0, "10"), rowAt("EWR", 1, "20")))
	if err != nil {
		t.Fatal(err)
	}
	f.mustAppend(rowsOf(rowAt("JFK", 0, "3")))
	// Other batches, and a version that is wrong by now.
	again, err := f.update(o, rowsOf(rowAt("EWR", 0, "10")), rowsOf(rowAt("EWR", 1, "20")))
	if err != nil || *again != *first {
		t.Errorf("got %+v, %v, want %+v", again, err, first)
	}
	reused := func(name string, err error) {
		t.Helper()
		var e *tableerr.RequestIDReused
		if !errors.As(err, &e) || e.RequestID != "fix" || e.Version != 2 {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_, err = f.update(o, rowsOf(rowAt("EWR", 0, "10"), rowAt("EWR", 1, "21")))
	reused("other rows", err)
	_, err = f.update(o)
	reused("no rows", err)
	o.Columns = []string{"_ingest_ts"}
	_, err = f.update(o, rowsOf(rowAt("EWR", 0, "10")))
	reused("other columns", err)
	_, err = f.append(tablecore.AppendOptions{RequestID: "fix"}, rowsOf(rowAt("EWR", 0, "10"), rowAt("EWR", 1, "20")))
	reused("an append", err)
	f.expect("EWR 00 10", "EWR 01 20", "JFK 00 3")
}

// TestUpdateRaces lets other commits land between an update's check and its
// commit.
func TestUpdateRaces(t *testing.T) {
	for name, other := range map[string]func(f *fixture) error{
		"append": func(f *fixture) error {
			_, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("LGA", 0, "7")))
			return err
		},
		"the same rows": func(f *fixture) error {
			_, err := f.update(tablecore.UpdateOptions{ExpectedVersion: 1}, rowsOf(rowAt("EWR", 0, "7")))
			return err
		},
		"other rows": func(f *fixture) error {
			_, err := f.update(tablecore.UpdateOptions{ExpectedVersion: 1}, rowsOf(rowAt("JFK", 0, "7")))
			return err
		},
	} {
		f := newFixture(t)
		f.mustAppend(rowsOf(rowAt("EWR", 0, "1"), rowAt("JFK", 0, "2")))
		row := tabletest.Batch(t, f.mem, weather, rowsOf(rowAt("EWR", 0, "9")))
		stream := &hookedReader{Reader: tabletest.NewReader(weather, row), before: func() {
			if err := other(f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}}
		_, err := f.table.UpdateRows(t.Context(), stream, tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 1})
		row.Release()
		if !conflicts(err, tableerr.VersionConflict{Expected: 1, Found: 2}) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestUpdateOfAnAppendOnlyTable honours Delta's own property.
func TestUpdateOfAnAppendOnlyTable(t *testing.T) {
	f := newFixture(t)
	store := memstore.New()
	house := tabletest.Warehouse(t, store, f.mem)
	if _, err := house.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	rewrite(t, store, func(newest map[string]action) []action {
		m := newest["metaData"]
		m["configuration"].(map[string]any)["delta.appendOnly"] = "true"
		return []action{{"metaData": m}}
	})
	f.table = openWeather(t, house)
	_, err := f.update(tablecore.UpdateOptions{ExpectedVersion: 1}, rowsOf(rowAt("EWR", 0, "9")))
	var unsupported *tableerr.Unsupported
	if !errors.As(err, &unsupported) || unsupported.Feature != "appendOnly" {
		t.Errorf("got %v", err)
	}
}

// TestUpdateUnfolding sends few bytes that stand for many: they are refused
// before memory is taken for them.
func TestUpdateUnfolding(t *testing.T) {
	f := newFixture(t)
	o := weatherOptions()
	o.Name.Table = "notes"
	o.Schema = arrow.NewSchema([]arrow.Field{weather.Field(0), weather.Field(1), {Name: "note", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	if _, err := f.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	table, err := f.house.Table(t.Context(), o.Name)
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{weather.Field(0), weather.Field(1),
		{Name: "note", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}}}, nil)
	b := array.NewRecordBuilder(f.mem, schema)
	defer b.Release()
	for row := range 300 {
		b.Field(0).(*array.StringBuilder).Append("EWR")
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(row))
		if err := b.Field(2).(*array.BinaryDictionaryBuilder).AppendString(strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	_, err = table.UpdateRows(t.Context(), tabletest.NewReader(schema, batch), tablecore.UpdateOptions{Columns: []string{"note"}})
	var large *tableerr.MessageTooLarge
	if !errors.As(err, &large) || large.LimitBytes != 256<<20 {
		t.Errorf("got %v", err)
	}
}
