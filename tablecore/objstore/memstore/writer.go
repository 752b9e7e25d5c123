package memstore

import (
	"context"

	"contrail/tablecore/objstore"
)

// writer collects the bytes of a new object.
type writer struct {
	store *Store
	key   string
	data  []byte
	ended bool
}

// Create implements [objstore.Store].
func (s *Store) Create(ctx context.Context, key string) (objstore.Writer, error) {
	if err := objstore.CheckWritable(key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &writer{store: s, key: key}, nil
}

// Write implements [objstore.Writer].
func (w *writer) Write(p []byte) (int, error) {
	if w.ended {
		return 0, &objstore.OpError{Op: objstore.OpWrite, Key: w.key, Err: errEnded}
	}
	w.data = append(w.data, p...)
	return len(p), nil
}

// Commit implements [objstore.Writer].
func (w *writer) Commit(ctx context.Context) (int64, error) {
	if w.ended {
		return 0, &objstore.OpError{Op: objstore.OpCommit, Key: w.key, Err: errEnded}
	}
	data := w.data
	w.ended, w.data = true, nil
	if err := w.store.put(ctx, objstore.OpCommit, w.key, data, false); err != nil {
		return 0, err
	}
	return int64(len(data)), nil
}

// Abort implements [objstore.Writer].
func (w *writer) Abort() error {
	w.ended, w.data = true, nil
	return nil
}
