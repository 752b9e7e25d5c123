package flightsrv

import (
	"context"
	"encoding/json"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/descriptors"
	"contrail/flightsrv/internal/wire"
	"contrail/tablecore"
	"contrail/tablecore/tableerr"
)

// read is what a GetFlightInfo, GetSchema or DoGet is about, resolved: a scan's
// plan, or a listing, which is also what an explain, a latest and a coverage
// are.
type read struct {
	request *descriptors.Read
	plan    *tablecore.ScanPlan // of a scan
	listing *tablecore.Listing  // of all others
}

// resolve plans what a request asks for. Equal requests about one version give
// equal plans.
func (s *Server) resolve(ctx context.Context, request *descriptors.Read) (*read, error) {
	r := &read{request: request}
	if scan := request.Scan; scan != nil {
		plan, err := s.plan(ctx, scan)
		if err != nil {
			return nil, err
		}
		if scan.Explain {
			r.listing = plan.Explain()
		} else {
			r.plan = plan
		}
		return r, nil
	}
	var err error
	switch {
	case request.Latest != nil:
		r.listing, err = s.latest(ctx, request.Latest)
	case request.Coverage != nil:
		r.listing, err = s.coverage(ctx, request.Coverage)
	default:
		r.listing, err = s.listing(ctx, request.Listing)
	}
	return r, err
}

func (s *Server) plan(ctx context.Context, scan *descriptors.Scan) (*tablecore.ScanPlan, error) {
	table, err := s.table(ctx, scan.Table)
	if err != nil {
		return nil, err
	}
	o := tablecore.ScanOptions{Columns: scan.Columns, Entities: entityFilters(scan.Entities), Start: scan.Start, End: scan.End, Version: scan.Version, AsOf: scan.AsOf,
		TableID: scan.TableID, Limit: scan.Limit, Order: scan.Order, NewestFirst: scan.NewestFirst, Profile: scan.Profile, BatchRows: int(scan.BatchRows),
		SinceVersion: scan.SinceVersion, Changes: scan.Changes}
	for _, c := range scan.Filter {
		o.Filter = append(o.Filter, tablecore.Condition{Column: c.Column, Op: c.Op, Value: c.Value})
	}
	if scan.Split != nil {
		o.Split = &tablecore.Split{Index: int(scan.Split.Index), Count: int(scan.Split.Count)}
	}
	return table.PlanScan(ctx, o)
}

func (s *Server) latest(ctx context.Context, l *descriptors.Latest) (*tablecore.Listing, error) {
	table, err := s.table(ctx, l.Table)
	if err != nil {
		return nil, err
	}
	return table.Latest(ctx, tablecore.LatestOptions{Columns: l.Columns, Entities: entityFilters(l.Entities), At: l.At,
		Version: l.Version, AsOf: l.AsOf, TableID: l.TableID})
}

func (s *Server) coverage(ctx context.Context, c *descriptors.Coverage) (*tablecore.Listing, error) {
	table, err := s.table(ctx, c.Table)
	if err != nil {
		return nil, err
	}
	return table.Coverage(ctx, tablecore.CoverageOptions{Kind: c.Kind, Entities: entityFilters(c.Entities), Start: c.Start, End: c.End,
		N: c.N, Version: c.Version, AsOf: c.AsOf, TableID: c.TableID})
}

// entityFilters are the identities of a request, nil where it names none.
func entityFilters(entities []descriptors.Entity) []tablecore.EntityFilter {
	if entities == nil {
		return nil
	}
	filters := make([]tablecore.EntityFilter, len(entities))
	for i, e := range entities {
		filters[i] = e.Map()
	}
	return filters
}

func (s *Server) listing(ctx context.Context, l *descriptors.Listing) (*tablecore.Listing, error) {
	if l.Op == descriptors.OpTables {
		return s.opts.Warehouse.Tables(), nil
	}
	table, err := s.table(ctx, l.Table)
	if err != nil {
		return nil, err
	}
	at := tablecore.At{Version: l.Version, AsOf: l.AsOf, TableID: l.TableID}
	switch l.Op {
	case descriptors.OpHistory:
		return table.History(ctx, l.TableID)
	case descriptors.OpFiles:
		return table.Files(ctx, at)
	case descriptors.OpEntities:
		return table.Entities(ctx, at)
	}
	return nil, tableerr.InvalidField("op", "%q is no listing", l.Op)
}

func (r *read) schema() *arrow.Schema {
	if r.plan != nil {
		return r.plan.Schema()
	}
	return r.listing.Schema()
}

// metadata is the app_metadata of a FlightInfo.
func (r *read) metadata() ([]byte, error) {
	table, id, version := r.target()
	if table == "" { // about no table
		return json.Marshal(map[string]string{"schema_id": r.schemaID()})
	}
	return json.Marshal(descriptors.FlightMetadata{Table: table, TableID: id, Version: version, SchemaID: r.schemaID()})
}

// schemaID is the fingerprint of the schema.
func (r *read) schemaID() string {
	if r.plan != nil {
		return r.plan.SchemaID()
	}
	return r.listing.SchemaID()
}

// target is the table and version that are read: its name, "" for the listing of
// all tables, its identity and the version.
func (r *read) target() (table, id string, version int64) {
	if r.plan != nil {
		return r.plan.Table().String(), r.plan.TableID(), r.plan.Version()
	}
	return r.listing.Table(), r.listing.TableID(), r.listing.Version()
}

// pin keeps what is read until its tickets run out.
func (r *read) pin(until time.Time) {
	if r.plan != nil {
		r.plan.Pin(until)
	} else {
		r.listing.Pin(until)
	}
}

// pinned returns the ticket for part index of count, fixed to the table and
// version of the plan.
func (r *read) pinned(index, count int) ([]byte, error) {
	table, id, version := r.target()
	switch {
	case r.request.Latest != nil:
		pinned := *r.request.Latest
		pinned.Table, pinned.TableID, pinned.Version, pinned.AsOf = table, id, &version, nil
		return pinned.Encode()
	case r.request.Coverage != nil:
		pinned := *r.request.Coverage
		pinned.Table, pinned.TableID, pinned.Version, pinned.AsOf = table, id, &version, nil
		return pinned.Encode()
	case r.request.Listing != nil:
		pinned := *r.request.Listing
		if pinned.Op != descriptors.OpTables {
			pinned.Table, pinned.TableID = table, id
		}
		if pinned.Op == descriptors.OpFiles || pinned.Op == descriptors.OpEntities {
			pinned.Version, pinned.AsOf = &version, nil
		}
		return pinned.Encode()
	}
	pinned := *r.request.Scan
	pinned.Table, pinned.TableID, pinned.Version, pinned.AsOf, pinned.MaxEndpoints = table, id, &version, nil, 0
	if count > 1 {
		pinned.Split = &descriptors.Split{Index: int64(index), Count: int64(count)}
	}
	return pinned.Encode()
}

// compression is how the bodies of the batches are packed.
func (r *read) compression() string {
	if r.request.Scan == nil {
		return descriptors.CompressionNone
	}
	return r.request.Scan.Compression
}

// run gives the batches to yield and returns what the read did.
func (r *read) run(ctx context.Context, waited time.Duration, yield func(arrow.RecordBatch) error) (tablecore.ScanStats, error) {
	if r.plan == nil {
		stats := tablecore.ScanStats{Version: r.listing.Version(), QueueMS: waited.Milliseconds()}
		err := r.listing.Run(ctx, func(batch arrow.RecordBatch) error {
			stats.Rows += batch.NumRows()
			return yield(batch)
		})
		return stats, err
	}
	reader, err := r.plan.Open(ctx)
	if err != nil {
		return tablecore.ScanStats{}, err
	}
	defer reader.Release()
	if err := wire.Ahead(ctx, reader.Next, yield); err != nil {
		return tablecore.ScanStats{}, err
	}
	stats := reader.Stats()
	stats.QueueMS = waited.Milliseconds()
	return stats, nil
}
