// Package scan plans and runs the reading of a table: which files, row groups
// and rows a request needs, how they are divided among endpoints, and the
// stream of batches in the order asked for.
//
// A data file is sorted by (entity, index) and says in its entity directory
// which rows each entity has, so a plan works on runs of rows. A sorted scan
// goes by entity and takes the runs of all files in turn; only runs of one
// entity whose index ranges overlap are merged row by row. An unordered scan
// goes file by file. A scan that gives the newest rows first goes down the index
// in windows of a bounded number of rows.
//
// What a filter leaves out is found in four steps, each of which may only rule
// out what certainly does not match: files by the log's statistics, row groups
// and pages by Parquet's, rows by their values.
package scan

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/predicate"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// The output profiles.
const (
	ProfileCompat = "compat" // plain types every client reads
	ProfileExact  = "exact"  // the declared Arrow types
	ProfileSpark  = "spark"  // the types that Spark has
)

// The orders of a scan.
const (
	OrderEntityIndex = "entity_index" // by entity, then by index
	OrderUnordered   = "unordered"    // as the rows lie in the files
)

// Defaults and limits of a request.
const (
	DefaultBatchRows = 65536
	maxBatchRows     = 1 << 20
	maxEndpoints     = 4096
)

// Request is a scan as a client asks for it. Values are JSON, because what
// they mean depends on the columns' types.
type Request struct {
	Columns      []string // nil = all but the insertion-time column
	Entities     []map[string]json.RawMessage
	AllEntities  bool // Entities was left out
	Start, End   json.RawMessage
	Filter       []predicate.Condition // all must hold
	Limit        *int64                // nil = all rows
	Order        string                // "" = entity_index
	NewestFirst  bool                  // by index descending, then by entity
	Profile      string                // "" = compat
	BatchRows    int                   // 0 = default
	MaxEndpoints int                   // 0 = 1
	Split        *Split
	// Unpruned makes the filter look at every row, so that tests can compare.
	Unpruned bool
}

// Split is one of several parts of a scan.
type Split struct{ Index, Count int }

// query is a request resolved against a snapshot.
type query struct {
	columns   []string // stored columns, in output order
	output    *arrow.Schema
	spark     []arrow.DataType // declared types of the output's columns, in the profile spark only
	span      predicate.Span
	entities  *predicate.Entities // nil = all
	keys      []string            // of entities, ascending, if keyed
	keyed     bool                // all identities are full
	filter    *predicate.Filter   // nil = all rows
	hull      predicate.Span      // no row outside passes the filter
	limit     int64               // −1 = none
	unordered bool
	newest    bool
	unpruned  bool
	batchRows int
	split     Split
}

// resolve checks a request against what the table is.
func resolve(s *snapshot.Snapshot, r Request) (*query, error) {
	q := &query{span: predicate.All, hull: predicate.All, limit: -1, batchRows: DefaultBatchRows, split: Split{0, 1}, unpruned: r.Unpruned}
	if err := q.setOrder(r); err != nil {
		return nil, err
	}
	if err := q.setLimits(r); err != nil {
		return nil, err
	}
	if err := q.setColumns(s.Def, r); err != nil {
		return nil, err
	}
	if s.Def.Stored == nil {
		if len(s.Files) > 0 {
			return nil, &tableerr.Corrupt{Path: "_delta_log", Msg: "the table has data files, but no column"}
		}
		return q, nil // no rows, so no types to check values against
	}
	var err error
	if s.Def.IndexColumn == "" {
		if err = q.setPlain(s, r); err == nil {
			q.filter, err = predicate.ParseFilter(r.Filter, s.Def.Stored)
		}
		return q, err
	}
	if q.span, err = predicate.ParseSpan(r.Start, r.End, s.IndexField().Type); err != nil {
		return nil, err
	}
	if !r.AllEntities {
		if q.entities, err = predicate.ParseEntities(r.Entities, s.Layout, s.EntityTypes()); err != nil {
			return nil, err
		}
		q.keys, q.keyed = q.entities.Keys()
	}
	if q.filter, err = predicate.ParseFilter(r.Filter, s.Def.Stored); err != nil {
		return nil, err
	}
	if !q.unpruned {
		q.hull = hullOf(s, q.filter)
	}
	return q, nil
}

// hullOf bounds the index of the rows that can pass a filter, so that files are
// ruled out without a look at their statistics.
func hullOf(s *snapshot.Snapshot, f *predicate.Filter) predicate.Span {
	index := s.IndexField().Type
	if f == nil || index.ID() == arrow.UINT64 {
		return predicate.All
	}
	ticks := int64(1)
	if stored, ok := tabledef.StorageType(index).(*arrow.TimestampType); ok {
		ticks = int64(index.(*arrow.TimestampType).Unit.Multiplier() / stored.Unit.Multiplier())
	}
	lo, hi := f.Hull(s.Def.IndexColumn)
	if lo > hi {
		return predicate.Span{Empty: true}
	}
	// Rounding towards zero may only widen: a bound between two ticks moves by
	// less than one.
	lo, hi = lo/ticks-1, hi/ticks+1
	if ticks == 1 {
		lo, hi = lo+1, hi-1
	}
	return predicate.Span{First: uint64(lo) ^ 1<<63, Last: uint64(hi) ^ 1<<63}
}

// setPlain fits the query to a plain Delta table, which has neither index nor
// entities and is read in stored order.
func (q *query) setPlain(s *snapshot.Snapshot, r Request) error {
	field := ""
	switch {
	case len(s.State.Metadata().PartitionColumns) > 0:
		return &tableerr.Unsupported{Feature: "partitionColumns", Msg: "the table is a plain Delta table with partition columns, whose values its data files do not hold"}
	case !r.AllEntities:
		field = "entities"
	case r.Start != nil:
		field = "start"
	case r.End != nil:
		field = "end"
	case r.NewestFirst:
		field = "newest_first"
	}
	if field != "" {
		return tableerr.InvalidField(field, "the table is a plain Delta table without an index column, so a scan of it takes no %s", field)
	}
	q.unordered = true
	return nil
}

func (q *query) setOrder(r Request) error {
	switch r.Order {
	case "", OrderEntityIndex:
	case OrderUnordered:
		q.unordered = true
	default:
		return tableerr.InvalidField("order", "order %q is neither entity_index nor unordered", r.Order).WithValue(r.Order)
	}
	if q.newest = r.NewestFirst; q.newest && q.unordered {
		return tableerr.InvalidField("newest_first", "newest_first is an order of its own and does not go with unordered")
	}
	return nil
}

func (q *query) setLimits(r Request) error {
	switch {
	case r.BatchRows < 0 || r.BatchRows > maxBatchRows:
		return tableerr.InvalidField("batch_rows", "batch_rows is a number from 1 to %d, not %d", maxBatchRows, r.BatchRows)
	case r.MaxEndpoints < 0 || r.MaxEndpoints > maxEndpoints:
		return tableerr.InvalidField("max_endpoints", "max_endpoints is a number from 1 to %d, not %d", maxEndpoints, r.MaxEndpoints)
	case r.Limit != nil && *r.Limit < 0:
		return tableerr.InvalidField("limit", "limit is a number of rows, not %d", *r.Limit)
	}
	if r.BatchRows > 0 {
		q.batchRows = r.BatchRows
	}
	if r.Limit != nil {
		q.limit = *r.Limit
	}
	if r.Split == nil {
		return nil
	}
	if r.Split.Count < 1 || r.Split.Count > maxEndpoints || r.Split.Index < 0 || r.Split.Index >= r.Split.Count {
		return tableerr.InvalidField("split", "split %d of %d does not exist", r.Split.Index, r.Split.Count)
	}
	if q.split = *r.Split; !q.divisible() && q.split.Count > 1 {
		return tableerr.InvalidField("split", "a scan with a limit, or one that gives the newest rows first, has one part")
	}
	return nil
}

// divisible says whether the scan can have several parts.
func (q *query) divisible() bool { return q.limit < 0 && !q.newest }

// setColumns resolves the projection and makes the output schema.
func (q *query) setColumns(def *tabledef.Definition, r Request) error {
	if r.Columns != nil && len(r.Columns) == 0 {
		return tableerr.InvalidField("columns", "columns names no column; leave it out to get all of them")
	}
	names := r.Columns
	if names == nil && def.Stored != nil {
		for _, f := range def.Schema().Fields() {
			names = append(names, f.Name)
		}
	}
	var fields []arrow.Field
	for i, name := range names {
		field := "columns[" + strconv.Itoa(i) + "]"
		if slices.Contains(names[:i], name) {
			return invalidName(field, name, "is named twice")
		}
		if def.Stored == nil || !def.Stored.HasField(name) {
			return invalidName(field, name, "is not in the table")
		}
		f, err := outputField(def.Stored.Field(def.Stored.FieldIndices(name)[0]), r.Profile)
		if err != nil {
			return err
		}
		fields = append(fields, f)
		if r.Profile == ProfileSpark {
			q.spark = append(q.spark, def.Stored.Field(def.Stored.FieldIndices(name)[0]).Type)
		}
	}
	q.columns = names
	var md arrow.Metadata
	if def.Stored != nil {
		md = def.Stored.Metadata()
	}
	q.output = arrow.NewSchema(fields, &md)
	return nil
}

func invalidName(field, name, what string) error {
	return tableerr.InvalidField(field, "column %q %s", name, what).WithValue(name)
}

// outputField is a declared field as a profile gives it.
func outputField(f arrow.Field, profile string) (arrow.Field, error) {
	switch profile {
	case "", ProfileCompat:
		f = tabledef.DropExtensions(f)
		f.Type = convert.Compat(f.Type)
	case ProfileExact:
		f = tabledef.RestoreExtensions(f)
	case ProfileSpark:
		f = tabledef.DropExtensions(f)
		f.Type = convert.Spark(f.Type)
	default:
		return f, tableerr.InvalidField("profile", "profile %q is none of compat, exact and spark", profile).WithValue(profile)
	}
	return f, nil
}

// give returns the stored values of the i-th output column as the profile
// gives them.
func (q *query) give(mem memory.Allocator, stored arrow.Array, i int) (arrow.Array, error) {
	if q.spark == nil {
		return convert.FromStorage(mem, stored, q.output.Field(i).Type)
	}
	out, err := convert.ToSpark(mem, stored, q.spark[i])
	var invalid *tableerr.Invalid
	if errors.As(err, &invalid) {
		invalid.Column = q.columns[i]
		invalid.Msg = "column " + strconv.Quote(q.columns[i]) + ": " + invalid.Msg
	}
	return out, err
}
