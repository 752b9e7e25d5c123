package localfs

import (
	"bufio"
	"context"
	"sync"

	"contrail/tablecore/objstore"
)

// writeBuffer is how many bytes a writer collects before it writes to the file.
const writeBuffer = 128 << 10

var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBuffer) }}

// writer streams an object into a draft.
type writer struct {
	draft *draft
	buf   *bufio.Writer // nil when the writer has ended
}

// Create implements [objstore.Store].
func (s *Store) Create(ctx context.Context, key string) (objstore.Writer, error) {
	if err := objstore.CheckWritable(key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, err := s.newDraft(key)
	if err != nil {
		return nil, wrap(objstore.OpCreate, key, err)
	}
	buf := buffers.Get().(*bufio.Writer)
	buf.Reset(d)
	return &writer{draft: d, buf: buf}, nil
}

// Write implements [objstore.Writer]. An error of the file stays: Commit returns it again.
func (w *writer) Write(p []byte) (int, error) {
	if w.buf == nil {
		return 0, &objstore.OpError{Op: objstore.OpWrite, Key: w.draft.key, Err: errEnded}
	}
	n, err := w.buf.Write(p)
	if err != nil {
		return n, wrap(objstore.OpWrite, w.draft.key, err)
	}
	return n, nil
}

// Commit implements [objstore.Writer].
func (w *writer) Commit(ctx context.Context) (int64, error) {
	if w.buf == nil {
		return 0, &objstore.OpError{Op: objstore.OpCommit, Key: w.draft.key, Err: errEnded}
	}
	err := ctx.Err()
	if err == nil {
		err = w.buf.Flush()
	}
	if err == nil {
		err = w.draft.harden()
	}
	if err == nil {
		_, err = w.draft.store.publish(ctx, []*draft{w.draft}, false)
	}
	_ = w.end() // see remove
	if err != nil {
		return 0, wrap(objstore.OpCommit, w.draft.key, err)
	}
	return w.draft.size, nil
}

// Abort implements [objstore.Writer].
func (w *writer) Abort() error {
	if w.buf == nil {
		return nil
	}
	if err := w.end(); err != nil {
		return wrap(objstore.OpAbort, w.draft.key, err)
	}
	return nil
}

// end gives back what the writer holds.
func (w *writer) end() error {
	w.buf.Reset(nil)
	buffers.Put(w.buf)
	w.buf = nil
	return w.draft.remove()
}
