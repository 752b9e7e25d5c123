package localfs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/storetest"
)

// openTest opens a store in a new directory until the test's end.
func openTest(t *testing.T, ops fileOps) *Store {
	t.Helper()
	s, err := open(t.TempDir(), Options{Create: true}, ops)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// path returns where an object of a store lies.
func path(s *Store, key string) string { return filepath.Join(s.root.Name(), filepath.FromSlash(key)) }

// leftTemps returns the temporary files of a store.
func leftTemps(t *testing.T, s *Store) []string {
	t.Helper()
	entries, err := os.ReadDir(path(s, objstore.TempDir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// put stores an object that must be free.
func put(t *testing.T, s objstore.Store, key, data string) {
	t.Helper()
	if err := s.PutIfAbsent(t.Context(), key, []byte(data)); err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
}

// want fails the test unless the object holds data.
func want(t *testing.T, s objstore.Store, key, data string) {
	t.Helper()
	if got, err := s.Get(t.Context(), key); err != nil || string(got) != data {
		t.Fatalf("get %q: %.60q, %v, want %.60q", key, got, err, data)
	}
}

// absent fails the test if there is such an object.
func absent(t *testing.T, s objstore.Store, key string) {
	t.Helper()
	if _, err := s.Head(t.Context(), key); !errors.Is(err, objstore.ErrNotExist) {
		t.Fatalf("head %q: %v, want ErrNotExist", key, err)
	}
}

func TestConformance(t *testing.T) {
	noLinks, noExclusive := systemOps, systemOps
	noLinks.link = func(*os.File, string, *os.File, string) error { return syscall.EPERM }
	noExclusive.renameNew = func(*os.File, string, *os.File, string) error { return syscall.EINVAL }
	for name, ops := range map[string]fileOps{"with all": systemOps, "without links": noLinks, "without RENAME_NOREPLACE": noExclusive} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) objstore.Store { return openTest(t, ops) })
		})
	}
}

func TestOpenMakesNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none"), Options{}); !errors.Is(err, objstore.ErrNotExist) {
		t.Fatalf("open of nothing: %v, want ErrNotExist", err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); len(entries) != 0 || err != nil {
		t.Fatalf("open has made %v, %v", entries, err)
	}
	put(t, s, "x", "one")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenCreates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	syncs := 0
	ops := systemOps
	ops.sync = func(f *os.File) error { syncs++; return f.Sync() }
	for range 2 {
		s, err := open(dir, Options{Create: true}, ops)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if syncs != 3 {
		t.Fatalf("%d fsyncs for three directories", syncs)
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	noSync := systemOps
	noSync.sync = func(*os.File) error { return broken }
	tests := map[string]struct {
		dir  string
		opts Options
		ops  fileOps
		want error
	}{
		"a file":                {file, Options{}, systemOps, nil},
		"a file, to be made":    {file, Options{Create: true}, systemOps, nil},
		"below a file":          {filepath.Join(file, "x"), Options{Create: true}, systemOps, syscall.ENOTDIR},
		"no randomness":         {dir, Options{Random: iotest.ErrReader(broken)}, systemOps, broken},
		"a parent not fsynced":  {filepath.Join(dir, "x", "y"), Options{Create: true}, noSync, broken},
		"too little randomness": {dir, Options{Random: strings.NewReader("short")}, systemOps, io.ErrUnexpectedEOF},
	}
	for name, test := range tests {
		_, err := open(test.dir, test.opts, test.ops)
		if err == nil || errors.Is(err, objstore.ErrNotExist) || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

func TestClosed(t *testing.T) {
	s, err := Open(t.TempDir(), Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "dir/x", "0123456789")
	r, err := s.Open(t.Context(), "dir/x")
	if err != nil {
		t.Fatal(err)
	}
	sub, err := s.Sub(t.Context(), "dir", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 10)
	if _, err := r.ReadAt(p, 0); err != nil || string(p) != "0123456789" {
		t.Fatalf("read after close: %q, %v", p, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Current(t.Context()); err == nil {
		t.Fatal("current after the parent was closed: no error")
	}
	want(t, sub, "x", "0123456789")
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Current(t.Context()); err == nil {
		t.Fatal("current after close: no error")
	}
	for what, err := range map[string]error{
		"put": s.Put(t.Context(), "y", nil), "put into a known directory": s.PutIfAbsent(t.Context(), "dir/y", nil),
		"delete": s.Delete(t.Context(), "dir/x"), "delete tree": s.DeleteTree(t.Context(), "dir"),
		"trash": s.Trash(t.Context(), "dir", "dir2"),
	} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s after close: %v", what, err)
		}
	}
	if _, err := s.Get(t.Context(), "dir/x"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("get after close: %v", err)
	}
	if _, err := s.ListDirs(t.Context(), ""); !errors.Is(err, os.ErrClosed) {
		t.Errorf("list directories after close: %v", err)
	}
	for _, err := range s.List(t.Context(), "", "") {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("list after close: %v", err)
		}
	}
}

// TestNames uses a source of randomness that gives two stores the same names for their temporary files.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	random := func() io.Reader { return bytes.NewReader(make([]byte, 8)) }
	var writers []objstore.Writer
	for i := range 3 {
		s, err := Open(dir, Options{Create: true, Random: random()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		w, err := s.Create(t.Context(), strings.Repeat("x", 1+i))
		if err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	for _, w := range writers {
		if _, err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ops := systemOps
	ops.create = func(*os.File, string) (*os.File, error) { return nil, syscall.EEXIST }
	if err := openTest(t, ops).PutIfAbsent(t.Context(), "x", nil); !errors.Is(err, errNoName) || errors.Is(err, objstore.ErrExist) {
		t.Fatalf("put without a free name: %v", err)
	}
}

func TestLarge(t *testing.T) {
	s := openTest(t, systemOps)
	put(t, s, "x", "")
	if err := os.Truncate(path(s, "x"), objstore.MaxGetBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "x"); !errors.Is(err, objstore.ErrTooLarge) {
		t.Fatalf("get: %v, want ErrTooLarge", err)
	}
	if _, err := readAll(strings.NewReader("123"), 4); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("read of a file that was cut meanwhile: %v", err)
	}
	// Longer than what is left to the last fsync.
	starts := 0
	ops := systemOps
	ops.start = func(f *os.File, from int64) { starts++; systemOps.start(f, from) }
	s = openTest(t, ops)
	w, err := s.Create(t.Context(), "long")
	if err != nil {
		t.Fatal(err)
	}
	piece := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
	for range 2*startBytes/len(piece) + 1 {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if size, err := w.Commit(t.Context()); size != int64(2*startBytes+len(piece)) || err != nil || starts != 2 {
		t.Fatalf("commit: %d, %v, after %d starts", size, err, starts)
	}
}
