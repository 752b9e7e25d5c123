// Package meterstore counts what is asked of an object store, so that tests and reports can say what an operation costs
// in requests and bytes.
package meterstore

import (
	"context"
	"iter"

	"contrail/tablecore/objstore"
)

// Store counts the operations of another store. Stores that Sub returns, and the readers and writers of all of them,
// count into the same meter.
type Store struct {
	inner objstore.Store
	meter *meter
}

var _ objstore.Store = (*Store)(nil)

// Wrap returns a store that does what inner does and counts it. Close closes inner.
func Wrap(inner objstore.Store) *Store { return &Store{inner: inner, meter: &meter{}} }

// Counts returns what was counted since Wrap or Reset. It may be called at any time.
func (s *Store) Counts() Counts {
	s.meter.mu.Lock()
	defer s.meter.mu.Unlock()
	return s.meter.counts
}

// Reset sets all counts to zero and returns what they were.
func (s *Store) Reset() Counts {
	s.meter.mu.Lock()
	defer s.meter.mu.Unlock()
	counts := s.meter.counts
	s.meter.counts = Counts{}
	return counts
}

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	data, err := s.inner.Get(ctx, key)
	s.meter.add(func(c *Counts) { c.Get++; c.BytesRead += int64(len(data)) })
	return data, err
}

// Open implements [objstore.Store].
func (s *Store) Open(ctx context.Context, key string) (objstore.Reader, error) {
	s.meter.add(func(c *Counts) { c.Open++ })
	r, err := s.inner.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	return &reader{Reader: r, meter: s.meter}, nil
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	err := s.inner.Put(ctx, key, data)
	s.meter.add(func(c *Counts) { c.Put++; c.wrote(len(data), err) })
	return err
}

// PutIfAbsent implements [objstore.Store].
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	err := s.inner.PutIfAbsent(ctx, key, data)
	s.meter.add(func(c *Counts) { c.PutIfAbsent++; c.wrote(len(data), err) })
	return err
}

// PutAllIfAbsent implements [objstore.Store].
func (s *Store) PutAllIfAbsent(ctx context.Context, objects []objstore.Object) (int, error) {
	n, err := s.inner.PutAllIfAbsent(ctx, objects)
	s.meter.add(func(c *Counts) {
		c.PutAllIfAbsent++
		for _, o := range objects[:n] {
			c.wrote(len(o.Data), nil)
		}
	})
	return n, err
}

// Create implements [objstore.Store].
func (s *Store) Create(ctx context.Context, key string) (objstore.Writer, error) {
	s.meter.add(func(c *Counts) { c.Create++ })
	w, err := s.inner.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	return &writer{inner: w, meter: s.meter}, nil
}

// Head implements [objstore.Store].
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	s.meter.add(func(c *Counts) { c.Head++ })
	return s.inner.Head(ctx, key)
}

// List implements [objstore.Store]. A listing counts each time it is gone through.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		s.meter.add(func(c *Counts) { c.List++ })
		for info, err := range s.inner.List(ctx, prefix, after) {
			if err == nil {
				s.meter.add(func(c *Counts) { c.Listed++ })
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// ListDirs implements [objstore.Store].
func (s *Store) ListDirs(ctx context.Context, prefix string) ([]string, error) {
	s.meter.add(func(c *Counts) { c.ListDirs++ })
	return s.inner.ListDirs(ctx, prefix)
}

// Delete implements [objstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	s.meter.add(func(c *Counts) { c.Delete++ })
	return s.inner.Delete(ctx, key)
}

// DeleteAll implements [objstore.Store].
func (s *Store) DeleteAll(ctx context.Context, keys []string) (int, error) {
	s.meter.add(func(c *Counts) { c.DeleteAll++ })
	return s.inner.DeleteAll(ctx, keys)
}

// Sub implements [objstore.Store].
func (s *Store) Sub(ctx context.Context, prefix string, create bool) (objstore.Store, error) {
	s.meter.add(func(c *Counts) { c.Sub++ })
	sub, err := s.inner.Sub(ctx, prefix, create)
	if err != nil {
		return nil, err
	}
	return &Store{inner: sub, meter: s.meter}, nil
}

// Current implements [objstore.Store].
func (s *Store) Current(ctx context.Context) (bool, error) {
	s.meter.add(func(c *Counts) { c.Current++ })
	return s.inner.Current(ctx)
}

// Trash implements [objstore.Store].
func (s *Store) Trash(ctx context.Context, prefix, target string) error {
	s.meter.add(func(c *Counts) { c.Trash++ })
	return s.inner.Trash(ctx, prefix, target)
}

// DeleteTree implements [objstore.Store].
func (s *Store) DeleteTree(ctx context.Context, prefix string) error {
	s.meter.add(func(c *Counts) { c.DeleteTree++ })
	return s.inner.DeleteTree(ctx, prefix)
}

// Close implements [objstore.Store].
func (s *Store) Close() error { return s.inner.Close() }

// reader counts what is read of one object.
type reader struct {
	objstore.Reader
	meter *meter
}

// ReadAt implements [objstore.Reader].
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.Reader.ReadAt(p, off)
	r.meter.add(func(c *Counts) { c.ReadAt++; c.BytesRead += int64(n) })
	return n, err
}

// writer counts what is written to one object.
type writer struct {
	inner objstore.Writer
	meter *meter
}

// Write implements [objstore.Writer].
func (w *writer) Write(p []byte) (int, error) { return w.inner.Write(p) }

// Commit implements [objstore.Writer].
func (w *writer) Commit(ctx context.Context) (int64, error) {
	size, err := w.inner.Commit(ctx)
	w.meter.add(func(c *Counts) { c.Commit++; c.BytesWritten += size })
	return size, err
}

// Abort implements [objstore.Writer]. It is counted when it is called, after a Commit too.
func (w *writer) Abort() error {
	w.meter.add(func(c *Counts) { c.Abort++ })
	return w.inner.Abort()
}
