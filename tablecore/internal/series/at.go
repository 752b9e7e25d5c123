package series

import (
	"context"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/lastvalue"
	"contrail/tablecore/internal/snapshot"
)

// NewestAt returns the newest rows at or before an ordinal, by key, of the
// entities in only, or of all if it is nil. Of a data file that the ordinal
// lies in the middle of it reads the index column of the runs concerned; nothing
// is kept. Errors are those of Newest.
func (t *Table) NewestAt(ctx context.Context, s *snapshot.Snapshot, at uint64, only map[string]struct{}) ([]lastvalue.Row, error) {
	n := newNewest(t, s)
	partial := map[*snapshot.File][]derived.Run{}
	for _, f := range s.Files {
		if f.Min > at {
			continue
		}
		err := n.each(ctx, f, only, func(run derived.Run) {
			switch {
			case run.Last <= at:
				n.enter(f, run)
			case run.First <= at:
				partial[f] = append(partial[f], run)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for _, f := range s.Files {
		if len(partial[f]) == 0 {
			continue
		}
		if err := n.cut(ctx, f, partial[f], at); err != nil {
			return nil, err
		}
	}
	return n.settle(ctx)
}

// cut enters the parts of a file's runs that lie at or before an ordinal. Each
// run has a row there.
func (n *newest) cut(ctx context.Context, f *snapshot.File, runs []derived.Run, at uint64) error {
	slices.SortFunc(runs, func(a, b derived.Run) int { return int(a.Start - b.Start) })
	ranges := make([]datafile.RowRange, len(runs))
	for i, run := range runs {
		ranges[i] = datafile.RowRange{Start: run.Start, End: run.End}
		runs[i].End = run.Start // grows as rows are found
	}
	var values []uint64
	i, row := 0, ranges[0].Start // the next row
	fields := snapshot.StorageFields(n.snap.Def, []string{n.snap.Def.IndexColumn})
	err := n.t.read(ctx, n.snap, f.Path, fields, ranges, func(b arrow.RecordBatch) (err error) {
		if values, err = n.snap.Domain.AppendOrdinals(values[:0], b.Column(0)); err != nil {
			return err
		}
		for rest := values; len(rest) > 0; {
			size := min(int64(len(rest)), ranges[i].End-row)
			found := sort.Search(int(size), func(k int) bool { return rest[k] > at })
			if found > 0 {
				runs[i].End, runs[i].Last = row+int64(found), rest[found-1]
			}
			rest, row = rest[size:], row+size
			if row == ranges[i].End && i+1 < len(ranges) {
				i++
				row = ranges[i].Start
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.Start < run.End {
			n.enter(f, run)
		}
	}
	return nil
}
