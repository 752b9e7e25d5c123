package series

import (
	"context"
	"slices"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/snapshot"
)

const (
	// minMore is how large the small part of a merged coverage may be whatever
	// the size of the large one, and moreShare which part of the large one.
	minMore   = 64 << 10
	moreShare = 8
)

// buildCoverage brings a merged coverage to a version.
func (t *Table) buildCoverage(ctx context.Context, s *snapshot.Snapshot, c *change) (index, error) {
	added, err := t.union(ctx, s, c.added)
	if err != nil {
		return nil, err
	}
	if c.from == nil {
		return coverage.NewMerged(added, nil), nil
	}
	base, more := c.from.(*coverage.Merged).Parts()
	if more, err = coverage.Union(more, added); err != nil {
		return nil, err
	}
	lost, err := t.lost(ctx, s, c, added)
	if err != nil {
		return nil, err
	}
	if lost.Entities() == 0 && more.Bytes() <= minMore+base.Bytes()/moreShare {
		return coverage.NewMerged(base, more), nil
	}
	if base, err = coverage.Union(base, more); err != nil {
		return nil, err
	}
	if lost.Entities() > 0 {
		if base, err = coverage.Subtract(base, lost); err != nil {
			return nil, err
		}
	}
	return coverage.NewMerged(base, nil), nil
}

// union returns the coverage of files.
func (t *Table) union(ctx context.Context, s *snapshot.Snapshot, files []*snapshot.File) (*coverage.Set, error) {
	sets := make([]*coverage.Set, 0, len(files))
	for _, f := range files {
		if f.Rows == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x, err := t.files.Index(ctx, s, f)
		if err != nil {
			return nil, err
		}
		sets = append(sets, x.Coverage)
	}
	if len(sets) == 1 {
		return sets[0], nil
	}
	return coverage.Union(sets...)
}

// lost returns the pairs that went with the removed files: those that no file
// of the version has. Two files have a pair in common only where uniqueness is
// none, but nothing depends on that here. Files whose bounds do not meet the
// pairs in question are not looked at, so dropping the oldest or the newest
// files, or replacing some by others with the same keys, reads little.
func (t *Table) lost(ctx context.Context, s *snapshot.Snapshot, c *change, added *coverage.Set) (*coverage.Set, error) {
	if len(c.removed) == 0 {
		return &coverage.Set{}, nil
	}
	gone := make([]*snapshot.File, 0, len(c.removed))
	for path := range c.removed {
		gone = append(gone, &snapshot.File{Path: path, Rows: -1})
	}
	lost, err := t.union(ctx, s, gone)
	if err != nil {
		return nil, err
	}
	if lost, err = coverage.Subtract(lost, added); err != nil {
		return nil, err
	}
	for _, f := range slices.Backward(c.kept) {
		first, last, any := hull(lost)
		if !any {
			break
		}
		low, _ := s.Domain.Bounds(first)
		_, high := s.Domain.Bounds(last)
		if f.Rows == 0 || !f.Meets(low, high) {
			continue
		}
		x, err := t.files.Index(ctx, s, f)
		if err != nil {
			return nil, err
		}
		if lost, err = coverage.Subtract(lost, x.Coverage); err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// hull returns the lowest and the highest interval of a set; any is false for
// an empty one.
func hull(s *coverage.Set) (first, last uint64, any bool) {
	first = ^uint64(0)
	for i := range s.Entities() {
		first, last, any = min(first, s.First(i)), max(last, s.Last(i)), true
	}
	return first, last, any
}
