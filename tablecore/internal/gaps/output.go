package gaps

import (
	"context"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/interval"
)

// batchRows is the most rows a batch has.
const batchRows = 32 << 10

// output gathers rows into batches.
type output struct {
	builder *array.RecordBuilder
	layout  *entitykey.Layout
	domain  interval.Domain
	yield   func(arrow.RecordBatch) error

	entity []any // the values of the one that rows are made of
	owed   int   // its rows in the batch whose entity columns are still to be filled
	rows   int   // of the batch
}

func newOutput(p *Plan, yield func(arrow.RecordBatch) error) *output {
	return &output{builder: array.NewRecordBuilder(p.mem, p.schema), layout: p.snap.Layout, domain: p.snap.Domain, yield: yield}
}

func (o *output) release() { o.builder.Release() }

// begin goes on to an entity.
func (o *output) begin(ctx context.Context, key string) (err error) {
	o.settle()
	if o.entity, err = o.layout.Decode(key); err != nil {
		return err
	}
	return ctx.Err()
}

// settle fills the entity columns of the rows of the entity.
func (o *output) settle() {
	for i, v := range o.entity {
		b := o.builder.Field(i)
		b.Reserve(o.owed)
		for range o.owed {
			appendEntity(b, v)
		}
	}
	o.owed = 0
}

func appendEntity(b array.Builder, v any) {
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.Int32Builder:
		b.Append(v.(int32))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Uint64Builder:
		b.Append(v.(uint64))
	}
}

// field returns the builder of a column behind the entity columns.
func (o *output) field(i int) array.Builder { return o.builder.Field(o.layout.Len() + i) }

// row ends a row.
func (o *output) row(ctx context.Context) error {
	o.owed++
	if o.rows++; o.rows < batchRows {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return o.flush()
}

// flush gives the rows to yield.
func (o *output) flush() error {
	o.settle()
	if o.rows == 0 {
		return nil
	}
	batch := o.builder.NewRecordBatch()
	defer batch.Release()
	o.rows = 0
	return o.yield(batch)
}

// run adds the row of a run of intervals.
func (o *output) run(ctx context.Context, w coverage.Window) error {
	o.bounds(w)
	o.field(2).(*array.Uint64Builder).Append(w.Length())
	return o.row(ctx)
}

// window adds the row of a window, nulls where there is none.
func (o *output) window(ctx context.Context, w coverage.Window, ok bool) error {
	if ok {
		o.bounds(w)
	} else {
		o.field(0).AppendNull()
		o.field(1).AppendNull()
	}
	return o.row(ctx)
}

// bounds adds where a run of intervals starts and ends; the end is null where
// it is the domain's.
func (o *output) bounds(w coverage.Window) {
	first, _ := o.domain.Bounds(w.First)
	_, last := o.domain.Bounds(w.Last)
	appendIndex(o.field(0), first)
	if last == math.MaxUint64 {
		o.field(1).AppendNull()
	} else {
		appendIndex(o.field(1), last+1)
	}
}

func appendIndex(b array.Builder, ordinal uint64) {
	switch b := b.(type) {
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(interval.SignedValue(ordinal)))
	case *array.Int64Builder:
		b.Append(interval.SignedValue(ordinal))
	case *array.Uint64Builder:
		b.Append(ordinal)
	}
}

// summary adds the row of an entity's counts.
func (o *output) summary(ctx context.Context, s coverage.Summary) error {
	o.field(0).(*array.Float64Builder).Append(s.Ratio)
	o.field(1).(*array.Uint64Builder).Append(s.Covered)
	o.field(2).(*array.Uint64Builder).Append(s.Missing)
	o.field(3).(*array.Uint64Builder).Append(s.LongestGap)
	return o.row(ctx)
}
