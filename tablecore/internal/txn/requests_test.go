package txn

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
)

// fixedClock is a clock that stands away from the beginning.
func fixedClock(d time.Duration) func() time.Time {
	return func() time.Time { return began.Add(d) }
}

func withRequest(e *edit, id, digest string) *edit {
	e.Request = &snapshot.Request{ID: id, Op: "append", Digest: digest}
	return e
}

const digestA, digestB = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"

// TestRequestRace commits one request id from two processes that do not know
// of each other: the second one learns of the first.
func TestRequestRace(t *testing.T) {
	store := memstore.New()
	create(t, store)
	first, second := open(t, store), open(t, store)
	id := "day 1/2 of ns"
	if _, err := first.Publish(t.Context(), withRequest(newEdit(first.Current(), "a"), id, digestA).Edit); err != nil {
		t.Fatal(err)
	}
	zero := int64(0)
	pinned := withRequest(newEdit(second.Current(), "b"), id, digestB)
	pinned.ExpectedVersion = &zero // told after the request id
	s, err := second.Publish(t.Context(), pinned.Edit)
	var known *KnownRequest
	if !errors.As(err, &known) || s != nil || known.Request.Version != 1 || known.Request.Digest != digestA || known.Request.Op != "append" || known.Request.ID != id {
		t.Fatalf("got %v, %v", s, err)
	}
	if got := fileNames(t, store); got != "1: a" {
		t.Errorf("the table is %s", got)
	}
	commit, err := deltalog.New(store, deltalog.Options{}).ReadCommit(t.Context(), 1)
	if err != nil || len(commit.Txns) != 1 {
		t.Fatal(err)
	}
	if a := commit.Txns[0]; a.AppID != "contrail/"+digestA+"/append/"+id || a.Version != 1 || *a.LastUpdated != *commit.Info.InCommitTimestamp {
		t.Errorf("the txn action is %+v", a)
	}
}

// TestRequestBatch commits one request id twice in one batch: once, also when
// the first of the two fails.
func TestRequestBatch(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			store := memstore.New()
			create(t, store)
			fault := faultstore.Wrap(store, faultstore.Plan{})
			hold := &holdStore{Store: fault}
			table := open(t, hold)
			if fails {
				fault.Arm(faultstore.Plan{At: 1, Kind: faultstore.Error, Match: func(op objstore.Op, _ string) bool { return op == objstore.OpPutAllIfAbsent }})
			}
			mine := edits(table, 2)
			out := together(t, table, hold, withRequest(mine[0], "id", digestA), withRequest(mine[1], "id", digestA))
			var known *KnownRequest
			switch {
			case fails && (out[0].err == nil || out[1].err != nil):
				t.Errorf("got %v", out)
			case !fails && (out[0].err != nil || !errors.As(out[1].err, &known) || known.Request.Version != 2):
				t.Errorf("got %v", out)
			}
			want := map[bool]string{false: "2: first f00", true: "2: first f01"}[fails]
			if got := fileNames(t, store); got != want {
				t.Errorf("the table is %s, want %s", got, want)
			}
		})
	}
}

// TestRequestsAreForgotten remembers ids for 7 days of the table's time, in
// memory and in checkpoints.
func TestRequestsAreForgotten(t *testing.T) {
	store := memstore.New()
	create(t, store)
	now := began
	table, err := Open(t.Context(), Config{Store: store, Log: deltalog.New(store, deltalog.Options{}), Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(name string) {
		t.Helper()
		if _, err := table.Publish(t.Context(), withRequest(newEdit(table.Current(), name), name, digestA).Edit); err != nil {
			t.Fatal(err)
		}
	}
	knows := func(id string) bool {
		s := table.Current()
		fresh, err := Open(t.Context(), table.cfg)
		if err != nil {
			t.Fatal(err)
		}
		here, there := s.Request(id, now.UnixMilli()) != nil, fresh.Current().Request(id, now.UnixMilli()) != nil
		if here != there {
			t.Errorf("%s: known in memory %v, known to others %v", id, here, there)
		}
		return here
	}
	publish("old")
	now = began.Add(10 * 365 * 24 * time.Hour) // the clock alone does not age an id
	if !knows("old") {
		t.Error("an id is forgotten because of a clock that is ahead")
	}
	now = began.Add(7 * 24 * time.Hour)
	publish("young")
	if !knows("old") || !knows("young") {
		t.Error("an id of 7 days is forgotten")
	}
	now = now.Add(2 * time.Millisecond) // the first commit came 1 ms after the clock
	publish("younger")
	if knows("old") || !knows("young") {
		t.Error("an id of more than 7 days is known")
	}
	if n := table.Current().State.NumTxns(); n != 3 {
		t.Errorf("%d txns before a checkpoint", n)
	}
	if _, err := table.WriteCheckpoint(t.Context(), table.Current()); err != nil {
		t.Fatal(err)
	}
	if n := table.Current().State.NumTxns(); n != 2 || knows("old") || !knows("young") {
		t.Errorf("%d txns after a checkpoint", n)
	}
	publish("old") // as if it were new
	if !knows("old") || table.Current().Request("old", now.UnixMilli()).Version != 4 {
		t.Error("an id that was used again is not known")
	}
}

// TestManyRequests remembers 100,000 ids and no more, at the cost of the change
// for each commit.
func TestManyRequests(t *testing.T) {
	const n = 100_000
	store := memstore.New()
	create(t, store)
	ms := began.UnixMilli()
	c := &deltalog.Commit{Info: &deltalog.CommitInfo{InCommitTimestamp: &ms, Extra: Extra("append", "", nil)}}
	for i := range n {
		r := snapshot.Request{ID: fmt.Sprint("id-", i), Op: "append", Digest: digestA}
		c.Txns = append(c.Txns, &deltalog.Txn{AppID: r.AppID(), Version: 1, LastUpdated: &ms})
	}
	c.Txns = append(c.Txns, &deltalog.Txn{AppID: "spark", Version: 1}, &deltalog.Txn{AppID: "contrail/x/y/z", Version: 1})
	data, err := deltalog.EncodeCommit(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.PutIfAbsent(t.Context(), deltalog.CommitKey(1), data); err != nil {
		t.Fatal(err)
	}
	table := open(t, store)
	base, i := table.Current(), 0
	allocations := testing.AllocsPerRun(100, func() {
		i++
		r := snapshot.Request{ID: fmt.Sprint("new-", i), Op: "append", Digest: digestA}
		commit := &deltalog.Commit{Version: 2, Info: c.Info, Txns: []*deltalog.Txn{{AppID: r.AppID(), Version: 2, LastUpdated: &ms}}}
		if _, err := base.Apply(commit); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 60 {
		t.Errorf("a commit on a table with %d request ids makes %v allocations", n, allocations)
	}
	if _, err := table.Publish(t.Context(), withRequest(newEdit(table.Current(), "mine"), "newest", digestA).Edit); err != nil {
		t.Fatal(err)
	}
	if _, err := table.WriteCheckpoint(t.Context(), table.Current()); err != nil {
		t.Fatal(err)
	}
	s := table.Current()
	fresh := open(t, store).Current()
	for _, s := range []*snapshot.Snapshot{s, fresh} {
		if s.State.Txn("spark") == nil || s.Request("newest", ms) == nil {
			t.Error("too much was forgotten")
		}
	}
	if s.State.NumTxns() != n+1 {
		t.Errorf("%d txns are in memory", s.State.NumTxns())
	}
	if at := fresh.State.NumTxns(); at != n+1 {
		t.Errorf("%d txns are in the checkpoint", at)
	}
}

// TestForgetSpares what was written again meanwhile.
func TestForgetSpares(t *testing.T) {
	store := memstore.New()
	create(t, store)
	now := began
	table, err := Open(t.Context(), Config{Store: store, Log: deltalog.New(store, deltalog.Options{}), Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(name, id, digest string) {
		t.Helper()
		if _, err := table.Publish(t.Context(), withRequest(newEdit(table.Current(), name), id, digest).Edit); err != nil {
			t.Fatal(err)
		}
	}
	publish("a", "same", digestA)
	publish("b", "other", digestA)
	now = began.Add(8 * 24 * time.Hour)
	publish("c", "third", digestA)
	_, gone := table.Current().Expire(now.UnixMilli())
	publish("d", "same", digestA)
	publish("e", "other", digestB)
	s := table.Current().Forget(gone)
	same, other := s.Request("same", now.UnixMilli()), s.Request("other", now.UnixMilli())
	if len(gone.Txns) != 2 || same == nil || same.Version != 4 || other == nil || other.Digest != digestB || s.State.NumTxns() != 3 {
		t.Errorf("%d gone; %+v and %+v are known of %d", len(gone.Txns), same, other, s.State.NumTxns())
	}
	if s.Forget(deltalog.Forgotten{}) != s {
		t.Error("forgetting nothing makes another snapshot")
	}
}

// TestClocks has writers whose clocks are an hour behind and ten years ahead:
// nobody is blocked, and the times of the commits ascend.
func TestClocks(t *testing.T) {
	store := memstore.New()
	create(t, store)
	var tables []*Table
	for _, d := range []time.Duration{0, -time.Hour, 10 * 365 * 24 * time.Hour, -time.Hour, 0} {
		table, err := Open(t.Context(), Config{Store: store, Log: deltalog.New(store, deltalog.Options{}), Clock: fixedClock(d)})
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	last := began.UnixMilli()
	for i := range 15 {
		table := tables[i%len(tables)]
		name := fmt.Sprint("f", i)
		s, err := table.Publish(context.Background(), withRequest(newEdit(table.Current(), name), name, digestA).Edit)
		if err != nil {
			t.Fatal(err)
		}
		ms, ok := s.State.Timestamp()
		if !ok || ms <= last {
			t.Errorf("version %d has the time %d behind %d", s.Version(), ms, last)
		}
		if i < 2 && ms > began.UnixMilli()+10 {
			t.Errorf("version %d has the time %d", s.Version(), ms)
		}
		last = ms
	}
	if s := open(t, store).Current(); s.Version() != 15 || s.Request("f14", began.UnixMilli()) == nil {
		t.Errorf("version %d", s.Version())
	}
}

// BenchmarkApply measures a commit with a request id on a table that remembers
// many.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{0, 100_000} {
		store := memstore.New()
		create(b, store)
		s := open(b, store).Current()
		ms := began.UnixMilli()
		commit := func(ids ...int) *deltalog.Commit {
			c := &deltalog.Commit{Version: s.Version() + 1, Info: &deltalog.CommitInfo{InCommitTimestamp: &ms}}
			for _, i := range ids {
				r := snapshot.Request{ID: fmt.Sprint("id-", i), Op: "append", Digest: digestA}
				c.Txns = append(c.Txns, &deltalog.Txn{AppID: r.AppID(), Version: c.Version, LastUpdated: &ms})
			}
			return c
		}
		var ids []int
		for i := range n {
			ids = append(ids, i)
		}
		s, err := s.Apply(commit(ids...))
		if err != nil {
			b.Fatal(err)
		}
		c := commit(n)
		b.Run(fmt.Sprint("ids=", n), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := s.Apply(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
