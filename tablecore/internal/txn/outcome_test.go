package txn

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
)

// failGet fails reading a commit, once it is armed.
func failGet(inner objstore.Store, version int64) *faultstore.Store {
	return faultstore.Wrap(inner, faultstore.Plan{Kind: faultstore.Error,
		Match: func(op objstore.Op, key string) bool {
			return op == objstore.OpGet && key == deltalog.CommitKey(version)
		}})
}

// putFault makes a fault at a put of commits.
func putFault(inner objstore.Store, kind faultstore.Kind) *faultstore.Store {
	return faultstore.Wrap(inner, faultstore.Plan{Kind: kind, Match: func(op objstore.Op, _ string) bool { return op == objstore.OpPutAllIfAbsent }})
}

// TestLostAnswer loses the answer of a publish. As long as the commit can be
// looked for, the committer learns what has become of it; else it is told so,
// with the id that stands in the commit.
func TestLostAnswer(t *testing.T) {
	for _, c := range []struct {
		kind     faultstore.Kind
		readable bool
		token    tableerr.Token
		table    string
	}{
		{faultstore.ErrorAfterEffect, true, "", "1: mine"},
		{faultstore.Unknown, true, "", "1: mine"},
		{faultstore.ErrorAfterEffect, false, tableerr.TokenCommitUnknown, "1: mine"},
		{faultstore.Unknown, false, tableerr.TokenCommitUnknown, "0: "},
	} {
		t.Run(fmt.Sprintf("%s/%v", c.kind, c.readable), func(t *testing.T) {
			store := memstore.New()
			create(t, store)
			var between objstore.Store = store
			if !c.readable {
				between = failGet(store, 1)
			}
			table := open(t, store)
			table.cfg.Store = putFault(between, c.kind)
			s, err := table.Publish(t.Context(), newEdit(table.Current(), "mine").Edit)
			if tableerr.TokenOf(err) != c.token || c.token == "" && s.Version() != 1 {
				t.Fatalf("got %v, %v", s, err)
			}
			var unknown *tableerr.CommitUnknown
			if errors.As(err, &unknown) && (unknown.RequestID != "request-mine" || errors.As(unknown.Cause, new(*tableerr.CommitUnknown))) {
				t.Errorf("the error is %#v", unknown)
			}
			if got := fileNames(t, store); got != c.table {
				t.Errorf("the table is %s, want %s", got, c.table)
			}
			// Whatever was told, the next edit goes on from what is there.
			s, err = table.Publish(t.Context(), newEdit(table.Current(), "next").Edit)
			if err != nil || s.State.File("data/next") == nil {
				t.Fatalf("the next edit: %v, %v", s, err)
			}
		})
	}
}

// TestUnknownBatch makes sure that with an outcome that cannot be learned those
// behind it in the batch are not told that nothing of theirs is there.
func TestUnknownBatch(t *testing.T) {
	store := memstore.New()
	create(t, store)
	// The answer to the put of version 3 is lost, and it cannot be read.
	fault := faultstore.Wrap(failGet(store, 3), faultstore.Plan{})
	hold := &holdStore{Store: fault}
	table := open(t, store)
	table.cfg.Store = hold
	fault.Arm(faultstore.Plan{At: 2, Kind: faultstore.ErrorAfterEffect, Match: func(op objstore.Op, _ string) bool { return op == objstore.OpPutAllIfAbsent }})
	out := together(t, table, hold, edits(table, 4)...)
	for i, want := range []tableerr.Token{"", tableerr.TokenCommitUnknown, tableerr.TokenCommitUnknown, tableerr.TokenCommitUnknown} {
		if tableerr.TokenOf(out[i].err) != want || (out[i].err != nil) != (want != "") {
			t.Errorf("edit %d: %v", i, out[i].err)
		}
	}
	if got := fileNames(t, store); got != "5: first f00 f01 f02 f03" {
		t.Errorf("the table is %s", got)
	}
}

// TestNeverClear has every put end without a clear answer and without effect:
// the committer is not told that nothing is there, for it may still come.
func TestNeverClear(t *testing.T) {
	store := memstore.New()
	create(t, store)
	puts := 0
	table := open(t, store)
	table.cfg.Store = &lostStore{Store: store, put: func([]objstore.Object) { puts++ }}
	_, err := table.Publish(t.Context(), newEdit(table.Current(), "mine").Edit)
	if tableerr.TokenOf(err) != tableerr.TokenCommitUnknown || puts != maxUnclear+1 {
		t.Fatalf("got %v after %d puts", err, puts)
	}
	if got := fileNames(t, store); got != "0: " {
		t.Errorf("the table is %s", got)
	}
}

// lostStore loses the answer of every put of commits; put may do it.
type lostStore struct {
	objstore.Store
	put func(objects []objstore.Object)
	get func(key string) ([]byte, error, bool)
}

func (s *lostStore) PutAllIfAbsent(_ context.Context, objects []objstore.Object) (int, error) {
	s.put(objects)
	return 0, &objstore.UnknownOutcomeError{Key: objects[0].Key, Err: errors.New("no answer")}
}

func (s *lostStore) Get(ctx context.Context, key string) ([]byte, error) {
	if s.get != nil {
		if data, err, answered := s.get(key); answered {
			return data, err
		}
	}
	return s.Store.Get(ctx, key)
}

// TestLateCommit has a commit turn up after it had been looked for in vain:
// once before it is put again, and once before somebody else reads the log.
// Nobody takes his own commit for another's.
func TestLateCommit(t *testing.T) {
	for _, refreshed := range []bool{false, true} {
		t.Run(fmt.Sprint(refreshed), func(t *testing.T) {
			store := memstore.New()
			create(t, store)
			table := open(t, store)
			ticks := time.Duration(0)
			table.cfg.Clock = func() time.Time { ticks += time.Second; return began.Add(ticks) } // no commit is made twice alike
			var held []objstore.Object
			late := &lostStore{Store: store}
			late.put = func(objects []objstore.Object) {
				if held == nil {
					held = objects
				}
			}
			late.get = func(key string) ([]byte, error, bool) {
				if key != deltalog.CommitKey(1) || held == nil {
					return nil, nil, false
				}
				if _, err := store.PutAllIfAbsent(t.Context(), held); err != nil {
					t.Error(err)
				}
				held = []objstore.Object{}
				late.get = nil
				if refreshed {
					if s, err := table.Refresh(t.Context()); err != nil || s.Version() != 1 {
						t.Errorf("refreshed to %v, %v", s, err)
					}
				}
				return nil, objstore.ErrNotExist, true
			}
			table.cfg.Store = late
			e := newEdit(table.Current(), "mine")
			e.err = &tableerr.IntervalOverlap{} // of its own rows
			s, err := table.Publish(t.Context(), e.Edit)
			if err != nil || s.Version() != 1 || e.checks != 0 {
				t.Fatalf("got %v, %v after %d checks", s, err, e.checks)
			}
			if got := fileNames(t, store); got != "1: mine" {
				t.Errorf("the table is %s", got)
			}
		})
	}
}

// TestIdleWriter makes sure that a writer that slept while others went on and
// log clean-up removed the commits behind its version, that one included, takes
// no old number: when it looks before its put, and when clean-up comes between
// the look and the put.
func TestIdleWriter(t *testing.T) {
	for _, between := range []bool{false, true} {
		for _, kept := range []int64{10, 11} { // the first commit that clean-up has left
			t.Run(fmt.Sprintf("%v/%d", between, kept), func(t *testing.T) {
				store := memstore.New()
				create(t, store)
				hooked := &hookStore{Store: store}
				idle := open(t, hooked)
				cleanUp := func() {
					hooked.before = nil
					other := open(t, store)
					for i := range 10 {
						if _, err := other.Publish(t.Context(), newEdit(other.Current(), fmt.Sprintf("f%02d", i)).Edit); err != nil {
							t.Error(err)
						}
					}
					if _, err := other.WriteCheckpoint(t.Context(), other.Current()); err != nil {
						t.Error(err)
					}
					for v := range kept {
						if err := store.Delete(t.Context(), deltalog.CommitKey(v)); err != nil {
							t.Error(err)
						}
					}
				}
				if between {
					hooked.before = cleanUp
				} else {
					cleanUp()
				}
				e := newEdit(idle.Current(), "idle")
				s, err := idle.Publish(t.Context(), e.Edit)
				if err != nil || s.Version() != 11 || e.checks != 1 || e.last.Version() != 10 {
					t.Fatalf("got %v, %v after %d checks", s, err, e.checks)
				}
				if got := fileNames(t, store); got != "11: f00 f01 f02 f03 f04 f05 f06 f07 f08 f09 idle" {
					t.Errorf("the table is %s", got)
				}
				if _, err := store.Head(t.Context(), deltalog.CommitKey(1)); !errors.Is(err, objstore.ErrNotExist) {
					t.Errorf("version 1 is there again: %v", err)
				}
			})
		}
	}
}

// TestTakeBackFails makes sure that a commit that could not be taken back is
// not called refused.
func TestTakeBackFails(t *testing.T) {
	store := memstore.New()
	create(t, store)
	deletes := faultstore.Wrap(store, faultstore.Plan{Kind: faultstore.Error, Match: func(op objstore.Op, _ string) bool { return op == objstore.OpDelete }})
	table, err := Open(t.Context(), Config{Store: store, Log: deltalog.New(deletes, deltalog.Options{}), Clock: fixedClock(0)})
	if err != nil {
		t.Fatal(err)
	}
	table.cfg.Store = &hookStore{Store: store, before: func() {
		if err := store.Delete(t.Context(), deltalog.CommitKey(0)); err != nil {
			t.Error(err)
		}
	}}
	if _, err := table.Publish(t.Context(), newEdit(table.Current(), "mine").Edit); tableerr.TokenOf(err) != tableerr.TokenCommitUnknown {
		t.Fatalf("got %v", err)
	}
}

// TestUnconfirmed makes sure that a commit is not acknowledged when the look
// behind it fails.
func TestUnconfirmed(t *testing.T) {
	store := memstore.New()
	create(t, store)
	table := open(t, store)
	gets := faultstore.Wrap(store, faultstore.Plan{At: 1, Kind: faultstore.Error, Match: func(op objstore.Op, key string) bool {
		return op == objstore.OpGet && key == deltalog.CommitKey(0)
	}})
	table.cfg.Log = deltalog.New(gets, deltalog.Options{})
	if _, err := table.Publish(t.Context(), newEdit(table.Current(), "mine").Edit); tableerr.TokenOf(err) != tableerr.TokenCommitUnknown {
		t.Fatalf("got %v", err)
	}
	if got := fileNames(t, store); got != "1: mine" {
		t.Errorf("the table is %s", got)
	}
}

// TestDropped makes sure that a commit that went into a directory which is no
// longer the table's is told apart from one that was not made: its files must
// stay, for the directory may be brought back.
func TestDropped(t *testing.T) {
	house := memstore.New()
	store, err := house.Sub(t.Context(), "ns/t", true)
	if err != nil {
		t.Fatal(err)
	}
	create(t, store)
	table := open(t, store)
	if err := house.Trash(t.Context(), "ns/t", "_trash/t"); err != nil {
		t.Fatal(err)
	}
	s, err := table.Publish(t.Context(), newEdit(table.Current(), "mine").Edit)
	if tableerr.TokenOf(err) != tableerr.TokenTableNotFound || s == nil || s.Version() != 1 {
		t.Fatalf("got %v, %v", s, err)
	}
	if err := house.DeleteTree(t.Context(), "_trash/t"); err != nil {
		t.Fatal(err)
	}
	if s, err := table.Publish(t.Context(), newEdit(table.Current(), "again").Edit); tableerr.TokenOf(err) != tableerr.TokenTableNotFound || s != nil {
		t.Fatalf("after the sweep: %v, %v", s, err)
	}
}

// TestStolenName has the commit that was in the way disappear before it is
// read.
func TestStolenName(t *testing.T) {
	store := memstore.New()
	create(t, store)
	table := open(t, store)
	var hooked *hookStore
	hooked = &hookStore{Store: store,
		before: func() {
			if err := store.PutIfAbsent(t.Context(), deltalog.CommitKey(1), []byte("{}")); err != nil {
				t.Error(err)
			}
		},
		after: func(n int, err error) (int, error) {
			hooked.before, hooked.after = nil, nil
			if err := store.Delete(t.Context(), deltalog.CommitKey(1)); err != nil {
				t.Error(err)
			}
			return n, err
		}}
	table.cfg.Store = hooked
	if s, err := table.Publish(t.Context(), newEdit(table.Current(), "mine").Edit); err != nil || s.Version() != 1 {
		t.Fatalf("got %v, %v", s, err)
	}
}

// TestLostToRival loses the answer of a put that had no effect, and has another
// writer take the version before the edit is put again: it goes on behind the
// other's, or says that it cannot know where it cannot tell whose that is.
func TestLostToRival(t *testing.T) {
	for _, readable := range []bool{true, false} {
		t.Run(fmt.Sprint(readable), func(t *testing.T) {
			store := memstore.New()
			create(t, store)
			table, rival := open(t, store), open(t, store)
			lost := &lostStore{Store: store, put: func([]objstore.Object) {}}
			lost.get = func(key string) ([]byte, error, bool) {
				if key != deltalog.CommitKey(1) {
					return nil, nil, false
				}
				if _, err := rival.Publish(t.Context(), newEdit(rival.Current(), "theirs").Edit); err != nil {
					t.Error(err)
				}
				if _, err := table.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
				lost.get = func(string) ([]byte, error, bool) { return nil, errors.New("no answer"), !readable }
				return nil, objstore.ErrNotExist, true
			}
			first := true
			table.cfg.Store = &firstLost{Store: store, lost: lost, first: &first}
			e := newEdit(table.Current(), "mine")
			s, err := table.Publish(t.Context(), e.Edit)
			if !readable {
				if tableerr.TokenOf(err) != tableerr.TokenCommitUnknown {
					t.Fatalf("got %v, %v", s, err)
				}
				return
			}
			if err != nil || s.Version() != 2 || e.checks != 1 {
				t.Fatalf("got %v, %v after %d checks", s, err, e.checks)
			}
			if got := fileNames(t, store); got != "2: theirs mine" {
				t.Errorf("the table is %s", got)
			}
		})
	}
}

// firstLost loses the answer of the first put of commits alone.
type firstLost struct {
	objstore.Store
	lost  *lostStore
	first *bool
}

func (s *firstLost) PutAllIfAbsent(ctx context.Context, objects []objstore.Object) (int, error) {
	if *s.first {
		*s.first = false
		return s.lost.PutAllIfAbsent(ctx, objects)
	}
	return s.Store.PutAllIfAbsent(ctx, objects)
}

func (s *firstLost) Get(ctx context.Context, key string) ([]byte, error) { return s.lost.Get(ctx, key) }

// TestUnclearKeepsItsNumber makes sure that an edit which may yet turn up under
// one number is not put under another, when the one before it gives up.
func TestUnclearKeepsItsNumber(t *testing.T) {
	store := memstore.New()
	create(t, store)
	first := false
	hold := &holdStore{Store: &firstLost{Store: store, lost: &lostStore{Store: store, put: func([]objstore.Object) {}}, first: &first}}
	table := open(t, store)
	table.cfg.Store = hold
	mine := edits(table, 2)
	commit, calls := mine[0].Commit, 0
	mine[0].Commit = func(s *snapshot.Snapshot) (*deltalog.Commit, error) {
		if calls++; calls == 2 {
			return nil, errors.New("no more")
		}
		first = true // the first edit has landed: the next answer is lost
		return commit(s)
	}
	for i, o := range together(t, table, hold, mine...) {
		if tableerr.TokenOf(o.err) != tableerr.TokenCommitUnknown {
			t.Errorf("edit %d: %v, %v", i, o.s, o.err)
		}
	}
	if got := fileNames(t, store); got != "1: first" {
		t.Errorf("the table is %s", got)
	}
}
