package tablecore_test

import (
	"reflect"
	"testing"
	"time"

	"contrail/tablecore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

func TestStage(t *testing.T) {
	f := newStageFixture(t)
	r, err := f.stageAs(weather, rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1"))
	if err != nil {
		t.Fatal(err)
	}
	want := tablecore.StageReport{Staged: r.Staged, Table: "default.weather", Rows: 2, Bytes: r.Bytes, DataFiles: 1, SchemaID: r.SchemaID,
		ExpiresAt: tablecore.Time{Time: r.ExpiresAt.Time}}
	if *r != want || r.Bytes < 100 || len(r.SchemaID) != 16 || len(r.Staged) > 1024 {
		t.Errorf("got %+v", r)
	}
	if left := r.ExpiresAt.Sub(f.clock.Now()); left > 24*time.Hour || left < 24*time.Hour-time.Minute {
		t.Errorf("the rows wait for %v", left)
	}
	if f.version() != 0 {
		t.Error("staging commits")
	}
	f.wantRows(nil)
	second := f.stage(rowAt("JFK", 0, "5"))
	empty, err := f.stageAs(weather)
	if err != nil || empty.Rows != 0 || empty.DataFiles != 0 {
		t.Fatalf("no rows: %+v, %v", empty, err)
	}
	if n := len(f.manifests()); n != 2 {
		t.Errorf("%d manifests", n)
	}
	report := f.mustCommit("job", r.Staged, empty.Staged, second)
	if report.StartingVersion != 0 || report.CommittedVersion != 1 || report.Rows != 3 || len(report.DataFiles) != 2 || *report.RequestID != "job" ||
		report.Replayed || report.Compression != "auto" || report.MaxRowsPerRowGroup != 262144 || report.DataFiles[0].RowGroups != 1 {
		t.Errorf("got %+v", report)
	}
	f.wantRows(nil, jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("JFK", 0, "5"))
	if left := f.manifests(); len(left) != 0 {
		t.Errorf("manifests are left: %v", left)
	}
	f.nothingClaimed()

	// The job runs again: it stages anew and gets the first report.
	again := f.stage(rowAt("EWR", 0, "7"))
	replay := f.mustCommit("job", again)
	report.Replayed = true
	if !reflect.DeepEqual(replay, report) || f.version() != 1 || len(f.manifests()) != 0 {
		t.Errorf("the repetition gives %+v", replay)
	}
	if files := dataFiles(t, f.store); len(files) != 2 {
		t.Errorf("the files of the repetition are left: %v", files)
	}
	// What else a repetition names, and how often, is no matter.
	once := f.stage(rowAt("EWR", 0, "7"))
	if replay := f.mustCommit("job", "damaged", once, once); !reflect.DeepEqual(replay, report) || len(dataFiles(t, f.store)) != 2 || len(f.manifests()) != 0 {
		t.Errorf("the repetition with a damaged token gives %+v", replay)
	}
	// A repetition with the very tokens of the first leaves them alone.
	if replay := f.mustCommit("job", r.Staged, second); !replay.Replayed || len(dataFiles(t, f.store)) != 2 {
		t.Errorf("got %+v", replay)
	}
	if r := f.abort(r.Staged, second, empty.Staged, again); r.FilesRemoved != 0 || r.BytesRemoved != 0 || r.Table != "default.weather" {
		t.Errorf("an abort of committed rows removes %+v", r)
	}
	f.refused(tableerr.TokenInvalid, "staged[1]", "other", f.stage(rowAt("EWR", 9, "9")), second)
	if r, err := f.append(tablecore.AppendOptions{RequestID: "job"}, rowsOf(rowAt("EWR", 5, "5"))); tableerr.TokenOf(err) != tableerr.TokenRequestIDReused {
		t.Errorf("an append with the id of a commit gives %+v, %v", r, err)
	}
}

// TestStageSettings takes the settings of the first token with rows.
func TestStageSettings(t *testing.T) {
	f := newStageFixture(t)
	b := tabletest.Batch(t, f.mem, weather, rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1")))
	defer b.Release()
	one := int64(1)
	r, err := f.table.Stage(t.Context(), tabletest.NewReader(weather, b), tablecore.StageOptions{Compression: "ZSTD", MaxRowsPerRowGroup: &one})
	if err != nil {
		t.Fatal(err)
	}
	report := f.mustCommit("job", r.Staged)
	if report.Compression != "zstd" || report.MaxRowsPerRowGroup != 1 || report.DataFiles[0].RowGroups != 2 {
		t.Errorf("got %+v", report)
	}
	zero := int64(0)
	if _, err := f.table.Stage(t.Context(), tabletest.NewReader(weather, b), tablecore.StageOptions{MaxRowsPerRowGroup: &zero}); fieldOf(err, "field") != "max_rows_per_row_group" {
		t.Errorf("got %v", err)
	}
	if err := f.table.CheckStage(t.Context(), weather, tablecore.StageOptions{TableID: "other"}); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Errorf("got %v", err)
	}
}

// TestStageAbort gives staged rows up.
func TestStageAbort(t *testing.T) {
	f := newStageFixture(t)
	one, two := f.stage(rowAt("EWR", 0, "0")), f.stage(rowAt("EWR", 1, "1"))
	size := int64(0)
	for info, err := range f.store.List(t.Context(), "default/weather/data/", "") {
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size
	}
	if r := f.abort(one, two); r.FilesRemoved != 2 || r.BytesRemoved != size {
		t.Errorf("got %+v, want 2 files of %d", r, size)
	}
	if left := append(dataFiles(t, f.store), f.manifests()...); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if r := f.abort(one, two); r.FilesRemoved != 0 {
		t.Errorf("the second time: %+v", r)
	}
	f.refused(tableerr.TokenInvalid, "staged[0]", "job", one)
}
