// Package series keeps in memory what is known of the series of a table at a
// version: the merged coverage and the newest row of each entity.
//
// Both follow from the live data files alone, and a data file never changes, so
// what is known of one set of files is brought to another one by the files that
// came and those that went. Nothing is done before it is first asked for; an
// append makes nothing here. What is kept is bounded in bytes, the longest
// unused goes first, and whatever is gone is made again from the files' derived
// data.
package series

import (
	"context"
	"fmt"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/lastvalue"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Stored is what was kept of an older version of a table on disk.
type Stored struct {
	Def   *tabledef.Definition // of that version
	Paths []string             // of its live files
	// Coverage and Newest read the encodings of the two indexes, nil where there
	// is none.
	Coverage, Newest func(ctx context.Context) []byte
}

// Loader looks for the newest Stored at or below a snapshot; nil where there is
// none. It reports damage itself: whatever is not right is not there.
type Loader func(ctx context.Context, s *snapshot.Snapshot) *Stored

// An index was laborious to make when it took the derived data of so many files,
// and of such a share of all.
const (
	manyFiles      = 8
	manyFilesShare = 4
)

// Table gives the indexes of the versions of one table. It is safe for
// concurrent use.
type Table struct {
	cache     *Cache
	files     *filecache.Files
	load      Loader                     // may be nil
	laborious func(s *snapshot.Snapshot) // may be nil
}

// Table returns the indexes of a table with the given files. load may be nil, and
// so may laborious, which is told of versions whose indexes took many files to
// make: they are worth storing. It must return quickly.
func (c *Cache) Table(files *filecache.Files, load Loader, laborious func(s *snapshot.Snapshot)) *Table {
	return &Table{cache: c, files: files, load: load, laborious: laborious}
}

// Coverage returns which intervals each entity has rows in at a version. The
// table must have a schema, an index column and a granularity.
func (t *Table) Coverage(ctx context.Context, s *snapshot.Snapshot) (*coverage.Merged, error) {
	v, err := t.get(ctx, s, kindCoverage)
	if err != nil {
		return nil, err
	}
	return v.(*coverage.Merged), nil
}

// Newest returns the newest row of each entity at a version. The table must
// have a schema and an index column. UNSUPPORTED when a data file is not sorted.
func (t *Table) Newest(ctx context.Context, s *snapshot.Snapshot) (*lastvalue.Index, error) {
	v, err := t.get(ctx, s, kindNewest)
	if err != nil {
		return nil, err
	}
	return v.(*lastvalue.Index), nil
}

// get returns an index of a version: the one in memory, or the nearest one
// brought to the version, or a new one. Of several that miss at once one works.
func (t *Table) get(ctx context.Context, s *snapshot.Snapshot, k kind) (index, error) {
	if v := t.cache.find(s, k); v != nil {
		return v, nil
	}
	leave, err := t.cache.enter(ctx, s.Def.ID)
	if err != nil {
		return nil, err
	}
	defer leave()
	if v := t.cache.find(s, k); v != nil {
		return v, nil
	}
	v, err := t.advance(ctx, s, k)
	if err != nil {
		return nil, err
	}
	t.cache.keep(s, k, v)
	return v, nil
}

// advance makes an index from the nearest one known. That one may no longer do,
// because a file that went is gone from the store, too: then all files are read.
func (t *Table) advance(ctx context.Context, s *snapshot.Snapshot, k kind) (index, error) {
	from := t.cache.nearest(s, k)
	if from == nil {
		from = t.stored(ctx, s, k)
	}
	if from != nil {
		if v, err := t.build(ctx, s, k, from.since(s)); err == nil || ctx.Err() != nil {
			return v, err
		}
	}
	return t.build(ctx, s, k, &change{added: s.Files})
}

func (t *Table) build(ctx context.Context, s *snapshot.Snapshot, k kind, c *change) (v index, err error) {
	if k == kindCoverage {
		v, err = t.buildCoverage(ctx, s, c)
	} else {
		v, err = t.buildNewest(ctx, s, c)
	}
	if err == nil && t.laborious != nil && len(c.added) >= max(manyFiles, len(s.Files)/manyFilesShare) {
		t.laborious(s)
	}
	return v, err
}

// stored returns what the loader has, if it is of use.
func (t *Table) stored(ctx context.Context, s *snapshot.Snapshot, k kind) *entry {
	if t.load == nil {
		return nil
	}
	stored := t.load(ctx, s)
	if stored == nil || stored.Def.Stored == nil || identity(stored.Def) != identity(s.Def) {
		return nil
	}
	var v index
	var err error
	switch k {
	case kindCoverage:
		data := stored.Coverage(ctx)
		if data == nil {
			return nil
		}
		v, err = DecodeCoverage(s, data)
	case kindNewest:
		data := stored.Newest(ctx)
		if data == nil {
			return nil
		}
		v, err = DecodeNewest(ctx, s, data)
	}
	if err != nil {
		return nil
	}
	return &entry{kind: k, identity: identity(s.Def), paths: stored.Paths, index: v}
}

// Holds tells which of the two indexes of a version are in memory, or another
// version's that they follow from.
func (t *Table) Holds(s *snapshot.Snapshot) (coverage, newest bool) {
	holds := func(k kind) bool { return t.cache.find(s, k) != nil || t.cache.nearest(s, k) != nil }
	return holds(kindCoverage), holds(kindNewest)
}

// change is what lies between an index and a version.
type change struct {
	from    index // nil to begin with nothing
	removed map[string]struct{}
	added   []*snapshot.File
	kept    []*snapshot.File // in both
}

// since compares an entry's files with those of a version.
func (e *entry) since(s *snapshot.Snapshot) *change {
	c := &change{from: e.index, removed: map[string]struct{}{}}
	same := 0
	for same < len(e.paths) && same < len(s.Files) && e.paths[same] == s.Files[same].Path {
		same++
	}
	for _, path := range e.paths[same:] {
		c.removed[path] = struct{}{}
	}
	c.kept = append(c.kept, s.Files[:same]...)
	for _, f := range s.Files[same:] {
		if _, was := c.removed[f.Path]; was {
			delete(c.removed, f.Path)
			c.kept = append(c.kept, f)
		} else {
			c.added = append(c.added, f)
		}
	}
	return c
}

// identity says what keys, ids and ordinals of a table mean: indexes of equal
// files differ where it does.
func identity(def *tabledef.Definition) string {
	text := fmt.Sprintf("%q %s %s %s %q %t", def.IndexColumn, def.IndexType, def.IndexUnit(), def.Granularity, def.IngestTimeColumn, ties(def))
	for _, name := range def.EntityColumns {
		field, _ := def.Stored.FieldsByName(name)
		text += fmt.Sprintf(" %q %s", name, tabledef.TypeName(field[0].Type))
	}
	return text
}

// ties says whether rows of an entity may have equal index values.
func ties(def *tabledef.Definition) bool { return def.Uniqueness == tabledef.UniqueNone }

func unsorted(path string) error {
	return &tableerr.Unsupported{Feature: "unsorted data files", Path: path,
		Msg: "a data file is not sorted by entity and index, so its newest rows are not known without a scan; rewrite it with optimize"}
}
