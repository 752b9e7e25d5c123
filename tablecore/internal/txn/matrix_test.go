package txn

import (
	"errors"
	"maps"
	"testing"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
)

// theirs is a commit of another writer, by the heading of the matrix that it
// stands under. What it calls itself is not what it does.
type theirs struct {
	name    string
	effects snapshot.Effects
	commit  func(s *snapshot.Snapshot) *deltalog.Commit
}

// allOfTheirs is every kind of commit that the columns of the matrix name, on a
// table that holds the file "old".
func allOfTheirs() []theirs {
	with := func(s *snapshot.Snapshot, key, value string) *deltalog.Metadata {
		m := *s.State.Metadata()
		m.Configuration = maps.Clone(m.Configuration)
		m.Configuration[key] = value
		return &m
	}
	domain := func(text string) []*deltalog.DomainMetadata {
		return []*deltalog.DomainMetadata{{Domain: "contrail.state", Configuration: text}}
	}
	remove := []*deltalog.Remove{{Path: "data/old", DataChange: true}}
	add := []*deltalog.Add{addFile("theirs")}
	type snap = *snapshot.Snapshot
	return []theirs{
		{"append", snapshot.Added, func(snap) *deltalog.Commit { return &deltalog.Commit{Adds: add} }},
		{"expire", snapshot.Added, func(snap) *deltalog.Commit { return &deltalog.Commit{Domains: domain(`{"oldest_version":1}`)} }},
		{"update", snapshot.Added | snapshot.Rewrote, func(snap) *deltalog.Commit { return &deltalog.Commit{Removes: remove, Adds: add} }},
		{"overwrite of a file in place", snapshot.Added | snapshot.Rewrote, func(snap) *deltalog.Commit { return &deltalog.Commit{Adds: []*deltalog.Add{addFile("old")}} }},
		{"optimize", snapshot.Added | snapshot.Rewrote, func(snap) *deltalog.Commit {
			a, r := addFile("theirs"), *remove[0]
			a.DataChange, r.DataChange = false, false
			return &deltalog.Commit{Removes: []*deltalog.Remove{&r}, Adds: []*deltalog.Add{a}}
		}},
		{"retention", snapshot.Added | snapshot.Rewrote, func(snap) *deltalog.Commit { return &deltalog.Commit{Removes: remove} }},
		{"add_columns", snapshot.Added | snapshot.Redefined, func(s snap) *deltalog.Commit {
			return &deltalog.Commit{Metadata: with(s, "contrail.columns-added", "true")}
		}},
		{"set_properties", snapshot.Added | snapshot.Redefined, func(s snap) *deltalog.Commit { return &deltalog.Commit{Metadata: with(s, "team", "ops")} }},
		{"rollback", snapshot.Added | snapshot.Rewrote | snapshot.Reset, func(snap) *deltalog.Commit {
			return &deltalog.Commit{Removes: remove, Domains: domain(`{"abandoned":[[1,1]]}`)}
		}},
		{"rollback that drops the state", snapshot.Added | snapshot.Reset, func(snap) *deltalog.Commit {
			d := domain("{}")
			d[0].Removed = true
			return &deltalog.Commit{Domains: d}
		}},
		{"upgrade", snapshot.Added | snapshot.Redefined | snapshot.Reset, func(s snap) *deltalog.Commit {
			return &deltalog.Commit{Metadata: with(s, "contrail.format-version", "0.3.1")}
		}},
		{"protocol", snapshot.Added | snapshot.Reset, func(s snap) *deltalog.Commit { return &deltalog.Commit{Protocol: s.State.Protocol()} }},
	}
}

// put writes their commit as the next version, under a name that lies.
func (o theirs) put(t *testing.T, store objstore.Store, s *snapshot.Snapshot) {
	t.Helper()
	c := o.commit(s)
	ms := began.UnixMilli() + 1000
	c.Info = &deltalog.CommitInfo{InCommitTimestamp: &ms, Operation: "WRITE", Extra: Extra("append", "", nil)}
	data, err := deltalog.EncodeCommit(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.PutIfAbsent(t.Context(), deltalog.CommitKey(s.Version()+1), data); err != nil {
		t.Fatal(err)
	}
}

// TestMatrix has a committer of every row meet every kind of commit.
func TestMatrix(t *testing.T) {
	rows := []struct {
		name    string
		row     Row
		pinned  bool
		verdict map[snapshot.Effects]Verdict // by column
	}{
		{"append without expected_version", RowAppend, false, map[snapshot.Effects]Verdict{
			snapshot.Added: Revalidate, snapshot.Rewrote: Revalidate, snapshot.Redefined: Revalidate, snapshot.Reset: Revalidate}},
		{"append with expected_version", RowAppend, true, map[snapshot.Effects]Verdict{
			snapshot.Added: Refuse, snapshot.Rewrote: Refuse, snapshot.Redefined: Refuse, snapshot.Reset: Refuse}},
		{"add_columns and set_properties", RowAlter, false, map[snapshot.Effects]Verdict{
			snapshot.Added: Rebase, snapshot.Rewrote: Rebase, snapshot.Redefined: Refuse, snapshot.Reset: Refuse}},
		{"add_columns and set_properties with expected_version", RowAlter, true, map[snapshot.Effects]Verdict{
			snapshot.Added: Refuse, snapshot.Rewrote: Refuse, snapshot.Redefined: Refuse, snapshot.Reset: Refuse}},
		{"overwrite without expected_version", RowOverwrite, false, map[snapshot.Effects]Verdict{
			snapshot.Added: Replan, snapshot.Rewrote: Replan, snapshot.Redefined: Revalidate, snapshot.Reset: Refuse}},
		{"optimize, rewrite_files and retention", RowRewrite, false, map[snapshot.Effects]Verdict{
			snapshot.Added: Rebase, snapshot.Rewrote: Rebase, snapshot.Redefined: Rebase, snapshot.Reset: Refuse}},
		{"optimize and retention with expected_version", RowRewrite, true, map[snapshot.Effects]Verdict{
			snapshot.Added: Refuse, snapshot.Rewrote: Refuse, snapshot.Redefined: Refuse, snapshot.Reset: Refuse}},
		{"overwrite with expected_version", RowOverwrite, true, map[snapshot.Effects]Verdict{
			snapshot.Added: Refuse, snapshot.Rewrote: Refuse, snapshot.Redefined: Refuse, snapshot.Reset: Refuse}},
	}
	for _, row := range rows {
		for _, other := range allOfTheirs() {
			t.Run(row.name+"/"+other.name, func(t *testing.T) {
				store := memstore.New()
				create(t, store)
				table := open(t, store)
				if _, err := table.Publish(t.Context(), newEdit(table.Current(), "old").Edit); err != nil {
					t.Fatal(err)
				}
				base := table.Current()
				other.put(t, store, base)
				want := Revalidate
				for column, verdict := range row.verdict {
					if other.effects&column != 0 {
						want = max(want, verdict)
					}
				}
				e := newEdit(base, "mine")
				e.Row = row.row
				if row.pinned {
					version := base.Version()
					e.ExpectedVersion = &version
				}
				s, err := table.Publish(t.Context(), e.Edit)
				after, loadErr := table.Refresh(t.Context())
				if loadErr != nil || after.EffectsSince(base.Version())&^snapshot.Added&^other.effects != 0 {
					t.Fatalf("the effects are %b, want %b, %v", after.EffectsSince(base.Version()), other.effects, loadErr)
				}
				if want == Refuse {
					var conflict *tableerr.VersionConflict
					if !errors.As(err, &conflict) || conflict.Expected != 1 || conflict.Found != 2 || e.checks != 0 || s != nil {
						t.Fatalf("got %v after %d checks", err, e.checks)
					}
					return
				}
				if err != nil || s.Version() != 3 || e.checks != 1 || e.last.Version() != 2 {
					t.Fatalf("version %v, %v after %d checks", s, err, e.checks)
				}
				if s.EffectsSince(base.Version()) != other.effects {
					t.Fatalf("the effects are %b, want %b", s.EffectsSince(base.Version()), other.effects)
				}
			})
		}
	}
}

// TestMatrixOfRefusals makes sure that what a check says is what the committer
// is told.
func TestMatrixOfRefusals(t *testing.T) {
	store := memstore.New()
	create(t, store)
	table := open(t, store)
	allOfTheirs()[0].put(t, store, table.Current())
	e := newEdit(table.Current(), "mine")
	e.err = &tableerr.NoGranularity{}
	if _, err := table.Publish(t.Context(), e.Edit); tableerr.TokenOf(err) != tableerr.TokenNoGranularity || e.checks != 1 {
		t.Fatalf("got %v after %d checks", err, e.checks)
	}
}

// TestUnseenEffects makes sure that a table that was opened anew counts as
// having changed in every way.
func TestUnseenEffects(t *testing.T) {
	store := memstore.New()
	create(t, store)
	table := open(t, store)
	for _, name := range []string{"a", "b"} {
		if _, err := table.Publish(t.Context(), newEdit(table.Current(), name).Edit); err != nil {
			t.Fatal(err)
		}
	}
	fresh := open(t, store).Current()
	all := snapshot.Added | snapshot.Rewrote | snapshot.Redefined | snapshot.Reset
	for version, want := range map[int64]snapshot.Effects{-1: all, 0: all, 1: all, 2: 0, 3: 0} {
		if got := fresh.EffectsSince(version); got != want {
			t.Errorf("since version %d: %b, want %b", version, got, want)
		}
	}
	if got := table.Current().EffectsSince(0); got != snapshot.Added {
		t.Errorf("two appends have the effects %b", got)
	}
}
