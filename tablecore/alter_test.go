package tablecore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// ambush lets others commit once, between an operation's checks and its put.
type ambush struct {
	objstore.Store
	mu     sync.Mutex
	theirs func()
}

func (a *ambush) Sub(ctx context.Context, dir string, create bool) (objstore.Store, error) {
	store, err := a.Store.Sub(ctx, dir, create)
	return ambushed{store, a}, err
}

func (*ambush) Close() error { return nil }

// ambushed is a table's part of an ambush.
type ambushed struct {
	objstore.Store
	*ambush
}

func (a ambushed) Close() error { return a.Store.Close() }

func (a ambushed) Sub(ctx context.Context, dir string, create bool) (objstore.Store, error) {
	return a.Store.Sub(ctx, dir, create)
}

func (a ambushed) PutAllIfAbsent(ctx context.Context, objects []objstore.Object) (int, error) {
	a.mu.Lock()
	theirs := a.theirs
	a.theirs = nil
	a.mu.Unlock()
	if theirs != nil {
		theirs()
	}
	return a.Store.PutAllIfAbsent(ctx, objects)
}

// properties is a change of properties; "" removes.
func properties(kv ...string) map[string]*string {
	change := map[string]*string{}
	for i := 0; i < len(kv); i += 2 {
		change[kv[i]] = &kv[i+1]
		if kv[i+1] == "" {
			change[kv[i]] = nil
		}
	}
	return change
}

// alterations are the verbs that change what a table is.
var alterations = map[string]func(ctx context.Context, table *tablecore.Table, expected *int64) (int64, error){
	"add_columns": func(ctx context.Context, table *tablecore.Table, expected *int64) (int64, error) {
		r, err := table.AddColumns(ctx, tablecore.AddColumnsOptions{Schema: quality, ExpectedVersion: expected})
		if err != nil {
			return 0, err
		}
		return r.CommittedVersion, nil
	},
	"set_properties": func(ctx context.Context, table *tablecore.Table, expected *int64) (int64, error) {
		r, err := table.SetProperties(ctx, tablecore.SetPropertiesOptions{Properties: properties("team", "ops"), ExpectedVersion: expected})
		if err != nil {
			return 0, err
		}
		return r.CommittedVersion, nil
	},
}

// TestAlterationConflicts has others commit between the checks of an alteration
// and its put: one case a cell of the matrix.
func TestAlterationConflicts(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	for _, theirs := range []struct {
		name   string
		rebase bool
		commit func(t *testing.T, table *tablecore.Table, store objstore.Store)
	}{
		{"append", true, func(t *testing.T, table *tablecore.Table, _ objstore.Store) {
			_, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("LGA", 1, "1")))
			must(t, err)
		}},
		{"update", true, func(t *testing.T, _ *tablecore.Table, store objstore.Store) { replaceNewest(t, store) }},
		{"retention", true, func(t *testing.T, _ *tablecore.Table, store objstore.Store) { removeNewest(t, store) }},
		{"other columns", false, func(t *testing.T, table *tablecore.Table, _ objstore.Store) {
			_, err := table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: columnsOf(nullableOf("other", arrow.BinaryTypes.String))})
			must(t, err)
		}},
		{"another property", false, func(t *testing.T, table *tablecore.Table, _ objstore.Store) {
			_, err := table.SetProperties(t.Context(), tablecore.SetPropertiesOptions{Properties: properties("stage", "test")})
			must(t, err)
		}},
		{"rollback", false, func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, func(map[string]action) []action {
				return []action{{"domainMetadata": action{"domain": "contrail.state", "configuration": `{"oldest_version":0,"abandoned":[[1,1]]}`, "removed": false}}}
			})
		}},
		{"upgrade", false, func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, set("contrail.format-version", "0.3.1"))
		}},
		{"protocol", false, func(t *testing.T, _ *tablecore.Table, store objstore.Store) {
			rewrite(t, store, func(newest map[string]action) []action { return []action{{"protocol": newest["protocol"]}} })
		}},
	} {
		for verb, alter := range alterations {
			for _, pinned := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/pinned=%t", verb, theirs.name, pinned), func(t *testing.T) {
					inner := memstore.New()
					store := &ambush{Store: inner}
					w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
					createWeather(t, w)
					table, other := openWeather(t, w), anotherProcess(t, inner)
					_, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 0, "0")))
					must(t, err)
					store.theirs = func() { theirs.commit(t, other, inner) }
					var expected *int64
					if pinned {
						expected = ptr(int64(1))
					}
					version, err := alter(t.Context(), table, expected)
					if theirs.rebase && !pinned {
						if err != nil || version != 3 {
							t.Fatalf("version %d, %v", version, err)
						}
					} else if tableerr.TokenOf(err) != tableerr.TokenVersionConflict || tabletest.DetailOf(err) != "expected 1 found 2" {
						t.Fatalf("got %v", err)
					}
					// Neither has undone what the other did.
					if _, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("JFK", 5, "1"))); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// replaceNewest puts another file in the place of the one that was added last.
func replaceNewest(t *testing.T, store objstore.Store) {
	t.Helper()
	rewrite(t, store, func(newest map[string]action) []action {
		path := newest["add"]["path"].(string)
		data, err := store.Get(t.Context(), "default/weather/"+path)
		if err == nil {
			err = store.Put(t.Context(), "default/weather/data/again.parquet", data)
		}
		if err != nil {
			t.Fatal(err)
		}
		again := maps.Clone(newest["add"])
		again["path"] = "data/again.parquet"
		return []action{{"remove": action{"path": path, "dataChange": true, "deletionTimestamp": 1}}, {"add": again}}
	})
}

// TestPropertiesBesideAdoption has the append that brings the schema land while
// properties are set.
func TestPropertiesBesideAdoption(t *testing.T) {
	inner := memstore.New()
	store := &ambush{Store: inner}
	w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
	o := weatherOptions()
	o.Schema, o.IndexType = nil, "timestamp"
	if _, err := w.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	table, other := openWeather(t, w), anotherProcess(t, inner)
	store.theirs = func() {
		if _, err := putRows(t, other, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 0, "0"))); err != nil {
			t.Error(err)
		}
	}
	r, err := table.SetProperties(t.Context(), tablecore.SetPropertiesOptions{Properties: properties("team", "ops")})
	if err != nil || r.StartingVersion != 0 || r.CommittedVersion != 2 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if d, err := anotherProcess(t, inner).Describe(t.Context(), tablecore.At{}); err != nil || d.Rows != 1 || len(d.Columns) != 3 || d.Properties["team"] != "ops" {
		t.Errorf("described %+v, %v", d, err)
	}
	// A column needs the schema that the append has brought meanwhile.
	if _, err := table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: quality}); err != nil {
		t.Error(err)
	}
}

// TestColumnsAddedDuringAppend has columns added while an append is under way,
// the append's own request id beside it.
func TestColumnsAddedDuringAppend(t *testing.T) {
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	createWeather(t, w)
	table, other := openWeather(t, w), anotherProcess(t, store)
	b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", 1, "1")))
	defer b.Release()
	o := tablecore.AppendOptions{RequestID: "first"}
	r, err := table.Append(t.Context(), during{tabletest.NewReader(weather, b), func() {
		if _, err := other.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: quality}); err != nil {
			t.Error(err)
		}
	}}, o)
	if err != nil || r.StartingVersion != 0 || r.CommittedVersion != 2 {
		t.Fatalf("got %+v, %v", r, err)
	}
	rows, _, err := tabletest.Scan(t.Context(), other, tablecore.ScanOptions{})
	if want := `{"origin":"EWR","quality":null,"temp":1,"time_hour":"1970-01-01T01:00:00Z"}`; err != nil || !slices.Equal(rows, []string{want}) {
		t.Errorf("got %q, %v", rows, err)
	}
	// The same rows in the same columns are the same append, to any process.
	for _, user := range []*tablecore.Table{table, other, anotherProcess(t, store)} {
		if again, err := user.Append(t.Context(), tabletest.NewReader(weather, b), o); err != nil || !again.Replayed || again.CommittedVersion != 2 {
			t.Errorf("replay: %+v, %v", again, err)
		}
	}
}

// TestZonelessColumn adds a timestamp without zone to a table whose protocol
// does without: the same commit brings the feature.
func TestZonelessColumn(t *testing.T) {
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	createWeather(t, w)
	table := openWeather(t, w)
	add := func(name string, typ arrow.DataType) map[string]json.RawMessage {
		t.Helper()
		r, err := table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: columnsOf(nullableOf(name, typ))})
		if err != nil {
			t.Fatal(err)
		}
		data, err := store.Get(t.Context(), commitName(int(r.CommittedVersion)))
		if err != nil {
			t.Fatal(err)
		}
		actions := map[string]json.RawMessage{}
		for line := range strings.Lines(string(data)) {
			if err := json.Unmarshal([]byte(line), &actions); err != nil {
				t.Fatal(err)
			}
		}
		return actions
	}
	if actions := add("zoned", arrow.FixedWidthTypes.Timestamp_ms); actions["protocol"] != nil {
		t.Errorf("a time with zone writes the protocol %s", actions["protocol"])
	}
	actions := add("zoneless", arrow.ListOf(&arrow.TimestampType{Unit: arrow.Millisecond}))
	want := `{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["timestampNtz"],"writerFeatures":["appendOnly","invariants","domainMetadata","inCommitTimestamp","contrail-timeseries","timestampNtz"]}`
	if string(actions["protocol"]) != want || actions["metaData"] == nil {
		t.Errorf("the protocol is %s", actions["protocol"])
	}
	if actions := add("more", &arrow.TimestampType{Unit: arrow.Second}); actions["protocol"] != nil {
		t.Errorf("another one writes the protocol %s", actions["protocol"])
	}
	if _, err := putRows(t, anotherProcess(t, store), tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 0, "0"))); err != nil {
		t.Error(err)
	}
}

// TestZonelessAdoption: the first append's schema brings the feature too, and
// the protocol keeps what another writer has put into it.
func TestZonelessAdoption(t *testing.T) {
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	o := weatherOptions()
	o.Schema, o.IndexType = nil, "timestamp"
	if _, err := w.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	rewrite(t, store, func(newest map[string]action) []action {
		protocol := newest["protocol"]
		protocol["writerFeatures"] = append(protocol["writerFeatures"].([]any), "checkConstraints")
		return []action{{"protocol": protocol}}
	})
	fields := append(slices.Clone(weather.Fields()), nullableOf("zoneless", &arrow.TimestampType{Unit: arrow.Second}))
	schema := arrow.NewSchema(fields, nil)
	b := tabletest.Batch(t, memory.DefaultAllocator, schema, rowsOf(rowAt("EWR", 0, "0")))
	defer b.Release()
	table := openWeather(t, w)
	if _, err := table.Append(t.Context(), tabletest.NewReader(schema, b), tablecore.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	data, err := store.Get(t.Context(), commitName(2))
	want := `{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["timestampNtz"],"writerFeatures":["appendOnly","invariants","domainMetadata","inCommitTimestamp","contrail-timeseries","checkConstraints","timestampNtz"]}}`
	if err != nil || !strings.Contains(string(data), want) {
		t.Errorf("the adoption commits %s, %v", data, err)
	}
}

func TestSetProperties(t *testing.T) {
	f := newFixture(t)
	set := func(o tablecore.SetPropertiesOptions) *tablecore.SetPropertiesReport {
		t.Helper()
		r, err := f.table.SetProperties(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		d, err := f.table.Describe(t.Context(), tablecore.At{})
		if err != nil || d.Version != r.CommittedVersion || !maps.Equal(d.Properties, r.Properties) {
			t.Fatalf("described %+v, reported %+v, %v", d, r, err)
		}
		return r
	}
	r := set(tablecore.SetPropertiesOptions{Properties: properties("contrail.retention", "30d", "team", "ops", "old", "")})
	if r.StartingVersion != 0 || r.CommittedVersion != 1 || !maps.Equal(r.Properties, map[string]string{"contrail.retention": "30d", "team": "ops"}) {
		t.Errorf("got %+v", r)
	}
	// What is so already is not committed again, and neither is nothing.
	for _, change := range []map[string]*string{properties("team", "ops", "old", ""), {}, nil} {
		if r := set(tablecore.SetPropertiesOptions{Properties: change, ExpectedVersion: ptr(int64(1))}); r.StartingVersion != 1 || r.CommittedVersion != 1 {
			t.Errorf("got %+v", r)
		}
	}
	if r := set(tablecore.SetPropertiesOptions{Properties: properties("contrail.retention", "", "team", "dev")}); r.CommittedVersion != 2 || !maps.Equal(r.Properties, map[string]string{"team": "dev"}) {
		t.Errorf("got %+v", r)
	}
	if d, err := f.table.Describe(t.Context(), tablecore.At{Version: ptr(int64(1))}); err != nil || d.Properties["team"] != "ops" {
		t.Errorf("version 1 is %+v, %v", d, err)
	}
}

func TestSetPropertiesRefusals(t *testing.T) {
	f := newFixture(t)
	for name, change := range map[string]map[string]*string{
		"kind":          properties("contrail.retention", "soon"),
		"create only":   properties("contrail.uniqueness", "none"),
		"managed":       properties("delta.logRetentionDuration", "interval 1 day"),
		"removed":       properties("contrail.format-version", ""),
		"unknown":       properties("contrail.colour", "red"),
		"Delta's other": properties("delta.columnMapping.mode", "name"),
		"short-lived":   properties("contrail.snapshot-retention", "59m"),
	} {
		_, err := f.table.SetProperties(t.Context(), tablecore.SetPropertiesOptions{Properties: change, LeastSnapshotRetention: time.Hour, ExpectedVersion: ptr(int64(7))})
		if tableerr.TokenOf(err) != tableerr.TokenInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := f.table.SetProperties(t.Context(), tablecore.SetPropertiesOptions{Properties: properties("team", "ops"), ExpectedVersion: ptr(int64(7))})
	if tableerr.TokenOf(err) != tableerr.TokenVersionConflict || tabletest.DetailOf(err) != "expected 7 found 0" {
		t.Errorf("a stale version: %v", err)
	}
	if _, err := f.table.SetProperties(t.Context(), tablecore.SetPropertiesOptions{TableID: "another"}); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Errorf("another table: %v", err)
	}
	_, err = f.house.CreateTable(t.Context(), tablecore.CreateOptions{Name: typesName, IndexColumn: "k", IndexType: "int64", IndexGranularity: "1",
		Properties: map[string]string{"contrail.snapshot-retention": "59m"}, LeastSnapshotRetention: time.Hour})
	if tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("a table with a short retention: %v", err)
	}
}

// TestDeltaRetentionFollows makes sure that Delta's word for how long replaced
// files stay is what the table's property says.
func TestDeltaRetentionFollows(t *testing.T) {
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	o := weatherOptions()
	o.Properties = map[string]string{"contrail.snapshot-retention": "2w"}
	if _, err := w.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	table := openWeather(t, w)
	for version, step := range []struct{ set, want string }{{"2w", "interval 14 days"}, {"36h", "interval 36 hours"}, {"", "interval 7 days"}} {
		if version > 0 {
			if _, err := table.SetProperties(t.Context(), tablecore.SetPropertiesOptions{Properties: properties("contrail.snapshot-retention", step.set)}); err != nil {
				t.Fatal(err)
			}
		}
		data, err := store.Get(t.Context(), commitName(version))
		if err != nil || !strings.Contains(string(data), `"delta.deletedFileRetentionDuration":"`+step.want+`"`) {
			t.Errorf("%q gives %s, %v", step.set, data, err)
		}
	}
}

// TestAlterationHistory makes sure that the log tells what was done, and under
// which id, if the answer was lost.
func TestAlterationHistory(t *testing.T) {
	for verb, alter := range alterations {
		t.Run(verb, func(t *testing.T) {
			inner := memstore.New()
			fault := faultstore.Wrap(inner, faultstore.Plan{})
			w := tabletest.Warehouse(t, sharedStore{fault}, memory.DefaultAllocator)
			createWeather(t, w)
			table := openWeather(t, w)
			fault.Arm(faultstore.Plan{Kind: faultstore.Unknown, Match: func(op objstore.Op, _ string) bool { return op == objstore.OpPutAllIfAbsent }})
			version, err := alter(t.Context(), table, nil)
			fault.Arm(faultstore.Plan{})
			if err != nil || version != 1 {
				t.Fatalf("version %d, %v", version, err)
			}
			history, err := table.History(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			row := listedRows(t, history)[0]
			report, _ := row["report"].(string)
			if row["operation"] != verb || row["request_id"] == nil || !strings.Contains(report, `"committed_version":1`) {
				t.Errorf("the history tells %v", row)
			}
		})
	}
}

// TestDropUnknown makes sure that a drop of unknown outcome names what tells it:
// the place of the table, if it was dropped.
func TestDropUnknown(t *testing.T) {
	inner := memstore.New()
	store := &blindStore{Store: inner}
	w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
	createWeather(t, w)
	_, err := w.DropTable(t.Context(), weatherName, tablecore.DropOptions{})
	var unknown *tableerr.CommitUnknown
	if !errors.As(err, &unknown) || unknown.RequestID == "" {
		t.Fatalf("got %v", err)
	}
	if len(keysUnder(t, inner, "_trash/"+unknown.RequestID+"/")) == 0 {
		t.Errorf("nothing lies in the trash as %s", unknown.RequestID)
	}
}

// blindStore drops tables without telling, and then knows nothing of them.
type blindStore struct {
	objstore.Store
	blind bool
}

func (s *blindStore) Close() error { return nil }

func (s *blindStore) Trash(ctx context.Context, dir, target string) error {
	s.blind = true
	return &objstore.UnknownOutcomeError{Err: errors.Join(s.Store.Trash(ctx, dir, target), errBroken)}
}

func (s *blindStore) Sub(ctx context.Context, dir string, create bool) (objstore.Store, error) {
	store, err := s.Store.Sub(ctx, dir, create)
	return blindTable{store, s}, err
}

type blindTable struct {
	objstore.Store
	of *blindStore
}

func (t blindTable) Current(ctx context.Context) (bool, error) {
	if t.of.blind {
		return false, errBroken
	}
	return t.Store.Current(ctx)
}
