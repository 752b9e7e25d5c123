package maintain

import (
	"maps"
	"reflect"
	"testing"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tableerr"
)

const (
	plainSchema   = `{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}`
	adoptedSchema = `{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{}}]}`
)

// versions are the snapshots after each of some commits.
func versions(t *testing.T, commits ...*deltalog.Commit) []*snapshot.Snapshot {
	t.Helper()
	state := deltalog.NewState()
	var all []*snapshot.Snapshot
	for v, c := range commits {
		c.Version = int64(v)
		var err error
		if state, err = state.Apply(c); err != nil {
			t.Fatal(err)
		}
		s, err := snapshot.New(state)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// adopted is a plain table of another writer that Contrail has adopted, with
// more columns of the configuration.
func adopted(t *testing.T, more map[string]string) []*snapshot.Snapshot {
	t.Helper()
	configuration := map[string]string{"contrail.format-version": "0.3.0", "contrail.index-column": "id", "contrail.index-type": "int64",
		"contrail.uniqueness": "none", "delta.enableInCommitTimestamps": "true", "team": "ops"}
	maps.Copy(configuration, more)
	return versions(t,
		&deltalog.Commit{Protocol: &deltalog.Protocol{MinReaderVersion: 1, MinWriterVersion: 2},
			Metadata: &deltalog.Metadata{ID: "p", Provider: "parquet", SchemaString: plainSchema, Configuration: map[string]string{"team": "data"}},
			Adds:     []*deltalog.Add{{Path: "part-0.parquet", Size: 7, DataChange: true}}},
		&deltalog.Commit{Protocol: deltalog.ContrailProtocol(false),
			Metadata: &deltalog.Metadata{ID: "p", Provider: "parquet", SchemaString: adoptedSchema, Configuration: configuration}},
		&deltalog.Commit{Domains: []*deltalog.DomainMetadata{{Domain: snapshot.UpkeepDomain, Configuration: `{"oldest_version":0}`}},
			Removes: []*deltalog.Remove{{Path: "part-0.parquet", DataChange: true}}})
}

func rollbackCommit(t *testing.T, from, to *snapshot.Snapshot, release bool) *deltalog.Commit {
	t.Helper()
	r, err := PlanRollback(from, to, release)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Commit(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Undoing an adoption gives a plain table that other writers are still kept
// from.
func TestUndoAdoption(t *testing.T) {
	all := adopted(t, map[string]string{"contrail.keep-snapshots-until": "2026-12-07T00:00:00Z", "contrail.retention": "30d"})
	c := rollbackCommit(t, all[2], all[0], false)
	want := map[string]string{"team": "data", "delta.enableInCommitTimestamps": "true", "contrail.keep-snapshots-until": "2026-12-07T00:00:00Z", "contrail.retention": "30d"}
	if c.Protocol != nil || c.Metadata.SchemaString != plainSchema || !reflect.DeepEqual(c.Metadata.Configuration, want) {
		t.Errorf("got %+v, %+v", c.Protocol, c.Metadata)
	}
	if len(c.Adds) != 1 || !c.Adds[0].DataChange || len(c.Removes) != 0 || len(c.Domains) != 1 || c.Domains[0].Configuration != `{"oldest_version":0,"abandoned":[[1,2]]}` {
		t.Errorf("got %+v", c)
	}
	undone := versions(t, &deltalog.Commit{Protocol: all[2].State.Protocol(), Metadata: c.Metadata, Adds: c.Adds})[0]
	if err := undone.CheckWritable(); tableerr.TokenOf(err) != tableerr.TokenFormatUnwritable {
		t.Errorf("an append there gives %v", err)
	}
	if _, err := PlanRollback(undone, all[1], false); err != nil {
		t.Errorf("the redo gives %v", err)
	}
}

func TestRelease(t *testing.T) {
	all := adopted(t, map[string]string{"contrail.retention": "30d"})
	c := rollbackCommit(t, all[2], all[0], true)
	if !reflect.DeepEqual(c.Protocol, all[0].State.Protocol()) || !reflect.DeepEqual(c.Metadata, all[0].State.Metadata()) {
		t.Errorf("got %+v, %+v", c.Protocol, c.Metadata)
	}
	if len(c.Domains) != 1 || !c.Domains[0].Removed {
		t.Errorf("got %+v", c.Domains)
	}
	if c := rollbackCommit(t, all[1], all[0], true); len(c.Domains) != 0 {
		t.Errorf("a domain that is not there is removed: %+v", c.Domains)
	}
}

// A plan holds on the very version it was made on.
func TestRevalidate(t *testing.T) {
	all := adopted(t, nil)
	r, err := PlanRollback(all[2], all[0], false)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Revalidate(t.Context(), adopted(t, nil)[2]); err != nil {
		t.Errorf("the same version read again gives %v", err)
	}
	if err := r.Revalidate(t.Context(), all[1]); tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
		t.Errorf("another version gives %v", err)
	}
	other := versions(t, &deltalog.Commit{Protocol: all[0].State.Protocol(), Metadata: &deltalog.Metadata{ID: "other", Provider: "parquet", SchemaString: plainSchema}})
	if err := r.Revalidate(t.Context(), other[0]); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Errorf("another table gives %v", err)
	}
}

func TestRollbackRefused(t *testing.T) {
	all := adopted(t, map[string]string{"delta.appendOnly": "true"})
	if _, err := PlanRollback(all[2], all[0], false); tableerr.TokenOf(err) != tableerr.TokenUnsupported {
		t.Errorf("an append-only table gives %v", err)
	}
	all = adopted(t, nil)
	if _, err := PlanRollback(all[2], all[1], true); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("a release to a version of ours gives %v", err)
	}
	plain := all[0]
	if _, err := PlanRollback(plain, plain, false); tableerr.TokenOf(err) != tableerr.TokenFormatUnwritable {
		t.Errorf("a plain table gives %v", err)
	}
}
