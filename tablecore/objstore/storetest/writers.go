package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"contrail/tablecore/objstore"
)

// create begins an object and writes the pieces.
func create(t *testing.T, s objstore.Store, key string, pieces ...string) objstore.Writer {
	t.Helper()
	w, err := s.Create(t.Context(), key)
	if err != nil {
		t.Fatalf("create %q: %v", key, err)
	}
	for _, piece := range pieces {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("write %d bytes to %q: %d, %v", len(piece), key, n, err)
		}
	}
	return w
}

func testCreate(t *testing.T, s objstore.Store) {
	var small []string
	for i := range 10_000 {
		small = append(small, fmt.Sprintf("piece %d\n", i))
	}
	for i, pieces := range [][]string{
		{}, {""}, {"one"}, {"one", "", "two"}, small, {"x", strings.Repeat("0123456789", 1<<17), "y"},
	} {
		key := fmt.Sprintf("data/%02x/x", i)
		w := create(t, s, key, pieces...)
		absent(t, s, key)
		data := strings.Join(pieces, "")
		if size, err := w.Commit(t.Context()); size != int64(len(data)) || err != nil {
			t.Fatalf("commit: %d, %v, want %d bytes", size, err, len(data))
		}
		if err := w.Abort(); err != nil {
			t.Fatalf("abort after commit: %v", err)
		}
		want(t, s, key, data)
	}
}

func testCreateTaken(t *testing.T, s objstore.Store) {
	put(t, s, "taken", "one")
	w := create(t, s, "taken", "two")
	_, err := w.Commit(t.Context())
	is(t, "commit to a key that is taken", err, objstore.ErrExist)
	want(t, s, "taken", "one")

	w = create(t, s, "later", "two")
	put(t, s, "later", "one")
	_, err = w.Commit(t.Context())
	is(t, "commit to a key that was taken meanwhile", err, objstore.ErrExist)
	want(t, s, "later", "one")

	w = create(t, s, "dir", "two")
	put(t, s, "dir/x", "one")
	_, err = w.Commit(t.Context())
	failed(t, "commit to a directory", err)
	if found := keys(t, s, objstore.TempDir+"/", ""); len(found) != 0 {
		t.Fatalf("temporary files left: %q", found)
	}
}

func testAbort(t *testing.T, s objstore.Store) {
	w := create(t, s, "x", strings.Repeat("0123456789", 1<<16))
	for range 2 {
		if err := w.Abort(); err != nil {
			t.Fatalf("abort: %v", err)
		}
	}
	absent(t, s, "x")
	if found := keys(t, s, objstore.TempDir+"/", ""); len(found) != 0 {
		t.Fatalf("temporary files left: %q", found)
	}
	put(t, s, "x", "free")
}

func testEnded(t *testing.T, s objstore.Store) {
	ends := map[string]func(objstore.Writer) error{
		"commit": func(w objstore.Writer) error { _, err := w.Commit(t.Context()); return err },
		"abort":  func(w objstore.Writer) error { return w.Abort() },
	}
	for name, end := range ends {
		w := create(t, s, name, "one")
		if err := end(w); err != nil {
			t.Fatal(err)
		}
		_, err := w.Write(bytes.Repeat([]byte("x"), 1<<20))
		failed(t, "write after "+name, err)
		_, err = w.Commit(t.Context())
		failed(t, "commit after "+name, err)
		if err := w.Abort(); err != nil {
			t.Fatalf("abort after %s: %v", name, err)
		}
	}
	want(t, s, "commit", "one")
	absent(t, s, "abort")
}
