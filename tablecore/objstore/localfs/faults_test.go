package localfs

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"contrail/tablecore/objstore"
)

// isDirFile reports whether an open file is a directory.
func isDirFile(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.IsDir()
}

// writes are the ways to store an object.
var writes = map[string]func(ctx context.Context, s objstore.Store, key string) error{
	"put": func(ctx context.Context, s objstore.Store, key string) error { return s.Put(ctx, key, []byte(key)) },
	"put if absent": func(ctx context.Context, s objstore.Store, key string) error {
		return s.PutIfAbsent(ctx, key, []byte(key))
	},
	"put all if absent": func(ctx context.Context, s objstore.Store, key string) error {
		_, err := s.PutAllIfAbsent(ctx, []objstore.Object{{Key: key, Data: []byte(key)}})
		return err
	},
	"create": func(ctx context.Context, s objstore.Store, key string) error {
		w, err := s.Create(ctx, key)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, key); err != nil {
			return errors.Join(err, w.Abort())
		}
		_, err = w.Commit(ctx)
		return err
	},
}

// TestDefiniteFailures makes each step before the name fails: the error says that nothing has happened, and nothing has.
func TestDefiniteFailures(t *testing.T) {
	steps := map[string]func(ops *fileOps, err error){
		"create": func(ops *fileOps, err error) {
			ops.create = func(*os.File, string) (*os.File, error) { return nil, err }
		},
		"write": func(ops *fileOps, err error) { ops.write = func(*os.File, []byte) (int, error) { return 0, err } },
		"half a write": func(ops *fileOps, err error) {
			ops.write = func(f *os.File, p []byte) (int, error) {
				n, writeErr := f.Write(p[:len(p)/2])
				return n, errors.Join(err, writeErr)
			}
		},
		"fsync of the file": func(ops *fileOps, err error) {
			ops.sync = func(f *os.File) error {
				if isDirFile(f) {
					return f.Sync()
				}
				return err
			}
		},
		"fsync of a parent": func(ops *fileOps, err error) {
			ops.sync = func(f *os.File) error {
				if isDirFile(f) {
					return err
				}
				return f.Sync()
			}
		},
		"link": func(ops *fileOps, err error) {
			ops.link = func(*os.File, string, *os.File, string) error { return err }
			ops.rename = ops.link
		},
	}
	errs := map[error]error{
		syscall.ENOSPC: objstore.ErrNoSpace, syscall.EDQUOT: objstore.ErrNoSpace, syscall.EIO: syscall.EIO,
		syscall.EROFS: syscall.EROFS,
	}
	for step, set := range steps {
		for cause, wanted := range errs {
			for name, write := range writes {
				s := openTest(t, systemOps)
				set(&s.family.ops, cause)
				err := write(t.Context(), s, "dir/x")
				var unknown *objstore.UnknownOutcomeError
				if !errors.Is(err, wanted) || !errors.Is(err, cause) || errors.As(err, &unknown) {
					t.Fatalf("%s with %v at %s: error %v", name, cause, step, err)
				}
				absent(t, s, "dir/x")
				if left := leftTemps(t, s); len(left) != 0 {
					t.Fatalf("%s with %v at %s left %q", name, cause, step, left)
				}
				// Nothing that was not done is taken for done.
				s.family.ops = systemOps
				if err := write(t.Context(), s, "dir/x"); err != nil {
					t.Fatalf("%s again: %v", name, err)
				}
				want(t, s, "dir/x", "dir/x")
			}
		}
	}
}

func TestShortWrite(t *testing.T) {
	ops := systemOps
	ops.write = func(f *os.File, p []byte) (int, error) { return f.Write(p[:len(p)-1]) }
	for name, write := range writes {
		s := openTest(t, ops)
		if err := write(t.Context(), s, "x"); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("%s: %v", name, err)
		}
		absent(t, s, "x")
	}
}

// TestErrorStays writes on after an error: Commit knows it.
func TestErrorStays(t *testing.T) {
	s := openTest(t, systemOps)
	w, err := s.Create(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	s.family.ops.write = func(*os.File, []byte) (int, error) { return 0, syscall.ENOSPC }
	if _, err := w.Write(make([]byte, 2*writeBuffer)); !errors.Is(err, objstore.ErrNoSpace) {
		t.Fatalf("write: %v", err)
	}
	s.family.ops = systemOps
	if _, err := w.Write([]byte("more")); !errors.Is(err, objstore.ErrNoSpace) {
		t.Fatalf("second write: %v", err)
	}
	if _, err := w.Commit(t.Context()); !errors.Is(err, objstore.ErrNoSpace) {
		t.Fatalf("commit: %v", err)
	}
	absent(t, s, "x")
	if left := leftTemps(t, s); len(left) != 0 {
		t.Fatalf("left %q", left)
	}
}

// TestUnknownOutcome fails the fsync of the directory, after the name was given.
func TestUnknownOutcome(t *testing.T) {
	for name, write := range writes {
		s := openTest(t, systemOps)
		put(t, s, "dir/first", "") // the directory is known
		s.family.ops.sync = func(f *os.File) error {
			if isDirFile(f) {
				return syscall.ENOSPC
			}
			return f.Sync()
		}
		err := write(t.Context(), s, "dir/x")
		var unknown *objstore.UnknownOutcomeError
		if !errors.As(err, &unknown) || unknown.Key != "dir/x" || errors.Is(err, objstore.ErrNoSpace) ||
			!errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), `"dir/x"`) {
			t.Fatalf("%s: %v, want an unknown outcome", name, err)
		}
		want(t, s, "dir/x", "dir/x")
		if left := leftTemps(t, s); len(left) != 0 {
			t.Fatalf("%s left %q", name, left)
		}
	}
}

// TestDoubtfulLink has link and rename answer with an error that does not say whether they were done.
func TestDoubtfulLink(t *testing.T) {
	type call = func(*os.File, string, *os.File, string) error
	doubts := map[string]struct {
		cause   error
		wrap    func(call) call
		landed  bool
		unknown bool
	}{
		"done, but an I/O error": {syscall.EIO, func(do call) call {
			return func(from *os.File, old string, to *os.File, name string) error {
				return errors.Join(do(from, old, to, name), syscall.EIO)
			}
		}, true, false},
		"done, but asked twice": {syscall.EEXIST, func(do call) call {
			return func(from *os.File, old string, to *os.File, name string) error {
				return errors.Join(do(from, old, to, name), syscall.EEXIST)
			}
		}, true, false},
		"not done, an I/O error": {syscall.EIO, func(call) call {
			return func(*os.File, string, *os.File, string) error { return syscall.EIO }
		}, false, false},
		"not done, taken and free again": {syscall.EEXIST, func(call) call {
			return func(*os.File, string, *os.File, string) error { return syscall.EEXIST }
		}, false, false},
		"an I/O error, and the directory cannot be read": {syscall.EIO, func(do call) call {
			return func(from *os.File, old string, to *os.File, name string) error {
				return errors.Join(do(from, old, to, name), to.Close(), syscall.EIO)
			}
		}, true, true},
		"taken, and the directory cannot be read": {syscall.EEXIST, func(call) call {
			return func(_ *os.File, _ string, to *os.File, _ string) error {
				return errors.Join(to.Close(), syscall.EEXIST)
			}
		}, false, false},
	}
	for doubt, test := range doubts {
		for name, write := range writes {
			s := openTest(t, systemOps)
			s.family.ops.link = test.wrap(systemOps.link)
			s.family.ops.rename = test.wrap(systemOps.rename)
			err := write(t.Context(), s, "dir/x")
			var unknown *objstore.UnknownOutcomeError
			if errors.As(err, &unknown) != test.unknown {
				t.Fatalf("%s, %s: %v", name, doubt, err)
			}
			if test.landed {
				want(t, s, "dir/x", "dir/x")
			} else {
				absent(t, s, "dir/x")
			}
			if !test.unknown && test.landed != (err == nil) || err != nil && !errors.Is(err, test.cause) {
				t.Fatalf("%s, %s: %v", name, doubt, err)
			}
			if left := leftTemps(t, s); len(left) != 0 {
				t.Fatalf("%s, %s: left %q", name, doubt, left)
			}
		}
	}
}

// TestCancelled cancels the context while the file is written: there is no effect. Once there is one, it is finished.
func TestCancelled(t *testing.T) {
	for name, write := range writes {
		s := openTest(t, systemOps)
		ctx, cancel := context.WithCancel(t.Context())
		s.family.ops.sync = func(f *os.File) error { cancel(); return f.Sync() }
		if err := write(ctx, s, "x"); err != context.Canceled {
			t.Fatalf("%s: %v, want context.Canceled", name, err)
		}
		absent(t, s, "x")
		if left := leftTemps(t, s); len(left) != 0 {
			t.Fatalf("%s left %q", name, left)
		}
		s.family.ops = systemOps
		ctx, cancel = context.WithCancel(t.Context())
		s.family.ops.link = func(from *os.File, old string, to *os.File, name string) error {
			cancel()
			return systemOps.link(from, old, to, name)
		}
		s.family.ops.rename = func(from *os.File, old string, to *os.File, name string) error {
			cancel()
			return systemOps.rename(from, old, to, name)
		}
		if err := write(ctx, s, "y"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cancel()
		want(t, s, "y", "y")
	}
}

// batch makes objects that hold their keys.
func batch(keys ...string) []objstore.Object {
	var objects []objstore.Object
	for _, key := range keys {
		objects = append(objects, objstore.Object{Key: key, Data: []byte(key)})
	}
	return objects
}

func TestPutAllFaults(t *testing.T) {
	failAt := func(count int64, err error, do func(*os.File) error) func(*os.File) error {
		var calls atomic.Int64
		return func(f *os.File) error {
			if calls.Add(1) == count {
				return err
			}
			return do(f)
		}
	}
	sync := systemOps.sync
	tests := map[string]struct {
		set    func(ops *fileOps)
		n      int
		landed []string
		want   error
	}{
		"third write": {func(ops *fileOps) {
			write := failAt(3, syscall.ENOSPC, func(*os.File) error { return nil })
			ops.write = func(f *os.File, p []byte) (int, error) {
				if err := write(f); err != nil {
					return 0, err
				}
				return f.Write(p)
			}
		}, 2, []string{"a/0", "a/1"}, objstore.ErrNoSpace},
		"every fsync of a file": {func(ops *fileOps) {
			ops.sync = func(f *os.File) error {
				if isDirFile(f) {
					return sync(f)
				}
				return syscall.EIO
			}
		}, 0, nil, syscall.EIO},
		"second link": {func(ops *fileOps) {
			var links int
			ops.link = func(from *os.File, old string, to *os.File, name string) error {
				if links++; links == 2 {
					return syscall.ENOSPC
				}
				return systemOps.link(from, old, to, name)
			}
		}, 1, []string{"a/0"}, objstore.ErrNoSpace},
		"fsync of the first directory": {func(ops *fileOps) {
			ops.sync = func(f *os.File) error {
				if isDirFile(f) {
					return syscall.EIO
				}
				return sync(f)
			}
		}, 0, []string{"a/0", "a/1", "b/2", "a/3"}, syscall.EIO},
		"fsync of the second directory": {func(ops *fileOps) {
			dirs := failAt(2, syscall.EIO, sync)
			ops.sync = func(f *os.File) error {
				if isDirFile(f) {
					return dirs(f)
				}
				return sync(f)
			}
		}, 2, []string{"a/0", "a/1", "b/2", "a/3"}, syscall.EIO},
	}
	for name, test := range tests {
		s := openTest(t, systemOps)
		put(t, s, "a/first", "")
		put(t, s, "b/first", "")
		test.set(&s.family.ops)
		n, err := s.PutAllIfAbsent(t.Context(), batch("a/0", "a/1", "b/2", "a/3"))
		if n != test.n || !errors.Is(err, test.want) {
			t.Fatalf("%s: %d, %v, want %d, %v", name, n, err, test.n, test.want)
		}
		var unknown *objstore.UnknownOutcomeError
		if errors.As(err, &unknown) != (len(test.landed) > test.n) {
			t.Fatalf("%s: %v with %d landed", name, err, len(test.landed))
		}
		for _, key := range []string{"a/0", "a/1", "b/2", "a/3"} {
			if slices.Contains(test.landed, key) {
				want(t, s, key, key)
			} else {
				absent(t, s, key)
			}
		}
		if left := leftTemps(t, s); len(left) != 0 {
			t.Fatalf("%s left %q", name, left)
		}
	}
}

func TestPutAllCancelledBetween(t *testing.T) {
	s := openTest(t, systemOps)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.family.ops.link = func(from *os.File, old string, to *os.File, name string) error {
		cancel()
		return systemOps.link(from, old, to, name)
	}
	n, err := s.PutAllIfAbsent(ctx, batch("x", "y"))
	if n != 1 || err != context.Canceled {
		t.Fatalf("put all: %d, %v", n, err)
	}
	want(t, s, "x", "x")
	absent(t, s, "y")
}

func TestPutManyObjects(t *testing.T) {
	s := openTest(t, systemOps)
	var keys []string
	for i := range 2*maxBatch + 10 {
		keys = append(keys, strings.Repeat("x", 1+i%200)+"/"+strings.Repeat("y", 1+i/200))
	}
	put(t, s, keys[maxBatch+3], "taken")
	n, err := s.PutAllIfAbsent(t.Context(), batch(keys...))
	if n != maxBatch+3 || !errors.Is(err, objstore.ErrExist) {
		t.Fatalf("put all: %d, %v", n, err)
	}
	if found := listed(t, s); len(found) != n+1 {
		t.Fatalf("%d objects, want %d", len(found), n+1)
	}
}

func TestAbortFails(t *testing.T) {
	s := openTest(t, systemOps)
	w, err := s.Create(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	s.family.ops.unlink = func(*os.File, string) error { return syscall.EROFS }
	if err := w.Abort(); !errors.Is(err, syscall.EROFS) {
		t.Fatalf("abort: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Fatalf("second abort: %v", err)
	}
	if left := leftTemps(t, s); len(left) != 1 {
		t.Fatalf("left %q", left)
	}
}
