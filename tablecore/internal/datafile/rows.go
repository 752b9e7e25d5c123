package datafile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/tableerr"
)

// Rows iterates over the batches of one ReadRequest. It belongs to one
// goroutine and must be released.
type Rows struct {
	file    *File
	schema  *arrow.Schema
	columns []*node
	leaves  []*leafReader

	ranges    []RowRange // what is still to be read
	join      bool
	batchRows int64

	batch    arrow.RecordBatch
	firstRow int64
	group    int // row group read last, -1 before the first
	groups   int
}

// newRows plans the reading of fields. The columns of a field are those of the
// top-level field of the same name.
func newRows(f *File, req ReadRequest, ranges []RowRange) (rows *Rows, err error) {
	defer recovered(f.path, &err)
	rows = &Rows{file: f, schema: arrow.NewSchema(req.Fields, nil), ranges: ranges, join: req.Join, group: -1}
	defer func() {
		if err != nil {
			rows.Release()
			err = damaged(f.path, err)
		}
	}()
	for _, field := range req.Fields {
		found := f.footer.schema.FieldIndices(field.Name)
		switch {
		case len(found) > 1:
			return rows, fmt.Errorf("column %q occurs twice", field.Name)
		case len(found) == 0 && !field.Nullable:
			return rows, errMissing(field.Name)
		case len(found) == 0:
			rows.columns = append(rows.columns, &node{field: field, mem: f.mem})
			continue
		}
		column, err := rows.newNode(field, &f.footer.fields[found[0]], false)
		if err != nil {
			return rows, err
		}
		rows.columns = append(rows.columns, column)
	}
	width := int64(1)
	for _, l := range rows.leaves {
		width += int64(max(8, l.info.width))
	}
	rows.batchRows = max(1, min(int64(req.BatchRows), DefaultBatchBytes/width))
	return rows, nil
}

// Schema returns the schema of every batch: the fields asked for.
func (r *Rows) Schema() *arrow.Schema { return r.schema }

// FirstRow returns the number in the file of the first row of the batch that
// Next returned last.
func (r *Rows) FirstRow() int64 { return r.firstRow }

// RowGroupsRead returns the number of row groups touched so far.
func (r *Rows) RowGroupsRead() int { return r.groups }

// Next returns the next batch, or io.EOF. The batch is valid until the next
// call of Next or Release; Retain it to keep it longer.
func (r *Rows) Next(ctx context.Context) (batch arrow.RecordBatch, err error) {
	defer recovered(r.file.path, &err)
	r.dropBatch()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for len(r.ranges) > 0 && r.ranges[0].Start == r.ranges[0].End {
		r.ranges = r.ranges[1:]
	}
	if len(r.ranges) == 0 {
		return nil, io.EOF
	}
	for {
		pieces, n := r.nextPieces()
		err := r.readPieces(pieces)
		if errors.Is(err, errBatchFull) {
			if n == 1 {
				return nil, errRowTooLarge(r.file.path, pieces[0].Start)
			}
			r.shrink(n)
			continue
		}
		if err == nil {
			err = r.assemble(n)
		}
		if err != nil {
			return nil, damaged(r.file.path, err)
		}
		r.firstRow = pieces[0].Start
		r.consume(pieces)
		return r.batch, nil
	}
}

func errRowTooLarge(path string, row int64) error {
	return &tableerr.MessageTooLarge{
		LimitBytes: math.MaxInt32,
		Msg:        fmt.Sprintf("row %d of %q is larger than one Arrow array can hold", row, path),
	}
}

// nextPieces returns the row ranges of the next batch and their length.
func (r *Rows) nextPieces() (pieces []RowRange, n int64) {
	for _, want := range r.ranges {
		k := min(want.End-want.Start, r.batchRows-n)
		if k > 0 {
			pieces = append(pieces, RowRange{want.Start, want.Start + k})
			n += k
		}
		if n == r.batchRows || !r.join {
			break
		}
	}
	return pieces, n
}

// consume takes pieces off the ranges still to be read.
func (r *Rows) consume(pieces []RowRange) {
	for _, p := range pieces {
		for r.ranges[0].Start == r.ranges[0].End {
			r.ranges = r.ranges[1:]
		}
		r.ranges[0].Start = p.End
	}
}

// shrink makes batches smaller after one of n rows was too long.
func (r *Rows) shrink(n int64) {
	r.batchRows = max(1, n/4)
	for _, l := range r.leaves {
		l.reset()
		l.group = -1 // the leaf stands inside a run that was read in part
	}
}

// readPieces makes every leaf read the rows of pieces.
func (r *Rows) readPieces(pieces []RowRange) error {
	total := 0
	for _, p := range pieces {
		total += int(p.End - p.Start)
	}
	goesOn := r.aheadOf(pieces[len(pieces)-1].End)
	r.countGroups(pieces)
	for _, l := range r.leaves {
		l.values.reserve(total)
		for i, p := range pieces {
			ahead := p.End
			if i == len(pieces)-1 {
				ahead = goesOn
			}
			if err := r.readPiece(l, p, ahead); err != nil {
				return fmt.Errorf("column %q: %w", l.info.path, err)
			}
		}
	}
	return nil
}

// readPiece makes a leaf read a range of rows, which may span row groups. Rows
// up to ahead will be wanted later.
func (r *Rows) readPiece(l *leafReader, p RowRange, ahead int64) error {
	groups := r.file.footer.rowGroups
	for i := r.groupOf(p.Start); p.Start < p.End; i++ {
		g := groups[i]
		if g.Rows == 0 {
			continue
		}
		end := min(p.End, g.FirstRow+g.Rows)
		limit := min(ahead, g.FirstRow+g.Rows)
		if err := l.seek(i, p.Start-g.FirstRow, limit-g.FirstRow); err != nil {
			return err
		}
		if err := l.read(int(end - p.Start)); err != nil {
			return err
		}
		p.Start = end
	}
	return nil
}

// aheadOf returns the end of the range that goes on after row last, so that a
// scan reads whole stretches of the file and a point read only its pages.
func (r *Rows) aheadOf(last int64) int64 {
	for _, want := range r.ranges {
		if want.Start < last && last <= want.End {
			return want.End
		}
	}
	return last
}

// groupOf returns the row group that holds a row.
func (r *Rows) groupOf(row int64) int {
	groups := r.file.footer.rowGroups
	low, high := 0, len(groups)-1
	for low < high {
		mid := (low + high) / 2
		if row >= groups[mid].FirstRow+groups[mid].Rows {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

func (r *Rows) countGroups(pieces []RowRange) {
	for _, p := range pieces {
		for g := r.groupOf(p.Start); g <= r.groupOf(p.End-1); g++ {
			if g > r.group {
				r.group = g
				r.groups++
			}
		}
	}
}

// assemble makes the batch of what the leaves have read.
func (r *Rows) assemble(n int64) error {
	columns := make([]arrow.Array, 0, len(r.columns))
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for _, c := range r.columns {
		data, err := c.build(int(n))
		if err != nil {
			return err
		}
		columns = append(columns, array.MakeFromData(data))
		data.Release()
	}
	for _, l := range r.leaves {
		l.reset() // a leaf that only gave its levels still has its values
	}
	r.batch = array.NewRecordBatch(r.schema, columns, n)
	return nil
}

func (r *Rows) dropBatch() {
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
}

// Release frees the current batch and all working memory. Next must not be
// called any more.
func (r *Rows) Release() {
	r.dropBatch()
	for _, l := range r.leaves {
		l.release()
	}
	r.leaves, r.columns, r.ranges = nil, nil, nil
}
