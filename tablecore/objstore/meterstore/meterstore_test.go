package meterstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/objstore/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) objstore.Store { return meterstore.Wrap(memstore.New()) })
}

// write streams an object.
func write(ctx context.Context, s objstore.Store, key, data string, end func(objstore.Writer) error) error {
	w, err := s.Create(ctx, key)
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(data)); err != nil {
		return err
	}
	return end(w)
}

func TestCounts(t *testing.T) {
	s := meterstore.Wrap(memstore.New())
	ctx := t.Context()
	sub, err := s.Sub(ctx, "ns/table", true)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Reset(); got != (meterstore.Counts{Sub: 1}) {
		t.Fatalf("after sub: %v", got)
	}
	commit := func(w objstore.Writer) error { _, err := w.Commit(ctx); return err }
	three := []objstore.Object{{Key: "3", Data: []byte("333")}, {Key: "x", Data: []byte("xx")}, {Key: "4", Data: []byte("4444")}}
	tests := []struct {
		what     string
		call     func() error
		fails    bool
		want     meterstore.Counts
		requests int64
		durable  int64
	}{
		{"put", func() error { return sub.Put(ctx, "x", []byte("12345")) }, false,
			meterstore.Counts{Put: 1, BytesWritten: 5}, 1, 1},
		{"put if absent", func() error { return s.PutIfAbsent(ctx, "y", []byte("123")) }, false,
			meterstore.Counts{PutIfAbsent: 1, BytesWritten: 3}, 1, 1},
		{"put if absent, taken", func() error { return s.PutIfAbsent(ctx, "y", []byte("123")) }, true,
			meterstore.Counts{PutIfAbsent: 1}, 1, 1},
		{"put all if absent, one taken", func() error { _, err := sub.PutAllIfAbsent(ctx, three); return err }, true,
			meterstore.Counts{PutAllIfAbsent: 1, BytesWritten: 3}, 1, 1},
		{"create", func() error { return write(ctx, sub, "z", "1234567", commit) }, false,
			meterstore.Counts{Create: 1, Commit: 1, BytesWritten: 7}, 1, 1},
		{"create, taken", func() error { return write(ctx, sub, "z", "1234567", commit) }, true,
			meterstore.Counts{Create: 1, Commit: 1}, 1, 1},
		{"abort", func() error { return write(ctx, sub, "w", "1", objstore.Writer.Abort) }, false,
			meterstore.Counts{Create: 1, Abort: 1}, 1, 0},
		{"get", func() error { _, err := sub.Get(ctx, "x"); return err }, false, meterstore.Counts{Get: 1, BytesRead: 5}, 1, 0},
		{"get of nothing", func() error { _, err := sub.Get(ctx, "none"); return err }, true, meterstore.Counts{Get: 1}, 1, 0},
		{"open", func() error {
			r, err := sub.Open(ctx, "z")
			if err != nil {
				return err
			}
			p := make([]byte, 4)
			for _, off := range []int64{0, 2} {
				if _, err := r.ReadAt(p, off); err != nil {
					return err
				}
			}
			return r.Close()
		}, false, meterstore.Counts{Open: 1, ReadAt: 2, BytesRead: 8}, 3, 0},
		{"open of nothing", func() error { _, err := sub.Open(ctx, "none"); return err }, true, meterstore.Counts{Open: 1}, 1, 0},
		{"create of no key", func() error { _, err := sub.Create(ctx, ""); return err }, true, meterstore.Counts{Create: 1}, 1, 0},
		{"head", func() error { _, err := sub.Head(ctx, "x"); return err }, false, meterstore.Counts{Head: 1}, 1, 0},
		{"list", func() error {
			for _, err := range s.List(ctx, "", "") {
				if err != nil {
					return err
				}
			}
			return nil
		}, false, meterstore.Counts{List: 1, Listed: 4}, 1, 0},
		{"list directories", func() error { _, err := s.ListDirs(ctx, ""); return err }, false, meterstore.Counts{ListDirs: 1}, 1, 0},
		{"current", func() error { _, err := sub.Current(ctx); return err }, false, meterstore.Counts{Current: 1}, 1, 0},
		{"sub of nothing", func() error { _, err := s.Sub(ctx, "none", false); return err }, true, meterstore.Counts{Sub: 1}, 1, 0},
		{"delete", func() error { return sub.Delete(ctx, "x") }, false, meterstore.Counts{Delete: 1}, 1, 0},
		{"delete all", func() error { _, err := sub.DeleteAll(ctx, []string{"x", "y"}); return err }, false, meterstore.Counts{DeleteAll: 1}, 1, 0},
		{"trash", func() error { return s.Trash(ctx, "ns", "trash") }, false, meterstore.Counts{Trash: 1}, 1, 0},
		{"delete tree", func() error { return s.DeleteTree(ctx, "trash") }, false, meterstore.Counts{DeleteTree: 1}, 1, 0},
	}
	var sum meterstore.Counts
	for _, test := range tests {
		before := s.Counts()
		if err := test.call(); (err != nil) != test.fails {
			t.Fatalf("%s: %v", test.what, err)
		}
		got := s.Counts().Minus(before)
		if got != test.want || got.Requests() != test.requests || got.DurableWrites() != test.durable {
			t.Errorf("%s: counted %v, %d requests, %d durable writes", test.what, got, got.Requests(), got.DurableWrites())
		}
		sum = s.Counts()
	}
	if got := s.Reset(); got != sum {
		t.Errorf("reset returned %v, want %v", got, sum)
	}
	if got := s.Counts(); got != (meterstore.Counts{}) {
		t.Errorf("after reset: %v", got)
	}
	if text := sum.String(); !strings.Contains(text, "put if absent: 2, put all if absent: 1, create: 4,") ||
		!strings.HasSuffix(text, "objects listed: 4, bytes read: 13, bytes written: 18") {
		t.Errorf("text: %s", text)
	}
	if err := errors.Join(sub.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}
