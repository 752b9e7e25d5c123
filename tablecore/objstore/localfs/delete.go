package localfs

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"contrail/tablecore/objstore"
)

// Delete implements [objstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := objstore.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	dir, base := split(key)
	d, err := s.openDir(dir)
	if err == nil {
		err = errors.Join(s.family.ops.unlink(d, base), d.Close())
	}
	return gone(objstore.OpDelete, key, err)
}

// gone returns the error of a removal: none where there was nothing to remove.
func gone(op objstore.Op, key string, err error) error {
	if err = readKind(err); err == nil || errors.Is(err, objstore.ErrNotExist) {
		return nil
	}
	return &objstore.OpError{Op: op, Key: key, Err: err}
}

// DeleteAll implements [objstore.Store].
func (s *Store) DeleteAll(ctx context.Context, keys []string) (int, error) {
	deleted := 0
	for deleted < len(keys) {
		n, err := s.deleteSome(ctx, keys[deleted:min(deleted+maxBatch, len(keys))])
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// deleteSome deletes as DeleteAll does. The names go one after the other. What takes the time is not that but giving
// back the blocks of a file, which the system does when nobody has it open any more; so each is held open until all
// names are gone, and then they are let go side by side.
func (s *Store) deleteSome(ctx context.Context, keys []string) (int, error) {
	dirs, held := make(map[string]*os.File), make([]int, 0, len(keys))
	defer closeDirs(dirs)
	defer func() {
		sideBySide(len(held), func(i int) { _ = unix.Close(held[i]) }) // nothing was written through it
	}()
	for i, key := range keys {
		if err := objstore.CheckKey(key); err != nil {
			return i, err
		}
		if err := ctx.Err(); err != nil {
			return i, err
		}
		dir, base := split(key)
		d, err := s.openOnce(dirs, dir)
		if err == nil {
			if fd, heldErr := openAt(d, base); heldErr == nil { // else the removal takes longer
				held = append(held, fd)
			}
			err = s.family.ops.unlink(d, base)
		}
		if err := gone(objstore.OpDeleteAll, key, err); err != nil {
			return i, err
		}
	}
	return len(keys), nil
}

// openAt opens what has a name in a directory, but no symbolic link. The caller closes the descriptor.
func openAt(dir *os.File, name string) (fd int, err error) {
	err = withFD(dir, func(dirFD int) error {
		return retry(func() (err error) {
			fd, err = unix.Openat(dirFD, name, readFlags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			return err
		})
	})
	return fd, err
}
