package localfs

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"contrail/tablecore/objstore"
)

// List implements [objstore.Store].
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		if err := objstore.CheckPrefix(prefix); err != nil {
			yield(objstore.Info{}, err)
			return
		}
		l := &lister{ctx: ctx, store: s, prefix: prefix, after: after, yield: yield}
		// Directories above the last slash of the prefix have nothing else to show.
		dir, _ := split(prefix)
		l.walk(dir)
	}
}

// lister walks directories depth first in the order of keys.
type lister struct {
	ctx           context.Context
	store         *Store
	prefix, after string
	yield         func(objstore.Info, error) bool
}

// entry is a name in a directory with its status.
type entry struct {
	key  string // a directory's has a slash behind it, which puts it in its place among the keys
	size int64
	time time.Time
}

// walk yields what is in the directory dir; false ends the listing.
func (l *lister) walk(dir string) bool {
	if err := l.ctx.Err(); err != nil {
		return l.fail(err)
	}
	entries, err := l.read(dir)
	if errors.Is(err, objstore.ErrNotExist) {
		return true
	}
	if err != nil {
		return l.fail(&objstore.OpError{Op: objstore.OpList, Key: dir, Err: err})
	}
	for _, e := range entries {
		if sub, ok := strings.CutSuffix(e.key, "/"); ok {
			if !l.walk(sub) {
				return false
			}
			continue
		}
		if !l.yield(objstore.Info{Key: e.key, Size: e.size, Modified: modified(e.time)}, nil) {
			return false
		}
	}
	return true
}

// fail yields an error and ends the listing.
func (l *lister) fail(err error) bool {
	l.yield(objstore.Info{}, err)
	return false
}

// read returns the entries of a directory that matter, in order.
func (l *lister) read(dir string) ([]entry, error) {
	d, err := l.store.openDir(dir)
	if err != nil {
		return nil, readKind(err)
	}
	defer func() { _ = d.Close() }() // it was only read
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, readKind(err)
	}
	path := ""
	if dir != "" {
		path = dir + "/"
	}
	// The status is asked for only where it will be needed: of 10,000 commits those behind the checkpoint.
	names = slices.DeleteFunc(names, func(name string) bool { return !l.wantsKey(path+name) && !l.wantsDir(path+name+"/") })
	entries, err := l.stat(d, path, names)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	return entries, nil
}

// stat describes names in a directory, leaving out those that have gone or are nothing to list.
func (l *lister) stat(dir *os.File, path string, names []string) ([]entry, error) {
	entries := make([]entry, 0, len(names))
	err := withFD(dir, func(fd int) error {
		for _, name := range names {
			var st unix.Stat_t
			err := fstatAt(fd, name, &st)
			if err == unix.ENOENT {
				continue
			}
			if err != nil {
				return err
			}
			switch key := path + name; {
			case isDir(&st) && l.wantsDir(key+"/"):
				entries = append(entries, entry{key: key + "/"})
			case isRegular(&st) && l.wantsKey(key):
				entries = append(entries, entry{key: key, size: st.Size, time: time.Unix(st.Mtim.Unix())})
			}
		}
		return nil
	})
	return entries, err
}

// wantsKey reports whether an object of this key is to be listed.
func (l *lister) wantsKey(key string) bool { return key > l.after && strings.HasPrefix(key, l.prefix) }

// wantsDir reports whether an object to be listed can lie in the directory path, which ends with a slash.
func (l *lister) wantsDir(path string) bool {
	inPrefix := strings.HasPrefix(path, l.prefix) || strings.HasPrefix(l.prefix, path)
	behind := path > l.after || strings.HasPrefix(l.after, path)
	temporary := strings.HasSuffix("/"+path, "/"+objstore.TempDir+"/") && !strings.HasPrefix(l.prefix, path)
	return inPrefix && behind && !temporary
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
	names, err := s.subdirs(prefix)
	if err = readKind(err); err != nil && !errors.Is(err, objstore.ErrNotExist) {
		return nil, &objstore.OpError{Op: objstore.OpListDirs, Key: prefix, Err: err}
	}
	return names, nil
}

// subdirs returns the names of the directories in a directory, in order.
func (s *Store) subdirs(dir string) ([]string, error) {
	d, err := s.openDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // it was only read
	all, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		st, err := statAt(d, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil && isDir(&st) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
