package alter

import (
	"maps"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// table is a table at version 0 that holds things nobody here knows.
func table(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	def, err := tabledef.New("the-table", tabledef.Request{IndexColumn: "ts", IndexGranularity: "1h", Properties: map[string]string{"team": "ops"},
		Schema: arrow.NewSchema([]arrow.Field{{Name: "ts", Type: arrow.FixedWidthTypes.Timestamp_us}}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	metadata, protocol, err := txn.Describe(def)
	if err != nil {
		t.Fatal(err)
	}
	metadata.Description = "of another writer"
	metadata.Configuration["contrail.of-tomorrow"] = "1"
	protocol.WriterFeatures = append(protocol.WriterFeatures, "changeDataFeed")
	ms := int64(1)
	data, err := deltalog.EncodeCommit(&deltalog.Commit{Metadata: metadata, Protocol: protocol,
		Info: &deltalog.CommitInfo{InCommitTimestamp: &ms, Operation: "CREATE TABLE"}})
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New()
	if err := store.PutIfAbsent(t.Context(), deltalog.CommitKey(0), data); err != nil {
		t.Fatal(err)
	}
	state, err := deltalog.New(store, deltalog.Options{}).LoadLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.New(state)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// apply makes a change the table's next version.
func apply(t *testing.T, s *snapshot.Snapshot, c *Change) (*snapshot.Snapshot, *deltalog.Commit) {
	t.Helper()
	commit := c.Commit(txn.Extra("test", "", nil))
	commit.Version = s.Version() + 1
	ms := s.State.NextTimestamp(0)
	commit.Info.InCommitTimestamp = &ms
	data, err := deltalog.EncodeCommit(commit)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := deltalog.ParseCommit(commit.Version, data)
	if err != nil {
		t.Fatal(err)
	}
	next, err := s.Apply(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return next, parsed
}

// keeps makes sure that only some properties of a table have changed.
func keeps(t *testing.T, before, after *snapshot.Snapshot, changed ...string) {
	t.Helper()
	old, now := before.State.Metadata(), after.State.Metadata()
	if now.ID != old.ID || now.Description != old.Description || now.Configuration["contrail.of-tomorrow"] != "1" {
		t.Errorf("the metadata is %+v", now)
	}
	keys := slices.Sorted(maps.Keys(now.Configuration))
	for key := range old.Configuration {
		if _, there := now.Configuration[key]; !there {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		was, there := old.Configuration[key]
		is, still := now.Configuration[key]
		if same := was == is && there == still; same == slices.Contains(changed, key) {
			t.Errorf("%s was %q and is %q", key, was, is)
		}
	}
}

func TestAddColumnsKeepsTheRest(t *testing.T) {
	s := table(t)
	c, err := PlanAddColumns(s, arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int8, Nullable: true}}, nil))
	if err != nil || c.NoOp() || len(c.Def.Stored.Fields()) != 3 {
		t.Fatalf("got %+v, %v", c, err)
	}
	next, commit := apply(t, s, c)
	keeps(t, s, next, tabledef.KeyArrowSchema, tabledef.KeyColumnsAdded)
	if !next.Def.Stored.Equal(c.Def.Stored) || commit.Protocol != nil || commit.Info.Operation != "ADD COLUMNS" || commit.Info.OperationParameters["columns"] != `["a"]` {
		t.Errorf("the table is %s, %+v", next.Def.Stored, commit.Info)
	}
	if s.Def.ColumnsAdded || s.State.Metadata().Configuration[tabledef.KeyColumnsAdded] != "" {
		t.Error("the old version was changed")
	}
	naive := arrow.NewSchema([]arrow.Field{{Name: "b", Type: &arrow.TimestampType{Unit: arrow.Second}, Nullable: true}}, nil)
	if c, err = PlanAddColumns(next, naive); err != nil {
		t.Fatal(err)
	}
	if _, commit = apply(t, next, c); commit.Protocol == nil || !slices.Contains(commit.Protocol.WriterFeatures, "changeDataFeed") ||
		!slices.Equal(commit.Protocol.ReaderFeatures, []string{deltalog.FeatureTimestampNtz}) {
		t.Errorf("the protocol is %+v", commit.Protocol)
	}
	if _, err := PlanAddColumns(next, arrow.NewSchema([]arrow.Field{{Name: "A", Type: arrow.PrimitiveTypes.Int8, Nullable: true}}, nil)); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("a column that is there: %v", err)
	}
}

func TestSetPropertiesKeepsTheRest(t *testing.T) {
	s := table(t)
	month := "30d"
	c, err := PlanSetProperties(s, tabledef.PropertyChange{"team": nil, tabledef.KeyRetainSnapshot: &month}, 0)
	if err != nil || c.NoOp() {
		t.Fatalf("got %+v, %v", c, err)
	}
	next, commit := apply(t, s, c)
	keeps(t, s, next, "team", tabledef.KeyRetainSnapshot, tabledef.KeyFileRetention)
	if !maps.Equal(next.Def.Properties, c.Def.Properties) || commit.Info.Operation != "SET TBLPROPERTIES" || next.State.Metadata().Configuration[tabledef.KeyFileRetention] != "interval 30 days" {
		t.Errorf("the table has %v, %+v", next.Def.Properties, commit.Info)
	}
	if c, err := PlanSetProperties(next, tabledef.PropertyChange{"team": nil}, 0); err != nil || !c.NoOp() {
		t.Errorf("nothing to change: %+v, %v", c, err)
	}
	if _, err := PlanSetProperties(next, tabledef.PropertyChange{"contrail.of-tomorrow": nil}, 0); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("an unknown property: %v", err)
	}
}
