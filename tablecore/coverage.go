package tablecore

import (
	"context"
	"encoding/json"
	"time"

	"contrail/tablecore/internal/gaps"
	"contrail/tablecore/internal/snapshot"
)

// The kinds of a coverage query.
const (
	CoverageMissing    = gaps.KindMissing    // a row a run of intervals without rows
	CoverageCovered    = gaps.KindCovered    // a row a run of intervals with rows
	CoverageSummary    = gaps.KindSummary    // a row an entity with counts
	CoverageLastWindow = gaps.KindLastWindow // a row an entity with the newest N covered intervals in a row
)

// CoverageOptions say what is asked about which intervals of which version.
// Values are JSON because what they mean depends on the columns' types.
type CoverageOptions struct {
	Kind string
	// Entities are full or partial identities; nil = every entity that has a
	// row. A full identity without rows misses the whole range, a partial one
	// that no entity agrees with stands for nothing.
	Entities   []EntityFilter
	Start, End json.RawMessage // half-open range on the index, nil = to the end of the domain
	N          *int64          // at least 1, for CoverageLastWindow only
	Version    *int64          // nil = newest
	AsOf       *time.Time      // the newest version committed at or before it, in place of Version
	TableID    string          // "" = whatever table has the name
}

// Coverage tells which intervals have rows, by entity and start. The range
// stands for every interval that it touches, and runs are told in whole
// intervals. NO_GRANULARITY for a table without intervals, INVALID for one
// without a schema and for a request that makes no sense.
//
// The answer comes from the files' derived data, merged in memory at first use;
// beyond the check whether the version is current a warm one reads nothing.
func (t *Table) Coverage(ctx context.Context, o CoverageOptions) (*Listing, error) {
	s, err := t.indexed(ctx, At{Version: o.Version, AsOf: o.AsOf, TableID: o.TableID})
	if err != nil {
		return nil, t.wrap(err)
	}
	plan, err := gaps.NewPlan(s, t.series, t.warehouse.opts.Allocator, gaps.Request{Kind: o.Kind, Entities: o.Entities,
		AllEntities: o.Entities == nil, Start: o.Start, End: o.End, N: o.N})
	if err != nil {
		return nil, t.wrap(err)
	}
	return t.streamed(s, plan.Schema(), plan.Run), nil
}

// indexed returns a snapshot of a table that has an index column.
func (t *Table) indexed(ctx context.Context, at At) (*snapshot.Snapshot, error) {
	s, err := t.at(ctx, at)
	if err != nil {
		return nil, err
	}
	return s, s.CheckIndexed()
}
