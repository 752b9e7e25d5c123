package ingest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
)

// span is a range of rows of one run, in the run's order.
type span struct{ start, end int64 }

// indexRange is the rows of all runs that lie in a range of the index.
type indexRange struct {
	spans    []span // by run
	rows     int64
	min, max uint64 // ordinals
}

// plan cuts the rows of all runs like planner.plan.
func (m *merger) plan(ctx context.Context) ([]indexRange, error) {
	spans := make([]span, len(m.runs.list))
	for i, run := range m.runs.list {
		spans[i].end = run.rows
	}
	whole, err := m.runs.indexRange(spans)
	if err != nil {
		return nil, err
	}
	if m.planner.byEntity {
		return m.entityParts(ctx, whole)
	}
	return m.split(nil, whole)
}

// entityParts returns all rows as one part, to be cut by entity, or as several
// where the rows of one entity find no memory.
func (m *merger) entityParts(ctx context.Context, whole indexRange) ([]indexRange, error) {
	largest, err := m.largestEntity(ctx, whole)
	if err != nil || m.need(largest) <= m.capacity || m.cfg.Domain.ID(whole.min) == m.cfg.Domain.ID(whole.max) {
		return []indexRange{whole}, err
	}
	pieces, err := m.cut(whole, int(min(2*m.need(largest)/m.capacity+1, maxPieces)))
	return slices.DeleteFunc(pieces, func(p indexRange) bool { return p.rows == 0 }), err
}

// split appends a range's parts to done. A range of one interval stays whole,
// unless it finds no memory and its rows need not stay together.
func (m *merger) split(done []indexRange, whole indexRange) ([]indexRange, error) {
	n := m.pieces(whole.rows)
	inside := m.cfg.Domain.ID(whole.min) == m.cfg.Domain.ID(whole.max)
	if n == 1 || inside && (m.unique || m.need(whole.rows) <= m.capacity) {
		return append(done, whole), nil
	}
	var pieces []indexRange
	var err error
	if inside {
		pieces, err = m.cutInside(whole)
	} else {
		pieces, err = m.cut(whole, n)
	}
	if err != nil {
		return nil, err
	}
	for _, piece := range pieces {
		if piece.rows == 0 {
			continue
		}
		if done, err = m.split(done, piece); err != nil {
			return nil, err
		}
	}
	return done, nil
}

// cut cuts a range of several intervals into about n pieces.
func (m *merger) cut(whole indexRange, n int) ([]indexRange, error) {
	sample, err := m.runs.sample(whole)
	if err != nil {
		return nil, err
	}
	return m.runs.cut(whole, m.planner.cutsOf(sample, whole.min, n))
}

// cutInside cuts a range of one interval by index values, or where there is but
// one, by arrival.
func (m *merger) cutInside(whole indexRange) ([]indexRange, error) {
	n := m.need(whole.rows)/m.capacity + 1
	if whole.min == whole.max {
		return m.runs.cutByArrival(whole, (whole.rows+n-1)/n)
	}
	sample, err := m.runs.sample(whole)
	if err != nil {
		return nil, err
	}
	slices.Sort(sample)
	var cuts []uint64
	last := whole.min
	for i := range n {
		if c := sample[i*int64(len(sample))/n]; c > last {
			cuts = append(cuts, c)
			last = c
		}
	}
	if cuts == nil { // most rows have the first value
		cuts = []uint64{whole.min + 1}
	}
	return m.runs.cut(whole, cuts)
}

// pieces returns how many files rows are worth, as in memory, or how many it
// takes for the rows of one to fit into memory.
func (m *merger) pieces(rows int64) int {
	fit := (m.need(rows) + m.capacity - 1) / m.capacity
	return max(m.planner.pieces(rows), int(min(fit, maxPieces)))
}

// indexRange fills in what is known of spans.
func (r *runs) indexRange(spans []span) (indexRange, error) {
	out := indexRange{spans: spans, min: math.MaxUint64}
	for i, sp := range spans {
		if sp.start == sp.end {
			continue
		}
		first, err := r.ordinal(r.list[i], sp.start)
		if err != nil {
			return out, err
		}
		last, err := r.ordinal(r.list[i], sp.end-1)
		if err != nil {
			return out, err
		}
		out.rows += sp.end - sp.start
		out.min, out.max = min(out.min, first), max(out.max, last)
	}
	return out, nil
}

// ordinal reads the index ordinal of a run's row.
func (r *runs) ordinal(run *indexRun, row int64) (uint64, error) {
	var b [8]byte
	if _, err := r.file.ReadAt(b[:], run.ordinals+8*row); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

// streamRow returns the number in the stream of a row of the store that a range
// was loaded into.
func (r *runs) streamRow(from indexRange, row int64) (int64, error) {
	for i, sp := range from.spans {
		if n := sp.end - sp.start; row >= n {
			row -= n
			continue
		}
		run := r.list[i]
		var b [4]byte
		if _, err := r.file.ReadAt(b[:], run.numbers+4*(sp.start+row)); err != nil {
			return 0, err
		}
		return run.first + int64(binary.NativeEndian.Uint32(b[:])), nil
	}
	return 0, io.ErrUnexpectedEOF
}

// sample returns ordinals taken at equal steps over a range.
func (r *runs) sample(from indexRange) ([]uint64, error) {
	step := max(1, from.rows/sampleRows)
	sample := make([]uint64, 0, from.rows/step+1)
	buffer := r.pool.Allocate(spillBuffer)
	defer r.pool.Free(buffer)
	skip := int64(0)
	for i, sp := range from.spans {
		for at := sp.start; at < sp.end; {
			n := min(sp.end-at, spillBuffer/8)
			part := buffer[:8*n]
			if _, err := r.file.ReadAt(part, r.list[i].ordinals+8*at); err != nil {
				return nil, err
			}
			values := view[uint64](part)
			for ; skip < n; skip += step {
				sample = append(sample, values[skip])
			}
			skip -= n
			at += n
		}
	}
	return sample, nil
}

// cut distributes a range's rows among the ranges between the cuts.
func (r *runs) cut(whole indexRange, cuts []uint64) ([]indexRange, error) {
	pieces := make([][]span, len(cuts)+1)
	for i := range pieces {
		pieces[i] = make([]span, len(whole.spans))
	}
	for i, sp := range whole.spans {
		for k, c := range cuts {
			end, err := r.search(r.list[i], sp, c)
			if err != nil {
				return nil, err
			}
			pieces[k][i] = span{sp.start, end}
			sp.start = end
		}
		pieces[len(cuts)][i] = sp
	}
	out := make([]indexRange, len(pieces))
	for i, spans := range pieces {
		var err error
		if out[i], err = r.indexRange(spans); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cutByArrival cuts a range of one index value into pieces of rows.
func (r *runs) cutByArrival(whole indexRange, rows int64) ([]indexRange, error) {
	var pieces []indexRange
	spans := make([]span, len(whole.spans))
	left := rows
	finish := func() error {
		piece, err := r.indexRange(spans)
		pieces = append(pieces, piece)
		spans, left = make([]span, len(whole.spans)), rows
		return err
	}
	for i, sp := range whole.spans {
		for sp.start < sp.end {
			n := min(left, sp.end-sp.start)
			spans[i] = span{sp.start, sp.start + n}
			sp.start += n
			if left -= n; left == 0 {
				if err := finish(); err != nil {
					return nil, err
				}
			}
		}
	}
	return pieces, finish()
}

// scan yields the batches of a range, run by run, with the rows of each that
// belong to it.
func (r *runs) scan(ctx context.Context, p indexRange, do func(rec arrow.RecordBatch, from, to int64) error) error {
	for i, run := range r.list {
		span := p.spans[i]
		after, _ := slices.BinarySearch(run.starts, span.start+1)
		for b := after - 1; span.start < span.end; b++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			first := run.starts[b]
			end := min(span.end, run.starts[b+1])
			if err := run.batch(b, func(rec arrow.RecordBatch) error { return do(rec, span.start-first, end-first) }); err != nil {
				return err
			}
			span.start = end
		}
	}
	return nil
}

// batch reads a batch.
func (run *indexRun) batch(i int, do func(rec arrow.RecordBatch) error) error {
	rec, err := run.batches.RecordBatchAt(i)
	if err != nil {
		return storeError(err)
	}
	defer rec.Release()
	if want := run.starts[i+1] - run.starts[i]; rec.NumRows() != want {
		return storeError(fmt.Errorf("scratch space: a batch of %d rows was read as %d", want, rec.NumRows()))
	}
	return do(rec)
}

// search returns the first row of a span whose ordinal is not below one.
func (r *runs) search(run *indexRun, sp span, ordinal uint64) (int64, error) {
	var failed error
	n := sort.Search(int(sp.end-sp.start), func(i int) bool {
		v, err := r.ordinal(run, sp.start+int64(i))
		if err != nil {
			failed = err
		}
		return v >= ordinal
	})
	return sp.start + int64(n), failed
}
