package txn

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"go.uber.org/goleak"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// definition is the table of these tests.
func definition(t testing.TB) *tabledef.Definition {
	t.Helper()
	def, err := tabledef.New("the-table", tabledef.Request{IndexColumn: "ts", IndexGranularity: "1h", EntityColumns: []string{"sym"},
		Schema: arrow.NewSchema([]arrow.Field{{Name: "sym", Type: arrow.BinaryTypes.String},
			{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}}}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// create writes version 0.
func create(t testing.TB, store objstore.Store) {
	t.Helper()
	metadata, protocol, err := Describe(definition(t))
	if err != nil {
		t.Fatal(err)
	}
	ms := began.UnixMilli()
	data, err := deltalog.EncodeCommit(&deltalog.Commit{Metadata: metadata, Protocol: protocol,
		Info: &deltalog.CommitInfo{InCommitTimestamp: &ms, Operation: "CREATE TABLE", Extra: Extra("create_table", "", nil)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.PutIfAbsent(t.Context(), deltalog.CommitKey(0), data); err != nil {
		t.Fatal(err)
	}
}

// open opens the table in a store, as one process does.
func open(t testing.TB, store objstore.Store) *Table {
	t.Helper()
	table, err := Open(t.Context(), Config{Store: store, Log: deltalog.New(store, deltalog.Options{}),
		Clock: func() time.Time { return began }, Software: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// addFile is the action that adds a file.
func addFile(name string) *deltalog.Add {
	return &deltalog.Add{Path: "data/" + name, Size: 1, DataChange: true, Stats: `{"numRecords":1}`}
}

// edit adds one file. It counts how often it was checked again.
type edit struct {
	*Edit
	checks int
	last   *snapshot.Snapshot
	err    error // of the next check
}

func newEdit(base *snapshot.Snapshot, name string) *edit {
	e := &edit{}
	e.Edit = &Edit{ID: "id-" + name, Operation: "append", RequestID: "request-" + name, Base: base,
		Revalidate: func(_ context.Context, s *snapshot.Snapshot) error {
			e.checks++
			e.last = s
			return e.err
		},
		Commit: func(s *snapshot.Snapshot) (*deltalog.Commit, error) {
			report, err := json.Marshal(map[string]any{"file": name, "committed_version": s.Version() + 1})
			return &deltalog.Commit{Adds: []*deltalog.Add{addFile(name)},
				Info: &deltalog.CommitInfo{Operation: "WRITE", Extra: Extra("append", "request-"+name, report)}}, err
		}}
	return e
}

// fileNames lists the live files of the newest version.
func fileNames(t testing.TB, store objstore.Store) string {
	t.Helper()
	s := open(t, store).Current()
	var names []string
	for _, f := range s.Files {
		names = append(names, strings.TrimPrefix(f.Path, "data/"))
	}
	return fmt.Sprintf("%d: %s", s.Version(), strings.Join(names, " "))
}
