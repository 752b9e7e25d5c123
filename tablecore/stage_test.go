package tablecore_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// stageFixture is a fixture whose store and clock are at hand.
type stageFixture struct {
	*fixture
	store objstore.Store
	clock *tabletest.Clock
}

func newStageFixture(t *testing.T, change ...func(*tablecore.CreateOptions)) *stageFixture {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	f := &stageFixture{fixture: &fixture{t: t, mem: mem}, store: memstore.New(), clock: tabletest.NewClock()}
	f.house = f.open(1)
	o := weatherOptions()
	for _, c := range change {
		c(&o)
	}
	if _, err := f.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	f.table = f.tableOf(f.house)
	return f
}

// open opens the warehouse as another process does.
func (f *stageFixture) open(seed byte) *tablecore.Warehouse {
	f.t.Helper()
	w, err := tablecore.Open(f.t.Context(), tablecore.Options{Store: sharedStore{f.store}, Allocator: f.mem, Clock: f.clock.Now, Random: tabletest.Random(seed)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := w.Close(); err != nil {
			f.t.Error(err)
		}
	})
	return w
}

func (f *stageFixture) tableOf(w *tablecore.Warehouse) *tablecore.Table {
	f.t.Helper()
	table, err := w.Table(f.t.Context(), weatherName)
	if err != nil {
		f.t.Fatal(err)
	}
	return table
}

// stage stages rows of a schema.
func (f *stageFixture) stageAs(schema *arrow.Schema, rows ...string) (*tablecore.StageReport, error) {
	f.t.Helper()
	b := tabletest.Batch(f.t, f.mem, schema, rowsOf(rows...))
	defer b.Release()
	return f.table.Stage(f.t.Context(), tabletest.NewReader(schema, b), tablecore.StageOptions{})
}

// stage stages weather rows and returns their token.
func (f *stageFixture) stage(rows ...string) string {
	f.t.Helper()
	r, err := f.stageAs(weather, rows...)
	if err != nil {
		f.t.Fatal(err)
	}
	return r.Staged
}

func (f *stageFixture) commit(id string, tokens ...string) (*tablecore.AppendReport, error) {
	return f.table.CommitStaged(f.t.Context(), tablecore.CommitStagedOptions{RequestID: id, Staged: tokens})
}

func (f *stageFixture) mustCommit(id string, tokens ...string) *tablecore.AppendReport {
	f.t.Helper()
	r, err := f.commit(id, tokens...)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *stageFixture) abort(tokens ...string) *tablecore.AbortReport {
	f.t.Helper()
	r, err := f.table.AbortStaged(f.t.Context(), tablecore.AbortStagedOptions{Staged: tokens})
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// refused makes sure that a commit is refused with a token and, of INVALID, a
// field, and that it has changed nothing.
func (f *stageFixture) refused(want tableerr.Token, field string, id string, tokens ...string) {
	f.t.Helper()
	before := f.version()
	r, err := f.commit(id, tokens...)
	if tableerr.TokenOf(err) != want || field != "" && fieldOf(err, "field") != field {
		f.t.Errorf("got %+v, %v, want %s of %s", r, err, want, field)
	}
	if f.version() != before {
		f.t.Errorf("version %d follows %d after %v", f.version(), before, err)
	}
	f.nothingClaimed()
}

func (f *stageFixture) nothingClaimed() {
	f.t.Helper()
	if claims := keysUnder(f.t, f.store, "default/weather/_contrail/claims/"); len(claims) != 0 {
		f.t.Errorf("claims are left: %v", claims)
	}
}

func (f *stageFixture) manifests() []string {
	f.t.Helper()
	return keysUnder(f.t, f.store, "default/weather/_contrail/staged/")
}

// fieldOf is a field of a typed error, nil where it has none.
func fieldOf(err error, key string) any {
	typed, ok := err.(tableerr.Error)
	if !ok {
		return nil
	}
	for _, field := range typed.Fields() {
		if field.Key == key {
			return field.Value
		}
	}
	return nil
}

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
	second := f.tableOf(f.open(9))
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
	tables := []*tablecore.Table{f.table, f.tableOf(f.open(9))}
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
	table := f.tableOf(f.open(9))
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
