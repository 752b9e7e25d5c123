package txn

import (
	"context"
	"errors"
	"maps"
	"strconv"
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
	// maxUnclear is how often an edit is put again after a put that had no clear
	// answer and left nothing behind.
	maxUnclear = 3
)

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
	ready, later := t.prepare(ctx, base, t.landedLate(ctx, base, batch))
	if len(ready) == 0 {
		return nil
	}
	return append(t.write(ctx, base, ready), later...)
}

// write puts the commits of edits that are ready, in order, on top of base,
// answers those whose fate is known and returns the others.
func (t *Table) write(ctx context.Context, base *snapshot.Snapshot, ready []*waiter) []*waiter {
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
	lost := t.confirm(ctx, base, ready[:landed])
	rest := ready[landed:]
	if err != nil {
		rest = t.afterFailure(ctx, rest, err)
	}
	return append(lost, rest...)
}

// prepare checks and encodes a batch on top of base, each edit on the one
// before it, and answers those that are refused. A refusal holds only on a
// version that is in the log: who is refused because of an edit that has yet to
// land is checked again when it has.
func (t *Table) prepare(ctx context.Context, base *snapshot.Snapshot, batch []*waiter) (ready, later []*waiter) {
	next := base
	for _, w := range batch {
		err := t.prepareOne(ctx, next, w)
		switch {
		case err == nil:
			if next == base {
				w.seen = base
			}
			next = w.next
			ready = append(ready, w)
		case next == base:
			w.refuse(base.Version(), err)
		default:
			later = append(later, w)
		}
	}
	return ready, later
}

func (t *Table) prepareOne(ctx context.Context, base *snapshot.Snapshot, w *waiter) error {
	if w.rounds++; w.rounds > maxRounds {
		return &tableerr.VersionConflict{Expected: w.Base.Version(), Found: base.Version()}
	}
	if w.unclear > 0 && w.unclear != base.Version()+1 {
		// Put under another number it would be there twice if the first put
		// turned up.
		return &tableerr.CommitUnknown{RequestID: w.RequestID, Cause: errRetry}
	}
	now := t.cfg.Clock().UnixMilli()
	if base != w.checked {
		if err := w.check(ctx, base, now); err != nil {
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
	if r := w.Request; r != nil {
		commit.Txns = append(commit.Txns, &deltalog.Txn{AppID: r.AppID(), Version: commit.Version})
	}
	stamp(commit, base.State.NextTimestamp(now), t.cfg.Software)
	noteEnablement(commit, base.State)
	if w.data, err = deltalog.EncodeCommit(commit); err != nil {
		return err
	}
	// What is kept is what every reader will parse.
	if w.commit, err = deltalog.ParseCommit(commit.Version, w.data); err != nil {
		return err
	}
	if err := w.present(ctx); err != nil {
		return err
	}
	w.next, err = base.Apply(w.commit)
	return err
}

// present makes sure that the files that the waiter's commit adds are there.
func (w *waiter) present(ctx context.Context) error {
	if w.Present == nil {
		return nil
	}
	paths := make([]string, 0, len(w.commit.Adds))
	for _, a := range w.commit.Adds {
		path, err := a.File()
		if err != nil {
			return err
		}
		paths = append(paths, path)
	}
	return w.Present(ctx, paths)
}

// check judges an edit on a snapshot that it was not checked against: is its
// request id known by now, what does the conflict matrix say to the commits in
// between, and does the edit stand its own checks.
func (w *waiter) check(ctx context.Context, base *snapshot.Snapshot, now int64) error {
	// Another writer may have moved the table to a format that it takes newer
	// software to write: that is told before anything else.
	if err := base.Def.Format.CheckWritable(); err != nil {
		return err
	}
	if w.Request != nil {
		if known := base.Request(w.Request.ID, now); known != nil {
			return &KnownRequest{Request: known}
		}
	}
	row := w.Row
	if w.ExpectedVersion != nil {
		row = RowPinned
	}
	verdict := row.Meets(base.EffectsSince(w.seen.Version()))
	if verdict != Refuse {
		err := w.Revalidate(ctx, base)
		if verdict == Replan || !errors.Is(err, ErrReplan) {
			return err
		}
	}
	expected := w.seen.Version()
	if w.ExpectedVersion != nil {
		expected = *w.ExpectedVersion
	}
	return &tableerr.VersionConflict{Expected: expected, Found: base.Version()}
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

// Delta's properties that say from when on a table has in-commit timestamps,
// where it did not have them from its beginning (PROTOCOL.md, In-Commit
// Timestamps).
const (
	keyTimestamps          = "delta.enableInCommitTimestamps"
	keyTimestampsVersion   = "delta.inCommitTimestampEnablementVersion"
	keyTimestampsTimestamp = "delta.inCommitTimestampEnablementTimestamp"
)

// noteEnablement writes down in a stamped commit that turns in-commit timestamps
// on that it does.
func noteEnablement(c *deltalog.Commit, before *deltalog.State) {
	if c.Metadata == nil || c.Metadata.Configuration[keyTimestamps] != "true" || before.InCommitTimestamps() {
		return
	}
	m := *c.Metadata
	m.Configuration = maps.Clone(m.Configuration)
	m.Configuration[keyTimestampsVersion] = strconv.FormatInt(c.Version, 10)
	m.Configuration[keyTimestampsTimestamp] = strconv.FormatInt(*c.Info.InCommitTimestamp, 10)
	c.Metadata = &m
}
