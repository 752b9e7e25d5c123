package rewrite

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/newfile"
)

// copies writes row groups of which only the columns that change, and those that
// the old file has in another form, are decoded; the others are copied as they
// lie there.
type copies struct {
	r        *rewriter
	original *datafile.Original
	same     []bool // by column of the schema: it has the form that it has in the old file
	chosen   []bool // by column of the schema
}

// newCopies returns nil where nothing can be copied.
func (r *rewriter) newCopies(ctx context.Context, to *datafile.Writer) (*copies, error) {
	if !newfile.Describes(r.old.Add) {
		return nil, nil
	}
	original, err := r.source.Original(ctx)
	if err != nil || original == nil {
		return nil, err
	}
	n := r.cfg.Out.Schema().NumFields()
	c := &copies{r: r, original: original, same: make([]bool, n), chosen: make([]bool, n)}
	for i := range n {
		c.same[i] = to.CanCopy(original, i)
	}
	for _, at := range r.places {
		c.chosen[at] = true
	}
	return c, nil
}

// errGroupTooLarge says that the columns of a row group that are not copied take
// too much memory.
var errGroupTooLarge = errors.New("too much for one row group")

// group writes a row group, or nothing where its new values take so much memory
// that it has to be cut.
func (c *copies) group(ctx context.Context, to *datafile.Writer, i int, rows datafile.RowRange) (done bool, err error) {
	replaced := int64(-1)
	if c.r.change.Replaced != nil {
		replaced = c.r.change.Replaced(rows)
	}
	g := c.plan(replaced == 0, func(column int) bool { return to.CanMix(c.original, i, column) })
	defer g.release()
	switch {
	case len(g.fields) == 0:
	case len(g.fields) == len(g.places) && replaced == rows.End-rows.Start:
		err = g.fresh(rows)
	default:
		err = c.r.read(ctx, g.fields, []datafile.RowRange{rows}, g.replace)
	}
	if errors.Is(err, errGroupTooLarge) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, to.CopyGroup(ctx, c.original, i, g.from, g.rest)
}

// plan says which columns of a row group are copied. Where nothing is replaced,
// these are the chosen ones, too, that may be mixed with other values.
func (c *copies) plan(untouched bool, mixes func(column int) bool) *copiedGroup {
	g := &copiedGroup{r: c.r, from: make([]datafile.Origin, len(c.same))}
	among := make([]int, len(c.same))
	for i, f := range c.r.cfg.Out.Schema().Fields() {
		switch {
		case c.same[i] && !c.chosen[i]:
			g.from[i] = datafile.Copied
		case c.same[i] && untouched && mixes(i):
			g.from[i] = datafile.Mixed
		default:
			among[i] = len(g.fields)
			g.fields = append(g.fields, f)
		}
	}
	if !untouched {
		for _, at := range c.r.places {
			g.places = append(g.places, among[at])
		}
	}
	return g
}

// copiedGroup is a row group some columns of which are copied.
type copiedGroup struct {
	r      *rewriter
	from   []datafile.Origin // by column of the schema
	fields []arrow.Field     // of the columns that are not copied
	places []int             // of the chosen ones among these; none where nothing is replaced
	rest   []arrow.RecordBatch
	bytes  int64 // of rest
}

func (g *copiedGroup) release() {
	for _, b := range g.rest {
		b.Release()
	}
}

// add takes rows of the columns that are not copied.
func (g *copiedGroup) add(b arrow.RecordBatch) error {
	b.Retain()
	g.rest = append(g.rest, b)
	if g.bytes += datafile.RowsBytes(b); g.bytes > datafile.DefaultBytesPerRowGroup {
		return errGroupTooLarge
	}
	return nil
}

// replace adds rows of the old file with their new values.
func (g *copiedGroup) replace(first int64, batch arrow.RecordBatch) error {
	if len(g.places) == 0 {
		return g.add(batch)
	}
	return g.r.replace(first, batch, g.places, g.add)
}

// fresh adds the new values of rows all of which are replaced.
func (g *copiedGroup) fresh(rows datafile.RowRange) error {
	schema := arrow.NewSchema(g.fields, nil)
	for rows.Start < rows.End {
		given, err := g.r.change.Replace(rows, nil)
		if err != nil {
			return err
		}
		columns := make([]arrow.Array, len(given))
		for i, at := range g.places {
			columns[at] = given[i]
		}
		n := int64(given[0].Len())
		batch := array.NewRecordBatch(schema, columns, n)
		for _, arr := range given {
			arr.Release()
		}
		err = g.add(batch)
		batch.Release()
		if err != nil {
			return err
		}
		rows.Start += n
	}
	return nil
}
