package localfs

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"contrail/tablecore/objstore"
)

// countSyncs counts the fsyncs of a store.
func countSyncs(s *Store) *atomic.Int64 {
	var syncs atomic.Int64
	s.family.ops.sync = func(f *os.File) error { syncs.Add(1); return f.Sync() }
	return &syncs
}

// TestFsyncs counts what an operation waits for.
func TestFsyncs(t *testing.T) {
	s := openTest(t, systemOps)
	syncs := countSyncs(s)
	ctx := t.Context()
	create := func(key string) func() error {
		return func() error {
			w, err := s.Create(ctx, key)
			if err == nil {
				_, err = w.Commit(ctx)
			}
			return err
		}
	}
	var again *Store
	tests := []struct {
		what string
		call func() error
		want int64
	}{
		{"first put: file, directory, and one parent for each level", func() error { return s.PutIfAbsent(ctx, "a/b/0", nil) }, 4},
		{"second put: file and directory", func() error { return s.PutIfAbsent(ctx, "a/b/1", nil) }, 2},
		{"put in the parent", func() error { return s.Put(ctx, "a/2", nil) }, 2},
		{"put in the root", func() error { return s.Put(ctx, "2", nil) }, 2},
		{"put that is refused", func() error { _ = s.PutIfAbsent(ctx, "2", nil); return nil }, 1},
		{"create in a new directory", create("a/c/0"), 3},
		{"create in a known directory", create("a/c/1"), 2},
		{"five at once", func() error {
			_, err := s.PutAllIfAbsent(ctx, batch("a/b/2", "a/b/3", "a/b/4", "a/b/5", "a/b/6"))
			return err
		}, 6},
		{"sub: the parents, which another process may have made", func() (err error) {
			sub, err := s.Sub(ctx, "a/b", true)
			again, _ = sub.(*Store)
			return err
		}, 2},
		{"put in the sub", func() error { return again.PutIfAbsent(ctx, "x", nil) }, 2},
		{"delete", func() error { return s.Delete(ctx, "a/b/0") }, 0},
		{"trash: both parents, and that of a new one", func() error { return s.Trash(ctx, "a/b", "trash/b") }, 3},
	}
	for _, test := range tests {
		syncs.Store(0)
		if err := test.call(); err != nil {
			t.Fatalf("%s: %v", test.what, err)
		}
		if got := syncs.Load(); got != test.want {
			t.Errorf("%s: %d fsyncs, want %d", test.what, got, test.want)
		}
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestProbe(t *testing.T) {
	refuse := func(err error) func(*os.File, string, *os.File, string) error {
		return func(*os.File, string, *os.File, string) error { return err }
	}
	tests := map[string]struct {
		link, rename error
		fails        bool
	}{
		"no links":                 {syscall.EPERM, nil, false},
		"links not supported":      {syscall.EOPNOTSUPP, nil, false},
		"neither":                  {syscall.EPERM, syscall.EINVAL, true},
		"neither, an old kernel":   {syscall.EPERM, syscall.ENOSYS, true},
		"full":                     {syscall.ENOSPC, syscall.ENOSPC, false},
		"no links, and no message": {syscall.ENOSYS, syscall.EIO, false},
	}
	for name, test := range tests {
		ops := systemOps
		ops.link = refuse(test.link)
		if test.rename != nil {
			ops.renameNew = refuse(test.rename)
		}
		s, err := open(t.TempDir(), Options{Create: true}, ops)
		if test.fails {
			if !errors.Is(err, errNoPublish) || !errors.Is(err, test.link) || !errors.Is(err, test.rename) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if left := leftTemps(t, s); len(left) != 0 {
			t.Errorf("%s: left %q", name, left)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	ops := systemOps
	ops.link, ops.renameNew = refuse(nil), refuse(nil)
	if _, err := open(t.TempDir(), Options{Create: true}, ops); !errors.Is(err, errTwice) {
		t.Errorf("a link over a name that is taken: %v", err)
	}
}

// TestProbeCannotWrite opens stores that cannot be written: they can be read.
func TestProbeCannotWrite(t *testing.T) {
	sets := map[string]func(*fileOps){
		"create": func(ops *fileOps) {
			ops.create = func(*os.File, string) (*os.File, error) { return nil, syscall.ENOSPC }
		},
		"close": func(ops *fileOps) {
			ops.create = func(dir *os.File, name string) (*os.File, error) {
				f, err := createAt(dir, name)
				if err == nil {
					err = f.Close()
				}
				return f, err
			}
		},
		"unlink": func(ops *fileOps) { ops.unlink = func(*os.File, string) error { return syscall.EROFS } },
	}
	for name, set := range sets {
		ops := systemOps
		set(&ops)
		openTest(t, ops)
		t.Log(name)
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/_contrail", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	want(t, s, "_contrail", "")
	if err := s.PutIfAbsent(t.Context(), "x", nil); err == nil || errors.Is(err, objstore.ErrNotExist) {
		t.Fatalf("put without a place for temporary files: %v", err)
	}
}

// TestLinksLost has a store find out late that there are no links, as where another file system is mounted in it.
func TestLinksLost(t *testing.T) {
	s := openTest(t, systemOps)
	s.family.ops.link = func(*os.File, string, *os.File, string) error { return syscall.EPERM }
	put(t, s, "x", "one")
	if err := s.PutIfAbsent(t.Context(), "x", nil); !errors.Is(err, objstore.ErrExist) {
		t.Fatalf("second put: %v", err)
	}
	if !s.family.renames.Load() {
		t.Fatal("link is tried each time")
	}
	want(t, s, "x", "one")
}

func TestSubFaults(t *testing.T) {
	s := openTest(t, systemOps)
	s.family.ops.sync = func(*os.File) error { return syscall.ENOSPC }
	if _, err := s.Sub(t.Context(), "a/b", true); !errors.Is(err, objstore.ErrNoSpace) {
		t.Fatalf("sub: %v", err)
	}
	syncs := countSyncs(s)
	sub, err := s.Sub(t.Context(), "a/b", true)
	if err != nil || syncs.Load() != 2 {
		t.Fatalf("sub again: %v after %d fsyncs, want 2", err, syncs.Load())
	}
	defer func() { _ = sub.Close() }()
	// The name is taken by a link that leads out: neither here nor gone, but an error.
	if err := os.RemoveAll(path(s, "a")); err != nil {
		t.Fatal(err)
	}
	link(t, s, "/", "a")
	if _, err := sub.Current(t.Context()); err == nil {
		t.Fatal("current through a link that leads out: no error")
	}
}

func TestTrashFaults(t *testing.T) {
	rename := func(err error) func(ops *fileOps) {
		return func(ops *fileOps) {
			ops.renameNew = func(*os.File, string, *os.File, string) error { return err }
		}
	}
	sync := func(fail int64) func(ops *fileOps) {
		return func(ops *fileOps) {
			var calls int64
			ops.sync = func(f *os.File) error {
				if calls++; calls == fail {
					return syscall.EIO
				}
				return f.Sync()
			}
		}
	}
	tests := map[string]struct {
		set            func(*fileOps)
		want           error
		unknown, moved bool
	}{
		"rename refused":              {rename(syscall.EACCES), syscall.EACCES, false, false},
		"rename full":                 {rename(syscall.ENOSPC), objstore.ErrNoSpace, false, false},
		"rename in doubt":             {rename(syscall.EIO), syscall.EIO, true, false},
		"fsync of the target's root":  {sync(1), syscall.EIO, false, false},
		"fsync of the target":         {sync(2), syscall.EIO, true, true},
		"fsync of the old directory":  {sync(3), syscall.EIO, true, true},
		"all well, after one failure": {sync(9), nil, false, true},
	}
	for name, test := range tests {
		s := openTest(t, systemOps)
		put(t, s, "ns/table/x", "one")
		test.set(&s.family.ops)
		err := s.Trash(t.Context(), "ns/table", "trash/table")
		var unknown *objstore.UnknownOutcomeError
		if !errors.Is(err, test.want) || errors.As(err, &unknown) != test.unknown {
			t.Errorf("%s: %v", name, err)
		}
		if test.moved {
			want(t, s, "trash/table/x", "one")
		} else {
			want(t, s, "ns/table/x", "one")
		}
	}
}

// TestTrashWithoutExclusive moves with a rename that would replace.
func TestTrashWithoutExclusive(t *testing.T) {
	s := openTest(t, systemOps)
	s.family.ops.renameNew = func(*os.File, string, *os.File, string) error { return syscall.ENOSYS }
	put(t, s, "table/x", "one")
	put(t, s, "full/x", "two")
	put(t, s, "file", "three")
	// The target appears after it was found free.
	for _, target := range []string{"full", "file"} {
		s.family.ops.rename = func(from *os.File, old string, to *os.File, _ string) error {
			return systemOps.rename(from, old, to, target)
		}
		if err := s.Trash(t.Context(), "table", "late"); !errors.Is(err, objstore.ErrExist) {
			t.Fatalf("trash to a %s that appears: %v", target, err)
		}
	}
	s.family.ops.rename = func(*os.File, string, *os.File, string) error { return syscall.EACCES }
	if err := s.Trash(t.Context(), "table", "late"); !errors.Is(err, syscall.EACCES) {
		t.Fatalf("trash that is refused: %v", err)
	}
	want(t, s, "table/x", "one")
}
