// Package txn publishes commits of one table and keeps the newest snapshot.
//
// Verbs prepare an Edit, with its data files already durable; only this package
// writes to the log. A commit queue serialises the commits of the process and
// writes those that wait together; across processes put-if-absent decides, and
// a lost race is revalidated on the new snapshot and published again. See
// docs/commit.md of tablecore for what is true after each step.
package txn

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// keptSnapshots is how many versions a table keeps in memory.
const keptSnapshots = 32

// Config is what a Table works with.
type Config struct {
	Store    objstore.Store // the table's own
	Log      *deltalog.Log
	Clock    func() time.Time
	Software string // engineInfo of commits
	// Load returns the newest state of the log; default Log.LoadLatest. It may
	// take a shorter way.
	Load func(ctx context.Context) (*deltalog.State, error)
	// Committed is told of each version this process published; it must
	// return quickly. May be nil.
	Committed func(s *snapshot.Snapshot, operation string)
}

// Table is the newest known snapshot of a table and its commit queue. It is
// safe for concurrent use.
type Table struct {
	cfg Config

	mu         sync.Mutex
	recent     []*snapshot.Snapshot // ascending by version, the last is the current one
	checkpoint deltalog.CheckpointRef

	refreshing sync.Mutex // one look into the log at a time

	queue      queue
	replanning chan struct{} // holds the turn of whoever plans an edit anew
}

// Open reads the newest version of a table. Errors are those of the log and of
// snapshot.New.
func Open(ctx context.Context, cfg Config) (*Table, error) {
	t := &Table{cfg: cfg, checkpoint: deltalog.CheckpointRef{Version: -1}, replanning: make(chan struct{}, 1)}
	s, err := t.load(ctx)
	if err != nil {
		return nil, err
	}
	t.keep(s)
	return t, nil
}

// load opens the table anew.
func (t *Table) load(ctx context.Context) (*snapshot.Snapshot, error) {
	load := t.cfg.Load
	if load == nil {
		load = t.cfg.Log.LoadLatest
	}
	state, err := load(ctx)
	if err != nil {
		return nil, StoreError(err)
	}
	return snapshot.New(state)
}

// Current returns the newest snapshot known in memory, without a look into the
// store.
func (t *Table) Current() *snapshot.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recent[len(t.recent)-1]
}

// keep makes s the current snapshot unless a newer one is known.
func (t *Table) keep(s *snapshot.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, found := slices.BinarySearchFunc(t.recent, s.Version(), func(k *snapshot.Snapshot, v int64) int {
		switch {
		case k.Version() < v:
			return -1
		case k.Version() > v:
			return 1
		}
		return 0
	})
	if found {
		return
	}
	t.recent = slices.Insert(t.recent, at, s.WithCheckpoint(t.checkpoint))
	if len(t.recent) > keptSnapshots {
		oldest := 0
		if at == 0 {
			oldest = 1 // s is what was asked for just now
		}
		t.recent = slices.Delete(t.recent, oldest, oldest+1)
	}
}

// WriteCheckpoint writes the checkpoint of a snapshot without what the table
// may forget by now, forgets it in memory, too, and remembers the checkpoint so
// that the next one is written in its time. Errors are those of
// deltalog.WriteCheckpoint.
func (t *Table) WriteCheckpoint(ctx context.Context, s *snapshot.Snapshot) (deltalog.CheckpointRef, error) {
	state, gone := s.Expire(t.cfg.Clock().UnixMilli())
	ref, err := t.cfg.Log.WriteCheckpoint(ctx, state)
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.recent) - 1
	t.recent[last] = t.recent[last].Forget(gone)
	if err != nil {
		return deltalog.CheckpointRef{}, StoreError(err)
	}
	if ref.Version > t.checkpoint.Version {
		t.checkpoint = ref
		t.recent[last] = t.recent[last].WithCheckpoint(ref)
	}
	return ref, nil
}

// replace forgets every snapshot for one that was opened anew.
func (t *Table) replace(s *snapshot.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recent = []*snapshot.Snapshot{s}
	t.checkpoint = deltalog.CheckpointRef{Version: -1}
}

// kept returns the snapshot of a version if it is in memory.
func (t *Table) kept(version int64) *snapshot.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.recent {
		if s.Version() == version {
			return s
		}
	}
	return nil
}

// Refresh asks the store for newer versions and returns the newest. With
// nothing new it costs two store operations.
func (t *Table) Refresh(ctx context.Context) (*snapshot.Snapshot, error) {
	t.refreshing.Lock()
	defer t.refreshing.Unlock()
	return t.refresh(ctx)
}

func (t *Table) refresh(ctx context.Context) (*snapshot.Snapshot, error) {
	s := t.Current()
	_, commits, err := t.cfg.Log.Refresh(ctx, s.State)
	if errors.Is(err, deltalog.ErrReplaced) {
		if s, err = t.load(ctx); err != nil {
			return nil, err
		}
		t.replace(s)
		return s, nil
	}
	if err != nil {
		return nil, StoreError(err)
	}
	for _, c := range commits {
		if s, err = s.Apply(c); err != nil {
			return nil, err
		}
		t.keep(s)
	}
	return s, nil
}

// Follow is Refresh for who does not write on what it returns: with nothing new
// it costs one store operation, since it does not look whether the newest version
// in memory still stands.
func (t *Table) Follow(ctx context.Context) (*snapshot.Snapshot, error) {
	s := t.Current()
	newer, err := t.cfg.Log.HasCommit(ctx, s.Version()+1)
	if err != nil {
		return nil, StoreError(err)
	}
	if !newer {
		return s, nil
	}
	return t.Refresh(ctx)
}

// At returns the snapshot of a version: from memory if it is there, else from
// the log. VERSION_NOT_FOUND and VERSION_EXPIRED name the current version. For
// one in memory, too, newer commits are looked for first: another writer may have
// moved the table to a format that is not read here, or may have expired it.
func (t *Table) At(ctx context.Context, version int64) (*snapshot.Snapshot, error) {
	look := t.Refresh
	if t.kept(version) != nil {
		look = t.Follow
	}
	current, err := look(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case version < 0 || version > current.Version():
		return nil, &tableerr.VersionNotFound{Version: version, Current: current.Version()}
	case version < current.Upkeep.OldestVersion:
		return nil, &tableerr.VersionExpired{Version: version, Current: current.Version()}
	}
	if s := t.kept(version); s != nil {
		return s, nil
	}
	state, err := t.cfg.Log.LoadAt(ctx, version)
	if err != nil {
		return nil, StoreError(err)
	}
	s, err := snapshot.New(state)
	if err != nil {
		return nil, err
	}
	t.keep(s)
	return s, nil
}

// StoreError gives a store's error its type; errors that have one, and those
// of a context, stay as they are.
func StoreError(err error) error {
	var typed tableerr.Error
	switch {
	case err == nil, errors.As(err, &typed), errors.Is(err, io.EOF), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, objstore.ErrNoSpace):
		return &tableerr.StorageFull{Cause: err}
	default:
		return &tableerr.StoreUnavailable{Cause: err}
	}
}
