package deltalog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tableerr"
)

// logNames lists the versions of a log's files: "3" a commit, "3c" a checkpoint.
func logNames(t *testing.T, store objstore.Store) string {
	t.Helper()
	var names []string
	for info, err := range store.List(t.Context(), logDir+"0", "") {
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimLeft(strings.TrimPrefix(info.Key, logDir), "0")
		name = strings.ReplaceAll(strings.ReplaceAll(name, ".checkpoint.parquet", "c"), ".json", "")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestCleanUp(t *testing.T) {
	for name, c := range map[string]struct {
		checkpoint, first int64
		commits           int
		left              string
	}{
		"to the last checkpoint":         {6, 9, 6, "6c 6 7 8 9"},
		"to an earlier one":              {3, 9, 3, "3c 3 4 5 6c 6 7 8 9"},
		"to a commit that is needed":     {6, 2, 2, "2 3 4 5 6c 6 7 8 9"},
		"to one behind the last":         {6, 6, 6, "6c 6 7 8 9"},
		"where there is no checkpoint":   {5, 9, 0, " 1 2 3c 3 4 5 6c 6 7 8 9"},
		"without a checkpoint":           {-1, 9, 0, " 1 2 3c 3 4 5 6c 6 7 8 9"},
		"where nothing is old enough":    {6, 0, 0, " 1 2 3 4 5 6c 6 7 8 9"},
		"behind the end, as if by error": {100, 100, 0, " 1 2 3c 3 4 5 6c 6 7 8 9"},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			want := tableLog(t, store, 9)
			checkpointAt(t, store, 3)
			checkpointAt(t, store, 6)
			put(t, store, logDir+"notes", "")
			meter := meterstore.Wrap(store)
			commits, err := New(meter, Options{}).CleanUp(t.Context(), c.checkpoint, c.first)
			if cost := meter.Counts(); cost.Requests() > 2 { // a listing and a deletion, however long the log
				t.Errorf("it takes %s", cost)
			}
			if got := logNames(t, store); err != nil || commits != c.commits || got != c.left {
				t.Errorf("%d commits were removed, %q is left, want %q, %v", commits, got, c.left, err)
			}
			got, err := New(store, Options{}).LoadLatest(t.Context())
			if err != nil || got.Version() != 9 || got.NumFiles() != want.NumFiles() {
				t.Errorf("the newest version: %v", err)
			}
			if _, err := store.Head(t.Context(), logDir+"notes"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCleanUpFaults stops at every operation: the commits from some version on
// are all there.
func TestCleanUpFaults(t *testing.T) {
	for at := 0; ; at++ {
		store := memstore.New()
		tableLog(t, store, 9)
		checkpointAt(t, store, 3)
		checkpointAt(t, store, 6)
		_, err := New(faultstore.Wrap(store, faultstore.Plan{At: at, Kind: faultstore.StopAfterEffect}), Options{}).CleanUp(t.Context(), 6, 9)
		names := strings.Fields(logNames(t, store))
		commits := slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "c") })
		for i, name := range commits {
			if i > 0 && name[0] != commits[i-1][0]+1 {
				t.Fatalf("stopped at %d, %q are left", at, commits)
			}
		}
		if s, err := New(store, Options{}).LoadLatest(t.Context()); err != nil || s.Version() != 9 {
			t.Fatalf("stopped at %d: %v", at, err)
		}
		if err == nil {
			return
		}
		if !errors.Is(err, faultstore.ErrStopped) && !errors.Is(err, faultstore.ErrInjected) {
			t.Fatal(err)
		}
	}
}

// TestCleanUpCounts: an error in the middle tells how many commits went before it,
// and a further clean-up removes the rest.
func TestCleanUpCounts(t *testing.T) {
	for at := range 7 { // six commits and a checkpoint
		store := memstore.New()
		tableLog(t, store, 9)
		checkpointAt(t, store, 3)
		checkpointAt(t, store, 6)
		l := New(faultstore.Wrap(store, faultstore.Plan{At: at, Kind: faultstore.Error, Match: func(op objstore.Op, _ string) bool {
			return op == objstore.OpDeleteAll
		}}), Options{})
		commits, err := l.CleanUp(t.Context(), 6, 9)
		if want := at - at/4; !errors.Is(err, faultstore.ErrInjected) || commits != want { // the fourth is the checkpoint
			t.Errorf("a fault at %d: %d commits were removed, want %d, %v", at, commits, want, err)
		}
		rest, err := l.CleanUp(t.Context(), 6, 9)
		if got := logNames(t, store); err != nil || commits+rest != 6 || got != "6c 6 7 8 9" {
			t.Errorf("after a fault at %d: %d more, %q is left, %v", at, rest, got, err)
		}
	}
}

func TestLoadOldest(t *testing.T) {
	for name, c := range map[string]struct {
		change func(store objstore.Store)
		ask    int64
		want   int64 // −1: an error
		from   int64 // the checkpoint that it is read from
	}{
		"a version":              {func(objstore.Store) {}, 4, 4, 3},
		"the first":              {func(objstore.Store) {}, 0, 0, -1},
		"before the log begins":  {func(s objstore.Store) { remove(t, s, commitKeys(0, 4)...) }, 0, 3, 3},
		"before all but the end": {func(s objstore.Store) { remove(t, s, append(commitKeys(0, 6), CheckpointKey(3))...) }, 2, 6, 6},
		"a damaged checkpoint": {func(s objstore.Store) {
			remove(t, s, commitKeys(0, 2)...)
			put(t, s, CheckpointKey(3), "PAR1")
		}, 0, 6, 6},
		"behind the end": {func(objstore.Store) {}, 10, -1, 0},
		"nothing":        {func(s objstore.Store) { remove(t, s, append(commitKeys(0, 9), CheckpointKey(3), CheckpointKey(6))...) }, 0, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			tableLog(t, store, 9)
			checkpointAt(t, store, 3)
			checkpointAt(t, store, 6)
			c.change(store)
			s, err := New(store, Options{}).LoadOldest(t.Context(), c.ask)
			switch {
			case c.want < 0 && tableerr.TokenOf(err) == "":
				t.Errorf("got %v", err)
			case c.want >= 0 && (err != nil || s.Version() != c.want || s.Checkpoint().Version != c.from):
				t.Errorf("got %+v, %v", s, err)
			}
		})
	}
}
