package lastvalue

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/assemble"
)

// heap is where kept values lie: in Go's memory, so that those who read an old
// index need not say when they are done.
var heap = memory.NewGoAllocator()

// merge returns the rows of two blocks, those of newer in place of those of
// older with the same key, without the keys in gone.
func merge(older, newer *Block, gone map[string]struct{}, bare bool) (*Block, error) {
	out := &Block{Rows: make([]Row, 0, len(older.Rows)+len(newer.Rows))}
	var runs []assemble.Run
	take := func(b *Block, source, i int) {
		if _, left := gone[b.Rows[i].Key]; left {
			return
		}
		out.Rows = append(out.Rows, b.Rows[i])
		runs = AppendRun(runs, source, i)
	}
	for i, k := 0, 0; i < len(older.Rows) || k < len(newer.Rows); {
		if k == len(newer.Rows) || i < len(older.Rows) && older.Rows[i].Key < newer.Rows[k].Key {
			take(older, 0, i)
			i++
			continue
		}
		if i < len(older.Rows) && older.Rows[i].Key == newer.Rows[k].Key {
			i++
		}
		take(newer, 1, k)
		k++
	}
	if bare {
		return out, nil
	}
	var err error
	out.Values, err = Gather([]arrow.RecordBatch{older.Values, newer.Values}, runs)
	return out, err
}

// AppendRun adds one row of a source to runs.
func AppendRun(runs []assemble.Run, source, at int) []assemble.Run {
	if n := len(runs); n > 0 && runs[n-1].Source == source && runs[n-1].Start+runs[n-1].Len == at {
		runs[n-1].Len++
		return runs
	}
	return append(runs, assemble.Run{Source: source, Start: at, Len: 1})
}

// Gather copies runs of rows of batches into a new one that shares nothing with
// them and needs no release. Batches may be nil where no run names them. The
// last one that is not nil says which columns there are; those that another one
// lacks are null in its rows. More than an Arrow array can hold is
// assemble.ErrTooLarge.
func Gather(batches []arrow.RecordBatch, runs []assemble.Run) (arrow.RecordBatch, error) {
	var schema *arrow.Schema
	for _, b := range batches {
		if b != nil {
			schema = b.Schema()
		}
	}
	if schema == nil {
		return nil, nil
	}
	columns := make([]arrow.Array, schema.NumFields())
	for i, f := range schema.Fields() {
		sources := make([]arrow.Array, len(batches))
		for k, b := range batches {
			var err error
			if sources[k], err = column(b, f); err != nil {
				return nil, err
			}
		}
		var err error
		if columns[i], err = copied(sources, runs); err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(schema, columns, int64(assemble.Rows(runs))), nil
}

// column returns a batch's column, nulls where it has none.
func column(b arrow.RecordBatch, f arrow.Field) (arrow.Array, error) {
	if b == nil {
		return array.MakeArrayOfNull(heap, f.Type, 0), nil
	}
	found := b.Schema().FieldIndices(f.Name)
	if len(found) == 0 {
		return array.MakeArrayOfNull(heap, f.Type, int(b.NumRows())), nil
	}
	c := b.Column(found[0])
	if !arrow.TypeEqual(c.DataType(), f.Type) {
		return nil, fmt.Errorf("lastvalue: column %q was %s and is %s", f.Name, c.DataType(), f.Type)
	}
	return c, nil
}

// copied makes one array of runs, with memory of its own also where it is one
// run.
func copied(sources []arrow.Array, runs []assemble.Run) (arrow.Array, error) {
	if len(runs) == 1 {
		return assemble.Copy(heap, sources[runs[0].Source], runs[0].Start, runs[0].Len)
	}
	return assemble.Array(heap, sources, runs)
}
