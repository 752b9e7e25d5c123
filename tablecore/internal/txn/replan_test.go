package txn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
)

// replacing is an edit that puts its file in the place of all files that begin
// as it does: its plan is what files those are.
type replacing struct {
	*edit
	plan  []string
	plans int // how often it was planned anew
	fail  error
}

// newReplacing plans the replacement of the file "hot" or of those before it in
// its place.
func newReplacing(t *testing.T, base *snapshot.Snapshot, name string) *replacing {
	t.Helper()
	r := &replacing{edit: newEdit(base, "hot-"+name)}
	r.plan = hotFiles(base)
	r.Row = RowOverwrite
	r.Revalidate = func(_ context.Context, s *snapshot.Snapshot) error {
		r.checks++
		r.last = s
		if fmt.Sprint(hotFiles(s)) != fmt.Sprint(r.plan) {
			return ErrReplan
		}
		return r.err
	}
	r.Replan = func(_ context.Context, s *snapshot.Snapshot) error {
		r.plans++
		r.last = s
		r.plan = hotFiles(s)
		return r.fail
	}
	commit := r.Commit
	r.Commit = func(s *snapshot.Snapshot) (*deltalog.Commit, error) {
		c, err := commit(s)
		for _, path := range r.plan {
			c.Removes = append(c.Removes, &deltalog.Remove{Path: path, DataChange: true})
		}
		return c, err
	}
	return r
}

func hotFiles(s *snapshot.Snapshot) []string {
	var hot []string
	for _, f := range s.Files {
		if len(f.Path) >= len("data/hot") && f.Path[:len("data/hot")] == "data/hot" {
			hot = append(hot, f.Path)
		}
	}
	return hot
}

// TestReplan has an edit whose plan does not hold any more meet every kind of
// commit: it is planned anew where the matrix says so, and refused elsewhere.
func TestReplan(t *testing.T) {
	for _, other := range allOfTheirs() {
		t.Run(other.name, func(t *testing.T) {
			store := memstore.New()
			create(t, store)
			table := open(t, store)
			if _, err := table.Publish(t.Context(), newEdit(table.Current(), "old").Edit); err != nil {
				t.Fatal(err)
			}
			base := table.Current()
			other.put(t, store, base)
			r := newReplacing(t, base, "mine")
			r.plan = []string{"data/hot-gone"}
			s, err := table.Publish(t.Context(), r.Edit)
			if RowOverwrite.Meets(other.effects) != Replan {
				var conflict *tableerr.VersionConflict
				if !errors.As(err, &conflict) || conflict.Expected != 1 || conflict.Found != 2 || r.plans != 0 || s != nil {
					t.Fatalf("got %v after %d plans", err, r.plans)
				}
				return
			}
			if err != nil || s.Version() != 3 || r.plans != 1 || r.last.Version() != 2 || len(r.plan) != 0 {
				t.Fatalf("got %v, %v after %d plans, the last on version %d", s, err, r.plans, r.last.Version())
			}
		})
	}
}

// TestReplanInABatch commits several edits together that replace the same file:
// the first goes through, the others are planned anew, each on what the one
// before it has left, and an edit between them waits for none of this.
func TestReplanInABatch(t *testing.T) {
	store := memstore.New()
	create(t, store)
	hold := &holdStore{Store: store}
	table := open(t, hold)
	if _, err := table.Publish(t.Context(), newEdit(table.Current(), "hot").Edit); err != nil {
		t.Fatal(err)
	}
	var mine []*replacing
	var all []*edit
	for i := range 6 {
		mine = append(mine, newReplacing(t, table.Current(), fmt.Sprint(i)))
		all = append(all, mine[i].edit)
	}
	plain := newEdit(table.Current(), "plain")
	all = append(all, plain)
	out := together(t, table, hold, all...)
	for i, o := range out {
		if o.err != nil {
			t.Fatalf("edit %d: %v", i, o.err)
		}
	}
	if v := out[0].s.Version(); v != 3 || mine[0].plans != 0 {
		t.Errorf("the first edit is version %d after %d plans", v, mine[0].plans)
	}
	if v := out[6].s.Version(); v != 4 {
		t.Errorf("the plain edit is version %d, behind those that replace", v)
	}
	for i, r := range mine[1:] {
		if r.plans != 1 || len(r.plan) != 1 {
			t.Errorf("edit %d was planned %d times, at last to replace %q", i+1, r.plans, r.plan)
		}
	}
	s := table.Current()
	if s.Version() != 9 || len(hotFiles(s)) != 1 || len(s.Files) != 3 {
		t.Errorf("the table is %s", fileNames(t, store))
	}
}

// TestReplanTakesTurns has many writers replace the same file at once: each is
// planned anew but a few times, so that nobody loses a hundred races.
func TestReplanTakesTurns(t *testing.T) {
	store := memstore.New()
	create(t, store)
	table := open(t, store)
	if _, err := table.Publish(t.Context(), newEdit(table.Current(), "hot").Edit); err != nil {
		t.Fatal(err)
	}
	const n = 2 * maxRounds
	base := table.Current()
	var group sync.WaitGroup
	plans := make([]int, n)
	for i := range n {
		group.Go(func() {
			r := newReplacing(t, base, fmt.Sprint(i))
			if _, err := table.Publish(t.Context(), r.Edit); err != nil {
				t.Error(err)
			}
			plans[i] = r.plans
		})
	}
	group.Wait()
	total := 0
	for _, p := range plans {
		total += p
	}
	if s := table.Current(); s.Version() != n+1 || len(hotFiles(s)) != 1 || total > 2*n {
		t.Errorf("after %d plans the table is %s", total, fileNames(t, store))
	}
}

// TestReplanFails gives the error of a plan back, with nothing committed.
func TestReplanFails(t *testing.T) {
	store := memstore.New()
	create(t, store)
	table := open(t, store)
	r := newReplacing(t, table.Current(), "mine")
	r.fail = &tableerr.StorageFull{}
	if _, err := open(t, store).Publish(t.Context(), newEdit(table.Current(), "hot").Edit); err != nil {
		t.Fatal(err)
	}
	if s, err := table.Publish(t.Context(), r.Edit); tableerr.TokenOf(err) != tableerr.TokenStorageFull || s != nil {
		t.Fatalf("got %v, %v", s, err)
	}
	if got := fileNames(t, store); got != "1: hot" {
		t.Errorf("the table is %s", got)
	}
	again := newReplacing(t, table.Current(), "again")
	if _, err := table.Publish(t.Context(), again.Edit); err != nil { // the turn was given back
		t.Fatal(err)
	}
}

// TestReplanIsCancelled ends the waiting for the turn to plan with the caller's
// context, and the plan itself.
func TestReplanIsCancelled(t *testing.T) {
	store := memstore.New()
	create(t, store)
	table := open(t, store)
	first, second := newReplacing(t, table.Current(), "first"), newReplacing(t, table.Current(), "second")
	if _, err := open(t, store).Publish(t.Context(), newEdit(table.Current(), "hot").Edit); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	planning := make(chan struct{})
	first.Replan = func(ctx context.Context, _ *snapshot.Snapshot) error {
		close(planning)
		<-ctx.Done()
		return ctx.Err()
	}
	results := make(chan error, 2)
	publish := func(e *Edit) {
		_, err := table.Publish(ctx, e)
		results <- err
	}
	go publish(first.Edit)
	<-planning
	checked := make(chan struct{})
	check := second.Revalidate
	second.Revalidate = func(ctx context.Context, s *snapshot.Snapshot) error {
		defer close(checked)
		return check(ctx, s)
	}
	go publish(second.Edit)
	<-checked
	cancel()
	for range 2 {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if got := fileNames(t, store); got != "1: hot" {
		t.Errorf("the table is %s", got)
	}
}

// TestReplanLosesTheRace has another process replace the file each time the edit
// has been planned anew: after a hundred rounds it is told.
func TestReplanLosesTheRace(t *testing.T) {
	store := memstore.New()
	create(t, store)
	rival := open(t, store)
	lost := 0
	hooked := &hookStore{Store: store, before: func() {
		lost++
		if _, err := rival.Publish(context.Background(), newReplacing(t, rival.Current(), fmt.Sprint("r", lost)).Edit); err != nil {
			t.Error(err)
		}
	}}
	table := open(t, hooked)
	r := newReplacing(t, table.Current(), "mine")
	_, err := table.Publish(t.Context(), r.Edit)
	var conflict *tableerr.VersionConflict
	if !errors.As(err, &conflict) || conflict.Expected != 0 || conflict.Found != int64(lost) || r.plans != maxRounds/2 {
		t.Fatalf("got %v after %d lost races and %d plans", err, lost, r.plans)
	}
}

// secondLost loses the second put of commits, and its answer.
type secondLost struct {
	objstore.Store
	puts int
}

func (s *secondLost) PutAllIfAbsent(ctx context.Context, objects []objstore.Object) (int, error) {
	if s.puts++; s.puts == 2 {
		return 0, &objstore.UnknownOutcomeError{Key: objects[0].Key, Err: errors.New("no answer")}
	}
	return s.Store.PutAllIfAbsent(ctx, objects)
}

// TestUnclearIsNotReplanned makes sure that an edit which may yet turn up in the
// log is not planned anew: it would be there twice, or its first commit would
// name files that the new plan has removed.
func TestUnclearIsNotReplanned(t *testing.T) {
	store := memstore.New()
	create(t, store)
	hold := &holdStore{Store: &secondLost{Store: store}}
	table := open(t, hold)
	r := newReplacing(t, table.Current(), "mine")
	r.Revalidate = func(context.Context, *snapshot.Snapshot) error {
		if r.checks++; r.checks > 1 {
			return ErrReplan
		}
		return nil
	}
	out := together(t, table, hold, newEdit(table.Current(), "before"), r.edit)
	if out[0].err != nil {
		t.Fatal(out[0].err)
	}
	if tableerr.TokenOf(out[1].err) != tableerr.TokenCommitUnknown || r.plans != 0 {
		t.Errorf("got %v after %d plans", out[1].err, r.plans)
	}
	if got := fileNames(t, store); got != "2: first before" {
		t.Errorf("the table is %s", got)
	}
}
