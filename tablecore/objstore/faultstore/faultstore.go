// Package faultstore makes an object store fail, or stop for good, at a chosen operation. A test runs an operation of
// the table engine once without a fault to learn how many store operations it makes, then once for each of them and each
// kind of fault, and looks at what is left in the wrapped store.
package faultstore

import (
	"context"
	"iter"
	"slices"

	"contrail/tablecore/objstore"
)

// Store passes operations to another store until the one that the plan picks. Stores that Sub returns, and the readers
// and writers of all of them, share its plan and its count of operations.
//
// Every method of a store counts as one operation, PutAllIfAbsent and DeleteAll as one for each object; so
// do ReadAt, Write, Commit, and an Abort of a writer that has not ended. Close never counts and never fails by plan.
type Store struct {
	inner objstore.Store
	state *state
}

var _ objstore.Store = (*Store)(nil)

// Wrap returns a store that does what inner does, but for the plan. Close closes inner.
func Wrap(inner objstore.Store, plan Plan) *Store {
	return &Store{inner: inner, state: &state{plan: plan}}
}

// Arm sets a new plan, starts counting from 0, and brings a stopped store back to life.
func (s *Store) Arm(plan Plan) {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	s.state.plan, s.state.ops, s.state.trace, s.state.stopped = plan, 0, nil, false
}

// Ops returns how many operations were counted since Wrap or Arm.
func (s *Store) Ops() int {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	return s.state.ops
}

// Trace returns the operations that were counted, each with its key. The one at index i has the number i.
func (s *Store) Trace() []string {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	return slices.Clone(s.state.trace)
}

// Stopped reports whether the store has stopped.
func (s *Store) Stopped() bool {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	return s.state.stopped
}

// do runs an operation as its plan says. undo gives back what a call has returned that nobody will get.
func do[T any](s *state, op objstore.Op, key string, publishes bool, call func() (T, error), undo func(T)) (T, error) {
	var none T
	plan, err := s.step(op, key)
	if err != nil {
		return none, err
	}
	if !plan.Kind.takesEffect() {
		return none, plan.failure(op, key, publishes)
	}
	result, err := call()
	switch {
	case plan.Kind == None:
		return result, err
	case err == nil:
		undo(result)
	case !plan.Kind.stops():
		return none, err // it had no effect by itself
	}
	return none, plan.failure(op, key, publishes)
}

// run is do for an operation that returns nothing.
func run(s *state, op objstore.Op, key string, publishes bool, call func() error) error {
	_, err := do(s, op, key, publishes, func() (struct{}, error) { return struct{}{}, call() }, forget)
	return err
}

// several runs an operation on objects in their order, as one on each: call does it to the first n. A fault at an object
// lets those before it take effect; where its error comes after the effect and the operation publishes, all do.
func several(s *state, op objstore.Op, keys []string, publishes bool, call func(n int) (int, error)) (int, error) {
	hit, plan, err := s.steps(op, keys)
	if err != nil {
		return 0, err
	}
	last := hit
	switch {
	case plan.Kind == None, plan.Kind == ErrorAfterEffect && publishes:
		last = len(keys)
	case plan.Kind.takesEffect():
		last = hit + 1
	}
	n, err := call(last)
	switch {
	case plan.Kind == None:
		return n, err
	case plan.Kind.stops():
		return 0, ErrStopped
	case err != nil && n <= hit:
		return n, err
	}
	return hit, plan.failure(op, keys[hit], publishes)
}

// forget is the undo of results that need none.
func forget[T any](T) {}

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	call := func() ([]byte, error) { return s.inner.Get(ctx, key) }
	return do(s.state, objstore.OpGet, key, false, call, forget)
}

// Open implements [objstore.Store].
func (s *Store) Open(ctx context.Context, key string) (objstore.Reader, error) {
	call := func() (objstore.Reader, error) {
		r, err := s.inner.Open(ctx, key)
		if err != nil {
			return nil, err
		}
		return &reader{Reader: r, state: s.state, key: key}, nil
	}
	return do(s.state, objstore.OpOpen, key, false, call, func(r objstore.Reader) { _ = r.Close() })
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return run(s.state, objstore.OpPut, key, true, func() error { return s.inner.Put(ctx, key, data) })
}

// PutIfAbsent implements [objstore.Store].
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return run(s.state, objstore.OpPutIfAbsent, key, true, func() error { return s.inner.PutIfAbsent(ctx, key, data) })
}

// PutAllIfAbsent implements [objstore.Store]. A fault at an object lets those before it land. With ErrorAfterEffect those
// behind it land too, as when the last fsync of all fails; with Unknown none of them does.
func (s *Store) PutAllIfAbsent(ctx context.Context, objects []objstore.Object) (int, error) {
	keys := make([]string, len(objects))
	for i, o := range objects {
		keys[i] = o.Key
	}
	return several(s.state, objstore.OpPutAllIfAbsent, keys, true, func(n int) (int, error) { return s.inner.PutAllIfAbsent(ctx, objects[:n]) })
}

// Create implements [objstore.Store].
func (s *Store) Create(ctx context.Context, key string) (objstore.Writer, error) {
	call := func() (objstore.Writer, error) {
		w, err := s.inner.Create(ctx, key)
		if err != nil {
			return nil, err
		}
		return &writer{inner: w, state: s.state, key: key}, nil
	}
	undo := func(w objstore.Writer) {
		if !s.Stopped() {
			_ = w.(*writer).inner.Abort() // the caller, who is alive, gets no writer to end
		}
	}
	return do(s.state, objstore.OpCreate, key, false, call, undo)
}

// Head implements [objstore.Store].
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	call := func() (objstore.Info, error) { return s.inner.Head(ctx, key) }
	return do(s.state, objstore.OpHead, key, false, call, forget)
}

// List implements [objstore.Store]. A listing is an operation each time it is gone through; its error after the effect
// comes behind the last object.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		plan, err := s.state.step(objstore.OpList, prefix)
		if err != nil {
			yield(objstore.Info{}, err)
			return
		}
		if plan.Kind.takesEffect() {
			for info, err := range s.inner.List(ctx, prefix, after) {
				if !yield(info, err) || err != nil {
					return
				}
			}
		}
		if plan.Kind != None {
			yield(objstore.Info{}, plan.failure(objstore.OpList, prefix, false))
		}
	}
}

// ListDirs implements [objstore.Store].
func (s *Store) ListDirs(ctx context.Context, prefix string) ([]string, error) {
	call := func() ([]string, error) { return s.inner.ListDirs(ctx, prefix) }
	return do(s.state, objstore.OpListDirs, prefix, false, call, forget)
}

// Delete implements [objstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	return run(s.state, objstore.OpDelete, key, false, func() error { return s.inner.Delete(ctx, key) })
}

// DeleteAll implements [objstore.Store]. A fault at an object lets those before it go.
func (s *Store) DeleteAll(ctx context.Context, keys []string) (int, error) {
	return several(s.state, objstore.OpDeleteAll, keys, false, func(n int) (int, error) { return s.inner.DeleteAll(ctx, keys[:n]) })
}

// Sub implements [objstore.Store].
func (s *Store) Sub(ctx context.Context, prefix string, create bool) (objstore.Store, error) {
	call := func() (objstore.Store, error) {
		sub, err := s.inner.Sub(ctx, prefix, create)
		if err != nil {
			return nil, err
		}
		return &Store{inner: sub, state: s.state}, nil
	}
	return do(s.state, objstore.OpSub, prefix, false, call, func(sub objstore.Store) { _ = sub.Close() })
}

// Current implements [objstore.Store].
func (s *Store) Current(ctx context.Context) (bool, error) {
	call := func() (bool, error) { return s.inner.Current(ctx) }
	return do(s.state, objstore.OpCurrent, "", false, call, forget)
}

// Trash implements [objstore.Store].
func (s *Store) Trash(ctx context.Context, prefix, target string) error {
	return run(s.state, objstore.OpTrash, prefix, true, func() error { return s.inner.Trash(ctx, prefix, target) })
}

// DeleteTree implements [objstore.Store].
func (s *Store) DeleteTree(ctx context.Context, prefix string) error {
	return run(s.state, objstore.OpDeleteTree, prefix, false, func() error { return s.inner.DeleteTree(ctx, prefix) })
}

// Close implements [objstore.Store].
func (s *Store) Close() error { return s.inner.Close() }
