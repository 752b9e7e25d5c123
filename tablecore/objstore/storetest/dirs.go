package storetest

import (
	"context"
	"testing"

	"contrail/tablecore/objstore"
)

func testSub(t *testing.T, s objstore.Store) {
	_, err := s.Sub(t.Context(), "ns/table", false)
	is(t, "sub of nothing", err, objstore.ErrNotExist)
	if names := dirs(t, s, ""); len(names) != 0 {
		t.Fatalf("directories after a sub that failed: %q", names)
	}
	table := sub(t, s, "ns/table", true)
	current(t, s, true)
	current(t, table, true)
	put(t, table, "log/0", "zero")
	want(t, s, "ns/table/log/0", "zero")
	put(t, s, "ns/table/log/1", "one")
	want(t, table, "log/1", "one")
	is(t, "put", table.PutIfAbsent(t.Context(), "log/1", nil), objstore.ErrExist)
	if found := keys(t, table, "log/", "log/0"); len(found) != 1 || found[0] != "log/1" {
		t.Fatalf("listed in the sub-store: %q", found)
	}
	w := create(t, table, "data/x", "data")
	if found := keys(t, s, "", ""); len(found) != 2 {
		t.Fatalf("listed while an object is written: %q", found)
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, s, "ns/table/data/x", "data")
	for _, create := range []bool{false, true} {
		again := sub(t, s, "ns/table", create)
		want(t, again, "log/0", "zero")
		current(t, again, true)
	}
	info, err := table.Head(t.Context(), "log/0")
	if err != nil || info.Key != "log/0" {
		t.Fatalf("head in the sub-store: %+v, %v", info, err)
	}
}

func testNestedSub(t *testing.T, s objstore.Store) {
	outer := sub(t, s, "a", true)
	inner := sub(t, outer, "b", true)
	put(t, inner, "x", "one")
	want(t, s, "a/b/x", "one")
	current(t, inner, true)
	if err := s.Trash(t.Context(), "a", "trash/a"); err != nil {
		t.Fatal(err)
	}
	current(t, outer, false)
	current(t, inner, false)
	put(t, inner, "y", "two")
	want(t, s, "trash/a/b/y", "two")
}

func testSubFails(t *testing.T, s objstore.Store) {
	put(t, s, "file", "")
	_, err := s.Sub(t.Context(), "file", true)
	failed(t, "sub of an object", err)
	_, err = s.Sub(t.Context(), "file", false)
	failed(t, "sub of an object", err)
	_, err = s.Sub(t.Context(), "file/x", true)
	failed(t, "sub below an object", err)
}

func testTrash(t *testing.T, s objstore.Store) {
	put(t, s, "ns/table/log/0", "zero")
	put(t, s, "ns/table/data/x", "data")
	put(t, s, "ns/tables/x", "other")
	if err := s.Trash(t.Context(), "ns/table", "_trash/id.1"); err != nil {
		t.Fatal(err)
	}
	want(t, s, "_trash/id.1/log/0", "zero")
	want(t, s, "_trash/id.1/data/x", "data")
	absent(t, s, "ns/table/log/0")
	want(t, s, "ns/tables/x", "other")
	_, err := s.Sub(t.Context(), "ns/table", false)
	is(t, "sub of what was moved", err, objstore.ErrNotExist)
	is(t, "second trash", s.Trash(t.Context(), "ns/table", "_trash/id.2"), objstore.ErrNotExist)
}

func testTrashFails(t *testing.T, s objstore.Store) {
	put(t, s, "a/x", "one")
	put(t, s, "b/x", "two")
	put(t, s, "file", "three")
	sub(t, s, "empty", true)
	for _, target := range []string{"b", "file", "empty"} {
		is(t, "trash to "+target, s.Trash(t.Context(), "a", target), objstore.ErrExist)
	}
	is(t, "trash of an object", s.Trash(t.Context(), "file", "c"), objstore.ErrNotExist)
	is(t, "trash of nothing", s.Trash(t.Context(), "none/at/all", "c"), objstore.ErrNotExist)
	failed(t, "trash into itself", s.Trash(t.Context(), "a", "a/b"))
	failed(t, "trash below an object", s.Trash(t.Context(), "a", "file/b"))
	is(t, "trash to itself", s.Trash(t.Context(), "a", "a"), objstore.ErrExist)
	want(t, s, "a/x", "one")
	want(t, s, "b/x", "two")
	want(t, s, "file", "three")
}

func testTrashHeld(t *testing.T, s objstore.Store) {
	table := sub(t, s, "ns/table", true)
	put(t, table, "log/0", "zero")
	r, err := table.Open(t.Context(), "log/0")
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	w := create(t, table, "data/ab/x", "data")
	if err := s.Trash(t.Context(), "ns/table", "_trash/id"); err != nil {
		t.Fatal(err)
	}
	current(t, table, false)
	want(t, table, "log/0", "zero")
	p := make([]byte, 4)
	if _, err := r.ReadAt(p, 0); err != nil || string(p) != "zero" {
		t.Fatalf("read after trash: %q, %v", p, err)
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatalf("commit after trash: %v", err)
	}
	put(t, table, "log/1", "one")
	put(t, table, "new/dir/x", "two")
	if found := keys(t, table, "", ""); len(found) != 4 {
		t.Fatalf("listed after trash: %q", found)
	}
	want(t, s, "_trash/id/log/1", "one")
	want(t, s, "_trash/id/data/ab/x", "data")
	absent(t, s, "ns/table/log/1")
	if names := dirs(t, s, "ns"); len(names) != 0 {
		t.Fatalf("directories made by a store that holds a moved one: %q", names)
	}
}

// testAnew makes a directory again under the name of one that was moved away.
func testAnew(t *testing.T, s objstore.Store) {
	old := sub(t, s, "ns/table", true)
	put(t, old, "log/0", "old")
	if err := s.Trash(t.Context(), "ns/table", "_trash/id"); err != nil {
		t.Fatal(err)
	}
	anew := sub(t, s, "ns/table", true)
	current(t, old, false)
	current(t, anew, true)
	absent(t, anew, "log/0")
	put(t, anew, "log/0", "new")
	put(t, old, "log/1", "old")
	want(t, old, "log/0", "old")
	want(t, anew, "log/0", "new")
	absent(t, anew, "log/1")
	// The stores see the name change hands once more.
	if err := s.Trash(t.Context(), "ns/table", "_trash/id2"); err != nil {
		t.Fatal(err)
	}
	if err := s.Trash(t.Context(), "_trash/id", "ns/table"); err != nil {
		t.Fatal(err)
	}
	current(t, old, true)
	current(t, anew, false)
}

func testDeleteTree(t *testing.T, s objstore.Store) {
	for _, key := range []string{"_trash/a/x", "_trash/a/b/c/d", "_trash/b/x", "file"} {
		put(t, s, key, "")
	}
	for _, prefix := range []string{"_trash/a", "_trash/a", "none/at/all"} {
		if err := s.DeleteTree(t.Context(), prefix); err != nil {
			t.Fatalf("delete tree %q: %v", prefix, err)
		}
	}
	failed(t, "delete tree of an object", s.DeleteTree(t.Context(), "file"))
	if found := keys(t, s, "", ""); len(found) != 2 || found[0] != "_trash/b/x" || found[1] != "file" {
		t.Fatalf("left: %q", found)
	}
	put(t, s, "_trash/a/x", "again")
}

func testDeleteTreeHeld(t *testing.T, s objstore.Store) {
	table := sub(t, s, "ns/table", true)
	put(t, table, "log/0", "zero")
	put(t, table, "data/x", "zero")
	w := create(t, table, "data/y", "data")
	if err := s.DeleteTree(t.Context(), "ns/table"); err != nil {
		t.Fatal(err)
	}
	current(t, table, false)
	_, err := w.Commit(t.Context())
	is(t, "commit into a deleted directory", err, objstore.ErrNotExist)
	for _, key := range []string{"log/0", "log/1", "new"} {
		everyCall(t.Context(), table, key, func(what string, writes bool, err error) {
			t.Helper()
			switch {
			case (what == "delete" || what == "delete all") && err == nil:
			case what == "create" && err == nil:
				// It may come to light at Commit.
			default:
				is(t, what, err, objstore.ErrNotExist)
			}
		})
	}
	if found := keys(t, table, "", ""); len(found) != 0 {
		t.Fatalf("listed in a deleted directory: %q", found)
	}
	_, err = table.Sub(context.WithoutCancel(t.Context()), "x", true)
	is(t, "sub in a deleted directory", err, objstore.ErrNotExist)
	if names := dirs(t, s, "ns"); len(names) != 0 {
		t.Fatalf("directories after delete tree: %q", names)
	}
}
