package scan

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/assemble"
)

// block gathers rows in the order in which they are given out.
type block struct {
	sources []arrow.RecordBatch // held
	runs    []assemble.Run
	rows    int64 // in runs
	held    int64 // rows of sources that no cursor needs any more
}

func (b *block) release() {
	for _, s := range b.sources {
		s.Release()
	}
}

// add appends rows of a batch.
func (b *block) add(source, at, n int) {
	b.rows += int64(n)
	if k := len(b.runs); k > 0 && b.runs[k-1].Source == source && b.runs[k-1].Start+b.runs[k-1].Len == at {
		b.runs[k-1].Len += n
		return
	}
	b.runs = append(b.runs, assemble.Run{Source: source, Start: at, Len: n})
}

// fill makes the next batches, none where a whole block was filtered out.
func (r *Reader) fill(ctx context.Context) error {
	if r.newest != nil {
		return r.newest.fill(ctx)
	}
	r.blocks++
	b := &block{}
	defer b.release()
	for b.rows < r.block && b.held < maxHeldRows && r.limit != 0 {
		more, err := r.step(ctx, b)
		if err != nil {
			return err
		}
		if !more {
			r.done = true
			break
		}
		if r.goesAlone(b) {
			break
		}
	}
	r.done = r.done || r.limit == 0
	return r.emit(b)
}

// goesAlone says that a block is the end of a batch, long enough to go out as it
// is: whatever follows lies in another one.
func (r *Reader) goesAlone(b *block) bool {
	if len(b.runs) != 1 || b.runs[0].Len < r.most/longRun {
		return false
	}
	run := b.runs[0]
	return int64(run.Start+run.Len) == b.sources[run.Source].NumRows()
}

// step adds the next run of rows to a block; false at the end of the scan.
func (r *Reader) step(ctx context.Context, b *block) (bool, error) {
	if r.merging != nil {
		c, at, n := r.merging.next(int(r.block - b.rows))
		if n > 0 {
			r.give(b, c, at, n)
			return true, r.merging.take(ctx, n)
		}
		r.merging = nil
	}
	if r.left.start < r.left.end {
		c := r.cursorOf(r.left.file)
		at, n, err := c.peek(ctx, r.left.end)
		if err != nil {
			return false, err
		}
		if n > 0 {
			if c.filter == nil {
				n = min(n, int(r.block-b.rows))
			}
			r.give(b, c, at, n)
			c.take(n)
			return true, nil
		}
		r.left = piece{}
	}
	if !r.part.next() {
		return false, nil
	}
	if u := r.part.unit; len(u.pieces) > 1 {
		r.merging = &merger{domain: r.plan.snap.Domain, index: r.index, waiting: u.pieces, cursorOf: r.cursorOf}
		return true, r.merging.admit(ctx)
	}
	r.left = r.part.unit.pieces[0]
	return true, nil
}

// give adds those of n rows of a cursor's batch that pass the filter, as far as
// the limit allows.
func (r *Reader) give(b *block, c *cursor, at, n int) {
	if c.filter == nil {
		r.put(b, c, at, n)
		return
	}
	for end := at + n; at < end; {
		if !c.mask[at] {
			at++
			continue
		}
		from := at
		for at < end && c.mask[at] {
			at++
		}
		r.put(b, c, from, at-from)
	}
}

func (r *Reader) put(b *block, c *cursor, at, n int) {
	if r.limit >= 0 {
		n = int(min(int64(n), r.limit))
		r.limit -= int64(n)
	}
	if n == 0 {
		return
	}
	if c.block != r.blocks {
		c.block, c.source = r.blocks, len(b.sources)
		c.batch.Retain()
		b.sources = append(b.sources, c.batch)
		if c.entered == r.blocks { // the batch before it would be gone but for the block
			b.held += c.batch.NumRows()
		}
		c.entered = r.blocks
	}
	b.add(c.source, at, n)
}

// emit appends batches of at most batch_rows with the rows of a block. Long runs
// become batches of their own, because then nothing is copied.
func (r *Reader) emit(b *block) error {
	most := r.most
	alone := max(1, most/longRun)
	var now []assemble.Run
	room := most
	flush := func() error {
		if len(now) == 0 {
			return nil
		}
		batches, err := r.fitting(b.sources, now)
		if err != nil {
			return err
		}
		r.pending = append(r.pending, batches...)
		now, room = now[:0], most
		return nil
	}
	for _, run := range b.runs {
		for run.Len > 0 {
			if run.Len >= alone && len(now) > 0 || room == 0 {
				if err := flush(); err != nil {
					return err
				}
			}
			n := min(run.Len, room)
			now = append(now, assemble.Run{Source: run.Source, Start: run.Start, Len: n})
			room -= n
			run.Start, run.Len = run.Start+n, run.Len-n
			if n >= alone {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// batch assembles one batch and gives its columns their output types.
func (r *Reader) batch(sources []arrow.RecordBatch, runs []assemble.Run) (arrow.RecordBatch, error) {
	output := r.plan.query.output
	columns := make([]arrow.Array, 0, output.NumFields())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	parts := make([]arrow.Array, len(sources))
	for i := range output.Fields() {
		for k, s := range sources {
			parts[k] = s.Column(i)
		}
		stored, err := assemble.Array(r.plan.data.Allocator(), parts, runs)
		if err != nil {
			return nil, err
		}
		column, err := r.plan.query.give(r.plan.mem, stored, i)
		stored.Release()
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	return array.NewRecordBatch(output, columns, int64(assemble.Rows(runs))), nil
}
