package localfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"contrail/tablecore/objstore"
)

// Sub implements [objstore.Store].
func (s *Store) Sub(ctx context.Context, prefix string, create bool) (objstore.Store, error) {
	if err := objstore.CheckKey(prefix); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if create {
		// What was found durable before may have been moved away and made anew by another process.
		s.dirs.forget()
		if err := s.makeDurable(prefix); err != nil {
			return nil, &objstore.OpError{Op: objstore.OpSub, Key: prefix, Err: kind(err)}
		}
	}
	root, err := s.root.OpenRoot(prefix)
	if err != nil {
		return nil, &objstore.OpError{Op: objstore.OpSub, Key: prefix, Err: kind(err)}
	}
	return &Store{root: root, family: s.family, parent: s, name: prefix}, nil
}

// Current implements [objstore.Store].
func (s *Store) Current(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	for ; s.parent != nil; s = s.parent {
		own, err := s.root.Stat(".")
		if err != nil {
			return false, &objstore.OpError{Op: objstore.OpCurrent, Key: s.name, Err: err}
		}
		named, err := s.parent.root.Stat(s.name)
		if errors.Is(readKind(err), objstore.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, &objstore.OpError{Op: objstore.OpCurrent, Key: s.name, Err: err}
		}
		if !os.SameFile(own, named) {
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
	if strings.HasPrefix(target, prefix+"/") {
		return &objstore.OpError{Op: objstore.OpTrash, Key: target, Err: errInside}
	}
	defer s.dirs.forget()
	if err := s.move(prefix, target); err != nil {
		return wrap(objstore.OpTrash, prefix, err)
	}
	return nil
}

// move gives the directory prefix the name target.
func (s *Store) move(prefix, target string) error {
	from, base := split(prefix)
	source, err := s.openDir(from)
	if err != nil {
		return readKind(err)
	}
	defer func() { _ = source.Close() }() // nothing was written through it
	switch st, err := statAt(source, base); {
	case err != nil:
		return err
	case !isDir(&st):
		return objstore.ErrNotExist
	}
	to, newBase := split(target)
	if err := s.makeDurable(to); err != nil {
		return err
	}
	dest, err := s.openDir(to)
	if err != nil {
		return err
	}
	defer func() { _ = dest.Close() }() // nothing was written through it
	if err := s.renameDir(source, base, dest, newBase); err != nil {
		if refused(err) {
			return err
		}
		return &objstore.UnknownOutcomeError{Key: prefix, Err: err}
	}
	// The new name first: were the order to matter to a file system, the directory would rather have two names than none.
	for _, dir := range []*os.File{dest, source} {
		if err := s.family.ops.sync(dir); err != nil {
			return &objstore.UnknownOutcomeError{Key: prefix, Err: err}
		}
	}
	return nil
}

// renameDir moves a directory to a name that must be free.
func (s *Store) renameDir(source *os.File, base string, dest *os.File, newBase string) error {
	err := s.family.ops.renameNew(source, base, dest, newBase)
	if !unsupported(err) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	// Without RENAME_NOREPLACE: a rename refuses a file and a directory that holds something by itself, and an empty
	// one that appears after the look at it is lost to nobody.
	if _, err := statAt(dest, newBase); err == nil {
		return syscall.EEXIST
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = s.family.ops.rename(source, base, dest, newBase)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.ENOTDIR) {
		return syscall.EEXIST
	}
	return err
}

// DeleteTree implements [objstore.Store].
func (s *Store) DeleteTree(ctx context.Context, prefix string) error {
	if err := objstore.CheckKey(prefix); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	defer s.dirs.forget()
	info, err := s.root.Lstat(prefix)
	switch {
	case err != nil:
	case !info.IsDir():
		err = errNotDir
	default:
		err = s.root.RemoveAll(prefix)
	}
	if err = readKind(err); err != nil && !errors.Is(err, objstore.ErrNotExist) {
		return &objstore.OpError{Op: objstore.OpDeleteTree, Key: prefix, Err: err}
	}
	return nil
}
