// Package storetest is the conformance suite of object stores: what every driver and every wrapper must do.
package storetest

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"contrail/tablecore/objstore"
)

// Factory returns a new, empty store that lasts as long as the test.
type Factory func(t *testing.T) objstore.Store

// Run runs the suite against the stores that factory makes, each test on one of its own.
func Run(t *testing.T, factory Factory) {
	tests := []struct {
		name string
		run  func(*testing.T, objstore.Store)
	}{
		{"get", testGet}, {"open", testOpen}, {"put", testPut}, {"put if absent", testPutIfAbsent},
		{"put all if absent", testPutAll}, {"put all that fails", testPutAllFails}, {"arguments are not kept", testNotKept},
		{"head", testHead}, {"delete", testDelete}, {"delete all", testDeleteAll},
		{"delete all fails", testDeleteAllFails}, {"keys", testKeys}, {"file in the path", testFileInPath},
		{"temporary files", testTemporary}, {"done contexts", testDone},
		{"create", testCreate}, {"create taken", testCreateTaken}, {"abort", testAbort}, {"ended writer", testEnded},
		{"list", testList}, {"list order", testListOrder}, {"list like a naive list", testListModel},
		{"list stops", testListStops}, {"list directories", testListDirs},
		{"sub", testSub}, {"nested sub", testNestedSub}, {"sub fails", testSubFails}, {"trash", testTrash},
		{"trash fails", testTrashFails}, {"trash is held", testTrashHeld}, {"anew under the name", testAnew},
		{"delete tree", testDeleteTree}, {"delete tree is held", testDeleteTreeHeld},
		{"race to put", testRacePut}, {"race to put all", testRacePutAll}, {"race to create", testRaceCreate},
		{"race to make directories", testRaceDirs}, {"race to replace", testRaceReplace}, {"race to trash", testRaceTrash},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, factory(t)) })
	}
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
	got, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	if string(got) != data {
		t.Fatalf("get %q: %.60q, want %.60q", key, got, data)
	}
}

// absent fails the test if there is such an object.
func absent(t *testing.T, s objstore.Store, key string) {
	t.Helper()
	if _, err := s.Head(t.Context(), key); !errors.Is(err, objstore.ErrNotExist) {
		t.Fatalf("head %q: %v, want ErrNotExist", key, err)
	}
}

// is fails the test unless err is the sentinel error want, and only that one.
func is(t *testing.T, what string, err, want error) {
	t.Helper()
	for _, sentinel := range []error{
		objstore.ErrExist, objstore.ErrNotExist, objstore.ErrNoSpace, objstore.ErrTooLarge, context.Canceled,
	} {
		if errors.Is(err, sentinel) != (sentinel == want) {
			t.Fatalf("%s: error %v, want %v", what, err, want)
		}
	}
	var unknown *objstore.UnknownOutcomeError
	if err == nil || errors.As(err, &unknown) {
		t.Fatalf("%s: error %v, want %v", what, err, want)
	}
}

// failed fails the test unless err is an error that says there was no effect, and none of the sentinel errors.
func failed(t *testing.T, what string, err error) {
	t.Helper()
	is(t, what, err, nil)
}

// keys lists the keys of a store.
func keys(t *testing.T, s objstore.Store, prefix, after string) []string {
	t.Helper()
	var found []string
	for info, err := range s.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatalf("list %q after %q: %v", prefix, after, err)
		}
		found = append(found, info.Key)
	}
	return found
}

// sub opens a sub-store until the test's end.
func sub(t *testing.T, s objstore.Store, prefix string, create bool) objstore.Store {
	t.Helper()
	child, err := s.Sub(t.Context(), prefix, create)
	if err != nil {
		t.Fatalf("sub %q: %v", prefix, err)
	}
	t.Cleanup(func() { closed(t, child) })
	return child
}

// closed closes something and fails the test if it cannot be.
func closed(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// current fails the test unless the store's name leads to it, or does not, as wanted.
func current(t *testing.T, s objstore.Store, want bool) {
	t.Helper()
	got, err := s.Current(t.Context())
	if err != nil || got != want {
		t.Fatalf("current: %v, %v, want %v", got, err, want)
	}
}

// dirs lists directories, but for those that begin with an underscore: a driver may need one of its own.
func dirs(t *testing.T, s objstore.Store, prefix string) []string {
	t.Helper()
	names, err := s.ListDirs(t.Context(), prefix)
	if err != nil {
		t.Fatalf("directories in %q: %v", prefix, err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "_") })
}
