package deltalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"contrail/tablecore/tableerr"
)

// Feature names of the Delta protocol that the package knows, and Contrail's
// own. The latter is a writer feature that no other software implements, which
// is what keeps other software from writing.
const (
	FeatureAppendOnly          = "appendOnly"
	FeatureInvariants          = "invariants"
	FeatureDomainMetadata      = "domainMetadata"
	FeatureInCommitTimestamp   = "inCommitTimestamp"
	FeatureTimestampNtz        = "timestampNtz"
	FeatureContrail            = "contrail-timeseries"
	featureCheckConstraints    = "checkConstraints"
	featureChangeDataFeed      = "changeDataFeed"
	featureGeneratedColumns    = "generatedColumns"
	featureIdentityColumns     = "identityColumns"
	featureColumnDefaults      = "allowColumnDefaults"
	featureColumnMapping       = "columnMapping"
	featureVacuumProtocolCheck = "vacuumProtocolCheck"
	featureDeletionVectors     = "deletionVectors"
	featureV2Checkpoint        = "v2Checkpoint"
)

// impliedWriterFeatures lists what writer version i+2 adds to the one before,
// from the protocol's table of writer version requirements.
var impliedWriterFeatures = [][]string{
	{FeatureAppendOnly, FeatureInvariants},
	{featureCheckConstraints},
	{featureChangeDataFeed, featureGeneratedColumns},
	{featureColumnMapping},
	{featureIdentityColumns},
}

// ContrailProtocol returns the protocol of a new Contrail table. Reader version
// 1 lets every Delta reader in; a timestamp without zone needs the one reader
// feature for it.
func ContrailProtocol(timestampNtz bool) *Protocol {
	p := &Protocol{
		MinReaderVersion: 1,
		MinWriterVersion: 7,
		WriterFeatures:   []string{FeatureAppendOnly, FeatureInvariants, FeatureDomainMetadata, FeatureInCommitTimestamp, FeatureContrail},
	}
	if timestampNtz {
		p.MinReaderVersion = 3
		p.ReaderFeatures = []string{FeatureTimestampNtz}
		p.WriterFeatures = append(p.WriterFeatures, FeatureTimestampNtz)
	}
	return p
}

// Adopting returns the protocol of a table of this one that becomes, or is
// already, Contrail's: p itself where it asks for all that ContrailProtocol
// does. It never asks for less than p; going to feature lists, it lists what the
// old versions implied.
func (p *Protocol) Adopting() *Protocol {
	writes := slices.Clone(p.AllWriterFeatures())
	for _, feature := range ContrailProtocol(false).WriterFeatures {
		if !slices.Contains(writes, feature) {
			writes = append(writes, feature)
		}
	}
	if p.MinWriterVersion >= 7 && len(writes) == len(p.WriterFeatures) {
		return p
	}
	adopting := *p
	adopting.MinWriterVersion, adopting.WriterFeatures = max(p.MinWriterVersion, 7), writes
	return &adopting
}

// WithTimestampNtz returns the protocol that a table of this one needs for a
// timestamp without zone: p itself where it has the feature. Going to feature
// lists, it lists what the old versions implied.
func (p *Protocol) WithTimestampNtz() *Protocol {
	reads, writes := p.AllReaderFeatures(), p.AllWriterFeatures()
	if slices.Contains(reads, FeatureTimestampNtz) && slices.Contains(writes, FeatureTimestampNtz) {
		return p
	}
	return &Protocol{MinReaderVersion: max(p.MinReaderVersion, 3), MinWriterVersion: max(p.MinWriterVersion, 7),
		ReaderFeatures: withFeature(reads), WriterFeatures: withFeature(writes)}
}

func withFeature(features []string) []string {
	if slices.Contains(features, FeatureTimestampNtz) {
		return features
	}
	return append(slices.Clone(features), FeatureTimestampNtz)
}

// AllWriterFeatures returns the writer features that are listed, or implied by
// a writer version below 7, in that order.
func (p *Protocol) AllWriterFeatures() []string {
	if p.MinWriterVersion >= 7 {
		return p.WriterFeatures
	}
	var all []string
	for i, features := range impliedWriterFeatures {
		if p.MinWriterVersion >= int32(i+2) {
			all = append(all, features...)
		}
	}
	return all
}

// AllReaderFeatures returns the reader features that are listed, or implied by
// reader version 2.
func (p *Protocol) AllReaderFeatures() []string {
	switch p.MinReaderVersion {
	case 0, 1:
		return nil
	case 2:
		return []string{featureColumnMapping}
	}
	return p.ReaderFeatures
}

// CheckReadable returns *tableerr.Unsupported naming the first thing that this
// software would have to understand to read the table and does not.
func (s *State) CheckReadable() error {
	if v := s.protocol.MinReaderVersion; v > 3 {
		return unsupported(fmt.Sprintf("minReaderVersion %d", v))
	}
	for _, feature := range s.protocol.AllReaderFeatures() {
		switch feature {
		case FeatureTimestampNtz, featureVacuumProtocolCheck:
		case featureDeletionVectors:
			if s.withDV > 0 {
				return unsupported(feature)
			}
		case featureColumnMapping:
			if s.columnMapping() {
				return unsupported(feature)
			}
		default:
			return unsupported(feature)
		}
	}
	switch {
	case s.columnMapping(): // reads wrong columns, whatever the protocol says
		return unsupported(featureColumnMapping)
	case s.withDV > 0:
		return unsupported(featureDeletionVectors)
	case s.metadata.provider() != "parquet":
		return unsupported("format " + quoted(s.metadata.Provider))
	}
	return nil
}

func (s *State) columnMapping() bool {
	mode := s.metadata.Configuration["delta.columnMapping.mode"]
	return mode != "" && mode != "none"
}

// CheckPaths returns *tableerr.Unsupported naming a live file outside the
// table's directory, if there is one. It costs nothing when there is none.
func (s *State) CheckPaths() error {
	if s.refused == 0 {
		return nil
	}
	for _, a := range s.Files() {
		if _, err := a.File(); err != nil {
			return err
		}
	}
	return nil
}

// CheckWritable returns *tableerr.Unsupported naming the first feature that this software neither respects nor finds inactive. It includes
// CheckReadable. An append-only table is writable: see AppendOnly.
func (s *State) CheckWritable() error {
	if err := s.CheckReadable(); err != nil {
		return err
	}
	if v := s.protocol.MinWriterVersion; v > 7 {
		return unsupported(fmt.Sprintf("minWriterVersion %d", v))
	}
	if s.marks.err != nil {
		return fmt.Errorf("reading the schema's field metadata: %w", s.marks.err)
	}
	for _, feature := range slices.Concat(s.protocol.AllWriterFeatures(), s.protocol.AllReaderFeatures()) {
		if !s.respected(feature) {
			return unsupported(feature)
		}
	}
	return nil
}

// respected tells whether a write by this software does right by a feature.
func (s *State) respected(feature string) bool {
	switch feature {
	case FeatureAppendOnly, FeatureDomainMetadata, FeatureInCommitTimestamp, FeatureTimestampNtz, FeatureContrail:
		return true
	case FeatureInvariants:
		return !s.marks.invariants
	case featureCheckConstraints:
		for key := range s.metadata.Configuration {
			if strings.HasPrefix(key, "delta.constraints.") {
				return false
			}
		}
		return true
	case featureChangeDataFeed:
		return !s.flag("delta.enableChangeDataFeed")
	case featureGeneratedColumns:
		return !s.marks.generated
	case featureIdentityColumns:
		return !s.marks.identity
	case featureColumnDefaults:
		return !s.marks.defaults
	}
	return false
}

// AppendOnly tells whether rows may only be added (delta.appendOnly).
func (s *State) AppendOnly() bool {
	return slices.Contains(s.protocol.AllWriterFeatures(), FeatureAppendOnly) && s.flag("delta.appendOnly")
}

// InCommitTimestamps tells whether commits must carry an in-commit timestamp.
func (s *State) InCommitTimestamps() bool {
	return slices.Contains(s.protocol.AllWriterFeatures(), FeatureInCommitTimestamp) && s.flag("delta.enableInCommitTimestamps")
}

func (s *State) flag(property string) bool {
	return strings.EqualFold(s.metadata.Configuration[property], "true")
}

// schemaMarks says which writer features a schema makes active: those that show
// in the metadata of a field, nested ones included.
type schemaMarks struct {
	invariants, generated, identity, defaults bool
	err                                       error // the schema could not be read
}

func marksOf(schema string) schemaMarks {
	var m schemaMarks
	if schema == "" {
		return m
	}
	if !utf8.ValidString(schema) {
		m.err = errText
		return m
	}
	r := &jsonReader{data: []byte(schema)}
	if m.err = m.collect(r); m.err == nil {
		m.err = r.end()
	}
	return m
}

func (m *schemaMarks) collect(r *jsonReader) error {
	switch r.peek() {
	case '{':
		return r.object(func(key []byte) error {
			if string(key) != "metadata" || r.peek() != '{' {
				return m.collect(r)
			}
			return r.object(func(key []byte) error {
				m.mark(string(key))
				return r.skip()
			})
		})
	case '[':
		return r.array(func() error { return m.collect(r) })
	}
	return r.skip()
}

func (m *schemaMarks) mark(key string) {
	switch {
	case key == "delta.invariants":
		m.invariants = true
	case key == "delta.generationExpression":
		m.generated = true
	case strings.HasPrefix(key, "delta.identity."):
		m.identity = true
	case key == "CURRENT_DEFAULT":
		m.defaults = true
	}
}

func unsupported(feature string) error { return &tableerr.Unsupported{Feature: feature} }
