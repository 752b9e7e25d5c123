package tablecore_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/tableerr"
)

// TestStagedRefusals commits what may not be committed.
func TestStagedRefusals(t *testing.T) {
	f := newStageFixture(t)
	good := f.stage(rowAt("EWR", 0, "0"))
	for what, c := range map[string]struct {
		tokens []string
		field  string
	}{
		"nothing":           {nil, "staged"},
		"an empty text":     {[]string{""}, "staged[0]"},
		"no token":          {[]string{good, "token"}, "staged[1]"},
		"a changed token":   {[]string{good[:10] + "AAAA" + good[14:]}, "staged[0]"},
		"a cut token":       {[]string{good[:len(good)-4]}, "staged[0]"},
		"a token with more": {[]string{good + "AAAA"}, "staged[0]"},
		"line breaks":       {[]string{good + "\n"}, "staged[0]"},
		"a long token":      {[]string{strings.Repeat("A", 5000)}, "staged[0]"},
		"the same twice":    {[]string{good, good}, "staged[1]"},
	} {
		t.Run(what, func(t *testing.T) {
			f.t = t
			f.refused(tableerr.TokenInvalid, c.field, "job", c.tokens...)
			if _, err := f.table.AbortStaged(t.Context(), tablecore.AbortStagedOptions{Staged: c.tokens}); fieldOf(err, "field") != c.field {
				t.Errorf("the abort gives %v", err)
			}
		})
	}
	f.t = t
	for id, field := range map[string]string{"": "request_id", "ä": "request_id", strings.Repeat("x", 129): "request_id"} {
		f.refused(tableerr.TokenInvalid, field, id, good)
	}
	if _, err := f.table.CommitStaged(t.Context(), tablecore.CommitStagedOptions{RequestID: "job", Staged: []string{good}, ExpectedVersion: ptr(int64(7))}); tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
		t.Errorf("got %v", err)
	}
	if _, err := f.table.CommitStaged(t.Context(), tablecore.CommitStagedOptions{RequestID: "job", Staged: []string{good}, TableID: "other"}); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Errorf("got %v", err)
	}
	if r := f.mustCommit("job", good); r.CommittedVersion != 1 {
		t.Errorf("after all refusals: %+v", r)
	}
}

// TestStagedOverlaps compares tokens with each other and with the table.
func TestStagedOverlaps(t *testing.T) {
	f := newStageFixture(t)
	a, b, c := f.stage(rowAt("EWR", 0, "0"), rowAt("JFK", 3, "3")), f.stage(rowAt("LGA", 0, "0")), f.stage(rowAt("EWR", 5, "5"), rowAt("JFK", 3, "9"))
	_, err := f.commit("job", a, b, c)
	var duplicate *tableerr.DuplicateInterval
	if tableerr.TokenOf(err) != tableerr.TokenDuplicateInterval {
		t.Fatalf("got %v", err)
	}
	duplicate = err.(*tableerr.DuplicateInterval)
	if *duplicate.Staged != [2]int{0, 2} || fmt.Sprint(duplicate.Entity) != "[{origin JFK}]" || !strings.HasPrefix(duplicate.Interval, "[1970-01-01T03:00:00Z") ||
		fieldOf(err, "staged") == nil || fieldOf(err, "rows") != nil || !strings.Contains(err.Error(), "staged[0] and staged[2]") {
		t.Errorf("got %+v", duplicate)
	}
	f.mustAppend(rowsOf(rowAt("LGA", 0, "8")))
	f.refused(tableerr.TokenIntervalOverlap, "", "job", a, b)
	if r := f.mustCommit("job", a); r.Rows != 2 {
		t.Errorf("got %+v", r)
	}
	f.refused(tableerr.TokenIntervalOverlap, "", "later", c)
	f.abort(b, c)
	if n := len(dataFiles(t, f.store)); n != 2 {
		t.Errorf("%d files", n)
	}
}

// TestStagedUniqueness tries the other two rules.
func TestStagedUniqueness(t *testing.T) {
	f := newStageFixture(t, func(o *tablecore.CreateOptions) { o.Uniqueness = "overwrite" })
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1")))
	a := f.stage(rowAt("EWR", 1, "7"))
	f.refused(tableerr.TokenDuplicateInterval, "", "job", a, f.stage(rowAt("EWR", 1, "8")))
	if r := f.mustCommit("job", a); r.RowsReplaced != 1 || r.Rows != 1 {
		t.Errorf("got %+v", r)
	}
	f.wantRows(nil, jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "7"))

	f = newStageFixture(t, func(o *tablecore.CreateOptions) { o.Uniqueness = "none" })
	a, b := f.stage(rowAt("EWR", 0, "0")), f.stage(rowAt("EWR", 0, "0"))
	if r := f.mustCommit("job", a, b); r.Rows != 2 {
		t.Errorf("got %+v", r)
	}
	f.refused(tableerr.TokenInvalid, "staged[0]", "again", a)
	f.wantRows(nil, jsonRow("EWR", 0, "0"), jsonRow("EWR", 0, "0"))
}

// TestStagedExpires lets rows wait for too long.
func TestStagedExpires(t *testing.T) {
	f := newStageFixture(t)
	token := f.stage(rowAt("EWR", 0, "0"))
	f.clock.Advance(25 * time.Hour)
	f.refused(tableerr.TokenInvalid, "staged[0]", "job", token)
	if r := f.abort(token); r.FilesRemoved != 1 {
		t.Errorf("got %+v", r)
	}
	if _, err := tablecore.Open(t.Context(), tablecore.Options{Store: f.store, StagedLifetime: 7 * 24 * time.Hour}); err == nil {
		t.Error("a lifetime of a week is taken")
	}
}

// TestStagedElsewhere takes tokens to other tables and other processes.
func TestStagedElsewhere(t *testing.T) {
	f := newStageFixture(t)
	token := f.stage(rowAt("EWR", 0, "0"))
	o := weatherOptions()
	o.Name.Table = "other"
	if _, err := f.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	other, err := f.house.Table(t.Context(), o.Name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.CommitStaged(t.Context(), tablecore.CommitStagedOptions{RequestID: "job", Staged: []string{token}}); fieldOf(err, "field") != "staged[0]" {
		t.Errorf("another table gives %v", err)
	}
	second := openWeather(f.t, f.open(9))
	r, err := second.CommitStaged(t.Context(), tablecore.CommitStagedOptions{RequestID: "job", Staged: []string{token}})
	if err != nil || r.CommittedVersion != 1 {
		t.Errorf("another process gives %+v, %v", r, err)
	}
	// This process has not seen the commit yet.
	if r := f.mustCommit("job", token); !r.Replayed {
		t.Errorf("got %+v", r)
	}
	f.refused(tableerr.TokenInvalid, "staged[0]", "other", token)
}

// TestStagedRace has many commit the same rows under their own ids.
func TestStagedRace(t *testing.T) {
	f := newStageFixture(t, func(o *tablecore.CreateOptions) { o.Uniqueness = "none" })
	token := f.stage(rowAt("EWR", 0, "0"))
	tables := []*tablecore.Table{f.table, openWeather(f.t, f.open(9))}
	var wait sync.WaitGroup
	landed := make([]error, 8)
	for i := range landed {
		wait.Go(func() {
			_, landed[i] = tables[i%2].CommitStaged(t.Context(), tablecore.CommitStagedOptions{RequestID: fmt.Sprint(i), Staged: []string{token}})
		})
	}
	aborts := make([]*tablecore.AbortReport, 4)
	for i := range aborts {
		wait.Go(func() {
			aborts[i], _ = tables[i%2].AbortStaged(t.Context(), tablecore.AbortStagedOptions{Staged: []string{token}})
		})
	}
	wait.Wait()
	won, removed := 0, 0
	for _, err := range landed {
		if err == nil {
			won++
		} else if tableerr.TokenOf(err) != tableerr.TokenInvalid && tableerr.TokenOf(err) != tableerr.TokenFileMissing {
			t.Errorf("got %v", err)
		}
	}
	for _, r := range aborts {
		removed += r.FilesRemoved
	}
	if won+removed > 1 || int64(won) != f.version() {
		t.Errorf("%d commits and %d removed files, at version %d", won, removed, f.version())
	}
	f.wantRows(nil, slices.Repeat([]string{jsonRow("EWR", 0, "0")}, won)...)
	f.nothingClaimed()
}

// TestStagedFilesGone commits rows whose files or manifest are not what they
// were.
func TestStagedFilesGone(t *testing.T) {
	f := newStageFixture(t)
	token := f.stage(rowAt("EWR", 0, "0"))
	manifest := f.manifests()[0]
	whole, err := f.store.Get(t.Context(), manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.store.Put(t.Context(), manifest, append(whole, ' ')); err != nil {
		t.Fatal(err)
	}
	f.refused(tableerr.TokenCorrupt, "", "job", token)
	if _, err := f.table.AbortStaged(t.Context(), tablecore.AbortStagedOptions{Staged: []string{token}}); tableerr.TokenOf(err) != tableerr.TokenCorrupt {
		t.Errorf("the abort gives %v", err)
	}
	if err := f.store.Put(t.Context(), manifest, whole); err != nil {
		t.Fatal(err)
	}
	file := dataFiles(t, f.store)[0]
	if err := f.store.Put(t.Context(), file, []byte("PAR1")); err != nil {
		t.Fatal(err)
	}
	f.refused(tableerr.TokenCorrupt, "", "job", token)
	if err := f.store.Delete(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	f.refused(tableerr.TokenFileMissing, "", "job", token)
	if r := f.abort(token); r.FilesRemoved != 1 || len(f.manifests()) != 0 {
		t.Errorf("got %+v", r)
	}
}

// TestStagedClaim leaves files alone that somebody else is committing, or was
// when he died.
func TestStagedClaim(t *testing.T) {
	f := newStageFixture(t)
	token := f.stage(rowAt("EWR", 0, "0"))
	claim := "default/weather/_contrail/claims/of-another"
	for _, text := range []string{strings.TrimPrefix(f.manifests()[0], "default/weather/_contrail/staged/") + "\n", "torn"} {
		if err := f.store.Put(t.Context(), claim, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if r := f.abort(token); r.FilesRemoved != 0 || len(dataFiles(t, f.store)) == 0 {
			t.Errorf("with the claim %q: %+v", text, r)
		}
		token = f.stage(rowAt("EWR", 1, "0"))
	}
	if err := f.store.Put(t.Context(), claim, []byte("000000000000001-other\n")); err != nil {
		t.Fatal(err)
	}
	if r := f.abort(token); r.FilesRemoved != 1 {
		t.Errorf("with another's claim: %+v", r)
	}
}

// TestStagedKey damages the key of the warehouse.
func TestStagedKey(t *testing.T) {
	f := newStageFixture(t)
	token := f.stage(rowAt("EWR", 0, "0"))
	if err := f.store.Put(t.Context(), "_contrail/staging.key", []byte("abc")); err != nil {
		t.Fatal(err)
	}
	table := openWeather(f.t, f.open(9))
	if _, err := table.CommitStaged(t.Context(), tablecore.CommitStagedOptions{RequestID: "job", Staged: []string{token}}); tableerr.TokenOf(err) != tableerr.TokenCorrupt {
		t.Errorf("got %v", err)
	}
	if err := f.store.Delete(t.Context(), "_contrail/staging.key"); err != nil {
		t.Fatal(err)
	}
	if _, err := table.CommitStaged(t.Context(), tablecore.CommitStagedOptions{RequestID: "job", Staged: []string{token}}); fieldOf(err, "field") != "staged[0]" {
		t.Errorf("a token of another key gives %v", err)
	}
	if names, err := f.house.TableNames(t.Context(), ""); err != nil || len(names) != 1 {
		t.Errorf("the tables are %v, %v", names, err)
	}
}

// TestStagedSchemaChanges stages rows and changes the table before the commit.
func TestStagedSchemaChanges(t *testing.T) {
	f := newStageFixture(t)
	token := f.stage(rowAt("EWR", 0, "0"))
	added := arrow.NewSchema([]arrow.Field{{Name: "quality", Type: arrow.PrimitiveTypes.Int8, Nullable: true}}, nil)
	if _, err := f.table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: added}); err != nil {
		t.Fatal(err)
	}
	f.mustCommit("job", token)
	rows, _ := f.scan(tablecore.ScanOptions{Columns: []string{"origin", "quality"}})
	if !slices.Equal(rows, []string{`{"origin":"EWR","quality":null}`}) {
		t.Errorf("got %v", rows)
	}
	// Undoing the added column makes the rows staged with it misfits.
	wide := arrow.NewSchema(append(weather.Fields(), added.Field(0)), nil)
	r, err := f.stageAs(wide, `{"origin":"EWR","time_hour":36000000000,"temp":1,"quality":3}`)
	if err != nil {
		t.Fatal(err)
	}
	f.rollback(0)
	f.refused(tableerr.TokenSchemaMismatch, "", "wide", r.Staged)
	f.rollback(2)
	f.mustCommit("wide", r.Staged)
}

// TestStagedRollback commits rows again that a rollback has taken back.
func TestStagedRollback(t *testing.T) {
	f := newStageFixture(t)
	token := f.stage(rowAt("EWR", 0, "0"))
	manifest := f.manifests()[0]
	data, err := f.store.Get(t.Context(), manifest)
	if err != nil {
		t.Fatal(err)
	}
	f.mustCommit("job", token)
	f.rollback(0)
	// As if the process had died between the commit and the removal of the
	// manifest.
	if err := f.store.Put(t.Context(), manifest, data); err != nil {
		t.Fatal(err)
	}
	if r := f.abort(token); r.FilesRemoved != 0 {
		t.Errorf("an abort removes files of a version that may be read: %+v", r)
	}
	if err := f.store.Put(t.Context(), manifest, data); err != nil {
		t.Fatal(err)
	}
	if r := f.mustCommit("job", token); r.Replayed || r.CommittedVersion != 3 {
		t.Errorf("got %+v", r)
	}
	f.wantRows(nil, jsonRow("EWR", 0, "0"))
	if err := f.store.Put(t.Context(), manifest, data); err != nil {
		t.Fatal(err)
	}
	f.refused(tableerr.TokenInvalid, "staged[0]", "other", token)
}

// TestStagedAdoption stages rows for a table without a schema.
func TestStagedAdoption(t *testing.T) {
	bare := func(o *tablecore.CreateOptions) { o.Schema, o.IndexType = nil, "timestamp" }
	f := newStageFixture(t, bare)
	empty, err := f.stageAs(weather)
	if err != nil {
		t.Fatal(err)
	}
	if r := f.mustCommit("nothing", empty.Staged); r.Rows != 0 || r.CommittedVersion != 0 || len(r.DataFiles) != 0 || *r.RequestID != "nothing" {
		t.Errorf("got %+v", r)
	}
	a, b := f.stage(rowAt("EWR", 0, "0")), f.stage(rowAt("JFK", 1, "1"))
	narrow := arrow.NewSchema(weather.Fields()[:2], nil)
	other, err := f.stageAs(narrow, `{"origin":"LGA","time_hour":0}`)
	if err != nil {
		t.Fatal(err)
	}
	f.refused(tableerr.TokenSchemaMismatch, "", "job", a, other.Staged)
	f.refused(tableerr.TokenDuplicateInterval, "", "job", a, f.stage(rowAt("EWR", 0, "5")))
	f.mustCommit("job", a, b)
	f.wantRows(nil, jsonRow("EWR", 0, "0"), jsonRow("JFK", 1, "1"))
	f.refused(tableerr.TokenSchemaMismatch, "", "late", other.Staged)
}
