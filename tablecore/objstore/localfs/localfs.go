// Package localfs keeps an object store in a directory of a local file system.
//
// A key is a path below the directory. Nothing outside it is ever touched: paths are resolved by os.Root, so a symbolic
// link that leads out of the directory is an error.
//
// A write goes into a file of its own under _contrail/tmp, is fsynced there, and appears under its name by link(2),
// which refuses a name that is taken, also when another process takes it at the same moment; where a file system has no
// links, renameat2(2) with RENAME_NOREPLACE does the same. Then the directory is fsynced. A directory that is made has
// its parent fsynced before the first object appears in it, and so has one that was found the first time it is used, for
// the process that made it may not have come so far. An error after the link or the rename is an unknown outcome.
//
// Limits: the file system must keep its promises about fsync, and hard links or RENAME_NOREPLACE must be atomic between
// the machines that share it, which they are not on every network file system.
package localfs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"contrail/tablecore/objstore"
)

// Options say how a store is opened. The zero value opens an existing directory.
type Options struct {
	// Create makes the directory, and the parents it lacks, when it is not there.
	Create bool
	// Random gives the bytes that make the names of temporary files unique among processes; nil is crypto/rand.
	Random io.Reader
}

// Store is an [objstore.Store] in a directory, which it holds open.
type Store struct {
	root   *os.Root
	family *family
	parent *Store // nil for a store made by Open
	name   string // the directory's name in parent
	dirs   dirCache
	temps  tempDir
}

// family is what a store and its sub-stores share.
type family struct {
	ops    fileOps
	unique string // begins the name of every temporary file of this process
	next   atomic.Uint64
	// renames says that new names are given by renameat2 because link is not to be had.
	renames atomic.Bool
}

var _ objstore.Store = (*Store)(nil)

// Open opens the store in the directory dir. ErrNotExist when it is absent and not to be made. With Create it also
// tries out whether names can be given atomically there, and fails if not.
func Open(dir string, opts Options) (*Store, error) {
	return open(dir, opts, systemOps)
}

func open(dir string, opts Options, ops fileOps) (*Store, error) {
	if opts.Random == nil {
		opts.Random = rand.Reader
	}
	var unique [8]byte
	if _, err := io.ReadFull(opts.Random, unique[:]); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if opts.Create {
		if err := makeRoot(dir, ops); err != nil {
			return nil, fmt.Errorf("make the store's directory: %w", kind(err))
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the store's directory: %w", kind(err))
	}
	s := &Store{root: root, family: &family{ops: ops, unique: hex.EncodeToString(unique[:])}}
	if opts.Create {
		if err := s.probe(); err != nil {
			return nil, errors.Join(err, root.Close())
		}
	}
	return s, nil
}

// Close implements [objstore.Store].
func (s *Store) Close() error {
	return errors.Join(s.temps.close(), s.root.Close())
}

// openObject opens the regular file of an object for reading.
func (s *Store) openObject(ctx context.Context, op objstore.Op, key string) (*os.File, fs.FileInfo, error) {
	if err := objstore.CheckKey(key); err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	f, err := s.root.OpenFile(key, readFlags, 0)
	if err != nil {
		return nil, nil, &objstore.OpError{Op: op, Key: key, Err: s.lookKind(key, err)}
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, nil, &objstore.OpError{Op: op, Key: key, Err: errors.Join(err, f.Close())}
	}
	return f, info, nil
}

// regular returns an error unless info is that of a file that can be an object. A directory is none, as in stores that
// have no directories.
func regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return objstore.ErrNotExist
	case !info.Mode().IsRegular():
		return errNotRegular
	}
	return nil
}

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	f, info, err := s.openObject(ctx, objstore.OpGet, key)
	if err != nil {
		return nil, err
	}
	data, err := readAll(f, info.Size())
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, &objstore.OpError{Op: objstore.OpGet, Key: key, Err: err}
	}
	return data, nil
}

// readAll reads the size bytes of an object.
func readAll(r io.Reader, size int64) ([]byte, error) {
	if size > objstore.MaxGetBytes {
		return nil, objstore.ErrTooLarge
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	return data, nil
}

// Open implements [objstore.Store].
func (s *Store) Open(ctx context.Context, key string) (objstore.Reader, error) {
	f, info, err := s.openObject(ctx, objstore.OpOpen, key)
	if err != nil {
		return nil, err
	}
	return &reader{file: f, size: info.Size()}, nil
}

// reader reads an open file.
type reader struct {
	file *os.File
	size int64
}

// ReadAt implements [objstore.Reader].
func (r *reader) ReadAt(p []byte, off int64) (int, error) { return r.file.ReadAt(p, off) }

// Size implements [objstore.Reader].
func (r *reader) Size() int64 { return r.size }

// Close implements [objstore.Reader].
func (r *reader) Close() error { return r.file.Close() }

// Head implements [objstore.Store].
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	if err := objstore.CheckKey(key); err != nil {
		return objstore.Info{}, err
	}
	if err := ctx.Err(); err != nil {
		return objstore.Info{}, err
	}
	info, err := s.root.Stat(key)
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return objstore.Info{}, &objstore.OpError{Op: objstore.OpHead, Key: key, Err: s.lookKind(key, err)}
	}
	return objstore.Info{Key: key, Size: info.Size(), Modified: modified(info.ModTime())}, nil
}

// modified brings a file's time into the form that every Info has.
func modified(t time.Time) time.Time { return t.UTC() }
