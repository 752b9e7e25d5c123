package localfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"contrail/tablecore/objstore"
)

// split cuts a key into its directory ("" for the root) and its last part.
func split(key string) (dir, base string) {
	i := strings.LastIndexByte(key, '/')
	if i < 0 {
		return "", key
	}
	return key[:i], key[i+1:]
}

// openDir opens a directory of the store; "" is its root.
func (s *Store) openDir(dir string) (*os.File, error) {
	if dir == "" {
		dir = "."
	}
	return s.root.OpenFile(dir, readFlags|syscall.O_DIRECTORY, 0)
}

// openOnce returns the directory dir from dirs, where it puts it when it has opened it.
func (s *Store) openOnce(dirs map[string]*os.File, dir string) (*os.File, error) {
	if d := dirs[dir]; d != nil {
		return d, nil
	}
	d, err := s.openDir(dir)
	if err != nil {
		return nil, err
	}
	dirs[dir] = d
	return d, nil
}

// closeDirs closes open directories.
func closeDirs(dirs map[string]*os.File) {
	for _, d := range dirs {
		_ = d.Close() // nothing was written through it
	}
}

// dirCache remembers the directories of a store that are known to be there after a loss of power, so that a write into
// one of them needs no look at its parents. A directory that is removed nevertheless is noticed when the write fails.
type dirCache struct {
	mu      sync.Mutex
	durable map[string]struct{}
}

func (c *dirCache) has(dir string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.durable[dir]
	return ok
}

func (c *dirCache) add(dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.durable == nil {
		c.durable = make(map[string]struct{})
	}
	c.durable[dir] = struct{}{}
}

// forget forgets all of them: what is there is found out again by the next writes.
func (c *dirCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.durable)
}

// makeDir makes the directory dir and the parents it lacks. It returns those on the path that are not known to be
// durable, the outermost first; settle makes them so.
func (s *Store) makeDir(dir string) (unsettled []string, err error) {
	if dir == "" || s.dirs.has(dir) {
		return nil, nil
	}
	for end := 0; end < len(dir); {
		if i := strings.IndexByte(dir[end+1:], '/'); i >= 0 {
			end += 1 + i
		} else {
			end = len(dir)
		}
		part := dir[:end]
		if s.dirs.has(part) {
			continue
		}
		if err := s.root.Mkdir(part, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		unsettled = append(unsettled, part)
	}
	return unsettled, nil
}

// makeDurable makes the directory dir, with the parents it lacks, and makes all of them durable.
func (s *Store) makeDurable(dir string) error {
	unsettled, err := s.makeDir(dir)
	if err != nil {
		return err
	}
	return s.settle(unsettled)
}

// settle makes directories durable by fsyncing the parent of each. One that was there before is treated like a new one:
// who made it may have died before it came to the fsync.
func (s *Store) settle(dirs []string) error {
	for _, dir := range dirs {
		parent, _ := split(dir)
		if err := s.syncDir(parent); err != nil {
			return err
		}
		s.dirs.add(dir)
	}
	return nil
}

// syncDir makes the names in a directory durable.
func (s *Store) syncDir(dir string) error {
	d, err := s.openDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(s.family.ops.sync(d), d.Close())
}

// makeRoot makes the directory of a store and the parents it lacks, durably.
func makeRoot(dir string, ops fileOps) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeRoot(parent, ops); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(ops.sync(d), d.Close())
}

// tempDir holds the directory of temporary files open.
type tempDir struct {
	mu  sync.Mutex
	dir *os.File
}

// get returns the directory, made if need be. It stays open until close or drop.
func (t *tempDir) get(s *Store) (*os.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir != nil {
		return t.dir, nil
	}
	// Nobody misses this directory after a loss of power, so its parents are not fsynced.
	if _, err := s.makeDir(objstore.TempDir); err != nil {
		return nil, err
	}
	dir, err := s.openDir(objstore.TempDir)
	if err != nil {
		return nil, err
	}
	t.dir = dir
	return dir, nil
}

// drop gives up a directory that turned out to be removed. Others may be about to use it, so it is left to the garbage
// collector to close it.
func (t *tempDir) drop(gone *os.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir == gone {
		t.dir = nil
	}
}

func (t *tempDir) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir == nil {
		return nil
	}
	err := t.dir.Close()
	t.dir = nil
	return err
}
