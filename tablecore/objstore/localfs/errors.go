package localfs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"contrail/tablecore/objstore"
)

var (
	errIsDir      = errors.New("is a directory")
	errNotDir     = errors.New("is no directory")
	errNotRegular = errors.New("is no regular file")
	errInside     = errors.New("the target lies inside the directory")
	errNoName     = errors.New("all names for a temporary file are taken")
	errEnded      = errors.New("the writer has ended")
	errNoPublish  = errors.New("the file system has neither hard links nor renameat2 with RENAME_NOREPLACE")
)

// kind puts the sentinel error that a caller looks for in front of a file system's error.
func kind(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", objstore.ErrNotExist, err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: %w", objstore.ErrExist, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", objstore.ErrNoSpace, err)
	}
	return err
}

// readKind is kind for operations that look for something: a file where the path wants a directory means that there is
// nothing of that name.
func readKind(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", objstore.ErrNotExist, err)
	}
	return kind(err)
}

// lookKind is readKind for the name of an object. os.Root refuses a symbolic link that leads outside, or nowhere, by an
// error of its own; where it does there is a link on the way.
func (s *Store) lookKind(key string, err error) error {
	if found := readKind(err); errors.Is(found, objstore.ErrNotExist) || errors.Is(found, fs.ErrPermission) || !s.linked(key) {
		return found
	}
	return fmt.Errorf("%w: %w", objstore.ErrOutside, err)
}

// linked reports whether a part of a key is a symbolic link.
func (s *Store) linked(key string) bool {
	for i := range len(key) + 1 {
		if i < len(key) && key[i] != '/' {
			continue
		}
		info, err := s.root.Lstat(key[:i])
		if err != nil {
			return false
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// refused reports whether err is one by which the kernel says that it has not linked or renamed. After any other one
// (an I/O error, a time-out of a network file system) the name must be looked at.
func refused(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EACCES, syscall.EDQUOT, syscall.EEXIST, syscall.EINVAL, syscall.EISDIR, syscall.ELOOP, syscall.EMLINK,
		syscall.ENAMETOOLONG, syscall.ENOENT, syscall.ENOSPC, syscall.ENOTDIR, syscall.ENOTEMPTY, syscall.EPERM,
		syscall.EROFS, syscall.EXDEV,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return unsupported(err)
}

// unsupported reports whether err says that the file system, or the kernel, does not have the operation.
func unsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS)
}
