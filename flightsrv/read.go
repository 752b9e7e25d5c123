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
// plan, or a listing.
type read struct {
	request *descriptors.Read
	plan    *tablecore.ScanPlan // nil for a listing and an explain
	listing *tablecore.Listing
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
	r.listing, err = s.listing(ctx, request.Listing)
	return r, err
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

// tableName is the table that is read, "" for the listing of all tables.
func (r *read) tableName() string {
	if r.plan != nil {
		return r.plan.Table().String()
	}
	return r.listing.Table()
}

func (r *read) schema() *arrow.Schema {
	if r.plan != nil {
		return r.plan.Schema()
	}
	return r.listing.Schema()
}

// metadata is the app_metadata of a FlightInfo.
func (r *read) metadata() ([]byte, error) {
	m := descriptors.FlightMetadata{}
	switch {
	case r.plan != nil:
		m = descriptors.FlightMetadata{Table: r.plan.Table().String(), TableID: r.plan.TableID(), Version: r.plan.Version(), SchemaID: r.plan.SchemaID()}
	case r.listing.Table() != "":
		m = descriptors.FlightMetadata{Table: r.listing.Table(), TableID: r.listing.TableID(), Version: r.listing.Version(), SchemaID: r.listing.SchemaID()}
	default: // about no table
		return json.Marshal(map[string]string{"schema_id": r.listing.SchemaID()})
	}
	return json.Marshal(m)
}

// pinned returns the ticket for part index of count, fixed to the table and
// version of the plan.
func (r *read) pinned(index, count int) ([]byte, error) {
	if l := r.request.Listing; l != nil {
		pinned := *l
		if l.Op != descriptors.OpTables {
			pinned.Table, pinned.TableID = r.listing.Table(), r.listing.TableID()
		}
		if l.Op == descriptors.OpFiles || l.Op == descriptors.OpEntities {
			version := r.listing.Version()
			pinned.Version, pinned.AsOf = &version, nil
		}
		return pinned.Encode()
	}
	pinned := *r.request.Scan
	version := int64(0)
	if r.plan != nil {
		pinned.Table, pinned.TableID, version = r.plan.Table().String(), r.plan.TableID(), r.plan.Version()
	} else {
		pinned.Table, pinned.TableID, version = r.listing.Table(), r.listing.TableID(), r.listing.Version()
	}
	pinned.Version, pinned.AsOf, pinned.MaxEndpoints = &version, nil, 0
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
