package deltalog

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"contrail/tablecore/tableerr"
)

func stateWith(t *testing.T, p *Protocol, m *Metadata) *State {
	t.Helper()
	return apply(t, NewState(), &Commit{Protocol: p, Metadata: m})
}

func TestCheckReadable(t *testing.T) {
	v3 := func(features ...string) *Protocol {
		return &Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: features}
	}
	mapped := map[string]string{"delta.columnMapping.mode": "name"}
	for _, c := range []struct {
		p      *Protocol
		config map[string]string
		want   string
	}{
		{&Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, nil, ""},
		{&Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: []string{"future"}}, nil, ""},
		{&Protocol{MinReaderVersion: 2, MinWriterVersion: 5}, nil, ""},
		{&Protocol{MinReaderVersion: 2, MinWriterVersion: 5}, map[string]string{"delta.columnMapping.mode": "none"}, ""},
		{&Protocol{MinReaderVersion: 2, MinWriterVersion: 5}, mapped, "columnMapping"},
		{&Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, mapped, "columnMapping"},
		{v3(), nil, ""},
		{v3("timestampNtz", "vacuumProtocolCheck", "columnMapping"), nil, ""},
		{v3("columnMapping"), mapped, "columnMapping"},
		{v3("timestampNtz", "deletionVectors"), nil, ""}, // none is there
		{v3("v2Checkpoint"), nil, "v2Checkpoint"},
		{v3("contrail-timeseries"), nil, "contrail-timeseries"},
		{v3("some future"), nil, "some future"},
		{&Protocol{MinReaderVersion: 4, MinWriterVersion: 7}, nil, "minReaderVersion 4"},
	} {
		err := stateWith(t, c.p, &Metadata{Configuration: c.config}).CheckReadable()
		if c.want == "" && err != nil || c.want != "" && !sameError(err, &tableerr.Unsupported{Feature: c.want}) {
			t.Errorf("%+v %v: %v, want %q", c.p, c.config, err, c.want)
		}
	}
	if err := stateWith(t, v3(), &Metadata{Provider: "orc"}).CheckReadable(); !sameError(err, &tableerr.Unsupported{Feature: `format "orc"`}) {
		t.Error(err)
	}
	dv := &DeletionVector{StorageType: "u", PathOrInline: "x"}
	s := apply(t, stateWith(t, v3(), &Metadata{}), &Commit{Adds: []*Add{{Path: "a", DeletionVector: dv}}})
	if err := s.CheckReadable(); !sameError(err, &tableerr.Unsupported{Feature: "deletionVectors"}) {
		t.Error(err)
	}
	s = apply(t, s, &Commit{Removes: []*Remove{{Path: "a", DeletionVector: dv}}})
	if err := s.CheckReadable(); err != nil {
		t.Error(err)
	}
}

func TestCheckPaths(t *testing.T) {
	s := apply(t, stateWith(t, ContrailProtocol(false), &Metadata{}), &Commit{Adds: []*Add{add("a", 1), add("../b", 1)}})
	if err := s.CheckPaths(); !sameError(err, &tableerr.Unsupported{Path: "../b"}) {
		t.Error(err)
	}
	s = apply(t, s, &Commit{Removes: []*Remove{{Path: "../b"}}})
	if err := s.CheckPaths(); err != nil {
		t.Error(err)
	}
	for r := range s.Removes() {
		if _, err := r.File(); !sameError(err, &tableerr.Unsupported{Path: "../b"}) {
			t.Error(err)
		}
	}
}

func TestCheckWritable(t *testing.T) {
	legacy := func(v int32) *Protocol { return &Protocol{MinReaderVersion: 1, MinWriterVersion: v} }
	v7 := func(features ...string) *Protocol {
		return &Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: features}
	}
	field := func(key string) string {
		return `{"type":"struct","fields":[{"name":"metadata","type":"long","nullable":true,"metadata":{}},{"name":"s","nullable":true,"metadata":{},"type":{"type":"struct","fields":[{"name":"x","type":"long","nullable":false,"metadata":{"` + key + `":{"a":[1]}}}]}}]}`
	}
	for _, c := range []struct {
		p      *Protocol
		schema string
		config map[string]string
		want   string
	}{
		{ContrailProtocol(true), field("comment"), map[string]string{"delta.appendOnly": "true"}, ""},
		{legacy(1), field("delta.invariants"), nil, ""},
		{legacy(2), field("comment"), nil, ""},
		{legacy(2), field("delta.invariants"), nil, "invariants"},
		{legacy(3), "", nil, ""},
		{legacy(3), "", map[string]string{"delta.constraints.positive": "x > 0"}, "checkConstraints"},
		{legacy(4), field("comment"), nil, ""},
		{legacy(4), "", map[string]string{"delta.enableChangeDataFeed": "TRUE"}, "changeDataFeed"},
		{legacy(4), field("delta.generationExpression"), nil, "generatedColumns"},
		{legacy(5), "", nil, "columnMapping"},
		{legacy(6), "", nil, "columnMapping"},
		{v7(), field("delta.invariants"), nil, ""},
		{v7("appendOnly", "checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns", "allowColumnDefaults"), field("comment"), nil, ""},
		{v7("identityColumns"), field("delta.identity.start"), nil, "identityColumns"},
		{v7("allowColumnDefaults"), field("CURRENT_DEFAULT"), nil, "allowColumnDefaults"},
		{v7("rowTracking"), "", nil, "rowTracking"},
		{v7("vacuumProtocolCheck"), "", nil, "vacuumProtocolCheck"},
		{v7("clustering"), "", nil, "clustering"},
		{v7("future"), "", nil, "future"},
		{legacy(8), "", nil, "minWriterVersion 8"},
		{&Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"deletionVectors"}}, "", nil, "deletionVectors"},
	} {
		err := stateWith(t, c.p, &Metadata{SchemaString: c.schema, Configuration: c.config}).CheckWritable()
		if c.want == "" && err != nil || c.want != "" && !sameError(err, &tableerr.Unsupported{Feature: c.want}) {
			t.Errorf("%+v %v: %v, want %q", c.p, c.config, err, c.want)
		}
	}
	for _, schema := range []string{"{", "\xff", "{} x", strings.Repeat("[", maxDepth+1)} {
		if err := stateWith(t, legacy(2), &Metadata{SchemaString: schema}).CheckWritable(); err == nil {
			t.Errorf("schema %.10q: no error", schema)
		}
	}
}

func TestFeatureLists(t *testing.T) {
	if got := (&Protocol{MinWriterVersion: 6}).AllWriterFeatures(); !slices.Equal(got, []string{"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping", "identityColumns"}) {
		t.Error(got)
	}
	if got := (&Protocol{MinWriterVersion: 1, WriterFeatures: []string{"x"}}).AllWriterFeatures(); got != nil {
		t.Error(got)
	}
	p := ContrailProtocol(true)
	if got := p.AllReaderFeatures(); !slices.Equal(got, []string{"timestampNtz"}) || p.MinReaderVersion != 3 {
		t.Error(got)
	}
	if ContrailProtocol(false).MinReaderVersion != 1 || slices.Contains(p.ReaderFeatures, FeatureContrail) {
		t.Error("contrail-timeseries must keep no reader out")
	}
	on := map[string]string{"delta.appendOnly": "true", "delta.enableInCommitTimestamps": "true"}
	s := stateWith(t, p, &Metadata{Configuration: on})
	if !s.AppendOnly() || !s.InCommitTimestamps() {
		t.Error("a property is not seen")
	}
	if s := stateWith(t, &Protocol{MinReaderVersion: 1, MinWriterVersion: 1}, &Metadata{Configuration: on}); s.AppendOnly() || s.InCommitTimestamps() {
		t.Error("a property without its feature counts")
	}
}

// TestWithTimestampNtz makes sure that a protocol that gains the feature loses
// nothing that it said before.
func TestWithTimestampNtz(t *testing.T) {
	for name, c := range map[string]struct{ had, want Protocol }{
		"a table of ours": {*ContrailProtocol(false), *ContrailProtocol(true)},
		"old versions": {Protocol{MinReaderVersion: 2, MinWriterVersion: 5},
			Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"columnMapping", "timestampNtz"},
				WriterFeatures: []string{"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping", "timestampNtz"}}},
		"on one side alone": {Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"timestampNtz"}, WriterFeatures: []string{"appendOnly"}},
			Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"timestampNtz"}, WriterFeatures: []string{"appendOnly", "timestampNtz"}}},
	} {
		had := c.had
		got := had.WithTimestampNtz()
		if !reflect.DeepEqual(*got, c.want) || !reflect.DeepEqual(had, c.had) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got.WithTimestampNtz() != got {
			t.Errorf("%s: it is written again", name)
		}
	}
}

// Going to feature lists, a protocol lists all that the old version implied.
func TestAdopting(t *testing.T) {
	ours := []string{"domainMetadata", "inCommitTimestamp", "contrail-timeseries"}
	for _, c := range []struct {
		p    Protocol
		want []string
	}{
		{Protocol{MinReaderVersion: 1, MinWriterVersion: 1}, append([]string{}, ContrailProtocol(false).WriterFeatures...)},
		{Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, append([]string{"appendOnly", "invariants"}, ours...)},
		{Protocol{MinReaderVersion: 1, MinWriterVersion: 4}, append([]string{"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}, ours...)},
		{Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"timestampNtz"}, WriterFeatures: []string{"timestampNtz"}},
			append([]string{"timestampNtz", "appendOnly", "invariants"}, ours...)},
	} {
		got := c.p.Adopting()
		if got.MinReaderVersion != c.p.MinReaderVersion || got.MinWriterVersion != 7 || !slices.Equal(got.WriterFeatures, c.want) || !slices.Equal(got.ReaderFeatures, c.p.ReaderFeatures) {
			t.Errorf("%+v becomes %+v, want %q", c.p, got, c.want)
		}
		if got.Adopting() != got {
			t.Errorf("%+v is not enough", got)
		}
	}
}
