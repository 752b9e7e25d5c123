package deltalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tableerr"
)

func TestRefresh(t *testing.T) {
	store := memstore.New()
	old := tableLog(t, store, 3)
	log := New(store, Options{})
	s := old
	for i := range 3 {
		s = writeNext(t, log, s, &Commit{Adds: []*Add{add(fmt.Sprint("new", i), 1)}})
	}
	got, commits, err := log.Refresh(t.Context(), old)
	if err != nil || got.Version() != 6 || got.NumFiles() != 7 || len(commits) != 3 || commits[0].Version != 4 || len(commits[2].Adds) != 1 {
		t.Fatal(got, commits, err)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"damaged":       {"{", &tableerr.Corrupt{Path: CommitKey(7)}},
		"new feature":   {`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["x"],"writerFeatures":["x"]}}`, &tableerr.Unsupported{Feature: "x"}},
		"no metadata":   {`{"metaData":null,"protocol":{"minReaderVersion":9}}`, &tableerr.Unsupported{Feature: "minReaderVersion 9"}},
		"path outside":  {`{"add":{"path":"../x"}}`, &tableerr.Unsupported{Path: "../x"}},
		"column mapped": {`{"metaData":{"id":"id","configuration":{"delta.columnMapping.mode":"id"}}}`, &tableerr.Unsupported{Feature: "columnMapping"}},
	} {
		put(t, store, CommitKey(7), c.text)
		if _, _, err := log.Refresh(t.Context(), s); !sameError(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefreshAfterReplacement covers pitfalls 38 and 39: a warm state whose
// table was replaced, restored or cleaned up is never built on.
func TestRefreshAfterReplacement(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, store objstore.Store){
		"another commit of the same number": func(t *testing.T, s objstore.Store) { put(t, s, CommitKey(3), `{"add":{"path":"other"}}`) },
		"rolled back":                       func(t *testing.T, s objstore.Store) { remove(t, s, CommitKey(3)) },
		"cleaned up past it": func(t *testing.T, s objstore.Store) {
			put(t, s, CommitKey(4), `{"add":{"path":"f4"}}`)
			checkpointAt(t, s, 4)
			remove(t, s, commitKeys(0, 3)...)
		},
		"gone": func(t *testing.T, s objstore.Store) { remove(t, s, commitKeys(0, 3)...) },
	} {
		store := memstore.New()
		s := tableLog(t, store, 3)
		log := New(store, Options{})
		change(t, store)
		if _, _, err := log.Refresh(t.Context(), s); !errors.Is(err, ErrReplaced) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := log.WriteCheckpoint(t.Context(), s); !errors.Is(err, ErrReplaced) {
			t.Errorf("%s: checkpoint: %v", name, err)
		}
	}
}

func TestStandsOnCheckpoint(t *testing.T) {
	now := time.Unix(1000, 0)
	store := memstore.NewWithClock(func() time.Time { return now })
	tableLog(t, store, 3)
	checkpointAt(t, store, 3)
	remove(t, store, commitKeys(0, 3)...)
	log := New(store, Options{})
	s, err := log.LoadLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if stands, err := log.Stands(t.Context(), s); err != nil || !stands {
		t.Fatal(stands, err)
	}
	// The table can be written on: version 4 follows.
	writeNext(t, log, s, &Commit{Adds: []*Add{add("x", 1)}})
	data, err := store.Get(t.Context(), CheckpointKey(3))
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	put(t, store, CheckpointKey(3), string(data))
	if stands, err := log.Stands(t.Context(), s); err != nil || stands {
		t.Error("a checkpoint that was replaced is taken for the old one", err)
	}
	remove(t, store, CheckpointKey(3))
	if stands, err := log.Stands(t.Context(), s); err != nil || stands {
		t.Error(stands, err)
	}
}

// TestStandsOnLongCommit: a long commit is read once and afterwards known by
// size and time.
func TestStandsOnLongCommit(t *testing.T) {
	now := time.Unix(1000, 0)
	store := meterstore.Wrap(memstore.NewWithClock(func() time.Time { return now }))
	log := New(store, Options{})
	long := first()
	long.Metadata.Description = strings.Repeat("x", compareBytesUpTo)
	s := writeNext(t, log, NewState(), long)
	store.Reset()
	for want := range 3 {
		if stands, err := log.Stands(t.Context(), s); err != nil || !stands {
			t.Fatal(stands, err)
		}
		if c := store.Counts(); c.Head != int64(want)+1 || c.Get != 1 {
			t.Errorf("look %d: %v", want, c)
		}
	}
	data, _ := store.Get(t.Context(), CommitKey(0))
	now = now.Add(time.Second)
	put(t, store, CommitKey(0), string(data)) // the same bytes, copied
	if stands, err := log.Stands(t.Context(), s); err != nil || !stands {
		t.Error("a copy is not recognised", err)
	}
	now = now.Add(time.Second)
	put(t, store, CommitKey(0), strings.Replace(string(data), "id", "di", 1))
	if stands, err := log.Stands(t.Context(), s); err != nil || stands {
		t.Error("another commit of the same length is taken for the old one", err)
	}
	put(t, store, CommitKey(0), string(data)+" ")
	if stands, err := log.Stands(t.Context(), s); err != nil || stands {
		t.Error("a longer commit is taken for the old one", err)
	}
}

func TestStandsErrors(t *testing.T) {
	inner := memstore.New()
	s := tableLog(t, inner, 1)
	log := New(faultstore.Wrap(inner, faultstore.Plan{Kind: faultstore.Error}), Options{})
	if _, _, err := log.Refresh(t.Context(), s); !errors.Is(err, faultstore.ErrInjected) {
		t.Error(err)
	}
	if _, err := log.Stands(t.Context(), NewState()); err == nil {
		t.Error("the state before version 0 stands")
	}
	log = New(faultstore.Wrap(inner, faultstore.Plan{At: 1, Kind: faultstore.Error}), Options{})
	if _, _, err := log.Refresh(t.Context(), s); !errors.Is(err, faultstore.ErrInjected) {
		t.Error(err)
	}
}

func TestReadCommitAbsent(t *testing.T) {
	store := memstore.New()
	tableLog(t, store, 1)
	if _, err := New(store, Options{}).ReadCommit(t.Context(), 99); !errors.Is(err, objstore.ErrNotExist) {
		t.Error(err)
	}
}

func TestWithdrawCommit(t *testing.T) {
	store := memstore.New()
	tableLog(t, store, 1)
	log := New(store, Options{})
	mine := []byte(`{"txn":{"appId":"mine"}}`)
	put(t, store, CommitKey(2), string(mine))
	if err := log.WithdrawCommit(t.Context(), 1, mine); err != nil {
		t.Error(err)
	}
	if _, err := log.ReadCommit(t.Context(), 1); err != nil {
		t.Error("another's commit was withdrawn")
	}
	for range 2 {
		if err := log.WithdrawCommit(t.Context(), 2, mine); err != nil {
			t.Error(err)
		}
	}
	if _, err := log.ReadCommit(t.Context(), 2); !errors.Is(err, objstore.ErrNotExist) {
		t.Error("the commit is still there")
	}
	for at := range 2 {
		put(t, store, CommitKey(2), string(mine))
		broken := New(faultstore.Wrap(store, faultstore.Plan{At: at, Kind: faultstore.Error}), Options{})
		if err := broken.WithdrawCommit(t.Context(), 2, mine); !errors.Is(err, faultstore.ErrInjected) {
			t.Error(err)
		}
	}
}

func TestTooLongCommits(t *testing.T) {
	store := memstore.New()
	tableLog(t, store, 1)
	log := New(faultstore.Wrap(store, faultstore.Plan{Kind: faultstore.Error, Err: objstore.ErrTooLarge}), Options{})
	if _, err := log.ReadCommit(t.Context(), 1); !sameError(err, &tableerr.Corrupt{Path: CommitKey(1)}) {
		t.Error(err)
	}
	ls := &listing{commits: map[int64]int64{0: MaxCommitBytes + 1}, newest: 0}
	if _, err := New(store, Options{}).build(t.Context(), ls, latest); !sameError(err, &tableerr.Corrupt{Path: CommitKey(0)}) {
		t.Error(err)
	}
}
