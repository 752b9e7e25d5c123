package tablecore

import (
	"context"
	"sync"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
)

// checkpointTimeout bounds the writing of one checkpoint.
const checkpointTimeout = 5 * time.Minute

// checkpointer writes a table's checkpoints in the background, one at a time.
// A checkpoint that fails costs later readers time and nothing else.
type checkpointer struct {
	table *Table

	mu      sync.Mutex
	running bool
}

// consider starts a checkpoint when the log's tail has become long enough.
func (c *checkpointer) consider(s *snapshot.Snapshot) {
	if !s.State.WantsCheckpoint() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return
	}
	c.running = c.table.warehouse.runInBackground(func() {
		defer c.done()
		ctx, cancel := context.WithTimeout(context.Background(), checkpointTimeout)
		defer cancel()
		if _, err := c.table.txn.WriteCheckpoint(ctx, s); err != nil {
			c.table.warehouse.opts.Events.warn(ctx, "checkpoint failed", map[string]any{
				"table": c.table.name.String(), "version": s.Version(), "error": err.Error()})
		}
	})
}

func (c *checkpointer) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
}

// CheckpointOptions say what a checkpoint is to be written of.
type CheckpointOptions struct {
	// ExpectedVersion, when set, must be the newest version.
	ExpectedVersion *int64
	// TableID, when not empty, must be the table's identity.
	TableID string
}

// Checkpoint writes a checkpoint of the newest version, from which the table
// then opens, and describes it, or the one that is there. It commits nothing.
func (t *Table) Checkpoint(ctx context.Context, o CheckpointOptions) (*CheckpointReport, error) {
	r, err := t.checkpoint(ctx, o)
	return r, t.wrap(storeError(err))
}

func (t *Table) checkpoint(ctx context.Context, o CheckpointOptions) (*CheckpointReport, error) {
	s, err := t.newestWritable(ctx, o.TableID)
	if err != nil {
		return nil, err
	}
	if err := checkExpected(s, o.ExpectedVersion); err != nil {
		return nil, err
	}
	ref, err := t.txn.WriteCheckpoint(ctx, s)
	if err != nil {
		return nil, err
	}
	return &CheckpointReport{Version: ref.Version, Path: deltalog.CheckpointKey(ref.Version), Bytes: ref.Bytes}, nil
}

// runInBackground runs f, unless the warehouse is closed; Close waits for it.
func (w *Warehouse) runInBackground(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.background.Go(f)
	return true
}

// WaitForBackground returns when the background work that was begun has ended.
func (w *Warehouse) WaitForBackground() { w.background.Wait() }
