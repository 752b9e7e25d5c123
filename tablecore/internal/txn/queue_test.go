package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tableerr"
)

// outcome is what Publish gave.
type outcome struct {
	s   *snapshot.Snapshot
	err error
}

// together runs edits at once, so that all but the first, which is held up in
// its put until they wait, are committed together. The first edit's file is
// "first". It returns what the others were told.
func together(t *testing.T, table *Table, hold *holdStore, edits ...*edit) []outcome {
	t.Helper()
	hold.arm()
	first := make(chan outcome)
	go func() {
		s, err := table.Publish(t.Context(), newEdit(table.Current(), "first").Edit)
		first <- outcome{s, err}
	}()
	<-hold.reached
	results := make([]chan outcome, len(edits))
	for i, e := range edits {
		results[i] = make(chan outcome, 1)
		go func() {
			s, err := table.Publish(t.Context(), e.Edit)
			results[i] <- outcome{s, err}
		}()
		// One after the other, so that the queue has their order.
		eventually(t, func() bool {
			table.queue.mu.Lock()
			defer table.queue.mu.Unlock()
			return len(table.queue.waiting) == i+1
		})
	}
	close(hold.release)
	if o := <-first; o.err != nil {
		t.Fatal(o.err)
	}
	out := make([]outcome, len(edits))
	for i := range edits {
		out[i] = <-results[i]
	}
	return out
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for range 600_000 { // a minute or more
		if ok() {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
	t.Fatal("it did not come to that")
}

// holdStore holds the next put of commits up until it is released.
type holdStore struct {
	objstore.Store
	armed            bool
	reached, release chan struct{}
}

func (s *holdStore) arm() {
	s.armed, s.reached, s.release = true, make(chan struct{}), make(chan struct{})
}

func (s *holdStore) PutAllIfAbsent(ctx context.Context, objects []objstore.Object) (int, error) {
	if s.armed {
		s.armed = false
		close(s.reached)
		<-s.release
	}
	return s.Store.PutAllIfAbsent(ctx, objects)
}

// edits makes n edits on the newest version.
func edits(table *Table, n int) []*edit {
	var out []*edit
	for i := range n {
		out = append(out, newEdit(table.Current(), fmt.Sprintf("f%02d", i)))
	}
	return out
}

// TestGroupCommit makes sure that the commits of 16 waiting edits share one
// wait for the disk, each with its own version, file and answer.
func TestGroupCommit(t *testing.T) {
	store := memstore.New()
	create(t, store)
	meter := meterstore.Wrap(store)
	hold := &holdStore{Store: meter}
	table := open(t, hold)
	meter.Reset()
	for i, o := range together(t, table, hold, edits(table, 16)...) {
		if o.err != nil || o.s.Version() != int64(i+2) {
			t.Errorf("edit %d: version %v, %v", i, o.s, o.err)
		}
	}
	if c := meter.Counts(); c.PutAllIfAbsent != 2 || c.DurableWrites() != 2 {
		t.Errorf("17 commits were written with %s", c)
	}
	want := "17: first"
	for i := range 16 {
		want += fmt.Sprintf(" f%02d", i)
		c, err := deltalog.New(store, deltalog.Options{}).ReadCommit(t.Context(), int64(i+2))
		if err != nil || len(c.Adds) != 1 {
			t.Fatalf("commit %d: %v", i+2, err)
		}
		if _, id, _ := ReadExtra(c.Info); id != fmt.Sprintf("request-f%02d", i) {
			t.Errorf("commit %d has the request id %q", i+2, id)
		}
	}
	if got := fileNames(t, store); got != want {
		t.Errorf("the table is %s, want %s", got, want)
	}
}

// TestBatchFaults makes every kind of fault at every commit of a batch: who is
// told of success is in the table once, who is refused is not in it, and the
// others are not hindered.
func TestBatchFaults(t *testing.T) {
	const n = 5
	for _, kind := range []faultstore.Kind{faultstore.Error, faultstore.ErrorAfterEffect, faultstore.Unknown} {
		for at := range n {
			t.Run(fmt.Sprintf("%s/%d", kind, at), func(t *testing.T) {
				store := memstore.New()
				create(t, store)
				fault := faultstore.Wrap(store, faultstore.Plan{})
				hold := &holdStore{Store: fault}
				table := open(t, hold)
				fault.Arm(faultstore.Plan{At: at + 1, Kind: kind, Match: func(op objstore.Op, _ string) bool { return op == objstore.OpPutAllIfAbsent }})
				mine := edits(table, n)
				want := []string{"first"}
				version := int64(1)
				for i, o := range together(t, table, hold, mine...) {
					if kind == faultstore.Error && i == at {
						if o.s != nil || tableerr.TokenOf(o.err) != tableerr.TokenStoreUnavailable {
							t.Errorf("edit %d: %v, %v", i, o.s, o.err)
						}
						continue
					}
					version++
					if o.err != nil || o.s.Version() != version {
						t.Errorf("edit %d: %v, %v", i, o.s, o.err)
						continue
					}
					want = append(want, fmt.Sprintf("f%02d", i))
					if kind == faultstore.Error && i > at && mine[i].last.Version() != version-1 {
						t.Errorf("edit %d was last checked on version %d", i, mine[i].last.Version())
					}
				}
				if got, want := fileNames(t, store), fmt.Sprintf("%d: %s", version, join(want)); got != want {
					t.Errorf("the table is %s, want %s", got, want)
				}
			})
		}
	}
}

func join(names []string) string {
	out := names[0]
	for _, n := range names[1:] {
		out += " " + n
	}
	return out
}

// TestRefusedByWhoDidNotLand makes sure that nobody is refused because of a
// commit that has yet to land, and then does not.
func TestRefusedByWhoDidNotLand(t *testing.T) {
	store := memstore.New()
	create(t, store)
	fault := faultstore.Wrap(store, faultstore.Plan{})
	hold := &holdStore{Store: fault}
	table := open(t, hold)
	fault.Arm(faultstore.Plan{At: 1, Kind: faultstore.Error, Match: func(op objstore.Op, _ string) bool { return op == objstore.OpPutAllIfAbsent }})
	mine := edits(table, 3)
	check := mine[1].Revalidate
	mine[1].Revalidate = func(ctx context.Context, s *snapshot.Snapshot) error { // overlaps the one before it
		if s.State.File("data/f00") != nil {
			return &tableerr.IntervalOverlap{Version: s.Version()}
		}
		return check(ctx, s)
	}
	out := together(t, table, hold, mine...)
	if out[0].err == nil || out[1].err != nil || out[2].err != nil {
		t.Fatalf("got %v", out)
	}
	if got := fileNames(t, store); got != "3: first f01 f02" && got != "3: first f02 f01" {
		t.Errorf("the table is %s", got)
	}
}

// TestWithdrawn makes sure that an edit that was cancelled while it waited is
// not committed.
func TestWithdrawn(t *testing.T) {
	store := memstore.New()
	create(t, store)
	hold := &holdStore{Store: store}
	table := open(t, hold)
	ctx, cancel := context.WithCancel(t.Context())
	hold.arm()
	first := make(chan error)
	go func() {
		_, err := table.Publish(ctx, newEdit(table.Current(), "first").Edit) // cancelled in its put: finished all the same
		first <- err
	}()
	<-hold.reached
	second := make(chan error)
	go func() {
		_, err := table.Publish(ctx, newEdit(table.Current(), "second").Edit)
		second <- err
	}()
	eventually(t, func() bool {
		table.queue.mu.Lock()
		defer table.queue.mu.Unlock()
		return len(table.queue.waiting) == 1
	})
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("the second was told %v", err)
	}
	close(hold.release)
	if err := <-first; err != nil {
		t.Errorf("the first was told %v", err)
	}
	if got := fileNames(t, store); got != "1: first" {
		t.Errorf("the table is %s", got)
	}
}

// TestEndlessRace gives up after a hundred lost races.
func TestEndlessRace(t *testing.T) {
	store := memstore.New()
	create(t, store)
	rival := open(t, store)
	lost := 0
	hooked := &hookStore{Store: store, before: func() {
		lost++
		if _, err := rival.Publish(context.Background(), newEdit(rival.Current(), fmt.Sprint("r", lost)).Edit); err != nil {
			t.Error(err)
		}
	}}
	table := open(t, hooked)
	_, err := table.Publish(t.Context(), newEdit(table.Current(), "mine").Edit)
	var conflict *tableerr.VersionConflict
	if !errors.As(err, &conflict) || conflict.Expected != 0 || conflict.Found != maxRounds || lost != maxRounds {
		t.Fatalf("got %v after %d lost races", err, lost)
	}
}

// hookStore calls a function before each put of commits, and another after it.
type hookStore struct {
	objstore.Store
	before func()
	after  func(n int, err error) (int, error)
}

func (s *hookStore) PutAllIfAbsent(ctx context.Context, objects []objstore.Object) (int, error) {
	if s.before != nil {
		s.before()
	}
	n, err := s.Store.PutAllIfAbsent(ctx, objects)
	if s.after != nil {
		return s.after(n, err)
	}
	return n, err
}

// TestTwoProcesses has two tables on one store publish by turns, without a look
// at the log in between.
func TestTwoProcesses(t *testing.T) {
	store := memstore.New()
	create(t, store)
	tables := []*Table{open(t, store), open(t, store)}
	var want []string
	for i := range 20 {
		table := tables[i%2]
		name := fmt.Sprintf("f%02d", i)
		if _, err := table.Publish(t.Context(), newEdit(table.Current(), name).Edit); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	if got := fileNames(t, store); got != "20: "+join(want) {
		t.Errorf("the table is %s", got)
	}
	if !slices.IsSorted(want) {
		t.Fatal("the test is wrong")
	}
}
