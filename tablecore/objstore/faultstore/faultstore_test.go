package faultstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) objstore.Store { return faultstore.Wrap(memstore.New(), faultstore.Plan{}) })
}

// operation is one call of a store, made on a store that holds ns/table/x and ns/table/y.
type operation struct {
	name     string
	call     func(ctx context.Context, s, table objstore.Store) error
	publish  bool // its outcome can be unknown
	before   int  // operations that come first in the call
	done     func(t *testing.T, s objstore.Store) bool
	readOnly bool
}

// exists returns a check that an object is there, or is not.
func exists(key string, there bool) func(t *testing.T, s objstore.Store) bool {
	return func(t *testing.T, s objstore.Store) bool {
		_, err := s.Head(t.Context(), key)
		if err != nil && !errors.Is(err, objstore.ErrNotExist) {
			t.Fatal(err)
		}
		return (err == nil) == there
	}
}

// dirExists is a check that the directory ns/new is there.
func dirExists(t *testing.T, s objstore.Store) bool {
	names, err := s.ListDirs(t.Context(), "ns")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(names, "new")
}

// stream writes an object and ends it.
func stream(ctx context.Context, s objstore.Store, end func(objstore.Writer) error) error {
	w, err := s.Create(ctx, "new")
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte("one")); err != nil {
		return errors.Join(err, w.Abort())
	}
	return end(w)
}

func operations() []operation {
	isNew := exists("ns/table/new", true)
	commit := func(ctx context.Context) func(objstore.Writer) error {
		return func(w objstore.Writer) error { _, err := w.Commit(ctx); return err }
	}
	return []operation{
		{name: "get", readOnly: true, call: func(ctx context.Context, _, table objstore.Store) error {
			_, err := table.Get(ctx, "x")
			return err
		}},
		{name: "open", readOnly: true, call: func(ctx context.Context, _, table objstore.Store) error {
			r, err := table.Open(ctx, "x")
			if err != nil {
				return err
			}
			return r.Close()
		}},
		{name: "read", readOnly: true, before: 1, call: func(ctx context.Context, _, table objstore.Store) error {
			r, err := table.Open(ctx, "x")
			if err != nil {
				return err
			}
			_, err = r.ReadAt(make([]byte, 1), 0)
			return errors.Join(err, r.Close())
		}},
		{name: "put", publish: true, done: isNew, call: func(ctx context.Context, _, table objstore.Store) error {
			return table.Put(ctx, "new", nil)
		}},
		{name: "put if absent", publish: true, done: isNew, call: func(ctx context.Context, _, table objstore.Store) error {
			return table.PutIfAbsent(ctx, "new", nil)
		}},
		{name: "put all if absent", publish: true, done: isNew, call: func(ctx context.Context, _, table objstore.Store) error {
			_, err := table.PutAllIfAbsent(ctx, []objstore.Object{{Key: "new"}})
			return err
		}},
		{name: "create", readOnly: true, call: func(ctx context.Context, _, table objstore.Store) error {
			w, err := table.Create(ctx, "new")
			if err != nil {
				return err
			}
			return w.Abort()
		}},
		{name: "write", readOnly: true, before: 1, call: func(ctx context.Context, _, table objstore.Store) error {
			return stream(ctx, table, objstore.Writer.Abort)
		}},
		{name: "commit", publish: true, before: 2, done: isNew, call: func(ctx context.Context, _, table objstore.Store) error {
			return stream(ctx, table, commit(ctx))
		}},
		{name: "abort", readOnly: true, before: 2, call: func(ctx context.Context, _, table objstore.Store) error {
			return stream(ctx, table, objstore.Writer.Abort)
		}},
		{name: "head", readOnly: true, call: func(ctx context.Context, _, table objstore.Store) error {
			_, err := table.Head(ctx, "x")
			return err
		}},
		{name: "list", readOnly: true, call: func(ctx context.Context, _, table objstore.Store) error {
			for _, err := range table.List(ctx, "", "") {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "list directories", readOnly: true, call: func(ctx context.Context, s, _ objstore.Store) error {
			_, err := s.ListDirs(ctx, "ns")
			return err
		}},
		{name: "delete", done: exists("ns/table/x", false), call: func(ctx context.Context, _, table objstore.Store) error {
			return table.Delete(ctx, "x")
		}},
		{name: "sub", done: dirExists, call: func(ctx context.Context, s, _ objstore.Store) error {
			sub, err := s.Sub(ctx, "ns/new", true)
			if err != nil {
				return err
			}
			return sub.Close()
		}},
		{name: "current", readOnly: true, call: func(ctx context.Context, _, table objstore.Store) error {
			_, err := table.Current(ctx)
			return err
		}},
		{name: "trash", publish: true, done: exists("trash/x", true), call: func(ctx context.Context, s, _ objstore.Store) error {
			return s.Trash(ctx, "ns/table", "trash")
		}},
		{name: "delete tree", done: exists("ns/table/x", false), call: func(ctx context.Context, s, _ objstore.Store) error {
			return s.DeleteTree(ctx, "ns/table")
		}},
	}
}

// setUp makes a store with something in it, and a wrapper that counts from there.
func setUp(t *testing.T) (inner objstore.Store, s *faultstore.Store, table objstore.Store) {
	t.Helper()
	inner = memstore.New()
	s = faultstore.Wrap(inner, faultstore.Plan{})
	table, err := s.Sub(t.Context(), "ns/table", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"x", "y"} {
		if err := table.Put(t.Context(), key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	return inner, s, table
}

// TestKinds makes every kind of fault at every operation.
func TestKinds(t *testing.T) {
	full := errors.New("full")
	for _, op := range operations() {
		for _, kind := range faultstore.Kinds() {
			what := fmt.Sprintf("%s, %s", op.name, kind)
			inner, s, table := setUp(t)
			s.Arm(faultstore.Plan{At: op.before, Kind: kind, Err: full})
			err := op.call(t.Context(), s, table)
			stops := kind == faultstore.Stop || kind == faultstore.StopAfterEffect
			after := kind == faultstore.ErrorAfterEffect || kind == faultstore.StopAfterEffect
			switch {
			case stops && !errors.Is(err, faultstore.ErrStopped), !stops && !errors.Is(err, full), s.Stopped() != stops:
				t.Fatalf("%s: %v", what, err)
			}
			var unknown *objstore.UnknownOutcomeError
			if wanted := op.publish && (kind == faultstore.ErrorAfterEffect || kind == faultstore.Unknown); errors.As(err, &unknown) != wanted {
				t.Fatalf("%s: %v", what, err)
			}
			if op.done != nil && op.done(t, inner) != after {
				t.Fatalf("%s: the effect is done: %v", what, !after)
			}
			// Afterwards all is well, or nothing works any more.
			ops := s.Ops()
			_, err = table.Head(t.Context(), "y")
			if errors.Is(err, faultstore.ErrStopped) != stops || stops && s.Ops() != ops {
				t.Fatalf("%s: and then head: %v", what, err)
			}
		}
	}
}

// TestPasses makes every operation without a fault.
func TestPasses(t *testing.T) {
	for _, op := range operations() {
		inner, s, table := setUp(t)
		s.Arm(faultstore.Plan{At: -1, Kind: faultstore.Error})
		if err := op.call(t.Context(), s, table); err != nil {
			t.Fatalf("%s: %v", op.name, err)
		}
		if op.done != nil && !op.done(t, inner) {
			t.Fatalf("%s: no effect", op.name)
		}
		trace := s.Trace()
		if s.Ops() <= op.before || len(trace) != s.Ops() {
			t.Fatalf("%s: %d operations: %q", op.name, s.Ops(), trace)
		}
	}
}

// TestStopped makes every operation on a store that has stopped: nothing changes.
func TestStopped(t *testing.T) {
	for _, op := range operations() {
		inner, s, table := setUp(t)
		s.Arm(faultstore.Plan{Kind: faultstore.Stop})
		if _, err := table.Get(t.Context(), "x"); !errors.Is(err, faultstore.ErrStopped) {
			t.Fatal(err)
		}
		if err := op.call(t.Context(), s, table); !errors.Is(err, faultstore.ErrStopped) {
			t.Fatalf("%s: %v", op.name, err)
		}
		if op.done != nil && op.done(t, inner) {
			t.Fatalf("%s has had an effect", op.name)
		}
		s.Arm(faultstore.Plan{})
		if err := op.call(t.Context(), s, table); err != nil {
			t.Fatalf("%s, alive again: %v", op.name, err)
		}
	}
	// What was open when the store stopped.
	inner, s, table := setUp(t)
	w, err := table.Create(t.Context(), "new")
	if err != nil {
		t.Fatal(err)
	}
	r, err := table.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	s.Arm(faultstore.Plan{Kind: faultstore.Stop})
	errs := make([]error, 5)
	_, errs[0] = r.ReadAt(make([]byte, 1), 0)
	_, errs[1] = w.Write([]byte("one"))
	_, errs[2] = w.Commit(t.Context())
	_, errs[3] = s.PutAllIfAbsent(t.Context(), []objstore.Object{{Key: "new"}})
	for _, errs[4] = range s.List(t.Context(), "", "") {
	}
	for i, err := range errs {
		if !errors.Is(err, faultstore.ErrStopped) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if exists("ns/table/new", true)(t, inner) {
		t.Error("a stopped store has committed")
	}
	if err := errors.Join(w.Abort(), r.Close(), table.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// TestRefusals lets operations be hit that fail by themselves: their own error is told, for they have had no effect.
func TestRefusals(t *testing.T) {
	_, s, table := setUp(t)
	for _, kind := range []faultstore.Kind{faultstore.ErrorAfterEffect, faultstore.StopAfterEffect} {
		want := objstore.ErrExist
		if kind == faultstore.StopAfterEffect {
			want = faultstore.ErrStopped
		}
		s.Arm(faultstore.Plan{Kind: kind})
		if err := table.PutIfAbsent(t.Context(), "x", nil); !errors.Is(err, want) {
			t.Errorf("put, %v: %v", kind, err)
		}
		s.Arm(faultstore.Plan{At: 1, Kind: kind})
		batch := []objstore.Object{{Key: "x"}, {Key: "new"}}
		if n, err := table.PutAllIfAbsent(t.Context(), batch); n != 0 || !errors.Is(err, want) {
			t.Errorf("put all, %v: %d, %v", kind, n, err)
		}
	}
	s.Arm(faultstore.Plan{Kind: faultstore.ErrorAfterEffect})
	for _, err := range s.List(t.Context(), "//", "") {
		var bad *objstore.KeyError
		if !errors.As(err, &bad) {
			t.Errorf("list: %v", err)
		}
	}
}

// names joins the keys of all objects.
func names(t *testing.T, s objstore.Store) (joined string) {
	t.Helper()
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		joined += info.Key
	}
	return joined
}

func TestPutAll(t *testing.T) {
	tests := []struct {
		kind   faultstore.Kind
		n      int
		landed string
		err    error
	}{
		{faultstore.Error, 2, "ab", faultstore.ErrInjected},
		{faultstore.Unknown, 2, "ab", faultstore.ErrInjected},
		{faultstore.ErrorAfterEffect, 2, "abcd", faultstore.ErrInjected},
		{faultstore.Stop, 0, "ab", faultstore.ErrStopped},
		{faultstore.StopAfterEffect, 0, "abc", faultstore.ErrStopped},
		{faultstore.None, 4, "abcd", nil},
	}
	for _, test := range tests {
		inner := memstore.New()
		s := faultstore.Wrap(inner, faultstore.Plan{At: 2, Kind: test.kind})
		var batch []objstore.Object
		for _, key := range strings.Split("abcd", "") {
			batch = append(batch, objstore.Object{Key: key})
		}
		n, err := s.PutAllIfAbsent(t.Context(), batch)
		if n != test.n || !errors.Is(err, test.err) || s.Ops() != 4 {
			t.Errorf("%v: %d, %v after %d operations", test.kind, n, err, s.Ops())
		}
		if landed := names(t, inner); landed != test.landed {
			t.Errorf("%v: %s landed, want %s", test.kind, landed, test.landed)
		}
	}
}

func TestDeleteAll(t *testing.T) {
	tests := []struct {
		kind faultstore.Kind
		n    int
		left string
		err  error
	}{
		{faultstore.Error, 2, "cd", faultstore.ErrInjected},
		{faultstore.Unknown, 2, "cd", faultstore.ErrInjected},
		{faultstore.ErrorAfterEffect, 2, "d", faultstore.ErrInjected},
		{faultstore.Stop, 0, "cd", faultstore.ErrStopped},
		{faultstore.StopAfterEffect, 0, "d", faultstore.ErrStopped},
		{faultstore.None, 4, "", nil},
	}
	for _, test := range tests {
		inner := memstore.New()
		keys := strings.Split("abcd", "")
		for _, key := range keys {
			if err := inner.Put(t.Context(), key, nil); err != nil {
				t.Fatal(err)
			}
		}
		s := faultstore.Wrap(inner, faultstore.Plan{At: 2, Kind: test.kind})
		n, err := s.DeleteAll(t.Context(), keys)
		var unknown *objstore.UnknownOutcomeError
		if n != test.n || !errors.Is(err, test.err) || errors.As(err, &unknown) || s.Ops() != 4 {
			t.Errorf("%v: %d, %v after %d operations", test.kind, n, err, s.Ops())
		}
		if left := names(t, inner); left != test.left {
			t.Errorf("%v: %s are left, want %s", test.kind, left, test.left)
		}
		if s.Stopped() != errors.Is(err, faultstore.ErrStopped) {
			t.Errorf("%v: stopped is %v", test.kind, s.Stopped())
		}
	}
	s := faultstore.Wrap(memstore.New(), faultstore.Plan{At: 1, Kind: faultstore.Error})
	if n, err := s.DeleteAll(t.Context(), []string{"//", "b"}); n != 0 || err == nil || errors.Is(err, faultstore.ErrInjected) {
		t.Errorf("an error of the store before the fault: %d, %v", n, err)
	}
}

func TestMatch(t *testing.T) {
	_, s, table := setUp(t)
	var before []string
	s.Arm(faultstore.Plan{
		At: 1, Kind: faultstore.Error,
		Match: func(op objstore.Op, key string) bool {
			return op == objstore.OpPutIfAbsent && strings.HasPrefix(key, "log/")
		},
		Before: func(op objstore.Op, key string) { before = append(before, string(op)+" "+key) },
	})
	for i := range 3 {
		if err := table.PutIfAbsent(t.Context(), fmt.Sprintf("data/%d", i), nil); err != nil {
			t.Fatal(err)
		}
		if err := table.PutIfAbsent(t.Context(), fmt.Sprintf("log/%d", i), nil); (err != nil) != (i == 1) {
			t.Fatalf("put %d: %v", i, err)
		}
	}
	if s.Ops() != 3 || !slices.Equal(before, []string{"put if absent log/1"}) {
		t.Fatalf("%d operations, before: %q", s.Ops(), before)
	}
}

// TestRival has another writer take the key at the last moment.
func TestRival(t *testing.T) {
	inner, s, table := setUp(t)
	s.Arm(faultstore.Plan{Before: func(_ objstore.Op, key string) {
		if err := inner.PutIfAbsent(t.Context(), "ns/table/"+key, nil); err != nil {
			t.Error(err)
		}
	}})
	if err := table.PutIfAbsent(t.Context(), "new", nil); !errors.Is(err, objstore.ErrExist) {
		t.Fatalf("put: %v, want ErrExist", err)
	}
}

func TestKindNames(t *testing.T) {
	for kind, want := range map[faultstore.Kind]string{
		faultstore.None: "none", faultstore.StopAfterEffect: "stop after effect", -1: "kind -1", 77: "kind 77",
	} {
		if kind.String() != want {
			t.Errorf("kind %d is called %q, want %q", int(kind), kind, want)
		}
	}
}
