package series

import (
	"context"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/lastvalue"
	"contrail/tablecore/internal/snapshot"
)

// stamped is the newest of the rows of a run that share its last index value.
type stamped struct {
	at    int64 // the row's number in the file
	stamp int64 // its insertion time
}

// stamps finds the newest rows of all contenders by insertion time, in tables
// that may hold equal index values; nil for others, where the last row is the
// newest.
func (n *newest) stamps(ctx context.Context) (map[contender]stamped, error) {
	if !ties(n.snap.Def) {
		return nil, nil
	}
	byFile := map[*snapshot.File][]contender{}
	for i := range n.best {
		for _, c := range n.best[i].runs {
			byFile[c.file] = append(byFile[c.file], c)
		}
	}
	out := map[contender]stamped{}
	for f, runs := range byFile {
		slices.SortFunc(runs, func(a, b contender) int { return int(a.run.Start - b.run.Start) })
		if err := n.stampsOf(ctx, f, runs, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// tieLook is how many rows at the end of a run are looked at first, tieGrowth by
// how much more where all of them are equal.
const (
	tieLook   = 2
	tieGrowth = 16
)

// stampsOf looks at the ends of ascending runs of one file.
func (n *newest) stampsOf(ctx context.Context, f *snapshot.File, runs []contender, out map[contender]stamped) error {
	for look := int64(tieLook); len(runs) > 0; look *= tieGrowth {
		var longer []contender
		ranges := make([]datafile.RowRange, len(runs))
		for i, c := range runs {
			ranges[i] = datafile.RowRange{Start: max(c.run.Start, c.run.End-look), End: c.run.End}
		}
		ordinals, stamps, err := n.keyValues(ctx, f, ranges)
		if err != nil {
			return err
		}
		for i, c := range runs {
			size := int(ranges[i].End - ranges[i].Start)
			values, times := ordinals[:size], stamps[:size]
			ordinals, stamps = ordinals[size:], stamps[size:]
			first := sort.Search(size, func(k int) bool { return values[k] >= values[size-1] })
			if first == 0 && ranges[i].Start > c.run.Start {
				longer = append(longer, c)
				continue
			}
			best := first
			for k := first; k < size; k++ {
				if times[k] >= times[best] {
					best = k
				}
			}
			out[c] = stamped{ranges[i].Start + int64(best), times[best]}
		}
		runs = longer
	}
	return nil
}

// keyValues reads the index and the insertion times of rows of a file.
func (n *newest) keyValues(ctx context.Context, f *snapshot.File, ranges []datafile.RowRange) (ordinals []uint64, stamps []int64, err error) {
	def := n.snap.Def
	names := []string{def.IndexColumn}
	if def.IngestTimeColumn != "" && def.Stored.HasField(def.IngestTimeColumn) {
		names = append(names, def.IngestTimeColumn)
	}
	err = n.t.read(ctx, n.snap, f.Path, snapshot.StorageFields(def, names), ranges, func(b arrow.RecordBatch) error {
		if ordinals, err = n.snap.Domain.AppendOrdinals(ordinals, b.Column(0)); err != nil {
			return err
		}
		var times arrow.Array
		if len(names) > 1 {
			times = b.Column(1)
		}
		for i := range int(b.NumRows()) {
			stamps = append(stamps, stampOf(times, i))
		}
		return nil
	})
	return ordinals, stamps, err
}

// stampOf is the insertion time of a row in its column, which is nil where
// there is none.
func stampOf(times arrow.Array, row int) int64 {
	if times == nil || times.IsNull(row) {
		return lastvalue.NoStamp
	}
	switch c := times.(type) {
	case *array.Timestamp:
		return int64(c.Value(row))
	case *array.Int64: // nanoseconds
		return c.Value(row)
	}
	return lastvalue.NoStamp
}
