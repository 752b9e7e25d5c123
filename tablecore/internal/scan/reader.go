package scan

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/datafile"
)

const (
	// maxOpenFiles bounds the data files a scan keeps open at a time.
	maxOpenFiles = 64
	// blockBytes is about how much is decoded before it is put in order.
	blockBytes = 16 << 20
	// maxBlockRows bounds the rows of a block.
	maxBlockRows = 128 << 10
)

// Reader is the stream of a plan's batches. It belongs to one goroutine and
// must be released.
type Reader struct {
	plan    *Plan
	units   []unit // not begun yet
	left    piece  // what remains of a unit that was begun
	merging *merger
	cursors map[int]*cursor
	recent  []int // files of open cursors, the last used one last
	block   int64 // rows of a block
	pending []arrow.RecordBatch
	current arrow.RecordBatch
	stats   Stats
}

// Open begins to run the plan's split. It reads the entity directories of the
// files; the rows are read as Next asks for them.
func (p *Plan) Open(ctx context.Context) (*Reader, error) {
	units, err := p.units(ctx)
	if err != nil {
		return nil, err
	}
	units = split(units, p.query.split.Index, p.query.split.Count, p.rowBytes)
	r := &Reader{plan: p, units: units, cursors: map[int]*cursor{}, block: p.blockRows()}
	for _, u := range units {
		for _, piece := range u.pieces {
			c := r.cursors[piece.file]
			if c == nil {
				c = p.cursor(p.files[piece.file], p.query.columns, nil, DefaultBatchRows)
				r.cursors[piece.file] = c
			}
			c.want(piece.start, piece.end)
		}
	}
	return r, r.count(ctx)
}

// want adds rows behind those that are wanted already.
func (c *cursor) want(start, end int64) {
	if n := len(c.ranges); n > 0 && c.ranges[n-1].End == start {
		c.ranges[n-1].End = end
		return
	}
	c.ranges = append(c.ranges, datafile.RowRange{Start: start, End: end})
}

// blockRows is how many rows are put in order at a time.
func (p *Plan) blockRows() int64 {
	widest := 1.0
	for i := range p.files {
		widest = max(widest, p.rowBytes(i))
	}
	return min(maxBlockRows, max(1024, int64(blockBytes/widest)))
}

// count fills in what is known before the first row.
func (r *Reader) count(ctx context.Context) error {
	r.stats.Files = int64(len(r.cursors))
	r.stats.FilesSkipped = int64(len(r.plan.snap.Files)) - r.stats.Files
	for i, c := range r.cursors {
		groups, err := r.plan.data.RowGroups(ctx, r.plan.snap, r.plan.files[i])
		if err != nil {
			return err
		}
		ranges := coalesce(c.ranges)
		for _, g := range groups {
			for len(ranges) > 0 && ranges[0].End <= g.FirstRow {
				ranges = ranges[1:]
			}
			if len(ranges) > 0 && ranges[0].Start < g.FirstRow+g.Rows {
				r.stats.RowGroups++
			} else {
				r.stats.RowGroupsSkipped++
			}
		}
	}
	return nil
}

// Stats returns the counts so far.
func (r *Reader) Stats() Stats { return r.stats }

// Next returns the next batch, or io.EOF. The batch is valid until the next
// call of Next or Release.
func (r *Reader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	r.drop()
	for len(r.pending) == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.fill(ctx); err != nil {
			return nil, err
		}
	}
	r.current = r.pending[0]
	r.pending = r.pending[1:]
	r.stats.Rows += r.current.NumRows()
	r.stats.Bytes += batchBytes(r.current)
	return r.current, nil
}

func (r *Reader) drop() {
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
}

// Release gives back everything the reader holds.
func (r *Reader) Release() {
	r.drop()
	for _, b := range r.pending {
		b.Release()
	}
	r.pending = nil
	if r.merging != nil {
		r.merging.close()
	}
	for _, c := range r.cursors {
		c.close()
	}
}

// fill puts the next block of rows in order and makes batches of it.
func (r *Reader) fill(ctx context.Context) error {
	order, err := r.order(ctx)
	if err != nil {
		return err
	}
	if len(order) == 0 {
		return io.EOF
	}
	need := map[int]int64{}
	for _, run := range order {
		need[run.file] += run.n
	}
	var sources []arrow.RecordBatch
	byFile := map[int][]sourced{}
	defer func() {
		for _, s := range sources {
			s.Release()
		}
	}()
	for file, n := range need {
		segments, err := r.take(ctx, file, n)
		for _, s := range segments {
			byFile[file] = append(byFile[file], sourced{len(sources), s})
			sources = append(sources, s.batch)
		}
		if err != nil {
			return err
		}
	}
	return r.emit(sources, runsOf(order, byFile))
}

// sourced is a segment with the number of its batch among a block's sources.
type sourced struct {
	source int
	segment
}

// runsOf turns the order of files into runs of rows of their segments.
func runsOf(order []mergeRun, byFile map[int][]sourced) []assemble.Run {
	runs := make([]assemble.Run, 0, len(order))
	for _, o := range order {
		for o.n > 0 {
			s := &byFile[o.file][0]
			n := min(o.n, int64(s.len))
			if k := len(runs); k > 0 && runs[k-1].Source == s.source && runs[k-1].Start+runs[k-1].Len == s.start {
				runs[k-1].Len += int(n)
			} else {
				runs = append(runs, assemble.Run{Source: s.source, Start: s.start, Len: int(n)})
			}
			s.start += int(n)
			s.len -= int(n)
			o.n -= n
			if s.len == 0 {
				byFile[o.file] = byFile[o.file][1:]
			}
		}
	}
	return runs
}

// order decides from which file the rows of the next block come, in turn.
func (r *Reader) order(ctx context.Context) ([]mergeRun, error) {
	var order []mergeRun
	for room := r.block; room > 0; {
		run, err := r.nextRun(ctx, room)
		if err != nil {
			return nil, err
		}
		if run.n == 0 {
			break
		}
		room -= run.n
		if k := len(order); k > 0 && order[k-1].file == run.file {
			order[k-1].n += run.n
			continue
		}
		order = append(order, run)
	}
	return order, nil
}

// nextRun returns the next rows that come from one file, at most limit; n is 0
// at the end.
func (r *Reader) nextRun(ctx context.Context, limit int64) (mergeRun, error) {
	if r.merging != nil {
		run, err := r.merging.next(ctx, limit)
		if err != nil || run.n > 0 {
			return run, err
		}
		r.merging = nil
	}
	if r.left.rows() == 0 {
		if len(r.units) == 0 {
			return mergeRun{}, nil
		}
		u := r.units[0]
		r.units = r.units[1:]
		if len(u.pieces) > 1 {
			var err error
			if r.merging, err = newMerger(ctx, r.plan.snap.Domain, u, r.indexOf); err != nil {
				return mergeRun{}, err
			}
			return r.nextRun(ctx, limit)
		}
		r.left = u.pieces[0]
	}
	n := min(limit, r.left.rows())
	r.left.start += n
	return mergeRun{r.left.file, n}, nil
}

// indexOf reads the index values of a piece.
func (r *Reader) indexOf(p piece) *cursor {
	return r.plan.indexCursor(r.plan.files[p.file], []datafile.RowRange{{Start: p.start, End: p.end}})
}

// take reads the next rows of a file and keeps the number of open files small.
func (r *Reader) take(ctx context.Context, file int, n int64) ([]segment, error) {
	for i, f := range r.recent {
		if f == file {
			r.recent = append(r.recent[:i], r.recent[i+1:]...)
			break
		}
	}
	r.recent = append(r.recent, file)
	if len(r.recent) > maxOpenFiles {
		r.cursors[r.recent[0]].close()
		r.recent = r.recent[1:]
	}
	c := r.cursors[file]
	segments, err := c.take(ctx, n)
	if c.done() {
		c.close()
	}
	return segments, err
}

// done says whether every wanted row was taken.
func (c *cursor) done() bool {
	for _, r := range c.ranges {
		if r.Start < r.End {
			return false
		}
	}
	return true
}

// emit appends batches of at most batch_rows with the rows of runs.
func (r *Reader) emit(sources []arrow.RecordBatch, runs []assemble.Run) error {
	for len(runs) > 0 {
		var now []assemble.Run
		now, runs = firstRows(runs, r.plan.query.batchRows)
		batch, err := r.batch(sources, now)
		if err != nil {
			return err
		}
		r.pending = append(r.pending, batch)
	}
	return nil
}

// firstRows cuts runs after n rows.
func firstRows(runs []assemble.Run, n int) (first, rest []assemble.Run) {
	for i, run := range runs {
		if run.Len < n {
			n -= run.Len
			continue
		}
		first = append(runs[:i:i], assemble.Run{Source: run.Source, Start: run.Start, Len: n})
		rest = runs[i+1:]
		if run.Len > n {
			rest = append([]assemble.Run{{Source: run.Source, Start: run.Start + n, Len: run.Len - n}}, rest...)
		}
		return first, rest
	}
	return runs, nil
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
	for i, f := range output.Fields() {
		for k, s := range sources {
			parts[k] = s.Column(i)
		}
		stored, err := assemble.Array(r.plan.mem, parts, runs)
		if err != nil {
			return nil, err
		}
		column, err := convert.FromStorage(r.plan.mem, stored, f.Type)
		stored.Release()
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	return array.NewRecordBatch(output, columns, int64(assemble.Rows(runs))), nil
}
