package scan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tableerr"
)

// UnsortedBytes bounds what a scan holds of files that another writer has left
// unsorted, which it sorts in memory. It is a variable for tests.
var UnsortedBytes int64 = 256 << 20

// sortedRowBytes is what a row of such a file takes beside its values: its place,
// and the run that copies it.
const sortedRowBytes = 32

// view is an unsorted file as if it were sorted by (entity, index): its runs, and
// cursors of it, count its rows in that order. It is immutable.
type view struct {
	directory derived.Directory
	order     []int32 // the file's row at each place
}

// viewOf returns the view of an unsorted file, which it makes at the first call.
// UNSUPPORTED where the scan's unsorted files are too large, or for a scan that
// goes down the index.
func (p *Plan) viewOf(ctx context.Context, f *snapshot.File) (*view, error) {
	p.viewing.Lock()
	defer p.viewing.Unlock()
	if v := p.views[f]; v != nil {
		return v, nil
	}
	rows, err := p.rowsOf(ctx, f)
	if err != nil {
		return nil, err
	}
	names := append(slices.Clone(p.query.columns), p.query.filter.Columns()...)
	bytes := rows * (sortedRowBytes + p.widthOf(names, float64(f.Add.Size)/float64(max(rows, 1))))
	if p.query.newest {
		return nil, unsorted(f, "newest_first does not sort it")
	}
	if bytes > UnsortedBytes-p.viewed {
		return nil, unsorted(f, tooMuch)
	}
	v, err := p.sort(ctx, f)
	if err != nil {
		return nil, err
	}
	if p.views == nil {
		p.views = map[*snapshot.File]*view{}
	}
	p.views[f] = v
	p.viewed += bytes
	return v, nil
}

// viewIfAny returns the view of a file, nil for one that is sorted.
func (p *Plan) viewIfAny(f *snapshot.File) *view {
	p.viewing.Lock()
	defer p.viewing.Unlock()
	return p.views[f]
}

// tooMuch is why a file is refused whose rows find no room.
const tooMuch = "there is more of such files than a scan sorts in memory"

func unsorted(f *snapshot.File, why string) error {
	return &tableerr.Unsupported{Feature: "unsorted data files", Path: f.Path,
		Msg: "a data file is not sorted by entity and index, and " + why + ": scan with \"order\":\"unordered\" and without entities, start and end, or rewrite it with optimize"}
}

// sort reads the keys of a file and puts its rows in order; equal ones stay in
// the order in which they lie.
func (p *Plan) sort(ctx context.Context, f *snapshot.File) (*view, error) {
	file, err := p.data.Open(ctx, p.snap, f)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	coder := entitykey.NewCoder(p.snap.Layout)
	var codes []uint32
	var ordinals []uint64
	def := p.snap.Def
	fields := snapshot.StorageFields(def, append(slices.Clone(def.EntityColumns), def.IndexColumn))
	err = file.Each(ctx, datafile.ReadRequest{Fields: fields}, func(first int64, batch arrow.RecordBatch) (err error) {
		columns := batch.Columns()
		index := len(columns) - 1
		if codes, err = coder.AppendCodes(codes, columns[:index], int(batch.NumRows())); err == nil {
			ordinals, err = p.snap.Domain.AppendOrdinals(ordinals, columns[index])
		}
		if err != nil {
			return &tableerr.Corrupt{Path: f.Path, Msg: fmt.Sprintf("its key columns, from row %d on: %v", first, err), Cause: err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v := &view{order: make([]int32, len(codes))}
	for row := range v.order {
		v.order[row] = int32(row)
	}
	ranks := coder.Ranks()
	slices.SortFunc(v.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(ranks[codes[a]], ranks[codes[b]]), cmp.Compare(ordinals[a], ordinals[b]), cmp.Compare(a, b))
	})
	for place, row := range v.order {
		if place == 0 || codes[row] != codes[v.order[place-1]] {
			v.directory = append(v.directory, derived.Run{Key: coder.Key(codes[row]), Start: int64(place), First: ordinals[row]})
		}
		run := &v.directory[len(v.directory)-1]
		run.End, run.Last = int64(place)+1, ordinals[row]
	}
	return v, nil
}

// read returns all rows of the file in order, with the given fields. room is how
// many bytes more the reader may hold, and is lessened by what the rows take;
// UNSUPPORTED where it is not enough.
func (v *view) read(ctx context.Context, mem memory.Allocator, f *snapshot.File, file *filecache.File, fields []arrow.Field, room *int64) (arrow.RecordBatch, error) {
	var sources []arrow.RecordBatch
	var starts []int
	defer func() {
		for _, s := range sources {
			s.Release()
		}
	}()
	err := file.Each(ctx, datafile.ReadRequest{Fields: fields}, func(first int64, batch arrow.RecordBatch) error {
		batch.Retain()
		sources, starts = append(sources, batch), append(starts, int(first))
		if *room -= batchBytes(batch) + batch.NumRows()*sortedRowBytes; *room < 0 {
			return unsorted(f, tooMuch)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	runs := v.copies(starts)
	columns := make([]arrow.Array, 0, len(fields))
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	parts := make([]arrow.Array, len(sources))
	for i := range fields {
		for k, s := range sources {
			parts[k] = s.Column(i)
		}
		column, err := assemble.Array(mem, parts, runs)
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(len(v.order))), nil
}

// copies says which rows of batches, which begin at the given rows of the file,
// make up the order.
func (v *view) copies(starts []int) []assemble.Run {
	var runs []assemble.Run
	for _, row := range v.order {
		source := sort.SearchInts(starts, int(row)+1) - 1
		at := int(row) - starts[source]
		if n := len(runs); n > 0 && runs[n-1].Source == source && runs[n-1].Start+runs[n-1].Len == at {
			runs[n-1].Len++
			continue
		}
		runs = append(runs, assemble.Run{Source: source, Start: at, Len: 1})
	}
	return runs
}
