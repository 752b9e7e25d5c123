package faultstore

import (
	"context"
	"errors"

	"contrail/tablecore/objstore"
)

// reader reads an object until the plan's operation.
type reader struct {
	objstore.Reader
	state *state
	key   string
}

// ReadAt implements [objstore.Reader].
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	plan, err := r.state.step(objstore.OpReadAt, r.key)
	if err != nil {
		return 0, err
	}
	if plan.Kind != None {
		return 0, plan.failure(objstore.OpReadAt, r.key, false)
	}
	return r.Reader.ReadAt(p, off)
}

// writer writes an object until the plan's operation. A writer of a stopped store leaves behind what a dead process
// would leave.
type writer struct {
	inner objstore.Writer
	state *state
	key   string
	ended bool
}

// Write implements [objstore.Writer].
func (w *writer) Write(p []byte) (int, error) {
	call := func() (int, error) { return w.inner.Write(p) }
	return do(w.state, objstore.OpWrite, w.key, false, call, forget)
}

// Commit implements [objstore.Writer].
func (w *writer) Commit(ctx context.Context) (int64, error) {
	w.ended = true
	call := func() (int64, error) { return w.inner.Commit(ctx) }
	size, err := do(w.state, objstore.OpCommit, w.key, true, call, forget)
	if err != nil && !errors.Is(err, ErrStopped) {
		// A Commit that fails has removed what was written; where the inner one was not called, this does it.
		err = errors.Join(err, w.inner.Abort())
	}
	return size, err
}

// Abort implements [objstore.Writer].
func (w *writer) Abort() error {
	if w.ended {
		return nil
	}
	w.ended = true
	return run(w.state, objstore.OpAbort, w.key, false, w.inner.Abort)
}
