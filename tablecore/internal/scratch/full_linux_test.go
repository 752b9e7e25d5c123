package scratch

import (
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"contrail/tablecore/objstore"
)

// TestFullDisk fills a small file system. Where nobody may mount one it says so
// and leaves the error to TestErrors.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=65536"); err != nil {
		t.Logf("no file system can be mounted here: %v", err)
		return
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("something of the scratch files is left open: %v", err)
		}
	})
	f, err := Dir(dir).Create()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	for err == nil {
		_, err = io.WriteString(f, "0123456789abcdef")
		if n++; n > 10_000 {
			t.Fatal("the file system never gets full")
		}
	}
	if !errors.Is(err, objstore.ErrNoSpace) {
		t.Errorf("got %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}
