package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"contrail/tablecore/objstore"
)

func testGet(t *testing.T, s objstore.Store) {
	_, err := s.Get(t.Context(), "a/b")
	is(t, "get of nothing", err, objstore.ErrNotExist)
	put(t, s, "a/b", "one")
	put(t, s, "a/empty", "")
	put(t, s, "big", strings.Repeat("0123456789abcdef", 1<<16))
	want(t, s, "a/b", "one")
	want(t, s, "a/empty", "")
	want(t, s, "big", strings.Repeat("0123456789abcdef", 1<<16))
	_, err = s.Get(t.Context(), "a")
	is(t, "get of a directory", err, objstore.ErrNotExist)
	_, err = s.Get(t.Context(), "a/b/c")
	is(t, "get below an object", err, objstore.ErrNotExist)
}

func testOpen(t *testing.T, s objstore.Store) {
	for _, key := range []string{"x", "x/y", "dir"} {
		_, err := s.Open(t.Context(), key)
		is(t, "open", err, objstore.ErrNotExist)
		if key == "x/y" {
			put(t, s, "dir/x", "")
		}
	}
	put(t, s, "x", "0123456789")
	r, err := s.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	check := func() {
		t.Helper()
		if r.Size() != 10 {
			t.Fatalf("size %d, want 10", r.Size())
		}
		p := make([]byte, 4)
		if n, err := r.ReadAt(p, 3); n != 4 || err != nil || string(p) != "3456" {
			t.Fatalf("read at 3: %d, %v, %q", n, err, p)
		}
		if n, err := r.ReadAt(p, 8); n != 2 || err != io.EOF || string(p[:2]) != "89" {
			t.Fatalf("read at 8: %d, %v, %q", n, err, p[:n])
		}
		if n, err := r.ReadAt(p, 10); n != 0 || err != io.EOF {
			t.Fatalf("read at the end: %d, %v", n, err)
		}
		if _, err := r.ReadAt(p, -1); err == nil {
			t.Fatal("read before the beginning: no error")
		}
	}
	check()
	if err := s.Put(t.Context(), "x", []byte("other")); err != nil {
		t.Fatal(err)
	}
	check()
	if err := s.Delete(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	check()
}

func testPut(t *testing.T, s objstore.Store) {
	for _, data := range []string{"one", "", "a longer one", "x"} {
		if err := s.Put(t.Context(), "d/e/key", []byte(data)); err != nil {
			t.Fatal(err)
		}
		want(t, s, "d/e/key", data)
	}
	failed(t, "put on a directory", s.Put(t.Context(), "d/e", nil))
	want(t, s, "d/e/key", "x")
}

func testPutIfAbsent(t *testing.T, s objstore.Store) {
	put(t, s, "log/1", "one")
	is(t, "second put", s.PutIfAbsent(t.Context(), "log/1", []byte("two")), objstore.ErrExist)
	want(t, s, "log/1", "one")
	failed(t, "put on a directory", s.PutIfAbsent(t.Context(), "log", nil))
	if err := s.Delete(t.Context(), "log/1"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "log/1", "three")
	want(t, s, "log/1", "three")
}

// objects makes objects of the given keys, each holding its key.
func objects(keys ...string) []objstore.Object {
	made := make([]objstore.Object, len(keys))
	for i, key := range keys {
		made[i] = objstore.Object{Key: key, Data: []byte(key)}
	}
	return made
}

func testPutAll(t *testing.T, s objstore.Store) {
	if n, err := s.PutAllIfAbsent(t.Context(), nil); n != 0 || err != nil {
		t.Fatalf("put of none: %d, %v", n, err)
	}
	var many []string
	for _, dir := range []string{"log/", "", "other/dir/"} {
		for c := 'a'; c <= 'z'; c++ {
			many = append(many, dir+string(c))
		}
	}
	for _, batch := range [][]string{{"single"}, many} {
		if n, err := s.PutAllIfAbsent(t.Context(), objects(batch...)); n != len(batch) || err != nil {
			t.Fatalf("put of %d: %d, %v", len(batch), n, err)
		}
		for _, key := range batch {
			want(t, s, key, key)
		}
	}
}

func testPutAllFails(t *testing.T, s objstore.Store) {
	put(t, s, "log/3", "taken")
	put(t, s, "dir/x", "")
	tests := []struct {
		what string
		keys []string
		n    int
		err  error
	}{
		{"the first taken", []string{"log/3", "log/4"}, 0, objstore.ErrExist},
		{"one taken", []string{"log/1", "log/2", "log/3", "log/4", "other/4"}, 2, objstore.ErrExist},
		{"one twice", []string{"log/5", "log/5", "log/6"}, 1, objstore.ErrExist},
		{"one a directory", []string{"log/7", "dir", "log/8"}, 1, nil},
		{"one no key", []string{"log/9", "log//10", "log/11"}, 1, nil},
		{"two that fail", []string{"log/12", "", "log/3", "log/13"}, 1, nil},
	}
	for _, test := range tests {
		n, err := s.PutAllIfAbsent(t.Context(), objects(test.keys...))
		if n != test.n {
			t.Fatalf("%s: %d landed, want %d", test.what, n, test.n)
		}
		is(t, test.what, err, test.err)
		for i, key := range test.keys {
			if i < test.n {
				want(t, s, key, key)
			}
			if i > test.n && key != "log/3" {
				absent(t, s, key)
			}
		}
	}
	want(t, s, "log/3", "taken")
}

func testNotKept(t *testing.T, s objstore.Store) {
	data := []byte("first")
	puts := map[string]func() error{
		"put":           func() error { return s.Put(t.Context(), "put", data) },
		"put if absent": func() error { return s.PutIfAbsent(t.Context(), "put if absent", data) },
		"put all if absent": func() error {
			_, err := s.PutAllIfAbsent(t.Context(), []objstore.Object{{Key: "put all if absent", Data: data}})
			return err
		},
		"create": func() error {
			w, err := s.Create(t.Context(), "create")
			if err != nil {
				return err
			}
			if _, err := w.Write(data); err != nil {
				return err
			}
			copy(data, "other")
			_, err = w.Commit(t.Context())
			return err
		},
	}
	for key, call := range puts {
		copy(data, "first")
		if err := call(); err != nil {
			t.Fatal(err)
		}
		copy(data, "other")
		want(t, s, key, "first")
		got, err := s.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		copy(got, "third")
		want(t, s, key, "first")
	}
}

func testHead(t *testing.T, s objstore.Store) {
	put(t, s, "dir/x", "12345")
	info, err := s.Head(t.Context(), "dir/x")
	if err != nil || info.Key != "dir/x" || info.Size != 5 || info.Modified.IsZero() {
		t.Fatalf("head: %+v, %v", info, err)
	}
	if err := s.Put(t.Context(), "dir/x", []byte("1234567")); err != nil {
		t.Fatal(err)
	}
	again, err := s.Head(t.Context(), "dir/x")
	if err != nil || again.Size != 7 || again.Modified.Before(info.Modified) {
		t.Fatalf("head: %+v, %v, before %+v", again, err, info)
	}
	absent(t, s, "dir")
	absent(t, s, "dir/x/y")
	absent(t, s, "dir/y")
}

func testDelete(t *testing.T, s objstore.Store) {
	put(t, s, "dir/x", "")
	put(t, s, "dir/y", "")
	for _, key := range []string{"dir/x", "dir/x", "dir/z", "none/x", "dir/y/z"} {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatalf("delete %q: %v", key, err)
		}
	}
	absent(t, s, "dir/x")
	want(t, s, "dir/y", "")
	failed(t, "delete of a directory", s.Delete(t.Context(), "dir"))
	sub(t, s, "empty", true)
	failed(t, "delete of an empty directory", s.Delete(t.Context(), "empty"))
}

func testDeleteAll(t *testing.T, s objstore.Store) {
	var many []string
	for _, dir := range []string{"log/", "", "other/dir/"} {
		for i := range 100 {
			many = append(many, fmt.Sprintf("%s%03d", dir, i))
		}
	}
	if n, err := s.PutAllIfAbsent(t.Context(), objects(many...)); n != len(many) || err != nil {
		t.Fatalf("put: %d, %v", n, err)
	}
	put(t, s, "log/100", "stays")
	for _, batch := range [][]string{nil, {"log/000"}, {"none/x", "log/000", "log/101", "log/100/x"}, many, many} {
		if n, err := s.DeleteAll(t.Context(), batch); n != len(batch) || err != nil {
			t.Fatalf("delete of %d: %d, %v", len(batch), n, err)
		}
	}
	for _, key := range many {
		absent(t, s, key)
	}
	want(t, s, "log/100", "stays")
}

func testDeleteAllFails(t *testing.T, s objstore.Store) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	put(t, s, "dir/x", "")
	for what, bad := range map[string]string{"one a directory": "dir", "one no key": "log//2"} {
		for _, key := range []string{"log/1", "log/2", "log/3"} {
			if err := s.Put(t.Context(), key, []byte(key)); err != nil {
				t.Fatal(err)
			}
		}
		n, err := s.DeleteAll(cancelled, []string{"log/1"})
		if n != 0 || !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled: %d, %v", n, err)
		}
		want(t, s, "log/1", "log/1")
		n, err = s.DeleteAll(t.Context(), []string{"log/2", bad, "log/3"})
		if n != 1 {
			t.Fatalf("%s: %d are gone", what, n)
		}
		failed(t, what, err)
		absent(t, s, "log/2")
		want(t, s, "log/3", "log/3")
		want(t, s, "dir/x", "")
	}
}

// everyCall makes each call of a store that takes a key, with that key, and gives its error to check. Those that write
// are told apart.
func everyCall(ctx context.Context, s objstore.Store, key string, check func(what string, writes bool, err error)) {
	_, err := s.Get(ctx, key)
	check("get", false, err)
	_, err = s.Open(ctx, key)
	check("open", false, err)
	_, err = s.Head(ctx, key)
	check("head", false, err)
	check("delete", false, s.Delete(ctx, key))
	_, err = s.DeleteAll(ctx, []string{key})
	check("delete all", false, err)
	check("put", true, s.Put(ctx, key, nil))
	check("put if absent", true, s.PutIfAbsent(ctx, key, nil))
	_, err = s.PutAllIfAbsent(ctx, objects(key))
	check("put all if absent", true, err)
	_, err = s.Create(ctx, key)
	check("create", true, err)
}

// everyDirCall does the same with the calls that take directories.
func everyDirCall(ctx context.Context, s objstore.Store, key string, check func(what string, err error)) {
	_, err := s.Sub(ctx, key, true)
	check("sub", err)
	_, err = s.Sub(ctx, key, false)
	check("sub of what is there", err)
	check("trash", s.Trash(ctx, key, "target"))
	check("trash to", s.Trash(ctx, "here", key))
	check("delete tree", s.DeleteTree(ctx, key))
	for _, err = range s.List(ctx, key+"/x", "") {
		check("list", err)
	}
	if key != "" {
		_, err = s.ListDirs(ctx, key)
		check("list directories", err)
	}
}

func testKeys(t *testing.T, s objstore.Store) {
	put(t, s, "here/x", "")
	refused := func(key string) func(string, error) {
		return func(what string, err error) {
			t.Helper()
			var bad *objstore.KeyError
			if !errors.As(err, &bad) || bad.Reason == "" || len(err.Error()) > 1000 {
				t.Fatalf("%s with the key %.100q: error %.1000v, want a KeyError", what, key, err)
			}
		}
	}
	long := strings.Repeat("x", 256)
	for _, key := range []string{
		"", "/", "/x", "x/", "x//y", ".", "..", "../x", "x/..", "x/./y", "x/../../y", "./x", "x\x00y",
		long, "x/" + long, strings.Repeat("x/", 2100) + "x", strings.Repeat("x", 1<<20),
	} {
		everyCall(t.Context(), s, key, func(what string, _ bool, err error) { refused(key)(what, err) })
		everyDirCall(t.Context(), s, key, refused(key))
	}
	for _, key := range []string{
		"...", "a..b", ".hidden", "with blank ", "x\ny", "näme/日本", "back\\slash", "per%2Fcent", "col=a b/c", "\xff\xfe",
		strings.Repeat("x", 255), strings.Repeat("deep/", 40) + "x", "-", "*", "~", "C:",
	} {
		put(t, s, key, key)
		want(t, s, key, key)
	}
	if names := dirs(t, s, "here"); len(names) != 0 {
		t.Fatalf("directories in here: %q", names)
	}
}

func testFileInPath(t *testing.T, s objstore.Store) {
	put(t, s, "file", "")
	everyCall(t.Context(), s, "file/x", func(what string, writes bool, err error) {
		t.Helper()
		switch {
		case what == "create" && err == nil:
			// It may come to light at Commit.
		case writes:
			failed(t, what, err)
		}
	})
	w, err := s.Create(t.Context(), "file/x")
	if err == nil {
		_, err = w.Commit(t.Context())
	}
	failed(t, "create below an object", err)
}

func testTemporary(t *testing.T, s objstore.Store) {
	for _, key := range []string{objstore.TempDir + "/x", "a/b/" + objstore.TempDir + "/x/y"} {
		everyCall(t.Context(), s, key, func(what string, writes bool, err error) {
			t.Helper()
			var bad *objstore.KeyError
			if writes != errors.As(err, &bad) {
				t.Fatalf("%s of a temporary file: %v", what, err)
			}
		})
	}
	w, err := s.Create(t.Context(), "dir/new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
		t.Fatal(err)
	}
	if found := keys(t, s, "", ""); len(found) != 0 {
		t.Fatalf("listed while an object is written: %q", found)
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, s, "other", "")
	if found := keys(t, s, objstore.TempDir+"/", ""); len(found) != 0 {
		t.Fatalf("temporary files left: %q", found)
	}
}

func testDone(t *testing.T, s objstore.Store) {
	put(t, s, "dir/x", "one")
	w, err := s.Create(t.Context(), "new")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	everyCall(ctx, s, "dir/x", func(what string, _ bool, err error) { is(t, what, err, context.Canceled) })
	everyDirCall(ctx, s, "dir", func(what string, err error) { is(t, what, err, context.Canceled) })
	_, err = w.Commit(ctx)
	is(t, "commit", err, context.Canceled)
	absent(t, s, "new")
	n, err := s.PutAllIfAbsent(ctx, objects("new", "newer"))
	if is(t, "put all", err, context.Canceled); n != 0 {
		t.Fatalf("put all with a done context: %d landed", n)
	}
	_, err = s.Current(ctx)
	is(t, "current", err, context.Canceled)
	want(t, s, "dir/x", "one")
	if found := keys(t, s, "", ""); len(found) != 1 {
		t.Fatalf("left: %q", found)
	}
}
