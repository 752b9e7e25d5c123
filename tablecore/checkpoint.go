package tablecore

import (
	"context"
	"sync"
	"time"

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
