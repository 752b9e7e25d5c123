package tablecore_test

import (
	"strings"
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// release gives the fixture's table back to other writers, as it was at a
// version.
func (f *fixture) release(version int64) {
	f.t.Helper()
	r, err := f.table.Rollback(f.t.Context(), tablecore.RollbackOptions{Version: version, ExpectedVersion: f.version(), Release: true})
	if err != nil {
		f.t.Fatal(err)
	}
	if d := f.describe(); d.IndexColumn != "" || d.FormatVersion != "0.1.0" || r.FormatVersion != "0.1.0" {
		f.t.Errorf("released as %+v", d)
	}
}

// TestUndoAdoptionStepByStep takes an adoption back step by step and as a whole, and makes
// it again.
func TestUndoAdoptionStepByStep(t *testing.T) {
	f, _ := plainFixture(t, rowsOf(rowAt("JFK", 1, "1"), rowAt("EWR", 0, "2")), rowsOf(rowAt("EWR", 1, "3")))
	plain := []string{jsonRow("JFK", 1, "1"), jsonRow("EWR", 0, "2"), jsonRow("EWR", 1, "3")}
	sorted := []string{jsonRow("EWR", 0, "2"), jsonRow("EWR", 1, "3"), jsonRow("JFK", 1, "1")}
	f.upgrade(adoption()) // versions 1 and 2
	f.rollback(1)         // the files as they were
	if d := f.describe(); d.Files != 2 || d.IndexColumn != "time_hour" {
		t.Errorf("without the rewriting it is %+v", d)
	}
	f.rollback(0)
	f.wantRows(nil, plain...)
	if _, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 7, "7"))); tableerr.TokenOf(err) != tableerr.TokenFormatUnwritable {
		t.Errorf("an append to the plain table gives %v", err)
	}
	f.rollback(2)
	f.wantRows(nil, sorted...)
	f.mustAppend(rowsOf(rowAt("EWR", 7, "7")))
	f.rollback(0)
	// Other keys mean that all that was known of the files means nothing any more.
	o := adoption()
	o.EntityColumns, o.Uniqueness = []string{}, "none"
	wantSteps(t, f.upgrade(o), "record_format@8 rewrite_files@9:2 build_derived_data:1 write_head:1")
	f.wantRows(nil, jsonRow("EWR", 0, "2"), jsonRow("JFK", 1, "1"), jsonRow("EWR", 1, "3"))
	f.rollback(6) // the newest version of the first adoption
	f.wantRows(nil, append(sorted[:2:2], jsonRow("EWR", 7, "7"), sorted[2])...)
}

// TestReleaseAndAdoptAgain gives a table back, has another writer change it, and
// adopts it again with other keys: tags, derived data, request ids and the head
// of before are not believed.
func TestReleaseAndAdoptAgain(t *testing.T) {
	f, store := plainFixture(t, rowsOf(rowAt("JFK", 1, "1"), rowAt("EWR", 0, "2")))
	f.upgrade(adoption()) // versions 1 and 2
	send := func(hour int) *tablecore.AppendReport {
		t.Helper()
		r, err := f.append(tablecore.AppendOptions{RequestID: "mine"}, rowsOf(rowAt("EWR", hour, "7")))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	send(7) // version 3
	_, err := f.table.Rollback(t.Context(), tablecore.RollbackOptions{Version: 1, ExpectedVersion: 3, Release: true})
	invalidAt(t, err, "release")
	f.release(0) // version 4
	commit := string(mustGet(t, store, commitName(4)))
	for _, gone := range []string{"contrail.index-column", "contrail.keep", "contrail-timeseries", "delta.enableInCommitTimestamps", "delta.logRetention"} {
		if strings.Contains(commit, gone) {
			t.Errorf("%s is left in %s", gone, commit)
		}
	}
	if !strings.Contains(commit, `"removed":true`) || !strings.Contains(commit, `"minWriterVersion":2`) {
		t.Errorf("released by %s", commit)
	}
	f.wantRows(nil, jsonRow("JFK", 1, "1"), jsonRow("EWR", 0, "2"))
	addPlain(t, store, "more.parquet", rowsOf(rowAt("JFK", 5, "5"))) // version 5, by another writer
	o := tablecore.UpgradeOptions{IndexColumn: "time_hour", IndexGranularity: "1h"}
	r := f.upgrade(o)
	if r.FromFormat != "0.1.0" || r.RollbackTo != 5 {
		t.Errorf("adopted again: %+v", r)
	}
	if _, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 5, "9"))); tableerr.TokenOf(err) != tableerr.TokenIntervalOverlap {
		t.Errorf("an append into an interval of another airport gives %v", err)
	}
	if r := send(7); r.Replayed {
		t.Errorf("a request id of before is replayed: %+v", r)
	}
	if r := send(7); !r.Replayed {
		t.Errorf("a request id is not replayed: %+v", r)
	}
	f.table = anotherProcess(t, store)
	if r := send(7); !r.Replayed {
		t.Errorf("a request id is not replayed by another process: %+v", r)
	}
	rows, _ := f.scan(tablecore.ScanOptions{})
	if len(rows) != 4 {
		t.Errorf("it holds %q", rows)
	}
	// Nothing that the other writer has done is missing from what a rollback names.
	back, err := f.table.Rollback(t.Context(), tablecore.RollbackOptions{Version: 4, ExpectedVersion: f.version(), DryRun: true})
	if err != nil || back.Undone[len(back.Undone)-1].Version != 5 || back.Undone[len(back.Undone)-1].Operation != "WRITE" {
		t.Errorf("a rollback would undo %+v, %v", back, err)
	}
}

// addPlain appends a file to the plain weather table as another writer would.
func addPlain(t *testing.T, store objstore.Store, name, rows string) {
	t.Helper()
	data := parquetOf(t, plainSchema(), rows)
	if err := store.Put(t.Context(), weatherKey(name), data); err != nil {
		t.Fatal(err)
	}
	rewrite(t, store, func(map[string]action) []action {
		return []action{{"add": action{"path": name, "partitionValues": action{}, "size": len(data), "modificationTime": 0, "dataChange": true}}}
	})
}
