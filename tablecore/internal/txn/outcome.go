package txn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

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
			for _, w := range ready[landed:] {
				w.unclear = w.commit.Version
				w.puts++
			}
			return landed, errRetry
		case isUnknown:
			return landed, &tableerr.CommitUnknown{RequestID: w.RequestID, Cause: err}
		case errors.Is(readErr, objstore.ErrNotExist): // what took the name has gone
			return landed, errRetry
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
	commit := w.parse(found)
	if commit == nil {
		return false
	}
	next, err := w.checked.Apply(commit)
	if err != nil {
		return false
	}
	w.data, w.commit, w.next = found, commit, next
	return true
}

// parse reads a commit that was found in the waiter's place, nil if it is
// another's.
func (w *waiter) parse(found []byte) *deltalog.Commit {
	commit, err := deltalog.ParseCommit(w.commit.Version, found)
	if err != nil || commit.Info == nil || !bytes.Equal(commit.Info.Extra[extraCommitID], quoted(w.ID)) {
		return nil
	}
	return commit
}

// errRetry says that a commit is not in the log although its put did not fail
// for good.
var errRetry = errors.New("the commit did not land")

// landedLate answers the waiters of whom a put turned up after it had been
// looked for, so that nobody takes his own commit for another's, and returns
// the others.
func (t *Table) landedLate(ctx context.Context, base *snapshot.Snapshot, batch []*waiter) []*waiter {
	return slices.DeleteFunc(batch, func(w *waiter) bool {
		if w.unclear == 0 || w.unclear > base.Version() {
			return false
		}
		found, err := t.cfg.Store.Get(ctx, deltalog.CommitKey(w.unclear))
		switch {
		case err != nil:
			w.answer(nil, &tableerr.CommitUnknown{RequestID: w.RequestID, Cause: err})
		case w.parse(found) != nil:
			t.acknowledge(w)
		default:
			w.unclear = 0
			return false
		}
		return true
	})
}

// confirm acknowledges commits that are in the log, unless the version they
// were made on is no longer there or the table's name leads elsewhere. It
// returns the waiters that lost the race after all.
func (t *Table) confirm(ctx context.Context, base *snapshot.Snapshot, landed []*waiter) []*waiter {
	if len(landed) == 0 {
		return nil
	}
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
		case !current:
			w.answer(w.next, &tableerr.TableNotFound{})
		default:
			t.keep(w.next)
			t.acknowledge(w)
		}
	}
	return nil
}

// acknowledge answers a waiter whose commit is in the log.
func (t *Table) acknowledge(w *waiter) {
	if t.cfg.Committed != nil {
		t.cfg.Committed(w.next, w.Operation)
	}
	w.answer(w.next, nil)
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
	newest := t.Current().Version()
	switch {
	case errors.Is(err, errRetry):
		return slices.DeleteFunc(rest, func(w *waiter) bool {
			if w.puts <= maxUnclear {
				return false
			}
			w.refuse(newest, &tableerr.StoreUnavailable{Cause: err})
			return true
		})
	case errors.Is(err, objstore.ErrExist):
		return t.reload(ctx, rest, t.refresh, func(*snapshot.Snapshot) {})
	case errors.As(err, &unknown): // those behind it were never put, or land on what is unknown
		for _, w := range rest {
			w.answer(nil, &tableerr.CommitUnknown{RequestID: w.RequestID, Cause: unknown.Cause})
		}
		return nil
	default:
		rest[0].refuse(newest, StoreError(fmt.Errorf("publishing version %d: %w", rest[0].commit.Version, err)))
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
		w.refuse(t.Current().Version(), err)
	}
	return nil
}
