package tablecore_test

import (
	"fmt"
	"slices"
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/tableerr"
)

// optimize rewrites the fixture's table.
func (f *fixture) optimize(o tablecore.OptimizeOptions) *tablecore.OptimizeReport {
	f.t.Helper()
	r, err := f.table.Optimize(f.t.Context(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func TestOptimize(t *testing.T) {
	f := newFixture(t)
	f.threeHours()
	f.mustAppend(rowsOf(rowAt("LGA", 0, "5"), rowAt("LGA", 9, "5")))
	before, _ := f.scan(tablecore.ScanOptions{})
	dry := f.optimize(tablecore.OptimizeOptions{DryRun: true})
	if want := (tablecore.OptimizeReport{StartingVersion: 4, CommittedVersion: 4, FilesIn: 4, FilesOut: 1, BytesIn: dry.BytesIn, BytesOut: dry.BytesIn, Rows: 5, Entities: 2, DryRun: true}); *dry != want {
		t.Errorf("a dry run gives %+v", dry)
	}
	var told []string
	r := f.optimize(tablecore.OptimizeOptions{Progress: func(p tablecore.Progress) {
		told = append(told, fmt.Sprint(p.Step, " ", p.Done, " of ", *p.Total, " ", p.Unit))
	}})
	if want := (tablecore.OptimizeReport{StartingVersion: 4, CommittedVersion: 5, FilesIn: 4, FilesOut: 1, BytesIn: dry.BytesIn, BytesOut: r.BytesOut, Rows: 5, Entities: 2}); *r != want || r.BytesOut <= 0 {
		t.Errorf("got %+v", r)
	}
	if !slices.Equal(told, []string{"rewrite_files 4 of 4 files"}) {
		t.Errorf("progress %q", told)
	}
	f.wantRows(nil, before...)
	f.wantRows(ptr(int64(4)), before...)
	if r := f.optimize(tablecore.OptimizeOptions{}); !r.NoOp || r.CommittedVersion != 5 || r.FilesIn != 0 {
		t.Errorf("a second time gives %+v", r)
	}
	if _, err := f.table.Optimize(t.Context(), tablecore.OptimizeOptions{ExpectedVersion: ptr(int64(4))}); tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
		t.Errorf("got %v", err)
	}
	if _, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 2, "8"))); tableerr.TokenOf(err) != tableerr.TokenIntervalOverlap {
		t.Errorf("a row that was moved is not in the way: %v", err)
	}
}
