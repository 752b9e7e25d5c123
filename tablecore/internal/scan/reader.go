package scan

import (
	"context"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/filecache"
)

const (
	// maxOpenFiles bounds the data files a scan keeps open at a time.
	maxOpenFiles = 64
	// decodeBytes is about how much the batches of all files that a scan reads
	// side by side may hold.
	decodeBytes = 64 << 20
	// minBatchRows is the least that is decoded of a file at once.
	minBatchRows = 64
	// targetBytes is about what a batch holds. A server sends it as one message,
	// with its caches still warm.
	targetBytes = 1 << 20
	// rowsPerFile is how many rows of each of the files that are read side by side
	// are put in order at a time, within blockBytes.
	rowsPerFile = 1 << 10
	blockBytes  = 16 << 20
	// maxBlockRows bounds the rows of a block.
	maxBlockRows = 128 << 10
	// longRun is which part of a batch a run must be at least to become one by
	// itself.
	longRun = 4
	// maxHeldRows bounds the rows of batches a block holds on to, of which a
	// filter may want few.
	maxHeldRows = 4 * maxBlockRows
)

// Reader is the stream of a plan's batches. It belongs to one goroutine and
// must be released.
type Reader struct {
	plan    *Plan
	columns []string // that are read: the output's, then those that are only looked at
	index   int      // of the index column among them, −1 if it is not needed
	part    *partStream
	wanted  map[int][]datafile.RowRange // by file, where the plan has several parts
	left    piece                       // what remains of a single piece
	merging *merger                     // nil, or the pieces of a unit
	newest  *newest                     // nil, or the windows of a scan that goes down the index
	cursors map[int]*cursor
	hold    bool
	rows    int   // of a cursor's batch
	most    int   // rows of a batch that is given out
	block   int64 // rows of a block
	blocks  int   // begun so far
	limit   int64 // rows that may still be given, −1 = any
	room    int64 // bytes that may still be held of unsorted files
	done    bool
	pending []arrow.RecordBatch
	current arrow.RecordBatch
	stats   Stats
}

// Open begins to run the plan's split. It reads the entity directories of the
// files; the rows are read as Next asks for them.
func (p *Plan) Open(ctx context.Context) (*Reader, error) {
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	r := &Reader{plan: p, cursors: map[int]*cursor{}, limit: p.query.limit, room: UnsortedBytes, columns: slices.Clone(p.query.columns), index: -1}
	if len(p.files) == 0 {
		r.stats.FilesSkipped, r.done = int64(len(p.snap.Files)), true
		return r, nil
	}
	for _, name := range p.query.filter.Columns() {
		r.column(name)
	}
	depth := p.depth()
	if p.query.newest || !p.query.unordered && depth > 1 {
		r.index = r.column(p.snap.Def.IndexColumn)
	}
	width := p.rowWidth(r.columns)
	r.hold = depth <= maxOpenFiles
	r.rows = int(max(minBatchRows, min(DefaultBatchRows, targetBytes/width, decodeBytes/(int64(max(depth, 1))*width))))
	r.most = p.mostRows(width)
	r.block = max(1024, min(maxBlockRows, blockBytes/width, max(targetBytes/width, int64(depth)*rowsPerFile)))
	if r.limit >= 0 && p.query.filter == nil {
		r.block = max(1, min(r.block, r.limit))
		r.rows = min(r.rows, max(minBatchRows, int(r.block)))
	}
	if p.query.newest {
		r.newest = newNewest(r)
	} else {
		r.part = p.part()
	}
	r.setWanted()
	r.stats.FilesSkipped = int64(len(p.snap.Files)) - r.stats.Files
	return r, nil
}

// mostRows is how many rows of so many bytes a batch that is given out holds.
func (p *Plan) mostRows(width int64) int {
	return min(p.query.batchRows, int(max(1, targetBytes/width)))
}

// column returns the place of a column among those that are read.
func (r *Reader) column(name string) int {
	if i := slices.Index(r.columns, name); i >= 0 {
		return i
	}
	r.columns = append(r.columns, name)
	return len(r.columns) - 1
}

// setWanted finds out which rows of which files the reader will ask for, and
// counts the files.
func (r *Reader) setWanted() {
	if r.plan.query.split.Count <= 1 {
		for _, runs := range r.plan.runs {
			if len(runs) > 0 {
				r.stats.Files++
			}
		}
		return
	}
	r.wanted = map[int][]datafile.RowRange{}
	for s := r.plan.part(); s.next(); {
		for _, p := range s.unit.pieces {
			r.wanted[p.file] = append(r.wanted[p.file], datafile.RowRange{Start: p.start, End: p.end})
		}
	}
	r.stats.Files = int64(len(r.wanted))
}

// cursorOf returns the cursor of a file.
func (r *Reader) cursorOf(file int) *cursor {
	c := r.cursors[file]
	if c != nil {
		return c
	}
	c = r.plan.newCursor(r.plan.files[file], r.columns, r.rows, r.hold)
	c.filter, c.started, c.room = r.plan.query.filter, r.started, &r.room
	if r.wanted != nil {
		for _, w := range r.wanted[file] {
			c.want(w)
		}
	} else {
		for i := range r.plan.runs[file] {
			c.want(datafile.RowRange{Start: r.plan.runs[file][i].Start, End: r.plan.runs[file][i].End})
		}
	}
	r.cursors[file] = c
	return c
}

// started takes out the rows that the file's statistics rule out, and counts
// the row groups.
func (r *Reader) started(ctx context.Context, c *cursor, f *filecache.File) error {
	if c.view != nil {
		r.stats.RowGroups += int64(len(f.RowGroups()))
		return nil
	}
	if r.plan.query.filter != nil && !r.plan.query.unpruned {
		live, err := r.plan.live(ctx, f.File)
		if err != nil {
			return err
		}
		c.ranges = intersect(c.ranges, live)
	}
	kept := groupsOf(f.RowGroups(), coalesce(c.ranges))
	r.stats.RowGroups += int64(kept)
	r.stats.RowGroupsSkipped += int64(len(f.RowGroups()) - kept)
	return nil
}

// rowsOf counts the rows of row groups.
func rowsOf(groups []datafile.RowGroup) (rows int64) {
	for _, g := range groups {
		rows += g.Rows
	}
	return rows
}

// groupsOf counts the row groups that hold one of the rows.
func groupsOf(groups []datafile.RowGroup, ranges []datafile.RowRange) int {
	n := 0
	for _, g := range groups {
		for len(ranges) > 0 && ranges[0].End <= g.FirstRow {
			ranges = ranges[1:]
		}
		if g.Rows > 0 && len(ranges) > 0 && ranges[0].Start < g.FirstRow+g.Rows {
			n++
		}
	}
	return n
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
		if r.done {
			return nil, io.EOF
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
	r.pending, r.done = nil, true
	if r.newest != nil {
		r.newest.release()
	}
	for _, c := range r.cursors {
		c.close()
	}
}
