package tablecore_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// since scans what was appended behind a version.
func (f *fixture) since(version int64, change ...func(*tablecore.ScanOptions)) ([]string, error) {
	f.t.Helper()
	o := tablecore.ScanOptions{SinceVersion: &version}
	for _, c := range change {
		c(&o)
	}
	rows, _, err := tabletest.Scan(f.t.Context(), f.table, o)
	return rows, err
}

func ignoring(o *tablecore.ScanOptions) { o.Changes = tablecore.ChangesIgnore }

func upTo(version int64) func(*tablecore.ScanOptions) {
	return func(o *tablecore.ScanOptions) { o.Version = &version }
}

func (f *fixture) wantSince(version int64, want []string, change ...func(*tablecore.ScanOptions)) {
	f.t.Helper()
	if got, err := f.since(version, change...); err != nil || !slices.Equal(got, want) {
		f.t.Errorf("since version %d: got %v, %v, want %v", version, got, err, want)
	}
}

// refusedSince makes sure that a scan is NOT_APPEND_ONLY because of a version.
func (f *fixture) refusedSince(version, because int64, operation string, change ...func(*tablecore.ScanOptions)) {
	f.t.Helper()
	got, err := f.since(version, change...)
	if tableerr.TokenOf(err) != tableerr.TokenNotAppendOnly || fieldOf(err, "version") != because || fieldOf(err, "operation") != operation || fieldOf(err, "table") != "default.weather" {
		f.t.Errorf("since version %d: got %v, %v, want NOT_APPEND_ONLY of version %d", version, got, err, because)
	}
}

func TestIncrementalScan(t *testing.T) {
	f := newFixture(t)
	f.threeHours()
	zero, one, two := jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("EWR", 2, "2")
	f.wantSince(0, []string{zero, one, two})
	f.wantSince(1, []string{one, two})
	f.wantSince(3, nil)
	f.wantSince(0, []string{zero, one}, upTo(2))
	f.wantSince(2, nil, upTo(2))
	f.wantSince(0, []string{two, one}, func(o *tablecore.ScanOptions) { o.NewestFirst, o.Limit = true, ptr(int64(2)) })
	f.wantSince(0, []string{two}, func(o *tablecore.ScanOptions) {
		o.Filter = []tablecore.Condition{{Column: "temp", Op: ">", Value: []byte("1")}}
	})
	f.wantSince(0, nil, func(o *tablecore.ScanOptions) {
		o.Entities = []tablecore.EntityFilter{{"origin": []byte(`"JFK"`)}}
	})
	f.wantSince(0, []string{one}, func(o *tablecore.ScanOptions) {
		o.Start, o.End = []byte(`"1970-01-01T01:00:00Z"`), []byte(`"1970-01-01T02:00:00Z"`)
	})
	plan, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{SinceVersion: ptr(int64(1))})
	if err != nil || plan.Rows() != 2 || plan.Version() != 3 || !plan.Ordered() {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	splits, err := plan.Splits(t.Context(), 4)
	if err != nil || len(splits) != 1 && len(splits) != 2 {
		t.Fatalf("splits %v, %v", splits, err)
	}
	var parts []string
	for i := range splits {
		rows, err := f.since(1, upTo(3), func(o *tablecore.ScanOptions) { o.Split = &tablecore.Split{Index: i, Count: len(splits)} })
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, rows...)
	}
	if !slices.Equal(parts, []string{one, two}) {
		t.Errorf("the parts give %v", parts)
	}
}

// TestIncrementalCommits goes over commits of every kind.
func TestIncrementalCommits(t *testing.T) {
	f := newFixture(t)
	zero, one := jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1")
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0"))) // 1
	if _, err := f.table.SetProperties(t.Context(), tablecore.SetPropertiesOptions{Properties: map[string]*string{"team": ptr("ops")}}); err != nil {
		t.Fatal(err)
	} // 2
	added := arrow.NewSchema([]arrow.Field{{Name: "quality", Type: arrow.PrimitiveTypes.Int8, Nullable: true}}, nil)
	if _, err := f.table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: added}); err != nil {
		t.Fatal(err)
	} // 3
	if _, err := f.table.Checkpoint(t.Context(), tablecore.CheckpointOptions{}); err != nil {
		t.Fatal(err)
	}
	f.mustAppend(rowsOf(rowAt("EWR", 1, "1"))) // 4
	old := func(o *tablecore.ScanOptions) { o.Columns = []string{"origin", "time_hour", "temp"} }
	f.wantSince(0, []string{zero, one}, old)
	f.wantSince(1, []string{one}, old)
	f.wantSince(0, []string{`{"quality":null}`, `{"quality":null}`}, func(o *tablecore.ScanOptions) { o.Columns = []string{"quality"} })
	f.wantSince(0, []string{zero}, upTo(2))

	b := tabletest.Batch(t, f.mem, weather, rowsOf(rowAt("EWR", 0, "9")))
	defer b.Release()
	if _, err := f.table.UpdateRows(t.Context(), tabletest.NewReader(weather, b), tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 4}); err != nil {
		t.Fatal(err)
	} // 5
	f.mustAppend(rowsOf(rowAt("EWR", 2, "2"))) // 6
	two := jsonRow("EWR", 2, "2")
	f.refusedSince(0, 5, "update_rows")
	f.refusedSince(4, 5, "update_rows", upTo(5))
	f.wantSince(0, []string{zero, one}, old, upTo(4))
	f.wantSince(5, []string{two}, old)
	f.wantSince(0, []string{zero, one, two}, old, ignoring)
	f.wantSince(4, nil, old, ignoring, upTo(5))

	f.rollback(4)                              // 7
	f.mustAppend(rowsOf(rowAt("EWR", 3, "3"))) // 8
	three := jsonRow("EWR", 3, "3")
	f.refusedSince(0, 5, "update_rows")
	f.refusedSince(5, 7, "rollback")
	f.refusedSince(6, 7, "rollback", upTo(7))
	f.wantSince(7, []string{three}, old)
	f.wantSince(5, []string{two, three}, old, ignoring)
	f.rollback(6) // 9 brings back the row of version 6 and changes version 5's
	f.refusedSince(8, 9, "rollback")
	f.wantSince(8, nil, old, ignoring)
}

// TestIncrementalOptimize reads files that optimize has replaced.
func TestIncrementalOptimize(t *testing.T) {
	f := newFixture(t)
	f.threeHours()
	r, err := f.table.Optimize(t.Context(), tablecore.OptimizeOptions{}) // 4
	if err != nil || r.NoOp {
		t.Fatalf("%+v, %v", r, err)
	}
	f.mustAppend(rowsOf(rowAt("EWR", 3, "3"))) // 5
	f.wantSince(1, []string{jsonRow("EWR", 1, "1"), jsonRow("EWR", 2, "2"), jsonRow("EWR", 3, "3")})
	f.wantSince(3, []string{jsonRow("EWR", 3, "3")})
	f.wantSince(3, nil, upTo(4))
	f.wantSince(0, []string{jsonRow("EWR", 0, "0")}, upTo(1))
}

// TestIncrementalRedo rolls forward: such a commit only adds files.
func TestIncrementalRedo(t *testing.T) {
	f := newFixture(t)
	f.threeHours()
	f.rollback(1) // 4
	f.rollback(3) // 5
	f.refusedSince(4, 5, "rollback")
	f.wantSince(4, nil, ignoring)
}

// TestIncrementalOverwrite tells appends that replace rows from those that do
// not.
func TestIncrementalOverwrite(t *testing.T) {
	f, _ := newOverwriting(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1")))
	f.wantSince(0, []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1")})
	f.mustAppend(rowsOf(rowAt("EWR", 1, "7"), rowAt("EWR", 2, "2")))
	f.refusedSince(0, 2, "append")
	f.wantSince(1, nil, ignoring)
	f.mustAppend(rowsOf(rowAt("EWR", 3, "3")))
	f.wantSince(2, []string{jsonRow("EWR", 3, "3")})
	f.wantSince(0, []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("EWR", 3, "3")}, ignoring)
}

// TestIncrementalStaged commits rows again that a rollback took back: they are
// in the same file, and given once.
func TestIncrementalStaged(t *testing.T) {
	f := newStageFixture(t)
	token := f.stage(rowAt("EWR", 0, "0"))
	manifest := f.manifests()[0]
	data, err := f.store.Get(t.Context(), manifest)
	if err != nil {
		t.Fatal(err)
	}
	f.mustCommit("job", token) // 1
	f.wantSince(0, []string{jsonRow("EWR", 0, "0")})
	f.rollback(0) // 2
	if err := f.store.Put(t.Context(), manifest, data); err != nil {
		t.Fatal(err)
	}
	f.mustCommit("job", token) // 3
	f.refusedSince(0, 2, "rollback")
	f.wantSince(0, []string{jsonRow("EWR", 0, "0")}, ignoring)
	f.wantSince(2, []string{jsonRow("EWR", 0, "0")})
}

// TestIncrementalRefusals asks for what there is not.
func TestIncrementalRefusals(t *testing.T) {
	f := newStageFixture(t)
	f.threeHours()
	for what, c := range map[string]struct {
		o     tablecore.ScanOptions
		want  tableerr.Token
		field any
	}{
		"a version ahead":     {tablecore.ScanOptions{SinceVersion: ptr(int64(4))}, tableerr.TokenVersionNotFound, nil},
		"a negative version":  {tablecore.ScanOptions{SinceVersion: ptr(int64(-1))}, tableerr.TokenVersionNotFound, nil},
		"behind the version":  {tablecore.ScanOptions{SinceVersion: ptr(int64(3)), Version: ptr(int64(2))}, tableerr.TokenInvalid, "since_version"},
		"unknown changes":     {tablecore.ScanOptions{SinceVersion: ptr(int64(1)), Changes: "all"}, tableerr.TokenInvalid, "changes"},
		"changes of nothing":  {tablecore.ScanOptions{Changes: "ignore"}, tableerr.TokenInvalid, "changes"},
		"an unknown column":   {tablecore.ScanOptions{SinceVersion: ptr(int64(1)), Columns: []string{"x"}}, tableerr.TokenInvalid, "columns[0]"},
		"an unknown table id": {tablecore.ScanOptions{SinceVersion: ptr(int64(1)), TableID: "x"}, tableerr.TokenTableNotFound, nil},
	} {
		if _, err := f.table.PlanScan(t.Context(), c.o); tableerr.TokenOf(err) != c.want || fieldOf(err, "field") != c.field {
			t.Errorf("%s: got %v", what, err)
		}
	}
	// A commit that another software's clean-up has taken away.
	f.table = openWeather(f.t, f.open(9))
	if err := f.store.Delete(t.Context(), "default/weather/"+deltalog.CommitKey(2)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.since(1, upTo(3)); tableerr.TokenOf(err) != tableerr.TokenVersionExpired || fieldOf(err, "version") != int64(1) {
		t.Errorf("a commit that is gone: %v", err)
	}
	f.wantSince(2, []string{jsonRow("EWR", 2, "2")}, upTo(3))
	if err := f.store.Put(t.Context(), "default/weather/"+deltalog.CommitKey(2), []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.since(1, upTo(3)); tableerr.TokenOf(err) != tableerr.TokenCorrupt {
		t.Errorf("a damaged commit: %v", err)
	}
}

// TestIncrementalForeign reads commits that are made by hand: optimize's, a
// delete, retention's, and one of expire.
func TestIncrementalForeign(t *testing.T) {
	f := newStageFixture(t)
	f.threeHours()
	at := func(version int64, c *deltalog.Commit) {
		t.Helper()
		ms := f.clock.Now().UnixMilli()
		c.Version = version
		c.Info.Timestamp, c.Info.InCommitTimestamp = &ms, &ms
		data, err := deltalog.EncodeCommit(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.store.PutIfAbsent(t.Context(), "default/weather/"+deltalog.CommitKey(version), data); err != nil {
			t.Fatal(err)
		}
	}
	files := func(version int64) []*deltalog.Add {
		t.Helper()
		data, err := f.store.Get(t.Context(), "default/weather/"+deltalog.CommitKey(version))
		if err != nil {
			t.Fatal(err)
		}
		c, err := deltalog.ParseCommit(version, data)
		if err != nil {
			t.Fatal(err)
		}
		return c.Adds
	}
	first := files(1)[0]
	moved := *first
	moved.DataChange = false
	info := func(operation string) *deltalog.CommitInfo {
		return &deltalog.CommitInfo{Operation: operation}
	}
	at(4, &deltalog.Commit{Info: info("OPTIMIZE"), Adds: []*deltalog.Add{&moved}, Removes: []*deltalog.Remove{{Path: files(2)[0].Path}}})
	f.wantSince(0, []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("EWR", 2, "2")})
	at(5, &deltalog.Commit{Info: info("DELETE"), Removes: []*deltalog.Remove{{Path: first.Path, DataChange: true}}})
	f.refusedSince(0, 5, "DELETE")
	f.wantSince(0, []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("EWR", 2, "2")}, ignoring)
	retention := info("DELETE")
	retention.Extra = map[string]json.RawMessage{"contrailOperation": []byte(`"retention"`)}
	at(6, &deltalog.Commit{Info: retention, Removes: []*deltalog.Remove{{Path: files(3)[0].Path, DataChange: true}}})
	f.wantSince(5, nil)
	at(7, &deltalog.Commit{Info: info("expire"), Domains: []*deltalog.DomainMetadata{{Domain: "contrail.state", Configuration: `{"oldest_version":2}`}}})
	f.wantSince(2, []string{jsonRow("EWR", 2, "2")}, ignoring)
	if got, err := f.since(1, ignoring); tableerr.TokenOf(err) != tableerr.TokenVersionExpired || fieldOf(err, "version") != int64(1) {
		t.Errorf("an expired start gives %v, %v", got, err)
	}
}
