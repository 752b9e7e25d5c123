package scan

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/internal/predicate"
	"contrail/tablecore/internal/snapshot"
)

const (
	// gapRows is up to how many unwanted rows between two wanted ranges are read
	// along: below a page's length skipping saves nothing.
	gapRows = 8192
	// indexRows is how many index values of a file are decoded at once where
	// only they are read.
	indexRows = 16 << 10
)

// cursor reads the wanted rows of one file in ascending order, a batch at a
// time.
type cursor struct {
	open      func(ctx context.Context) (*filecache.File, error)
	of        *snapshot.File
	view      *view  // nil, or how the rows of the file are counted
	room      *int64 // bytes that the reader may still hold of files with a view
	mem       memory.Allocator
	fields    []arrow.Field
	batchRows int
	hold      bool // the file stays open between batches
	filter    *predicate.Filter
	// started is told of the file before it is first read; it may change what is
	// wanted. May be nil.
	started func(ctx context.Context, c *cursor, f *filecache.File) error

	ranges []datafile.RowRange // wanted rows that were not taken yet
	ready  bool                // started was called
	file   *filecache.File
	rows   *datafile.Rows
	batch  arrow.RecordBatch // nil, or decoded rows, of which
	first  int64             // this is the number of the first
	mask   []bool            // which rows of the batch pass the filter, if there is one

	block, source int // where the batch stands in a Reader's block
	entered       int // the block in which a batch of the cursor stood last
}

// newCursor reads columns of a file.
func (p *Plan) newCursor(f *snapshot.File, columns []string, batch int, hold bool) *cursor {
	room := UnsortedBytes
	return &cursor{
		of: f, view: p.viewIfAny(f), room: &room, mem: p.data.Allocator(),
		open:   func(ctx context.Context) (*filecache.File, error) { return p.data.Open(ctx, p.snap, f) },
		fields: snapshot.StorageFields(p.snap.Def, columns), batchRows: batch, hold: hold,
	}
}

// want adds rows behind those that are wanted already.
func (c *cursor) want(r datafile.RowRange) {
	if n := len(c.ranges); n > 0 && c.ranges[n-1].End == r.Start {
		c.ranges[n-1].End = r.End
		return
	}
	c.ranges = append(c.ranges, r)
}

// peek finds the next wanted row that lies before row end: the place in the
// current batch, and how many wanted rows follow there without a gap. n is 0
// where there is none.
func (c *cursor) peek(ctx context.Context, end int64) (at, n int, err error) {
	if !c.ready {
		if err := c.begin(ctx); err != nil {
			return 0, 0, err
		}
	}
	for len(c.ranges) > 0 && c.ranges[0].Start == c.ranges[0].End {
		c.ranges = c.ranges[1:]
	}
	if len(c.ranges) == 0 {
		c.close()
		return 0, 0, nil
	}
	if c.ranges[0].Start >= end {
		return 0, 0, nil
	}
	r := c.ranges[0]
	for c.batch == nil || r.Start >= c.first+c.batch.NumRows() {
		if err := c.load(ctx); err != nil {
			return 0, 0, err
		}
	}
	last := min(r.End, end, c.first+c.batch.NumRows())
	return int(r.Start - c.first), int(last - r.Start), nil
}

// take marks the next n rows that peek found as taken. After the last of them
// the cursor lets go of everything.
func (c *cursor) take(n int) {
	c.ranges[0].Start += int64(n)
	if c.ranges[0].Start == c.ranges[0].End {
		c.ranges = c.ranges[1:]
	}
	if len(c.ranges) == 0 {
		c.close()
	}
}

// begin opens the file for the first time.
func (c *cursor) begin(ctx context.Context) error {
	c.ready = true
	if c.started == nil {
		return nil
	}
	if err := c.reopen(ctx); err != nil {
		return err
	}
	err := c.started(ctx, c, c.file)
	if !c.hold || err != nil {
		c.closeFile()
	}
	return err
}

func (c *cursor) reopen(ctx context.Context) error {
	if c.file != nil {
		return nil
	}
	file, err := c.open(ctx)
	if err != nil {
		return err
	}
	c.file = file
	return nil
}

// load decodes the next batch.
func (c *cursor) load(ctx context.Context) error {
	c.drop()
	if c.view != nil {
		return c.loadView(ctx)
	}
	if c.rows == nil {
		if err := c.reopen(ctx); err != nil {
			return err
		}
		ranges := coalesce(c.ranges)
		if !c.hold {
			ranges = firstOf(ranges, int64(c.batchRows))
		}
		rows, err := c.file.Read(ctx, datafile.ReadRequest{Fields: c.fields, Ranges: ranges, BatchRows: c.batchRows})
		if err != nil {
			return err
		}
		c.rows = rows
	}
	batch, err := c.rows.Next(ctx)
	if errors.Is(err, io.EOF) {
		err = errors.New("scan: a file ended before its wanted rows")
	}
	if err != nil {
		return err
	}
	batch.Retain()
	c.batch, c.first, c.block = batch, c.rows.FirstRow(), -1
	if !c.hold {
		c.closeFile()
	}
	return c.screen()
}

// loadView decodes all rows of a file with a view, in order.
func (c *cursor) loadView(ctx context.Context) error {
	if err := c.reopen(ctx); err != nil {
		return err
	}
	defer c.closeFile()
	var err error
	if c.batch, err = c.view.read(ctx, c.mem, c.of, c.file, c.fields, c.room); err != nil {
		return err
	}
	c.first, c.block = 0, -1
	return c.screen()
}

// screen applies the filter to the batch.
func (c *cursor) screen() (err error) {
	if c.filter == nil {
		return nil
	}
	c.mask, err = c.filter.Select(int(c.batch.NumRows()), func(name string) arrow.Array {
		for i := range c.fields {
			if c.fields[i].Name == name {
				return c.batch.Column(i)
			}
		}
		return nil
	}, c.mask)
	return err
}

func (c *cursor) drop() {
	if c.batch != nil {
		c.batch.Release()
		c.batch = nil
	}
}

// closeFile gives the file back; the batch stays.
func (c *cursor) closeFile() {
	if c.rows != nil {
		c.rows.Release()
		c.rows = nil
	}
	if c.file != nil {
		c.file.Close()
		c.file = nil
	}
}

func (c *cursor) close() {
	c.closeFile()
	c.drop()
}

// ordinals appends the index ordinals of all wanted rows before row end, of a
// cursor over an index column, and takes them.
func (c *cursor) ordinals(ctx context.Context, domain interval.Domain, end int64, dst []uint64) ([]uint64, error) {
	for {
		at, n, err := c.peek(ctx, end)
		if err != nil || n == 0 {
			return dst, err
		}
		if dst, err = appendOrdinals(dst, domain, c.batch.Column(0), at, n); err != nil {
			return dst, err
		}
		c.take(n)
	}
}

func appendOrdinals(dst []uint64, domain interval.Domain, column arrow.Array, at, n int) ([]uint64, error) {
	slice := array.NewSlice(column, int64(at), int64(at+n))
	defer slice.Release()
	return domain.AppendOrdinals(dst, slice)
}

// coalesce joins ascending ranges across small gaps and drops empty ones.
func coalesce(ranges []datafile.RowRange) []datafile.RowRange {
	var out []datafile.RowRange
	for _, r := range ranges {
		if r.Start == r.End {
			continue
		}
		if n := len(out); n > 0 && r.Start-out[n-1].End <= gapRows {
			out[n-1].End = r.End
			continue
		}
		out = append(out, r)
	}
	return out
}

// firstOf returns the first n rows of ranges.
func firstOf(ranges []datafile.RowRange, n int64) []datafile.RowRange {
	for i, r := range ranges {
		if k := r.End - r.Start; k < n {
			n -= k
			continue
		}
		ranges[i].End = r.Start + n
		return ranges[:i+1]
	}
	return ranges
}

// intersect returns the rows that are in both of two ascending lists.
func intersect(a, b []datafile.RowRange) []datafile.RowRange {
	var out []datafile.RowRange
	for len(a) > 0 && len(b) > 0 {
		lo, hi := max(a[0].Start, b[0].Start), min(a[0].End, b[0].End)
		if lo < hi {
			out = append(out, datafile.RowRange{Start: lo, End: hi})
		}
		if a[0].End < b[0].End {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}
