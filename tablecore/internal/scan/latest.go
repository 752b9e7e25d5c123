package scan

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/lastvalue"
	"contrail/tablecore/internal/predicate"
	"contrail/tablecore/internal/series"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tableerr"
)

// LatestRequest asks for the newest row of each entity. Values are JSON,
// because what they mean depends on the columns' types.
type LatestRequest struct {
	Columns     []string // nil = all but the insertion-time column
	Entities    []map[string]json.RawMessage
	AllEntities bool            // Entities was left out
	At          json.RawMessage // the newest row at or before it; nil = the newest of all
}

// Latest is a question for newest rows of one version. It is safe for concurrent
// use.
type Latest struct {
	plan *Plan // of the output only
	data *series.Table
}

// NewLatest resolves a request. It reads nothing. INVALID for a table without a
// schema.
func NewLatest(snap *snapshot.Snapshot, files *filecache.Files, data *series.Table, mem memory.Allocator, r LatestRequest) (*Latest, error) {
	if snap.Def.Stored == nil {
		return nil, tableerr.InvalidField("table", "the table has no schema yet: there is nothing to ask about before the first append")
	}
	q, err := resolve(snap, Request{Columns: r.Columns, Entities: r.Entities, AllEntities: r.AllEntities})
	if err != nil {
		return nil, err
	}
	if q.span, err = predicate.ParseAtMost("at", r.At, snap.IndexField().Type); err != nil {
		return nil, err
	}
	return &Latest{&Plan{snap: snap, query: q, data: files, mem: mem, files: snap.Files}, data}, nil
}

// Schema is the schema of every batch.
func (l *Latest) Schema() *arrow.Schema { return l.plan.Schema() }

// Run gives the rows by entity to yield, batch by batch; an error of yield ends
// it. A batch is valid until yield returns.
func (l *Latest) Run(ctx context.Context, yield func(arrow.RecordBatch) error) error {
	if l.plan.query.span.Empty || l.plan.query.entities.None() {
		return nil
	}
	all, err := l.data.Newest(ctx, l.plan.snap)
	if err != nil {
		return err
	}
	rows := l.pick(all)
	if rows, err = l.before(ctx, rows); err != nil {
		return err
	}
	out := &latestOutput{latest: l, index: all, reader: &Reader{plan: l.plan, most: l.plan.mostRows(l.plan.rowWidth(l.plan.query.columns))}}
	if err := out.project(); err != nil {
		return err
	}
	defer out.release()
	for size := l.blockRows(); len(rows) > 0; {
		n := min(len(rows), size)
		if err := out.give(ctx, rows[:n], yield); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// pick returns the newest rows of the entities asked for, by key.
func (l *Latest) pick(all *lastvalue.Index) []lastvalue.Ref {
	q := l.plan.query
	var rows []lastvalue.Ref
	if q.keyed {
		for _, key := range q.keys {
			if r, known := all.Find(key); known {
				rows = append(rows, r)
			}
		}
		return rows
	}
	blocks := all.Blocks()
	rows = make([]lastvalue.Ref, 0, len(blocks[0].Rows)+len(blocks[1].Rows))
	for r := range all.All() {
		if q.entities == nil || q.entities.Match(r.Key) {
			rows = append(rows, r)
		}
	}
	return rows
}

// fetched is the Block of a row whose values are not in the index.
const fetched = -1

// before replaces rows behind the time asked for by older ones.
func (l *Latest) before(ctx context.Context, rows []lastvalue.Ref) ([]lastvalue.Ref, error) {
	at := l.plan.query.span.Last
	behind := map[string]struct{}{}
	kept := rows[:0]
	for _, r := range rows {
		if r.Ordinal <= at {
			kept = append(kept, r)
		} else {
			behind[r.Key] = struct{}{}
		}
	}
	if len(behind) == 0 {
		return kept, nil
	}
	older, err := l.data.NewestAt(ctx, l.plan.snap, at, behind)
	if err != nil {
		return nil, err
	}
	for i := range older {
		kept = append(kept, lastvalue.Ref{Row: &older[i], Block: fetched})
	}
	slices.SortFunc(kept, func(a, b lastvalue.Ref) int { return strings.Compare(a.Key, b.Key) })
	return kept, nil
}

// blockRows is how many rows are put together at a time.
func (l *Latest) blockRows() int {
	return int(min(maxBlockRows, max(minBatchRows, blockBytes/l.plan.rowWidth(l.plan.query.columns))))
}

// latestOutput makes batches of newest rows.
type latestOutput struct {
	latest *Latest
	index  *lastvalue.Index
	reader *Reader
	kept   [2]arrow.RecordBatch // the wanted columns of the index's blocks, nil where it keeps no values
}

func (o *latestOutput) release() {
	o.reader.Release()
	for _, b := range o.kept {
		if b != nil {
			b.Release()
		}
	}
}

// project finds the wanted columns in what the index keeps. One that the table
// got since is null.
func (o *latestOutput) project() error {
	fields := snapshot.StorageFields(o.latest.plan.snap.Def, o.latest.plan.query.columns)
	for i, b := range o.index.Blocks() {
		if b.Values == nil {
			continue
		}
		columns := make([]arrow.Array, len(fields))
		for k, f := range fields {
			if found := b.Values.Schema().FieldIndices(f.Name); len(found) > 0 {
				columns[k] = b.Values.Column(found[0])
				columns[k].Retain()
			} else {
				columns[k] = array.MakeArrayOfNull(o.latest.plan.mem, f.Type, int(b.Values.NumRows()))
			}
		}
		o.kept[i] = array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.Values.NumRows())
		for _, c := range columns {
			c.Release()
		}
	}
	return nil
}

// give makes the batches of some rows.
func (o *latestOutput) give(ctx context.Context, rows []lastvalue.Ref, yield func(arrow.RecordBatch) error) error {
	b := &block{}
	defer b.release()
	sources := [2]int{}
	for i, kept := range o.kept {
		if kept != nil {
			kept.Retain()
			sources[i] = len(b.sources)
			b.sources = append(b.sources, kept)
		}
	}
	missing, err := o.fetch(ctx, rows, b)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Block != fetched && o.kept[r.Block] != nil {
			b.add(sources[r.Block], r.Place, 1)
			continue
		}
		b.add(missing[0].Source, missing[0].Start, 1)
		if missing[0].Start, missing[0].Len = missing[0].Start+1, missing[0].Len-1; missing[0].Len == 0 {
			missing = missing[1:]
		}
	}
	if err := o.reader.emit(b); err != nil {
		return err
	}
	return o.hand(yield)
}

// fetch reads the rows whose values the index does not keep.
func (o *latestOutput) fetch(ctx context.Context, rows []lastvalue.Ref, b *block) ([]assemble.Run, error) {
	var missing []lastvalue.Row
	for _, r := range rows {
		if r.Block == fetched || o.kept[r.Block] == nil {
			missing = append(missing, *r.Row)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	p := o.latest.plan
	batches, runs, err := o.latest.data.Fetch(ctx, p.snap, snapshot.StorageFields(p.snap.Def, p.query.columns), missing, 0)
	for i := range runs {
		runs[i].Source += len(b.sources)
	}
	b.sources = append(b.sources, batches...)
	return runs, err
}

// hand gives the batches that are ready to yield.
func (o *latestOutput) hand(yield func(arrow.RecordBatch) error) error {
	for {
		pending := o.reader.pending
		if len(pending) == 0 {
			return nil
		}
		batch := pending[0]
		o.reader.pending = pending[1:]
		err := yield(batch)
		batch.Release()
		if err != nil {
			return err
		}
	}
}
