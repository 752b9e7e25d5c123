package localfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"contrail/tablecore/objstore"
)

// TestDeleteAllOrder: the names go in the given order, whatever has them, and who reads a file goes on.
func TestDeleteAllOrder(t *testing.T) {
	var order []string
	ops := systemOps
	s := openTest(t, ops)
	s.family.ops.unlink = func(dir *os.File, name string) error {
		order = append(order, name)
		return ops.unlink(dir, name)
	}
	var names, keys []string
	for i := range 2*maxBatch + 3 {
		names = append(names, fmt.Sprintf("%03d", (i*7)%(2*maxBatch+3)))
		keys = append(keys, "log/"+names[i])
		if err := s.Put(t.Context(), keys[i], []byte(keys[i])); err != nil {
			t.Fatal(err)
		}
	}
	order = nil
	dir := filepath.Join(s.root.Name(), "log")
	unreadable, link, pipe := filepath.Join(dir, names[1]), filepath.Join(dir, names[2]), filepath.Join(dir, names[3])
	err := errors.Join(os.Chmod(unreadable, 0), os.Remove(link), os.Symlink("nowhere", link), os.Remove(pipe), syscall.Mkfifo(pipe, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), keys[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	if n, err := s.DeleteAll(t.Context(), keys); n != len(keys) || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if !slices.Equal(order, names) {
		t.Errorf("they went in the order %q", order)
	}
	if left, err := os.ReadDir(dir); len(left) != 0 || err != nil {
		t.Errorf("%v are left, %v", left, err)
	}
	got := make([]byte, r.Size())
	if _, err := r.ReadAt(got, 0); err != nil && !errors.Is(err, io.EOF) || string(got) != keys[0] {
		t.Errorf("the reader got %q, %v", got, err)
	}
}

// TestDeleteAllFaults: the first name that cannot be removed ends it.
func TestDeleteAllFaults(t *testing.T) {
	for at := range 3 {
		s := openTest(t, systemOps)
		keys := []string{"a/1", "a/2", "b/3"}
		for _, key := range keys {
			if err := s.Put(t.Context(), key, []byte(key)); err != nil {
				t.Fatal(err)
			}
		}
		calls := 0
		s.family.ops.unlink = func(dir *os.File, name string) error {
			if calls++; calls == at+1 {
				return syscall.EIO
			}
			return systemOps.unlink(dir, name)
		}
		n, err := s.DeleteAll(t.Context(), keys)
		var failed *objstore.OpError
		if n != at || !errors.Is(err, syscall.EIO) || !errors.As(err, &failed) || failed.Op != objstore.OpDeleteAll || failed.Key != keys[at] || calls != at+1 {
			t.Fatalf("with the fault at %d: %d, %v after %d calls", at, n, err, calls)
		}
		for i, key := range keys {
			if i < at {
				absent(t, s, key)
			} else {
				want(t, s, key, key)
			}
		}
	}
}
