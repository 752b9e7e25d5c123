package tablecore

import (
	"context"
	"maps"

	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// Describe says what the table is and holds. Counting the entities may read
// the entity directory of each data file once, and counting the rows the footer
// of each that another software wrote without statistics.
func (t *Table) Describe(ctx context.Context, at At) (*Description, error) {
	s, err := t.at(ctx, at)
	if err != nil {
		return nil, t.wrap(err)
	}
	d := t.describe(s)
	d.Rows = t.countRows(ctx, s)
	if d.Entities, err = t.countEntities(ctx, s); err != nil {
		return nil, t.wrap(err)
	}
	return d, nil
}

func (t *Table) describe(s *snapshot.Snapshot) *Description {
	def := s.Def
	d := &Description{
		Table: t.name.String(), TableID: def.ID, Version: s.Version(), CommittedAt: committedAt(s), FormatVersion: def.Format.String(),
		IndexColumn: Word(def.IndexColumn), IndexType: Word(def.IndexType), IndexGranularity: Granularity(def.Granularity),
		EntityColumns: append([]string{}, def.EntityColumns...), Uniqueness: Word(def.Uniqueness), IngestTimeColumn: def.IngestTimeColumn,
		Rows: s.Rows, Files: int64(len(s.Files)), Bytes: s.Bytes, Properties: maps.Clone(def.Properties), Schema: def.Schema(),
	}
	if def.Timezone != "" {
		d.Timezone = &def.Timezone
	}
	if d.Schema != nil {
		for _, f := range d.Schema.Fields() {
			d.Columns = append(d.Columns, Column{f.Name, tabledef.TypeName(f.Type), f.Nullable})
		}
		// A schema that was stored has been encoded before.
		d.SchemaIPC, _ = tabledef.EncodeSchemaIPC(d.Schema)
	}
	d.IndexMin, d.IndexMax = indexRange(s)
	return d
}

// indexRange returns the smallest and the largest index value of stored rows
// as they stand in answers, nil when a file does not say or there is none.
func indexRange(s *snapshot.Snapshot) (lowest, highest any) {
	if len(s.Files) == 0 || s.Def.IndexColumn == "" {
		return nil, nil
	}
	first, last := ^uint64(0), uint64(0)
	for _, f := range s.Files {
		if !f.Bounded {
			return nil, nil
		}
		first, last = min(first, f.Min), max(last, f.Max)
	}
	return s.IndexValue(first), s.IndexValue(last)
}

// countRows counts the rows of a snapshot, −1 where it cannot.
func (t *Table) countRows(ctx context.Context, s *snapshot.Snapshot) int64 {
	if s.Rows >= 0 {
		return s.Rows
	}
	rows := int64(0)
	for _, f := range s.Files {
		if f.Rows >= 0 {
			rows += f.Rows
			continue
		}
		groups, err := t.files.RowGroups(ctx, s, f)
		if err != nil {
			return -1 // a scan tells why
		}
		for _, g := range groups {
			rows += g.Rows
		}
	}
	return rows
}

// countEntities counts the distinct entities of a snapshot.
func (t *Table) countEntities(ctx context.Context, s *snapshot.Snapshot) (int64, error) {
	if len(s.Files) == 0 {
		return 0, nil
	}
	if len(s.Def.EntityColumns) == 0 {
		return 1, nil
	}
	seen := map[string]struct{}{}
	for _, f := range s.Files {
		index, err := t.files.Index(ctx, s, f)
		if err != nil {
			return 0, err
		}
		for key := range index.Keys() {
			seen[key] = struct{}{}
		}
	}
	return int64(len(seen)), nil
}
