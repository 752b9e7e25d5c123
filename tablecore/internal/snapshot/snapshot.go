// Package snapshot holds the immutable view of one version of a table: what the
// table is, which data files are live, and what the log says about each, ready
// for pruning.
//
// Snapshots are made from a log's state or from the snapshot before and one
// more commit; the latter costs little more than the change.
package snapshot

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/internal/pmap"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Snapshot is a table at one version. It is immutable and may be used by many
// goroutines.
type Snapshot struct {
	State *deltalog.State
	Def   *tabledef.Definition
	// Domain maps index values to intervals. It is meaningful once the table
	// has a schema.
	Domain interval.Domain
	// Layout describes entity keys. It is nil until the table has a schema.
	Layout *entitykey.Layout
	// Files are the live data files by Order, those of one in log order. Nobody
	// may append to it.
	Files []*File
	// Rows and Bytes add up the files; Rows is −1 when one does not say.
	Rows, Bytes int64
	// Upkeep is what maintenance knows of the versions up to this one.
	Upkeep Upkeep

	spans    []span             // of Files
	room     *room              // behind both
	requests pmap.Map[*Request] // by request id
	effects  effectLog
}

// New returns the snapshot of a log's state. It refuses formats and features
// this software cannot read (FORMAT_UNREADABLE before UNSUPPORTED) and paths
// outside the table.
func New(state *deltalog.State) (*Snapshot, error) {
	s := &Snapshot{State: state, effects: effectLog{from: state.Version()}}
	if err := s.define(); err != nil {
		return nil, err
	}
	var err error
	if s.Upkeep, err = upkeepOf(state); err != nil {
		return nil, err
	}
	s.requests = indexRequests(state, s.Upkeep)
	return s, s.add(state.Files())
}

// Apply returns the snapshot after the commit that follows s.
func (s *Snapshot) Apply(c *deltalog.Commit) (*Snapshot, error) {
	state, err := s.State.Apply(c)
	if err != nil {
		return nil, err
	}
	next := *s
	next.State = state
	if c.Metadata != nil || c.Protocol != nil {
		if err := next.define(); err != nil {
			return nil, err
		}
	}
	if err := next.keepUp(c, s); err != nil {
		return nil, err
	}
	if err := next.drop(c, s.State); err != nil {
		return nil, err
	}
	return &next, next.add(c.Adds)
}

// keepUp takes over what a commit says of versions and request ids.
func (s *Snapshot) keepUp(c *deltalog.Commit, before *Snapshot) (err error) {
	if len(c.Domains) > 0 {
		if s.Upkeep, err = upkeepOf(s.State); err != nil {
			return err
		}
	}
	s.effects.note(c.Version, effectsOf(c, before, s.Upkeep))
	if slices.Equal(s.Upkeep.Abandoned, before.Upkeep.Abandoned) {
		s.noteRequests(c.Txns)
	} else {
		s.requests = indexRequests(s.State, s.Upkeep)
	}
	return nil
}

// Version returns the snapshot's version.
func (s *Snapshot) Version() int64 { return s.State.Version() }

// WithCheckpoint returns s, or a copy of it whose state knows a newer
// checkpoint at or below its version.
func (s *Snapshot) WithCheckpoint(ref deltalog.CheckpointRef) *Snapshot {
	if ref.Version <= s.State.Checkpoint().Version || ref.Version > s.Version() {
		return s
	}
	c := *s
	c.State = s.State.WithCheckpoint(ref)
	return &c
}

// define reads the definition out of the state's metadata.
func (s *Snapshot) define() error {
	m := s.State.Metadata()
	// The format's version decides first, whatever else may be wrong.
	if _, err := tabledef.ReadableFormat(m.Configuration); err != nil {
		return err
	}
	if err := s.State.CheckReadable(); err != nil {
		return err
	}
	def, err := tabledef.FromMetadata(m.ID, m.SchemaString, m.Configuration)
	if err != nil {
		return err
	}
	s.Def, s.Domain, s.Layout = def, interval.Domain{}, nil
	if def.Stored == nil || def.IndexColumn == "" {
		return nil
	}
	if s.Domain, err = interval.New(def.IndexType, def.IndexUnit(), def.Granularity); err != nil {
		return err
	}
	s.Layout, err = entitykey.LayoutOf(def)
	return err
}

// drop takes the files out that a commit removes or adds again.
func (s *Snapshot) drop(c *deltalog.Commit, before *deltalog.State) error {
	gone := map[string]bool{}
	for _, r := range c.Removes {
		path, err := r.File()
		if err != nil {
			return err
		}
		gone[path] = true
	}
	for _, a := range c.Adds {
		if path, err := a.File(); err == nil && before.File(path) != nil {
			gone[path] = true
		}
	}
	if len(gone) == 0 {
		return nil
	}
	s.without(gone)
	return nil
}

// IndexField returns the declared field of the index column. The table must
// have a schema.
func (s *Snapshot) IndexField() arrow.Field {
	f, _ := s.Def.Stored.FieldsByName(s.Def.IndexColumn)
	return f[0]
}

// IndexValue is an index ordinal as it stands in answers: text in RFC 3339 for a
// timestamp, without a zone where the column has none, else a number.
func (s *Snapshot) IndexValue(ordinal uint64) any {
	switch t := s.IndexField().Type.(type) {
	case *arrow.TimestampType:
		text := s.Domain.ValueText(ordinal)
		if t.TimeZone == "" {
			return strings.TrimSuffix(text, "Z")
		}
		return text
	case *arrow.Uint64Type:
		return ordinal
	default:
		return interval.SignedValue(ordinal)
	}
}

// EntityTypes returns the declared types of the entity columns. The table must
// have a schema.
func (s *Snapshot) EntityTypes() []arrow.DataType {
	types := make([]arrow.DataType, len(s.Def.EntityColumns))
	for i, name := range s.Def.EntityColumns {
		f, _ := s.Def.Stored.FieldsByName(name)
		types[i] = f[0].Type
	}
	return types
}

// CheckWritable refuses tables this software may not write: a newer format, a
// writer feature it does not know, or a plain Delta table.
func (s *Snapshot) CheckWritable() error {
	if err := s.Def.Format.CheckWritable(); err != nil {
		return err
	}
	if err := s.CheckIndexed(); err != nil {
		return err
	}
	return s.State.CheckWritable()
}

// CheckIndexed refuses a plain Delta table, for what needs an index column.
func (s *Snapshot) CheckIndexed() error {
	if s.Def.IndexColumn != "" {
		return nil
	}
	return &tableerr.FormatUnwritable{TableFormat: s.Def.Format.String(), SupportedFormat: tabledef.CurrentFormat.String(), Plain: true}
}
