package deltalog

import (
	"errors"
	"testing"

	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tableerr"
)

// TestResume goes on from the state of version 5 in logs in every condition.
func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, store objstore.Store)
		want   error // nil where the newest state is found
	}{
		"as it was":                   {func(*testing.T, objstore.Store) {}, nil},
		"with a checkpoint":           {func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 8) }, nil},
		"with a damaged checkpoint":   {func(t *testing.T, s objstore.Store) { put(t, s, CheckpointKey(8), "PAR1") }, nil},
		"cleaned up to its version":   {func(t *testing.T, s objstore.Store) { remove(t, s, commitKeys(0, 4)...) }, nil},
		"its commit is gone":          {func(t *testing.T, s objstore.Store) { remove(t, s, commitKeys(0, 5)...) }, ErrReplaced},
		"all behind it is gone":       {func(t *testing.T, s objstore.Store) { remove(t, s, commitKeys(5, 9)...) }, ErrReplaced},
		"nothing is left":             {func(t *testing.T, s objstore.Store) { remove(t, s, commitKeys(0, 9)...) }, ErrReplaced},
		"its commit is another one":   {func(t *testing.T, s objstore.Store) { put(t, s, CommitKey(5), `{"txn":{"appId":"a","version":1}}`) }, ErrReplaced},
		"its commit is damaged":       {func(t *testing.T, s objstore.Store) { put(t, s, CommitKey(5), `{`) }, &tableerr.Corrupt{}},
		"a later commit is gone":      {func(t *testing.T, s objstore.Store) { remove(t, s, CommitKey(7)) }, ErrReplaced},
		"a later commit is damaged":   {func(t *testing.T, s objstore.Store) { put(t, s, CommitKey(9), "{") }, &tableerr.Corrupt{}},
		"a checkpoint lies far ahead": {func(t *testing.T, s objstore.Store) { put(t, s, hintKey, `{"version":1005}`) }, ErrReplaced},
		"the log ends before its hint": {func(t *testing.T, s objstore.Store) {
			put(t, s, hintKey, `{"version":8}`)
			remove(t, s, commitKeys(7, 9)...)
		}, ErrReplaced},
		"the hint is damaged": {func(t *testing.T, s objstore.Store) { put(t, s, hintKey, `{`) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			want := tableLog(t, store, 9)
			log := New(store, Options{})
			at, err := log.LoadAt(t.Context(), 5)
			if err != nil {
				t.Fatal(err)
			}
			digest, ok := at.CommitDigest()
			if !ok {
				t.Fatal("version 5 stands on no commit")
			}
			decoded := reread(t, at)
			c.change(t, store)
			got, err := log.Resume(t.Context(), decoded, digest)
			var corrupt *tableerr.Corrupt
			switch {
			case c.want == nil && err != nil:
				t.Fatal(err)
			case c.want == ErrReplaced && !errors.Is(err, ErrReplaced), c.want != nil && c.want != ErrReplaced && !errors.As(err, &corrupt):
				t.Fatalf("got %v, want %v", err, c.want)
			case c.want != nil:
				return
			}
			for _, a := range got.Files() {
				a.DataChange = false // as sameState wants it; nobody else holds these
			}
			sameState(t, got, want)
			if stands, err := log.Stands(t.Context(), got); err != nil || !stands {
				t.Errorf("the state does not stand: %v", err)
			}
			if one, _ := got.CommitDigest(); one != want.anchor.digest {
				t.Error("it stands on another commit")
			}
		})
	}
}

// TestResumeAtTheNewest counts what it costs when nothing is behind the state.
func TestResumeAtTheNewest(t *testing.T) {
	store := meterstore.Wrap(memstore.New())
	want := tableLog(t, store, 9)
	digest, _ := want.CommitDigest()
	decoded := reread(t, want)
	store.Reset()
	got, err := New(store, Options{}).Resume(t.Context(), decoded, digest)
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, got, want)
	if c := store.Counts(); c.Requests() != 4 || c.Get != 3 || c.Head != 1 {
		t.Error(c)
	}
}

// TestResumeJudges: a state that may not be read is not read by this way either.
func TestResumeJudges(t *testing.T) {
	store := memstore.New()
	s := tableLog(t, store, 3)
	s = writeNext(t, New(store, Options{}), s, &Commit{Adds: []*Add{add("s3://elsewhere/x", 1)}})
	digest, _ := s.CommitDigest()
	var unsupported *tableerr.Unsupported
	if _, err := New(store, Options{}).Resume(t.Context(), reread(t, s), digest); !errors.As(err, &unsupported) {
		t.Errorf("a path that leads out of the table: %v", err)
	}
	if _, err := New(store, Options{AllowExternalPaths: true}).Resume(t.Context(), reread(t, s), digest); err != nil {
		t.Error(err)
	}
}

func TestCommitDigest(t *testing.T) {
	store := memstore.New()
	tableLog(t, store, 3)
	checkpointAt(t, store, 3)
	remove(t, store, commitKeys(0, 3)...)
	s, err := New(store, Options{}).LoadLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*State{NewState(), s} {
		if _, ok := s.CommitDigest(); ok {
			t.Errorf("version %d stands on a commit", s.Version())
		}
	}
}
