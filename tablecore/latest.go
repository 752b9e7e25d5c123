package tablecore

import (
	"context"
	"encoding/json"
	"time"

	"contrail/tablecore/internal/scan"
)

// LatestOptions say which newest rows of which version are read. Values are
// JSON because what they mean depends on the columns' types. The zero value
// asks for the newest row of every entity.
type LatestOptions struct {
	Columns  []string        // nil = all but the insertion-time column
	Entities []EntityFilter  // full or partial identities; nil = all, empty = none
	At       json.RawMessage // rows behind it do not count; nil = all do
	Version  *int64          // nil = newest
	AsOf     *time.Time      // the newest version committed at or before it, in place of Version
	TableID  string          // "" = whatever table has the name
}

// Latest gives the newest row of each entity, by entity, in the compat profile:
// always the row that a sorted scan of the entity gives last, of rows with equal
// index values the one with the later insertion time, then of the later
// commit, then the later row. INVALID for a table without a schema, UNSUPPORTED
// where a data file is not sorted.
//
// The answer comes from the files' derived data and the rows that they name,
// kept in memory from the first use on; beyond the check whether the version is
// current a warm one reads nothing. With At, entities that have rows behind it
// are looked up in the files.
func (t *Table) Latest(ctx context.Context, o LatestOptions) (*Listing, error) {
	s, err := t.indexed(ctx, At{Version: o.Version, AsOf: o.AsOf, TableID: o.TableID})
	if err != nil {
		return nil, t.wrap(err)
	}
	latest, err := scan.NewLatest(s, t.files, t.series, t.warehouse.opts.Allocator, scan.LatestRequest{Columns: o.Columns, Entities: o.Entities,
		AllEntities: o.Entities == nil, At: o.At})
	if err != nil {
		return nil, t.wrap(err)
	}
	return t.streamed(s, latest.Schema(), latest.Run), nil
}
