package localfs

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"

	"contrail/tablecore/objstore"
)

// link makes a symbolic link in a store.
func link(t *testing.T, s *Store, to, key string) {
	t.Helper()
	if err := os.Symlink(to, path(s, key)); err != nil {
		t.Fatal(err)
	}
}

func TestLinksThatLeadOut(t *testing.T) {
	outside := openTest(t, systemOps)
	put(t, outside, "dir/secret", "secret")
	s := openTest(t, systemOps)
	put(t, s, "own/x", "x")
	link(t, s, path(outside, "dir"), "absolute")
	link(t, s, "../../"+path(outside, "dir"), "own/relative")
	link(t, s, "..", "parent")
	ctx := t.Context()
	for _, dir := range []string{"absolute", "own/relative", "parent"} {
		errs := make(map[string]error)
		_, errs["get"] = s.Get(ctx, dir+"/secret")
		_, errs["open"] = s.Open(ctx, dir+"/secret")
		_, errs["head"] = s.Head(ctx, dir+"/secret")
		errs["put"] = s.Put(ctx, dir+"/secret", nil)
		errs["put if absent"] = s.PutIfAbsent(ctx, dir+"/new", nil)
		_, errs["create"] = s.Create(ctx, dir+"/new/dir/x")
		errs["delete"] = s.Delete(ctx, dir+"/secret")
		_, errs["sub"] = s.Sub(ctx, dir, false)
		_, errs["sub to be made"] = s.Sub(ctx, dir+"/new", true)
		errs["trash"] = s.Trash(ctx, dir+"/dir", "stolen")
		errs["trash of the link"] = s.Trash(ctx, dir, "stolen")
		errs["trash to"] = s.Trash(ctx, "own", dir+"/own")
		errs["delete tree"] = s.DeleteTree(ctx, dir+"/dir")
		errs["delete tree of the link"] = s.DeleteTree(ctx, dir)
		_, errs["list directories"] = s.ListDirs(ctx, dir)
		for _, errs["list"] = range s.List(ctx, dir+"/", "") {
		}
		for _, what := range []string{"get", "open", "head"} {
			if !errors.Is(errs[what], objstore.ErrOutside) {
				t.Errorf("%s through %s: %v", what, dir, errs[what])
			}
		}
		for what, err := range errs {
			if err == nil || errors.Is(err, objstore.ErrNotExist) && what != "trash of the link" {
				t.Errorf("%s through %s: %v", what, dir, err)
			}
		}
	}
	want(t, outside, "dir/secret", "secret")
	if found := listed(t, outside); !slices.Equal(found, []string{"dir/secret"}) {
		t.Errorf("outside there is now %q", found)
	}
	if found := listed(t, s); !slices.Equal(found, []string{"own/x"}) {
		t.Errorf("listed %q", found)
	}
}

// listed lists all keys.
func listed(t *testing.T, s objstore.Store) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func TestTemporaryFilesOutside(t *testing.T) {
	outside := openTest(t, systemOps)
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	link(t, s, outside.root.Name(), "_contrail")
	if err := s.PutIfAbsent(t.Context(), "x", nil); err == nil {
		t.Fatal("put with the temporary files elsewhere: no error")
	}
	absent(t, s, "x")
}

func TestLinksInside(t *testing.T) {
	s := openTest(t, systemOps)
	put(t, s, "dir/x", "one")
	link(t, s, "dir", "alias")
	link(t, s, "x", "dir/y")
	link(t, s, "nowhere", "dangling")
	want(t, s, "alias/x", "one")
	if err := s.PutIfAbsent(t.Context(), "dangling", nil); !errors.Is(err, objstore.ErrExist) {
		t.Errorf("put on a link: %v, want ErrExist", err)
	}
	absent(t, s, "dangling")
	// A write, or a removal, concerns the link and not what it leads to.
	if err := s.Put(t.Context(), "dir/y", []byte("two")); err != nil {
		t.Fatal(err)
	}
	want(t, s, "dir/x", "one")
	want(t, s, "dir/y", "two")
	if err := s.Delete(t.Context(), "dangling"); err != nil {
		t.Fatal(err)
	}
	if found := listed(t, s); !slices.Equal(found, []string{"dir/x", "dir/y"}) {
		t.Errorf("listed %q", found)
	}
	sub, err := s.Sub(t.Context(), "alias", false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Close() }()
	if current, err := sub.Current(t.Context()); !current || err != nil {
		t.Errorf("current: %v, %v", current, err)
	}
}

// TestPrivate gives the objects that say so to the user of this process alone.
func TestPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022)) // who runs the tests may have a stricter one
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	objects := []objstore.Object{{Key: "secret", Data: []byte("key"), Private: true}, {Key: "open", Data: []byte("all")}}
	if n, err := s.PutAllIfAbsent(t.Context(), objects); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for key, others := range map[string]bool{"secret": false, "open": true} {
		info, err := os.Stat(path(s, key))
		if err != nil || (info.Mode()&0o044 != 0) != others || info.Mode()&0o600 != 0o600 {
			t.Errorf("%s has the mode %v, %v", key, info.Mode(), err)
		}
	}
}

func TestPipe(t *testing.T) {
	s := openTest(t, systemOps)
	if err := syscall.Mkfifo(path(s, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	errs := make(map[string]error)
	_, errs["get"] = s.Get(ctx, "pipe")
	_, errs["open"] = s.Open(ctx, "pipe")
	_, errs["head"] = s.Head(ctx, "pipe")
	for what, err := range errs {
		if !errors.Is(err, errNotRegular) {
			t.Errorf("%s of a pipe: %v", what, err)
		}
	}
	if err := s.PutIfAbsent(ctx, "pipe", nil); !errors.Is(err, objstore.ErrExist) {
		t.Errorf("put on a pipe: %v", err)
	}
	if found := listed(t, s); len(found) != 0 {
		t.Errorf("listed %q", found)
	}
}

func TestLeftTemporaryFiles(t *testing.T) {
	s := openTest(t, systemOps)
	sub, err := s.Sub(t.Context(), "ns/table", true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Close() }()
	put(t, sub, "x", "")
	for _, dir := range []string{"", "ns/table/"} {
		if err := os.WriteFile(path(s, dir+objstore.TempDir+"/left"), []byte("12345"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found := listed(t, s); !slices.Equal(found, []string{"ns/table/x"}) {
		t.Fatalf("listed %q", found)
	}
	for _, store := range []objstore.Store{s, sub} {
		found := 0
		for info, err := range store.List(t.Context(), objstore.TempDir+"/", "") {
			if err != nil || info.Key != objstore.TempDir+"/left" || info.Size != 5 {
				t.Fatalf("listed %+v, %v", info, err)
			}
			found++
			if err := store.Delete(t.Context(), info.Key); err != nil {
				t.Fatal(err)
			}
		}
		if found != 1 || len(leftTemps(t, s)) != 0 {
			t.Fatalf("found %d temporary files", found)
		}
	}
}

// TestDirectoriesRemoved removes directories that the store knows, as somebody else would.
func TestDirectoriesRemoved(t *testing.T) {
	s := openTest(t, systemOps)
	w, err := s.Create(t.Context(), "data/ab/x")
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "data/ab/y", "")
	for i, dir := range []string{"data/ab", "data", "_contrail", objstore.TempDir} {
		if err := os.RemoveAll(path(s, dir)); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			if _, err := w.Commit(t.Context()); err != nil {
				t.Fatalf("commit into a directory that was removed: %v", err)
			}
			want(t, s, "data/ab/x", "")
			continue
		}
		put(t, s, "data/ab/z", "z")
		want(t, s, "data/ab/z", "z")
		if err := s.Delete(t.Context(), "data/ab/z"); err != nil {
			t.Fatal(err)
		}
	}
	// The temporary file itself is removed.
	w, err = s.Create(t.Context(), "lost")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path(s, objstore.TempDir)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context()); err == nil {
		t.Fatal("commit of a file that was removed: no error")
	}
	absent(t, s, "lost")
	put(t, s, "lost", "found")
}
