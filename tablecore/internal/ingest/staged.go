package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/parallel"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Part is the rows of one stream that were written before the append.
type Part struct {
	// At is the part's place in the request, for errors.
	At int
	// Def is the table as its rows were written; it has a schema.
	Def *tabledef.Definition
	// Files have no Index. The directories in them say what they hold.
	Files []newfile.File
}

// heads is how many files are looked for at once.
const heads = 16

// NewStaged returns an append of parts that were written before, at least one:
// Write has no place among its steps, and Discard leaves the parts alone. A file
// that is gone or has another size is FILE_MISSING or CORRUPT; two rows of
// different parts in one interval are DUPLICATE_INTERVAL unless the table takes
// them; a part that does not fit the table is INVALID or SCHEMA_MISMATCH. All
// parts that bring a schema to a table without one must bring the same.
func NewStaged(ctx context.Context, s *snapshot.Snapshot, parts []Part, cfg AppendConfig) (*Append, error) {
	a := &Append{cfg: cfg, base: s, def: s.Def, checked: map[string]bool{}, replaced: map[string]*replacement{}, parts: parts, result: &Result{}}
	if s.Def.Stored == nil {
		a.adopts = parts[0].Def.Stored
		a.def = s.Def.WithSchema(a.adopts)
	}
	if err := a.checkTable(s); err != nil {
		return nil, err
	}
	for _, p := range parts {
		a.result.Files = append(a.result.Files, p.Files...)
	}
	a.result.count()
	if err := a.checkFiles(ctx); err != nil {
		return nil, err
	}
	if s.Def.Uniqueness == tabledef.UniqueNone {
		return a, nil
	}
	return a, a.cover(ctx)
}

// Written returns what an append has written, for whoever keeps it for later: the
// table as the rows were written, and their files.
func (a *Append) Written() (*tabledef.Definition, []newfile.File) { return a.def, a.result.Files }

// checkParts makes sure that parts written before fit the table as it is now.
func (a *Append) checkParts(now *tabledef.Definition) error {
	if now.Stored == nil {
		now = now.WithSchema(a.def.Stored)
	}
	for _, p := range a.parts {
		d := p.Def
		if d.IndexColumn != now.IndexColumn || d.IndexType != now.IndexType || d.Granularity != now.Granularity ||
			!slices.Equal(d.EntityColumns, now.EntityColumns) || d.Uniqueness != now.Uniqueness {
			return tableerr.InvalidField(fmt.Sprintf("staged[%d]", p.At), "staged[%d] was staged when the table had other keys, intervals or another uniqueness; stage the rows again", p.At)
		}
		if err := checkColumns(d, now); err != nil {
			return err
		}
	}
	return nil
}

// checkFiles makes sure that the files are there.
func (a *Append) checkFiles(ctx context.Context) error {
	return parallel.Each(ctx, len(a.result.Files), heads, func(ctx context.Context, i int) error {
		f := &a.result.Files[i]
		info, err := a.cfg.Store.Head(ctx, f.Path)
		switch {
		case errors.Is(err, objstore.ErrNotExist):
			return &tableerr.FileMissing{Path: f.Path, Version: a.base.Version(), Cause: err}
		case err != nil:
			return err
		case info.Size != f.Bytes:
			return &tableerr.Corrupt{Path: f.Path, Msg: fmt.Sprintf("the staged data file has %d bytes, %d were written", info.Size, f.Bytes)}
		}
		return nil
	})
}

// cover finds out what the parts cover, and refuses two that cover the same.
func (a *Append) cover(ctx context.Context) error {
	sets := make([]*coverage.Set, len(a.parts))
	for i, p := range a.parts {
		var err error
		if sets[i], err = a.partCoverage(ctx, p); err != nil {
			return err
		}
	}
	if key, id, found := coverage.Shared(sets...); found {
		return a.duplicate(sets, key, id)
	}
	var err error
	a.result.Coverage, err = coverage.Union(sets...)
	return err
}

// partCoverage is what the rows of a part cover.
func (a *Append) partCoverage(ctx context.Context, p Part) (*coverage.Set, error) {
	sets := make([]*coverage.Set, len(p.Files))
	err := parallel.Each(ctx, len(p.Files), writers, func(ctx context.Context, i int) error {
		x, err := a.cfg.Files.IndexOf(ctx, p.Def, a.base.Version(), p.Files[i].Path)
		if err == nil {
			sets[i] = x.Coverage
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return coverage.Union(sets...)
}

// duplicate is the error of an interval that two parts cover.
func (a *Append) duplicate(sets []*coverage.Set, key string, id uint64) error {
	var at []int
	for i, set := range sets {
		if len(at) < 2 && set.Contains(key, id) {
			at = append(at, a.parts[i].At)
		}
	}
	layout, err := entitykey.LayoutOf(a.def)
	if err != nil {
		return err
	}
	domain, err := interval.New(a.def.IndexType, a.def.IndexUnit(), a.def.Granularity)
	if err != nil {
		return err
	}
	return &tableerr.DuplicateInterval{Entity: layout.Values(key), Interval: domain.Text(id), Staged: (*[2]int)(at)}
}
