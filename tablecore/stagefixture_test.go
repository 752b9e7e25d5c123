package tablecore_test

import (
	"testing"

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
	f.table = openWeather(f.t, f.house)
	return f
}

// open opens the warehouse as another process does.
func (f *stageFixture) open(seed byte) *tablecore.Warehouse {
	f.t.Helper()
	return tabletest.Open(f.t, tablecore.Options{Store: sharedStore{f.store}, Allocator: f.mem, Clock: f.clock.Now, Random: tabletest.Random(seed)})
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
