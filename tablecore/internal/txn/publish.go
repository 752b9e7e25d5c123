package txn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

const (
	// maxRounds is how many lost races one edit survives.
	maxRounds = 100
	// publishTimeout bounds the writing of one round of commits. It runs on a
	// context of its own: what was begun is finished.
	publishTimeout = 2 * time.Minute
	// maxTogether is how many commits are written in one round.
	maxTogether = 64
)

// Edit is a change a verb wants committed.
type Edit struct {
	// ID is unique. It stands in the commit, so that a commit whose put was
	// answered unclearly is recognised whenever it turns up.
	ID string
	// Operation is the name of the action or put, for the log and the history.
	Operation string
	// RequestID is the client's, or one made by the server.
	RequestID string
	// ExpectedVersion, when set, is the only version the edit may follow.
	ExpectedVersion *int64
	// Base is the snapshot the edit was checked against.
	Base *snapshot.Snapshot
	// Revalidate repeats every check on a snapshot newer than Base and the
	// ones it was called with before.
	Revalidate func(ctx context.Context, s *snapshot.Snapshot) error
	// Commit returns the actions, without commitInfo's times, for the commit
	// that follows s.
	Commit func(s *snapshot.Snapshot) (*deltalog.Commit, error)
}

// waiter is an edit in the queue.
type waiter struct {
	*Edit
	checked *snapshot.Snapshot // the snapshot of the last check
	rounds  int
	done    chan struct{}
	result  *snapshot.Snapshot
	err     error

	data   []byte // the encoded commit of the current round
	commit *deltalog.Commit
	next   *snapshot.Snapshot
}

func (w *waiter) answer(s *snapshot.Snapshot, err error) {
	w.result, w.err = s, err
	close(w.done)
}

// queue holds the edits that wait. Whoever finds no leader leads until the
// queue is empty.
type queue struct {
	mu      sync.Mutex
	waiting []*waiter
	led     bool
}

// Publish commits an edit and returns the snapshot of its version. When it
// returns an error other than COMMIT_UNKNOWN nothing was committed. ctx ends
// the waiting for a turn; a commit that was begun is finished.
func (t *Table) Publish(ctx context.Context, e *Edit) (*snapshot.Snapshot, error) {
	w := &waiter{Edit: e, checked: e.Base, done: make(chan struct{})}
	t.queue.mu.Lock()
	t.queue.waiting = append(t.queue.waiting, w)
	lead := !t.queue.led
	t.queue.led = true
	t.queue.mu.Unlock()
	if lead {
		go t.lead()
	}
	select {
	case <-w.done:
		return w.result, w.err
	case <-ctx.Done():
	}
	if t.queue.withdraw(w) {
		return nil, ctx.Err()
	}
	<-w.done
	return w.result, w.err
}

// withdraw takes a waiter back unless its turn has come.
func (q *queue) withdraw(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(x *waiter) bool { return x == w })
	return len(q.waiting) < before
}

// take returns the next waiters, none when the leader may stop.
func (q *queue) take() []*waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), maxTogether)
	if n == 0 {
		q.led = false
		return nil
	}
	taken := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return taken
}

// lead publishes until nobody waits.
func (t *Table) lead() {
	for {
		batch := t.queue.take()
		if batch == nil {
			return
		}
		for len(batch) > 0 {
			batch = t.round(batch)
		}
	}
}

// round tries to publish a batch in order, answers those whose fate is known
// and returns the others.
func (t *Table) round(batch []*waiter) []*waiter {
	ctx, cancel := context.WithTimeout(context.Background(), publishTimeout)
	defer cancel()
	base := t.Current()
	ready := t.prepare(ctx, base, batch)
	if len(ready) == 0 {
		return nil
	}
	// A writer that slept while log clean-up went past its version must not
	// take an old number: it looks before the put, and again after it.
	switch stands, err := t.cfg.Log.Stands(ctx, base.State); {
	case err != nil:
		return t.afterFailure(ctx, ready, err)
	case !stands:
		return t.reload(ctx, ready, t.load, t.replace)
	}
	objects := make([]objstore.Object, len(ready))
	for i, w := range ready {
		objects[i] = objstore.Object{Key: deltalog.CommitKey(w.commit.Version), Data: w.data}
	}
	landed, err := t.cfg.Store.PutAllIfAbsent(ctx, objects)
	landed, err = t.settle(ctx, ready, landed, err)
	if landed > 0 {
		if lost := t.confirm(ctx, base, ready[:landed]); lost != nil {
			return append(lost, ready[landed:]...)
		}
	}
	rest := ready[landed:]
	if err == nil {
		return rest
	}
	return t.afterFailure(ctx, rest, err)
}

// prepare checks and encodes a batch on top of base, each edit on the one
// before it, and answers those that are refused.
func (t *Table) prepare(ctx context.Context, base *snapshot.Snapshot, batch []*waiter) []*waiter {
	var ready []*waiter
	for _, w := range batch {
		if err := t.prepareOne(ctx, base, w); err != nil {
			w.answer(nil, err)
			continue
		}
		base = w.next
		ready = append(ready, w)
	}
	return ready
}

func (t *Table) prepareOne(ctx context.Context, base *snapshot.Snapshot, w *waiter) error {
	if w.ExpectedVersion != nil && *w.ExpectedVersion != base.Version() {
		return &tableerr.VersionConflict{Expected: *w.ExpectedVersion, Found: base.Version()}
	}
	if w.rounds++; w.rounds > maxRounds {
		return &tableerr.VersionConflict{Expected: w.Base.Version(), Found: base.Version()}
	}
	if base != w.checked {
		if err := w.Revalidate(ctx, base); err != nil {
			return err
		}
		w.checked = base
	}
	commit, err := w.Commit(base)
	if err != nil {
		return err
	}
	commit.Version = base.Version() + 1
	commit.Info.Extra[extraCommitID] = quoted(w.ID)
	stamp(commit, base.State.NextTimestamp(t.cfg.Clock().UnixMilli()), t.cfg.Software)
	if w.data, err = deltalog.EncodeCommit(commit); err != nil {
		return err
	}
	// What is kept is what every reader will parse.
	if w.commit, err = deltalog.ParseCommit(commit.Version, w.data); err != nil {
		return err
	}
	w.next, err = base.Apply(w.commit)
	return err
}

// stamp fills in the commit's times and writer.
func stamp(c *deltalog.Commit, ms int64, software string) {
	c.Info.Timestamp, c.Info.InCommitTimestamp = &ms, &ms
	c.Info.EngineInfo = software
	for _, txn := range c.Txns {
		txn.LastUpdated = &ms
	}
	for _, r := range c.Removes {
		r.DeletionTimestamp = ms
	}
}

// settle finds out about commits whose put gave an unclear answer or found the
// name taken, perhaps by themselves. It returns how many of ready are
// certainly in the log and what stopped the others.
func (t *Table) settle(ctx context.Context, ready []*waiter, landed int, err error) (int, error) {
	for landed < len(ready) && err != nil {
		var unknown *objstore.UnknownOutcomeError
		isUnknown := errors.As(err, &unknown)
		if !isUnknown && !errors.Is(err, objstore.ErrExist) {
			return landed, err
		}
		w := ready[landed]
		found, readErr := t.cfg.Store.Get(ctx, deltalog.CommitKey(w.commit.Version))
		switch {
		case readErr == nil && w.owns(found):
			landed++ // what lies behind it may have landed, too
			if !isUnknown {
				return landed, nil
			}
		case readErr == nil:
			return landed, objstore.ErrExist
		case isUnknown && errors.Is(readErr, objstore.ErrNotExist):
			return landed, errRetry
		case isUnknown:
			return landed, &tableerr.CommitUnknown{RequestID: w.RequestID, Cause: err}
		default:
			return landed, readErr
		}
	}
	return landed, nil // each was accounted for
}

// owns says whether a commit that was found is the waiter's, perhaps of an
// earlier round with another time in it, and then takes it over.
func (w *waiter) owns(found []byte) bool {
	if bytes.Equal(found, w.data) {
		return true
	}
	commit, err := deltalog.ParseCommit(w.commit.Version, found)
	if err != nil || commit.Info == nil || !bytes.Equal(commit.Info.Extra[extraCommitID], quoted(w.ID)) {
		return false
	}
	next, err := w.checked.Apply(commit)
	if err != nil {
		return false
	}
	w.data, w.commit, w.next = found, commit, next
	return true
}

// errRetry says that a put certainly had no effect although its answer was
// unclear.
var errRetry = errors.New("the commit did not land")

// confirm acknowledges commits that are in the log, unless the version they
// were made on is no longer there or the table's name leads elsewhere. It
// returns the waiters that lost the race after all.
func (t *Table) confirm(ctx context.Context, base *snapshot.Snapshot, landed []*waiter) []*waiter {
	stands, err := t.cfg.Log.Stands(ctx, base.State)
	if err == nil && !stands {
		return t.takeBack(ctx, landed)
	}
	current := true
	if err == nil {
		current, err = t.cfg.Store.Current(ctx)
	}
	for _, w := range landed {
		switch {
		case err != nil:
			w.answer(nil, &tableerr.CommitUnknown{RequestID: w.RequestID, Cause: err})
			continue
		case !current:
			w.answer(nil, &tableerr.TableNotFound{})
			continue
		}
		t.keep(w.next)
		if t.cfg.Committed != nil {
			t.cfg.Committed(w.next, w.Operation)
		}
		w.answer(w.next, nil)
	}
	return nil
}

// takeBack withdraws commits put behind a version that log clean-up has
// removed meanwhile, newest first, and opens the table anew for another round.
func (t *Table) takeBack(ctx context.Context, landed []*waiter) []*waiter {
	for i, w := range slices.Backward(landed) {
		if err := t.cfg.Log.WithdrawCommit(ctx, w.commit.Version, w.data); err != nil {
			for _, w := range landed[:i+1] {
				w.answer(nil, &tableerr.CommitUnknown{RequestID: w.RequestID, Cause: err})
			}
			landed = landed[i+1:]
			break
		}
	}
	return t.reload(ctx, landed, t.load, t.replace)
}

// afterFailure decides what becomes of the waiters behind a failed put.
func (t *Table) afterFailure(ctx context.Context, rest []*waiter, err error) []*waiter {
	var unknown *tableerr.CommitUnknown
	switch {
	case errors.Is(err, errRetry):
		return rest
	case errors.Is(err, objstore.ErrExist):
		return t.reload(ctx, rest, t.refresh, func(*snapshot.Snapshot) {})
	case errors.As(err, &unknown): // those behind it were never put, or land on what is unknown
		for _, w := range rest {
			w.answer(nil, &tableerr.CommitUnknown{RequestID: w.RequestID, Cause: err})
		}
		return nil
	default:
		rest[0].answer(nil, StoreError(fmt.Errorf("publishing version %d: %w", rest[0].commit.Version, err)))
		return rest[1:]
	}
}

// reload brings the current snapshot up to date before the next round; when
// that fails the waiters are told.
func (t *Table) reload(ctx context.Context, rest []*waiter, load func(context.Context) (*snapshot.Snapshot, error), use func(*snapshot.Snapshot)) []*waiter {
	s, err := load(ctx)
	if err == nil {
		use(s)
		return rest
	}
	for _, w := range rest {
		w.answer(nil, err)
	}
	return nil
}
