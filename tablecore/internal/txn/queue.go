package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tableerr"
)

// Edit is a change a verb wants committed.
type Edit struct {
	// ID is unique. It stands in the commit, so that a commit whose put was
	// answered unclearly is recognised whenever it turns up.
	ID string
	// Operation is the name of the action or put, for the log and the history.
	Operation string
	// RequestID stands in COMMIT_UNKNOWN: the client's, or else one that the
	// server made and that Commit puts into commitInfo.
	RequestID string
	// Request, when the client gave an id, is what the table is to remember of
	// it, the version left open. An id that the table knows already is never
	// committed again: see KnownRequest.
	Request *snapshot.Request
	// Row is the edit's line of the conflict matrix. ExpectedVersion, when set,
	// is the only version the edit may follow, and makes the line RowPinned.
	Row             Row
	ExpectedVersion *int64
	// Base is the snapshot the edit was checked against, its request id
	// included.
	Base *snapshot.Snapshot
	// Revalidate repeats every check on a snapshot newer than Base and the
	// ones it was called with before.
	Revalidate func(ctx context.Context, s *snapshot.Snapshot) error
	// Replan, for an edit that replaces files, plans it anew for a snapshot, with
	// all of Revalidate's checks. Publish calls it, on the caller's goroutine,
	// when Revalidate has answered ErrReplan; the queue goes on meanwhile.
	Replan func(ctx context.Context, s *snapshot.Snapshot) error
	// Commit returns the actions, without commitInfo's times, for the commit
	// that follows s.
	Commit func(s *snapshot.Snapshot) (*deltalog.Commit, error)
	// Present, where it is set, makes sure right before each put that the files
	// which the commit adds are still there. Its error refuses the edit.
	Present func(ctx context.Context, paths []string) error
}

// ErrReplan is what Edit.Revalidate answers where the edit's plan does not hold
// on a snapshot: a file that it replaces is gone, or there are others that it
// would have to replace.
var ErrReplan = errors.New("the plan of the edit does not hold on this version")

// KnownRequest is the error of an edit whose request id another commit has
// taken meanwhile. Nothing was committed.
type KnownRequest struct {
	Request *snapshot.Request
}

func (e *KnownRequest) Error() string {
	return fmt.Sprintf("request id %q was committed with version %d", e.Request.ID, e.Request.Version)
}

// waiter is an edit in the queue.
type waiter struct {
	*Edit
	checked *snapshot.Snapshot // the snapshot of the last check, perhaps one that has yet to land; nil before the first
	seen    *snapshot.Snapshot // the newest one in the log that it was checked against
	rounds  int
	// unclear is the version of a put that had no clear answer and was not
	// found: it may turn up as long as that version is not in the log. puts
	// counts such puts.
	unclear int64
	puts    int
	done    chan struct{}
	result  *snapshot.Snapshot
	err     error

	data   []byte // the encoded commit of the current round
	commit *deltalog.Commit
	next   *snapshot.Snapshot
}

// again is the waiter of the edit after a new plan, which has to be checked
// like one that is new to the queue.
func (w *waiter) again() *waiter {
	return &waiter{Edit: w.Edit, seen: w.seen, rounds: w.rounds, puts: w.puts, done: make(chan struct{})}
}

func (w *waiter) answer(s *snapshot.Snapshot, err error) {
	w.result, w.err = s, err
	close(w.done)
}

// refuse answers a waiter of whom nothing is in the log up to a version. If one
// of its puts may yet turn up behind that, the outcome is unknown.
func (w *waiter) refuse(newest int64, err error) {
	if w.unclear > newest {
		err = &tableerr.CommitUnknown{RequestID: w.RequestID, Cause: err}
	}
	w.answer(nil, err)
}

// queue holds the edits that wait. Whoever finds no leader leads until the
// queue is empty.
type queue struct {
	mu      sync.Mutex
	waiting []*waiter
	led     bool
}

// Publish commits an edit and returns the snapshot of its version. With an
// error and no snapshot nothing was committed, and what was written for the
// edit may be removed; with COMMIT_UNKNOWN it may have been, and with an error
// beside a snapshot it was, into a directory that is no longer the table's. ctx
// ends the waiting for a turn; a commit that was begun is finished.
func (t *Table) Publish(ctx context.Context, e *Edit) (*snapshot.Snapshot, error) {
	w := &waiter{Edit: e, checked: e.Base, seen: e.Base, done: make(chan struct{})}
	s, err := t.await(ctx, w)
	if err != ErrReplan { // inside COMMIT_UNKNOWN it is no leave to put the edit once more
		return s, err
	}
	// Who plans anew does so alone: of several that replace the same files each
	// would otherwise make the plans of all others worthless.
	select {
	case t.replanning <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-t.replanning }()
	for err == ErrReplan {
		if err := e.Replan(ctx, t.Current()); err != nil {
			return nil, err
		}
		w = w.again()
		s, err = t.await(ctx, w)
	}
	return s, err
}

// await puts a waiter into the queue and returns its answer.
func (t *Table) await(ctx context.Context, w *waiter) (*snapshot.Snapshot, error) {
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
