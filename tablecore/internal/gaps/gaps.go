// Package gaps answers coverage queries: which intervals of an entity have rows
// and which have none, over a range of the index (table-semantics.md, "Coverage
// queries").
//
// A range stands for every interval that it touches; runs are told in whole
// intervals. Answers are made entity by entity and given out in batches, so
// their memory does not depend on their length.
package gaps

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/predicate"
	"contrail/tablecore/internal/series"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tableerr"
)

// The kinds of a query.
const (
	KindMissing    = "missing"     // a row a run of intervals without rows
	KindCovered    = "covered"     // a row a run of intervals with rows
	KindSummary    = "summary"     // a row an entity with counts
	KindLastWindow = "last_window" // a row an entity with the newest N covered intervals in a row
)

// Request is a query as a client asks it. Values are JSON, because what they
// mean depends on the columns' types.
type Request struct {
	Kind        string
	Entities    []map[string]json.RawMessage
	AllEntities bool // Entities was left out
	Start, End  json.RawMessage
	N           *int64 // for KindLastWindow only
}

// Plan is a query about one version. It is safe for concurrent use.
type Plan struct {
	snap     *snapshot.Snapshot
	data     *series.Table
	mem      memory.Allocator
	schema   *arrow.Schema
	kind     string
	n        uint64
	window   coverage.Window
	empty    bool                // the range touches no interval
	entities *predicate.Entities // nil = all
}

// NewPlan resolves a request. It reads nothing. INVALID for a request that makes
// no sense and for a table without a schema, NO_GRANULARITY for one that has no
// intervals.
func NewPlan(s *snapshot.Snapshot, data *series.Table, mem memory.Allocator, r Request) (*Plan, error) {
	p := &Plan{snap: s, data: data, mem: mem, kind: r.Kind}
	if err := p.setKind(r); err != nil {
		return nil, err
	}
	if s.Def.Stored == nil {
		return nil, tableerr.InvalidField("table", "the table has no schema yet: there is nothing to ask about before the first append")
	}
	if !s.Domain.HasIntervals() {
		return nil, &tableerr.NoGranularity{}
	}
	span, err := predicate.ParseTouched(r.Start, r.End, s.IndexField().Type)
	if err != nil {
		return nil, err
	}
	p.window, p.empty = coverage.Window{First: s.Domain.ID(span.First), Last: s.Domain.ID(span.Last)}, span.Empty
	if !r.AllEntities {
		if p.entities, err = predicate.ParseEntities(r.Entities, s.Layout, s.EntityTypes()); err != nil {
			return nil, err
		}
		if err = p.entities.Fit(); err != nil {
			return nil, err
		}
	}
	p.schema = p.makeSchema()
	return p, nil
}

func (p *Plan) setKind(r Request) error {
	switch r.Kind {
	case KindMissing, KindCovered, KindSummary:
		if r.N != nil {
			return tableerr.InvalidField("n", "n goes with the kind %s only", KindLastWindow)
		}
		return nil
	case KindLastWindow:
		if r.N == nil {
			return tableerr.InvalidField("n", "the kind %s needs n, the number of intervals", KindLastWindow)
		}
		if *r.N < 1 {
			return tableerr.InvalidField("n", "n is a number of intervals and at least 1, not %d", *r.N).WithValue(*r.N)
		}
		p.n = uint64(*r.N)
		return nil
	}
	return tableerr.InvalidField("kind", "kind %q is none of %s, %s, %s and %s", r.Kind, KindMissing, KindCovered, KindSummary, KindLastWindow).WithValue(r.Kind)
}

// makeSchema returns the schema of the kind's rows.
func (p *Plan) makeSchema() *arrow.Schema {
	var fields []arrow.Field
	for i, t := range p.snap.EntityTypes() {
		fields = append(fields, arrow.Field{Name: p.snap.Def.EntityColumns[i], Type: convert.Compat(t)})
	}
	index, count := p.snap.IndexField().Type, arrow.PrimitiveTypes.Uint64
	switch p.kind {
	case KindSummary:
		fields = append(fields, arrow.Field{Name: "covered_ratio", Type: arrow.PrimitiveTypes.Float64}, arrow.Field{Name: "covered_intervals", Type: count},
			arrow.Field{Name: "missing_intervals", Type: count}, arrow.Field{Name: "longest_gap_intervals", Type: count})
	case KindLastWindow:
		fields = append(fields, arrow.Field{Name: "start", Type: index, Nullable: true}, arrow.Field{Name: "end", Type: index, Nullable: true})
	default:
		fields = append(fields, arrow.Field{Name: "start", Type: index}, arrow.Field{Name: "end", Type: index, Nullable: true},
			arrow.Field{Name: "intervals", Type: count})
	}
	return arrow.NewSchema(fields, nil)
}

// Schema is the schema of every batch.
func (p *Plan) Schema() *arrow.Schema { return p.schema }

// Run makes the rows, by entity and start, and gives them to yield batch by
// batch; an error of yield ends it. A batch is valid until yield returns.
func (p *Plan) Run(ctx context.Context, yield func(arrow.RecordBatch) error) error {
	all, err := p.data.Coverage(ctx, p.snap)
	if err != nil {
		return err
	}
	out := newOutput(p, yield)
	defer out.release()
	if err := p.each(all, func(e coverage.Entity) error { return p.entity(ctx, all, e, out) }); err != nil {
		return err
	}
	return out.flush()
}

// each visits the entities that the query is about, by key.
func (p *Plan) each(all *coverage.Merged, visit func(coverage.Entity) error) error {
	if p.entities == nil && p.snap.Layout.Len() > 0 {
		for e := range all.Entities() {
			if err := visit(e); err != nil {
				return err
			}
		}
		return nil
	}
	for _, key := range p.keys(all) {
		e, _ := all.Find(key)
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// keys returns the entities that a request names: full identities whether or
// not they have rows, and those with rows that a partial one agrees with. A
// table without entity columns is one series.
func (p *Plan) keys(all *coverage.Merged) []string {
	if p.entities == nil {
		return []string{""}
	}
	if keys, full := p.entities.Keys(); full {
		return keys
	}
	keys := p.entities.Full()
	for e := range all.Entities() {
		if p.entities.Match(e.Key) {
			keys = append(keys, e.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// entity makes the rows of one entity.
func (p *Plan) entity(ctx context.Context, all *coverage.Merged, e coverage.Entity, out *output) error {
	if err := out.begin(ctx, e.Key); err != nil {
		return err
	}
	runs := all.Runs(e, p.window)
	if p.empty {
		runs = func(func(uint64, uint64) bool) {}
	}
	switch p.kind {
	case KindSummary:
		if p.empty {
			return out.summary(ctx, coverage.Summary{})
		}
		return out.summary(ctx, coverage.Summarize(runs, p.window))
	case KindLastWindow:
		w, ok := coverage.LastWindow(runs, p.n)
		return out.window(ctx, w, ok)
	case KindMissing:
		if p.empty {
			return nil
		}
		runs = coverage.Gaps(runs, p.window)
	}
	for first, last := range runs {
		if err := out.run(ctx, coverage.Window{First: first, Last: last}); err != nil {
			return err
		}
	}
	return nil
}
