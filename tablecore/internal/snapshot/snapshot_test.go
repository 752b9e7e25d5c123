package snapshot

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/tabledef"
)

// TestSchemaThatGoes takes a table back to when it had no schema: keys and
// intervals mean nothing any more.
func TestSchemaThatGoes(t *testing.T) {
	def, err := tabledef.New("id", tabledef.Request{IndexColumn: "t", IndexGranularity: "5",
		Schema: arrow.NewSchema([]arrow.Field{{Name: "t", Type: arrow.PrimitiveTypes.Int64}}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	configuration, err := def.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := tabledef.DeltaSchemaJSON(def.Stored)
	if err != nil {
		t.Fatal(err)
	}
	commit := func(version int64, m *deltalog.Metadata) *deltalog.Commit {
		return &deltalog.Commit{Version: version, Info: &deltalog.CommitInfo{}, Protocol: deltalog.ContrailProtocol(false), Metadata: m}
	}
	state, err := deltalog.NewState().Apply(commit(0, &deltalog.Metadata{ID: "id", SchemaString: schema, Configuration: configuration}))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(state)
	if err != nil || s.Layout == nil || !s.Domain.HasIntervals() {
		t.Fatalf("%+v, %v", s, err)
	}
	bare := &deltalog.Metadata{ID: "id", SchemaString: `{"type":"struct","fields":[]}`}
	if s, err = s.Apply(commit(1, bare)); err != nil || s.Layout != nil || s.Domain.HasIntervals() {
		t.Errorf("%+v, %v", s, err)
	}
}
