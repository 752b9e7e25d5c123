package memstore

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"contrail/tablecore/objstore"
)

var (
	errIsDir  = errors.New("is a directory")
	errNotDir = errors.New("a part of the path is no directory")
	errInside = errors.New("the target lies inside the directory")
	errEnded  = errors.New("the writer has ended")
)

// List implements [objstore.Store]. It yields what is there when the iteration begins.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		if err := objstore.CheckPrefix(prefix); err != nil {
			yield(objstore.Info{}, err)
			return
		}
		var found []objstore.Info
		s.tree.mu.RLock()
		s.root.collect("", prefix, after, &found)
		s.tree.mu.RUnlock()
		slices.SortFunc(found, func(a, b objstore.Info) int { return strings.Compare(a.Key, b.Key) })
		for _, info := range found {
			if err := ctx.Err(); err != nil {
				yield(objstore.Info{}, err)
				return
			}
			if !yield(info, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(objstore.Info{}, err)
		}
	}
}

// collect gathers the objects below n, whose own path is path ("" or with a slash behind it).
func (n *node) collect(path, prefix, after string, found *[]objstore.Info) {
	for name, child := range n.children {
		key := path + name
		switch {
		case child.isDir():
			if below := key + "/"; strings.HasPrefix(below, prefix) || strings.HasPrefix(prefix, below) {
				child.collect(below, prefix, after, found)
			}
		case strings.HasPrefix(key, prefix) && key > after:
			*found = append(*found, objstore.Info{Key: key, Size: int64(len(child.data)), Modified: child.modified})
		}
	}
}

// ListDirs implements [objstore.Store].
func (s *Store) ListDirs(ctx context.Context, prefix string) ([]string, error) {
	if prefix != "" {
		if err := objstore.CheckKey(prefix); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.tree.mu.RLock()
	defer s.tree.mu.RUnlock()
	dir := s.root.find(prefix)
	if dir == nil {
		return nil, nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(dir.children)) {
		if dir.children[name].isDir() {
			names = append(names, name)
		}
	}
	return names, nil
}

// Sub implements [objstore.Store].
func (s *Store) Sub(ctx context.Context, prefix string, create bool) (objstore.Store, error) {
	if err := objstore.CheckKey(prefix); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	dir := s.root.find(prefix)
	if dir == nil && create {
		var err error
		if dir, err = s.root.makeDir(prefix); err != nil {
			return nil, &objstore.OpError{Op: objstore.OpSub, Key: prefix, Err: err}
		}
	}
	switch {
	case dir == nil:
		return nil, &objstore.OpError{Op: objstore.OpSub, Key: prefix, Err: objstore.ErrNotExist}
	case !dir.isDir():
		return nil, &objstore.OpError{Op: objstore.OpSub, Key: prefix, Err: errNotDir}
	}
	return &Store{tree: s.tree, root: dir, parent: s, name: prefix}, nil
}

// Current implements [objstore.Store].
func (s *Store) Current(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s.tree.mu.RLock()
	defer s.tree.mu.RUnlock()
	for ; s.parent != nil; s = s.parent {
		if s.parent.root.find(s.name) != s.root {
			return false, nil
		}
	}
	return true, nil
}

// Trash implements [objstore.Store].
func (s *Store) Trash(ctx context.Context, prefix, target string) error {
	for _, name := range []string{prefix, target} {
		if err := objstore.CheckKey(name); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	fail := func(name string, err error) error {
		return &objstore.OpError{Op: objstore.OpTrash, Key: name, Err: err}
	}
	from, base := split(prefix)
	to, newBase := split(target)
	source := s.root.find(from)
	if source == nil || source.children[base] == nil || !source.children[base].isDir() {
		return fail(prefix, objstore.ErrNotExist)
	}
	if strings.HasPrefix(target, prefix+"/") {
		return fail(target, errInside)
	}
	dest, err := s.root.makeDir(to)
	if err != nil {
		return fail(target, err)
	}
	if dest.children[newBase] != nil {
		return fail(target, objstore.ErrExist)
	}
	dest.children[newBase] = source.children[base]
	delete(source.children, base)
	return nil
}

// DeleteTree implements [objstore.Store].
func (s *Store) DeleteTree(ctx context.Context, prefix string) error {
	if err := objstore.CheckKey(prefix); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	dir, base := split(prefix)
	parent := s.root.find(dir)
	if parent == nil || parent.children[base] == nil {
		return nil
	}
	if !parent.children[base].isDir() {
		return &objstore.OpError{Op: objstore.OpDeleteTree, Key: prefix, Err: errNotDir}
	}
	parent.children[base].remove()
	delete(parent.children, base)
	return nil
}

// remove empties a directory for those who still hold it.
func (n *node) remove() {
	for _, child := range n.children {
		if child.isDir() {
			child.remove()
		}
	}
	clear(n.children)
	n.removed = true
}
