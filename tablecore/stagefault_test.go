package tablecore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// stageWeather stages JSON rows for the weather table.
func stageWeather(ctx context.Context, t *testing.T, w *tablecore.Warehouse, rows ...string) (*tablecore.StageReport, error) {
	t.Helper()
	table, err := w.Table(ctx, weatherName)
	if err != nil {
		return nil, err
	}
	b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rows...))
	defer b.Release()
	return table.Stage(ctx, tabletest.NewReader(weather, b), tablecore.StageOptions{})
}

func commitStaged(ctx context.Context, w *tablecore.Warehouse, id string, tokens ...string) (*tablecore.AppendReport, error) {
	table, err := w.Table(ctx, weatherName)
	if err != nil {
		return nil, err
	}
	return table.CommitStaged(ctx, tablecore.CommitStagedOptions{RequestID: id, Staged: tokens})
}

func abortStaged(ctx context.Context, w *tablecore.Warehouse, tokens ...string) (*tablecore.AbortReport, error) {
	table, err := w.Table(ctx, weatherName)
	if err != nil {
		return nil, err
	}
	return table.AbortStaged(ctx, tablecore.AbortStagedOptions{Staged: tokens})
}

// stagedTwice makes the weather table with one row and stages two for it, each
// in a stream of its own.
func stagedTwice(t *testing.T, w *tablecore.Warehouse) []string {
	t.Helper()
	createWeather(t, w)
	if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", 0, "0")); err != nil {
		t.Fatal(err)
	}
	tokens := make([]string, 2)
	for i := range tokens {
		r, err := stageWeather(t.Context(), t, w, rowAt("EWR", i+1, fmt.Sprint(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		tokens[i] = r.Staged
	}
	return tokens
}

var (
	unstagedRows = []string{jsonRow("EWR", 0, "0")}
	stagedRows   = []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("EWR", 2, "2")}
)

func holds(t *testing.T, w *tablecore.Warehouse, want []string) bool {
	t.Helper()
	rows, _, err := scanWeather(t, w)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Equal(rows, want)
}

// manifestsIn lists the manifests and claims of a store.
func manifestsIn(t *testing.T, store objstore.Store) []string {
	t.Helper()
	return append(keysUnder(t, store, "default/weather/_contrail/staged/"), keysUnder(t, store, "default/weather/_contrail/claims/")...)
}

// TestStageFaults walks the staging of rows, the making of the key included: no
// row is seen, an error leaves nothing, and a token that was given out is good.
func TestStageFaults(t *testing.T) {
	var report *tablecore.StageReport
	walk{
		prepare: createWeather, cold: true,
		run: func(t *testing.T, w *tablecore.Warehouse) (err error) {
			report, err = stageWeather(t.Context(), t, w, rowAt("EWR", 1, "1"))
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			if rows, version, scanErr := scanWeather(t, w); scanErr != nil || len(rows) != 0 || version != 0 {
				t.Fatalf("version %d holds %v, %v", version, rows, scanErr)
			}
			if left := append(dataFiles(t, store), manifestsIn(t, store)...); err != nil && !stopped && len(left) != 0 {
				t.Fatalf("after %v these files are left: %q", err, left)
			}
		},
		write: func(t *testing.T, w *tablecore.Warehouse) error {
			if report == nil {
				return writeWeather(t, w)
			}
			r, err := commitStaged(t.Context(), w, "job", report.Staged)
			if err == nil && r.Rows != 1 {
				err = fmt.Errorf("the commit gives %+v", r)
			}
			return err
		},
	}.all(t)
}

// TestCommitStagedFaults walks the commit of staged rows: they are there all or
// none, and the repetition of the commit adds them once.
func TestCommitStagedFaults(t *testing.T) {
	var tokens []string
	walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) { tokens = stagedTwice(t, w) },
		cold:    true,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := commitStaged(t.Context(), w, "job", tokens...)
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			landed := holds(t, w, stagedRows)
			if !landed && (err == nil || !holds(t, w, unstagedRows)) {
				t.Fatalf("after %v the rows are gone", err)
			}
			if n := len(dataFiles(t, store)); n != 3 {
				t.Fatalf("after %v there are %d data files", err, n)
			}
			if left := keysUnder(t, store, "default/weather/_contrail/claims/"); !stopped && tableerr.TokenOf(err) != tableerr.TokenCommitUnknown && len(left) > 1 {
				t.Fatalf("after %v these claims are left: %q", err, left)
			}
		},
		write: func(t *testing.T, w *tablecore.Warehouse) error {
			if _, err := commitStaged(t.Context(), w, "job", tokens...); err != nil {
				return err
			}
			if !holds(t, w, stagedRows) {
				return errors.New("the repetition does not give the rows once")
			}
			if r, err := abortStaged(t.Context(), w, tokens...); err != nil || r.FilesRemoved != 0 || !holds(t, w, stagedRows) {
				return fmt.Errorf("an abort of committed rows gives %+v, %w", r, err)
			}
			return nil
		},
	}.all(t)
}

// TestAbortStagedFaults walks the giving up of staged rows: committed ones stay,
// and it may be repeated.
func TestAbortStagedFaults(t *testing.T) {
	var tokens []string
	walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			tokens = stagedTwice(t, w)
			if _, err := commitStaged(t.Context(), w, "job", tokens[0]); err != nil {
				t.Fatal(err)
			}
		},
		cold: true,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := abortStaged(t.Context(), w, tokens...)
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, _ bool, err error) {
			if !holds(t, w, stagedRows[:2]) {
				t.Fatalf("after %v a row is gone", err)
			}
			if n := len(dataFiles(t, store)); n > 3 || err == nil && n != 2 {
				t.Fatalf("after %v there are %d data files", err, n)
			}
		},
		write: func(t *testing.T, w *tablecore.Warehouse) error {
			if _, err := abortStaged(t.Context(), w, tokens...); err != nil {
				return err
			}
			if _, err := commitStaged(t.Context(), w, "other", tokens[1]); tableerr.TokenOf(err) != tableerr.TokenInvalid {
				return fmt.Errorf("a commit of aborted rows gives %w", err)
			}
			return writeWeather(t, w)
		},
	}.all(t)
}

// TestAbortMeetsCommit runs an abort before each store operation of a commit of
// the same rows, and a commit before each one of an abort: the rows are in the
// table and whole, or they are not.
func TestAbortMeetsCommit(t *testing.T) {
	verbs := []func(t *testing.T, w *tablecore.Warehouse, tokens []string) (removed int, err error){
		func(t *testing.T, w *tablecore.Warehouse, tokens []string) (int, error) {
			_, err := commitStaged(t.Context(), w, "job", tokens...)
			return 0, err
		},
		func(t *testing.T, w *tablecore.Warehouse, tokens []string) (int, error) {
			r, err := abortStaged(t.Context(), w, tokens...)
			if err != nil {
				return 0, err
			}
			return r.FilesRemoved, nil
		},
	}
	for first := range verbs {
		mine, theirs := verbs[first], verbs[1-first]
		for at := 0; ; at++ {
			f := newStageFixture(t)
			tokens := []string{f.stage(rowAt("EWR", 1, "1")), f.stage(rowAt("EWR", 2, "2"))}
			rival := f.open(9)
			fault := faultstore.Wrap(sharedStore{f.store}, faultstore.Plan{})
			w, err := tablecore.Open(t.Context(), tablecore.Options{Store: sharedStore{fault}, Allocator: f.mem, Clock: f.clock.Now, Random: tabletest.Random(7)})
			if err != nil {
				t.Fatal(err)
			}
			var errs [2]error
			var removed [2]int
			met := false
			fault.Arm(faultstore.Plan{At: at, Before: func(objstore.Op, string) {
				met = true
				removed[1], errs[1] = theirs(t, rival, tokens)
			}})
			removed[0], errs[0] = mine(t, w, tokens)
			w.WaitForBackground()
			f.table = openWeather(f.t, f.open(11))
			rows, _ := f.scan(tablecore.ScanOptions{})
			committed := errs[first] == nil
			commitToken := tableerr.TokenOf(errs[first])
			whole := committed && len(rows) == 2 && removed[1-first] == 0
			none := !committed && len(rows) == 0 && (commitToken == tableerr.TokenInvalid || commitToken == tableerr.TokenFileMissing)
			if met && (!whole && !none || errs[1-first] != nil) {
				t.Errorf("verb %d, operation %d: %v, %v; %d rows, %v files removed", first, at, errs[0], errs[1], len(rows), removed)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if !met {
				break
			}
		}
	}
}

// TestCommitMeetsItself runs a commit before each store operation of the same
// commit, as when its answer was lost: both get the one report, whether the
// second brings the same tokens or those of rows that were staged again.
func TestCommitMeetsItself(t *testing.T) {
	for _, again := range []bool{false, true} {
		for at := 0; ; at++ {
			f := newStageFixture(t)
			tokens := []string{f.stage(rowAt("EWR", 1, "1")), f.stage(rowAt("EWR", 2, "2"))}
			theirs := tokens
			if again {
				theirs = []string{f.stage(rowAt("EWR", 1, "1"), rowAt("EWR", 2, "2"))}
			}
			rival := f.open(9)
			fault := faultstore.Wrap(sharedStore{f.store}, faultstore.Plan{})
			w, err := tablecore.Open(t.Context(), tablecore.Options{Store: sharedStore{fault}, Allocator: f.mem, Clock: f.clock.Now, Random: tabletest.Random(7)})
			if err != nil {
				t.Fatal(err)
			}
			met := false
			var second error
			fault.Arm(faultstore.Plan{At: at, Before: func(objstore.Op, string) {
				met = true
				_, second = commitStaged(t.Context(), rival, "job", theirs...)
			}})
			_, first := commitStaged(t.Context(), w, "job", tokens...)
			w.WaitForBackground()
			f.table = openWeather(f.t, f.open(11))
			if rows, _ := f.scan(tablecore.ScanOptions{}); first != nil || second != nil || len(rows) != 2 {
				t.Errorf("staged again %v, operation %d: %v, %v; %d rows", again, at, first, second, len(rows))
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if !met {
				break
			}
		}
	}
}
