package series

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/lastvalue"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// errTooWide says that values are more than may be kept.
var errTooWide = errors.New("the values are more than is kept")

// read reads rows of a file and gives their batches to yield, which borrows
// them.
func (t *Table) read(ctx context.Context, s *snapshot.Snapshot, path string, fields []arrow.Field, ranges []datafile.RowRange, yield func(arrow.RecordBatch) error) (err error) {
	file, err := t.files.Open(ctx, s, &snapshot.File{Path: path})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return file.Each(ctx, datafile.ReadRequest{Fields: fields, Ranges: ranges, Join: true},
		func(_ int64, batch arrow.RecordBatch) error { return yield(batch) })
}

// Fetch reads fields of rows that are given by key: runs of the batches make
// them up in that order. The caller releases the batches, also after an error.
// More bytes than limit, if it is not 0, is an error.
func (t *Table) Fetch(ctx context.Context, s *snapshot.Snapshot, fields []arrow.Field, rows []lastvalue.Row, limit int64) (batches []arrow.RecordBatch, runs []assemble.Run, err error) {
	order := make([]int, len(rows)) // by file and place in it
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rows[a].Path, rows[b].Path), cmp.Compare(rows[a].At, rows[b].At))
	})
	type place struct{ batch, at int }
	places := make([]place, len(rows))
	size := int64(0)
	for from := 0; from < len(order); {
		path := rows[order[from]].Path
		to := from
		var ranges []datafile.RowRange
		for ; to < len(order) && rows[order[to]].Path == path; to++ {
			at := rows[order[to]].At
			ranges = append(ranges, datafile.RowRange{Start: at, End: at + 1})
		}
		next := from
		err := t.read(ctx, s, path, fields, ranges, func(b arrow.RecordBatch) error {
			b.Retain()
			for i := range int(b.NumRows()) {
				places[order[next]] = place{len(batches), i}
				next++
			}
			batches = append(batches, b)
			if size += lastvalue.ValueBytes(b); limit > 0 && size > limit {
				return errTooWide
			}
			return nil
		})
		if err != nil {
			return batches, nil, err
		}
		from = to
	}
	for _, p := range places {
		runs = lastvalue.AppendRun(runs, p.batch, p.at)
	}
	return batches, runs, nil
}

// block makes a block of rows, with all their values unless they are more than
// limit bytes.
func (t *Table) block(ctx context.Context, s *snapshot.Snapshot, rows []lastvalue.Row, limit int64) (*lastvalue.Block, error) {
	block := &lastvalue.Block{Rows: rows}
	if limit <= 0 || len(rows) == 0 {
		return block, nil
	}
	batches, runs, err := t.Fetch(ctx, s, tabledef.StorageSchema(s.Def.Stored).Fields(), rows, limit)
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	if errors.Is(err, errTooWide) || errors.Is(err, assemble.ErrTooLarge) {
		return block, nil
	}
	if err != nil {
		return nil, err
	}
	if block.Values, err = lastvalue.Gather(batches, runs); errors.Is(err, assemble.ErrTooLarge) {
		return block, nil
	}
	return block, err
}

func sameType(a, b arrow.Field) bool { return arrow.TypeEqual(a.Type, b.Type) }
