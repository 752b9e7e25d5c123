package tablecore

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// asOf returns the newest version that was committed at or before a moment, by
// the commits' own times, which ascend. INVALID for a moment in the future,
// VERSION_NOT_FOUND for one before version 0, VERSION_EXPIRED where the log no
// longer has what it would take to tell.
func (t *Table) asOf(ctx context.Context, moment time.Time) (*snapshot.Snapshot, error) {
	current, err := t.txn.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	if ms, ok := current.State.Timestamp(); ok && time.UnixMilli(ms).Compare(moment) <= 0 {
		// The clock may be behind the newest commit, whose own time is no future.
		if now := t.warehouse.opts.Clock(); moment.After(now) && moment.After(time.UnixMilli(ms)) {
			return nil, futureError(moment)
		}
		return current, nil
	}
	// Of the versions 0 … current the first that was committed later is wanted,
	// less one. A commit that is gone is older than any that is there.
	gone := int64(-1)
	later := sort.Search(int(current.Version()), func(v int) bool {
		if err != nil {
			return true
		}
		var at time.Time
		if at, err = t.commitTime(ctx, int64(v)); errors.Is(err, objstore.ErrNotExist) {
			gone, err = max(gone, int64(v)), nil
			return false
		}
		return at.After(moment)
	})
	if err != nil {
		return nil, storeError(err)
	}
	version := int64(later) - 1
	switch {
	case version < 0:
		return nil, &tableerr.VersionNotFound{Version: version, Current: current.Version(),
			Msg: fmt.Sprintf("no version had been committed at %s", moment.UTC().Format(time.RFC3339Nano))}
	case version <= gone:
		return nil, &tableerr.VersionExpired{Version: version, Current: current.Version()}
	}
	return t.txn.At(ctx, version)
}

func futureError(moment time.Time) error {
	text := moment.UTC().Format(time.RFC3339Nano)
	return tableerr.InvalidField("as_of", "as_of lies in the future: %s", text).WithValue(text)
}

// commitTime is when a version was committed: what its commit says, or else the
// time of its file (PROTOCOL.md, In-Commit Timestamps). objstore.ErrNotExist
// when the commit is gone.
func (t *Table) commitTime(ctx context.Context, version int64) (time.Time, error) {
	c, err := t.log.ReadCommit(ctx, version)
	if err != nil {
		return time.Time{}, err
	}
	return t.timeOf(ctx, c)
}

func (t *Table) timeOf(ctx context.Context, c *deltalog.Commit) (time.Time, error) {
	if ms := c.Timestamp(); ms != nil {
		return time.UnixMilli(*ms), nil
	}
	info, err := t.store.Head(ctx, deltalog.CommitKey(c.Version))
	return info.Modified, err
}
