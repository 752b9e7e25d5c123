// Package memstore is an object store in memory, for tests and for tables that need not outlive the process. It behaves
// as localfs does, directories held by sub-stores included: a sub-store goes on working after its directory was moved.
package memstore

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"contrail/tablecore/objstore"
)

// Store is an in-memory [objstore.Store]. The zero value is not usable; see New.
type Store struct {
	tree   *tree
	root   *node
	parent *Store // nil for a store made by New
	name   string // the directory's name in parent
}

// tree is what a store and its sub-stores share.
type tree struct {
	mu  sync.RWMutex // guards all nodes
	now func() time.Time
}

// node is a directory when children is not nil, else an object. The bytes of an object never change.
type node struct {
	children map[string]*node
	data     []byte
	modified time.Time
	removed  bool // a directory that DeleteTree has taken away
}

var _ objstore.Store = (*Store)(nil)

// New returns an empty store whose modification times come from a clock of its own: the first change is made at the
// start of the year 2000, and each takes a millisecond.
func New() *Store {
	now := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	return NewWithClock(func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	})
}

// NewWithClock returns an empty store that takes modification times from now, which is not called concurrently.
func NewWithClock(now func() time.Time) *Store {
	return &Store{tree: &tree{now: now}, root: newDir()}
}

func newDir() *node { return &node{children: make(map[string]*node)} }

func (n *node) isDir() bool { return n.children != nil }

// find returns the node at a checked path below n, or nil; "" is n itself.
func (n *node) find(path string) *node {
	for more := path != ""; more && n != nil; {
		var part string
		part, path, more = strings.Cut(path, "/")
		n = n.children[part]
	}
	return n
}

// makeDir returns the directory at a checked path below n, making what is missing of it.
func (n *node) makeDir(path string) (*node, error) {
	for more := path != ""; more; {
		var part string
		part, path, more = strings.Cut(path, "/")
		child := n.children[part]
		switch {
		case n.removed:
			return nil, objstore.ErrNotExist
		case child == nil:
			child = newDir()
			n.children[part] = child
		case !child.isDir():
			return nil, errNotDir
		}
		n = child
	}
	if n.removed {
		return nil, objstore.ErrNotExist
	}
	return n, nil
}

// split cuts a key into its directory ("" for none) and its last part.
func split(key string) (dir, base string) {
	i := strings.LastIndexByte(key, '/')
	if i < 0 {
		return "", key
	}
	return key[:i], key[i+1:]
}

// object returns the object at key, or ErrNotExist. The caller holds the lock.
func (s *Store) object(key string) (*node, error) {
	n := s.root.find(key)
	if n == nil || n.isDir() {
		return nil, objstore.ErrNotExist
	}
	return n, nil
}

// read finds the object of a reading operation.
func (s *Store) read(ctx context.Context, op objstore.Op, key string) (*node, error) {
	if err := objstore.CheckKey(key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.tree.mu.RLock()
	defer s.tree.mu.RUnlock()
	n, err := s.object(key)
	if err != nil {
		return nil, &objstore.OpError{Op: op, Key: key, Err: err}
	}
	return n, nil
}

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	n, err := s.read(ctx, objstore.OpGet, key)
	if err != nil {
		return nil, err
	}
	if len(n.data) > objstore.MaxGetBytes {
		return nil, &objstore.OpError{Op: objstore.OpGet, Key: key, Err: objstore.ErrTooLarge}
	}
	return bytes.Clone(n.data), nil
}

// Open implements [objstore.Store].
func (s *Store) Open(ctx context.Context, key string) (objstore.Reader, error) {
	n, err := s.read(ctx, objstore.OpOpen, key)
	if err != nil {
		return nil, err
	}
	return &reader{Reader: bytes.NewReader(n.data)}, nil
}

// Head implements [objstore.Store].
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	n, err := s.read(ctx, objstore.OpHead, key)
	if err != nil {
		return objstore.Info{}, err
	}
	return objstore.Info{Key: key, Size: int64(len(n.data)), Modified: n.modified}, nil
}

// reader reads the bytes an object had when it was opened.
type reader struct{ *bytes.Reader }

// Close implements [objstore.Reader].
func (*reader) Close() error { return nil }

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.put(ctx, objstore.OpPut, key, slices.Clone(data), true)
}

// PutIfAbsent implements [objstore.Store].
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return s.put(ctx, objstore.OpPutIfAbsent, key, slices.Clone(data), false)
}

// PutAllIfAbsent implements [objstore.Store].
func (s *Store) PutAllIfAbsent(ctx context.Context, objects []objstore.Object) (int, error) {
	for i, o := range objects {
		if err := s.put(ctx, objstore.OpPutAllIfAbsent, o.Key, slices.Clone(o.Data), false); err != nil {
			return i, err
		}
	}
	return len(objects), nil
}

// put stores data, which the store keeps.
func (s *Store) put(ctx context.Context, op objstore.Op, key string, data []byte, replace bool) error {
	if err := objstore.CheckWritable(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	dir, base := split(key)
	parent, err := s.root.makeDir(dir)
	if err != nil {
		return &objstore.OpError{Op: op, Key: key, Err: err}
	}
	switch old := parent.children[base]; {
	case old == nil:
	case old.isDir():
		return &objstore.OpError{Op: op, Key: key, Err: errIsDir}
	case !replace:
		return &objstore.OpError{Op: op, Key: key, Err: objstore.ErrExist}
	}
	parent.children[base] = &node{data: data, modified: s.tree.now()}
	return nil
}

// Delete implements [objstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.remove(ctx, objstore.OpDelete, key)
}

// DeleteAll implements [objstore.Store].
func (s *Store) DeleteAll(ctx context.Context, keys []string) (int, error) {
	for i, key := range keys {
		if err := s.remove(ctx, objstore.OpDeleteAll, key); err != nil {
			return i, err
		}
	}
	return len(keys), nil
}

// remove takes an object away.
func (s *Store) remove(ctx context.Context, op objstore.Op, key string) error {
	if err := objstore.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	dir, base := split(key)
	parent := s.root.find(dir)
	if parent == nil || parent.children[base] == nil {
		return nil
	}
	if parent.children[base].isDir() {
		return &objstore.OpError{Op: op, Key: key, Err: errIsDir}
	}
	delete(parent.children, base)
	return nil
}

// Close implements [objstore.Store]. The objects stay as long as some store of the tree is in use.
func (*Store) Close() error { return nil }
