package scratch

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"contrail/tablecore/objstore"
)

// names lists what a directory holds.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestFile writes and reads files of both makes, in a directory that is made
// for them, and looks that nothing of them is seen.
func TestFile(t *testing.T) {
	root := t.TempDir()
	dir := Dir(filepath.Join(root, "a", "b"))
	first, err := dir.Create()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := dir.named()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []File{first, file{plain}} {
		for _, text := range []string{"seven ", "lines"} {
			if n, err := f.Write([]byte(text)); n != len(text) || err != nil {
				t.Fatalf("wrote %d bytes: %v", n, err)
			}
		}
		got := make([]byte, 5)
		if _, err := f.ReadAt(got, 6); err != nil || string(got) != "lines" {
			t.Errorf("read %q: %v", got, err)
		}
		if _, err := f.ReadAt(got, 8); !errors.Is(err, io.EOF) {
			t.Errorf("read behind the end: %v", err)
		}
		if seen := names(t, string(dir)); len(seen) > 0 {
			t.Errorf("the directory shows %q", seen)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if seen := names(t, string(dir)); len(seen) > 0 {
		t.Errorf("the directory holds %q", seen)
	}
}

// TestErrors makes files where there can be none.
func TestErrors(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []Dir{Dir(taken), Dir(filepath.Join(taken, "below")), "\x00"} {
		if f, err := dir.Create(); err == nil {
			t.Errorf("%q: got a file, %v", dir, f.Close())
		}
	}
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if !errors.Is(explain(&os.PathError{Err: err}), objstore.ErrNoSpace) {
			t.Errorf("%v is not seen as a full disk", err)
		}
	}
	if err := explain(io.ErrShortWrite); errors.Is(err, objstore.ErrNoSpace) || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
}
