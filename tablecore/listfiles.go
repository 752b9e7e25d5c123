package tablecore

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/scan"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// Files lists the data files of a version by path. The number of row groups
// comes from the files' footers.
func (t *Table) Files(ctx context.Context, at At) (*Listing, error) {
	s, err := t.at(ctx, at)
	if err != nil {
		return nil, t.wrap(err)
	}
	l := t.listing(s, []arrow.Field{listed("path", listedText), listed("rows", listedI64), listed("row_groups", listedI32), listed("bytes", listedI64),
		listedNullable("index_min", indexType(s)), listedNullable("index_max", indexType(s)), listed("layout", listedText), listed("sorted", listedBool),
		listedNullable("added_version", listedI64)})
	l.run = func(ctx context.Context, out *listingWriter) error {
		files := slices.Clone(s.Files)
		slices.SortFunc(files, func(a, b *snapshot.File) int { return strings.Compare(a.Path, b.Path) })
		for _, f := range files {
			if err := t.listFile(ctx, s, f, out); err != nil {
				return err
			}
		}
		return nil
	}
	return l, nil
}

func (t *Table) listFile(ctx context.Context, s *snapshot.Snapshot, f *snapshot.File, out *listingWriter) error {
	groups, err := t.files.RowGroups(ctx, s, f)
	if err != nil {
		return err
	}
	rows := f.Rows
	if rows < 0 {
		rows = 0
		for _, g := range groups {
			rows += g.Rows
		}
	}
	layout := tabledef.LayoutMixed
	if f.Single {
		layout = tabledef.LayoutSingle
	}
	var added any
	if f.Version >= 0 {
		added = f.Version
	}
	return out.add(ctx, f.Path, rows, int32(len(groups)), f.Add.Size, indexBound(f, f.Min), indexBound(f, f.Max), layout,
		f.Add.Tags[tabledef.TagSorted] == "true", added)
}

// Entities lists the entities of a version, by entity, with the intervals that
// hold a row of each. It reads the derived data of every file.
func (t *Table) Entities(ctx context.Context, at At) (*Listing, error) {
	s, err := t.indexed(ctx, at)
	if err != nil {
		return nil, t.wrap(err)
	}
	var fields []arrow.Field
	for i, name := range s.Def.EntityColumns {
		typ := arrow.DataType(listedText)
		if s.Def.Stored != nil {
			typ = entityType(s.EntityTypes()[i])
		}
		fields = append(fields, listed(name, typ))
	}
	fields = append(fields, listedNullable("intervals", listedU64), listedNullable("start", indexType(s)), listedNullable("end", indexType(s)))
	l := t.listing(s, fields)
	l.run = func(ctx context.Context, out *listingWriter) error {
		if s.Domain.HasIntervals() {
			return t.listCovered(ctx, s, out)
		}
		return t.listKeys(ctx, s, out)
	}
	return l, nil
}

// entityType is an entity column's type in a listing: numbers as declared, texts
// plain.
func entityType(declared arrow.DataType) arrow.DataType {
	switch declared.ID() {
	case arrow.INT32, arrow.INT64, arrow.UINT64:
		return declared
	}
	return listedText
}

// listCovered lists the entities of a table with a granularity.
func (t *Table) listCovered(ctx context.Context, s *snapshot.Snapshot, out *listingWriter) error {
	var sets []*coverage.Set
	for _, f := range s.Files {
		index, err := t.files.Index(ctx, s, f)
		if err != nil {
			return err
		}
		if index.Coverage != nil {
			sets = append(sets, index.Coverage)
		}
	}
	all, err := coverage.Union(sets...)
	if err != nil {
		return err
	}
	for i := range all.Entities() {
		row, err := keyValues(s, all.Key(i))
		if err != nil {
			return err
		}
		first, _ := s.Domain.Bounds(all.First(i))
		_, last := s.Domain.Bounds(all.Last(i))
		var end any // null where the last interval ends with the domain
		if last != ^uint64(0) {
			end = ordinal(last + 1)
		}
		if err := out.add(ctx, append(row, all.Count(i), ordinal(first), end)...); err != nil {
			return err
		}
	}
	return nil
}

// listKeys lists the entities of a table without a granularity.
func (t *Table) listKeys(ctx context.Context, s *snapshot.Snapshot, out *listingWriter) error {
	seen := map[string]struct{}{}
	for _, f := range s.Files {
		index, err := t.files.Index(ctx, s, f)
		if err != nil {
			return err
		}
		for key := range index.Keys() {
			seen[key] = struct{}{}
		}
	}
	keys := make([]string, 0, len(seen))
	for key := range seen {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		row, err := keyValues(s, key)
		if err != nil {
			return err
		}
		if err := out.add(ctx, append(row, nil, nil, nil)...); err != nil {
			return err
		}
	}
	return nil
}

func keyValues(s *snapshot.Snapshot, key string) ([]any, error) {
	if len(s.Def.EntityColumns) == 0 {
		return nil, nil
	}
	return s.Layout.Decode(key)
}

// Explain lists the data files of the scan's version, by path, with what the
// scan does with each and why. It reads no rows.
func (p *ScanPlan) Explain() *Listing {
	l := p.table.listing(p.plan.Snapshot(), []arrow.Field{listed("path", listedText), listed("kept", listedBool), listed("reason", listedText),
		listed("row_groups", listedI32), listed("row_groups_kept", listedI32)})
	l.run = func(ctx context.Context, out *listingWriter) error {
		return p.plan.Explain(ctx, func(e scan.Explained) error {
			return out.add(ctx, e.Path, e.Kept, e.Reason, int32(e.RowGroups), int32(e.RowGroupsKept))
		})
	}
	return l
}
