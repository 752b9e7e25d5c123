package scan

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/filecache"
)

// gapRows is up to how many unwanted rows between two wanted ranges are read
// along: below a page's length skipping saves nothing.
const gapRows = 8192

// segment is a run of wanted rows inside one decoded batch.
type segment struct {
	batch      arrow.RecordBatch
	start, len int
}

// column returns the wanted rows of a column; the caller releases it.
func (s segment) column(i int) arrow.Array {
	return array.NewSlice(s.batch.Column(i), int64(s.start), int64(s.start+s.len))
}

// cursor reads the wanted rows of one file in ascending order.
type cursor struct {
	open    func(ctx context.Context) (*filecache.File, error)
	fields  []arrow.Field
	batch   int
	ranges  []datafile.RowRange // wanted rows that were not taken yet
	file    *filecache.File
	rows    *datafile.Rows
	current arrow.RecordBatch // borrowed from rows
	first   int64             // row number of current's first row
}

// take returns the next n wanted rows as segments whose batches the caller
// must release.
func (c *cursor) take(ctx context.Context, n int64) ([]segment, error) {
	var segments []segment
	for n > 0 {
		if len(c.ranges) == 0 {
			return segments, errors.New("scan: more rows were asked for than a file has")
		}
		r := &c.ranges[0]
		if r.Start == r.End {
			c.ranges = c.ranges[1:]
			continue
		}
		if err := c.reach(ctx, r.Start); err != nil {
			return segments, err
		}
		end := min(r.End, r.Start+n, c.first+c.current.NumRows())
		c.current.Retain()
		segments = append(segments, segment{c.current, int(r.Start - c.first), int(end - r.Start)})
		n -= end - r.Start
		r.Start = end
	}
	return segments, nil
}

// reach decodes on until the current batch holds a row.
func (c *cursor) reach(ctx context.Context, row int64) error {
	if c.rows == nil {
		if err := c.start(ctx); err != nil {
			return err
		}
	}
	for c.current == nil || row >= c.first+c.current.NumRows() {
		batch, err := c.rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			err = errors.New("scan: a file ended before its wanted rows")
		}
		if err != nil {
			return err
		}
		c.current, c.first = batch, c.rows.FirstRow()
	}
	return nil
}

// start opens the file and begins to read what is still wanted.
func (c *cursor) start(ctx context.Context) error {
	file, err := c.open(ctx)
	if err != nil {
		return err
	}
	c.file = file
	c.rows, err = file.Read(ctx, datafile.ReadRequest{Fields: c.fields, Ranges: coalesce(c.ranges), BatchRows: c.batch})
	if err != nil {
		c.close()
		return err
	}
	return nil
}

// close gives the file back; a later take opens it again where it stopped.
func (c *cursor) close() {
	if c.rows != nil {
		c.rows.Release()
		c.rows = nil
	}
	if c.file != nil {
		c.file.Close()
		c.file = nil
	}
	c.current = nil
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
