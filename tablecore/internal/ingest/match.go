package ingest

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tableerr"
)

// matcher finds the rows of a committed file that lie in an append's intervals.
type matcher struct {
	snapshot *snapshot.Snapshot
	mine     *coverage.Set
	path     string

	keep []datafile.RowRange // the other rows, as far as it has come
	next int64               // the row behind them
	gone int64

	ordinals, ids []uint64
}

// matchGap is how many rows of other entities are read rather than stepped over.
const matchGap = 4096

// drop takes a row out, one behind all that were taken out before.
func (m *matcher) drop(row int64) {
	m.keepUpTo(row)
	m.next = row + 1
	m.gone++
}

// keepUpTo keeps the rows before one.
func (m *matcher) keepUpTo(row int64) {
	if row > m.next {
		m.keep = append(m.keep, datafile.RowRange{Start: m.next, End: row})
		m.next = row
	}
}

// sorted goes through a file that has a directory. It reads no more than the
// index values of the append's entities.
func (m *matcher) sorted(ctx context.Context, file *datafile.File, directory derived.Directory) error {
	var runs []derived.Run
	var probes []*coverage.Probe
	var ranges []datafile.RowRange
	for _, r := range directory {
		i, found := m.mine.Find(r.Key)
		if !found {
			continue
		}
		runs, probes = append(runs, r), append(probes, m.mine.Probe(i))
		if last := len(ranges) - 1; last >= 0 && r.Start-ranges[last].End <= matchGap {
			ranges[last].End = r.End
		} else {
			ranges = append(ranges, datafile.RowRange{Start: r.Start, End: r.End})
		}
	}
	at := 0
	fields := snapshot.StorageFields(m.snapshot.Def, []string{m.snapshot.Def.IndexColumn})
	return m.read(ctx, file, datafile.ReadRequest{Fields: fields, Ranges: ranges}, func(first int64, _ arrow.RecordBatch) error {
		for i, id := range m.ids {
			row := first + int64(i)
			for row >= runs[at].End {
				at++
			}
			if row >= runs[at].Start && probes[at].Has(id) {
				m.drop(row)
			}
		}
		return nil
	})
}

// unsorted goes through a file in any order, such as other software writes.
func (m *matcher) unsorted(ctx context.Context, file *datafile.File) error {
	def := m.snapshot.Def
	fields := snapshot.StorageFields(def, append(slices.Clone(def.EntityColumns), def.IndexColumn))
	encoder := entitykey.NewEncoder(m.snapshot.Layout)
	return m.read(ctx, file, datafile.ReadRequest{Fields: fields}, func(first int64, batch arrow.RecordBatch) error {
		keys, err := encoder.Encode(batch.Columns()[:len(def.EntityColumns)], int(batch.NumRows()))
		if err != nil {
			return err
		}
		for i, id := range m.ids {
			if m.mine.Contains(string(keys.Key(i)), id) {
				m.drop(first + int64(i))
			}
		}
		return nil
	})
}

// read calls do for batches whose last column is the index, with their interval
// ids at hand. Errors of do tell of damage.
func (m *matcher) read(ctx context.Context, file *datafile.File, request datafile.ReadRequest, do func(first int64, batch arrow.RecordBatch) error) error {
	return file.Each(ctx, request, func(first int64, batch arrow.RecordBatch) (err error) {
		m.ordinals, err = m.snapshot.Domain.AppendOrdinals(m.ordinals[:0], batch.Column(int(batch.NumCols())-1))
		if err == nil {
			m.ids = slices.Grow(m.ids[:0], len(m.ordinals))[:len(m.ordinals)]
			m.snapshot.Domain.IDs(m.ids, m.ordinals)
			err = do(first, batch)
		}
		if err != nil {
			return &tableerr.Corrupt{Path: m.path, Msg: fmt.Sprintf("its key columns, from row %d on: %v", first, err), Cause: err}
		}
		return nil
	})
}
