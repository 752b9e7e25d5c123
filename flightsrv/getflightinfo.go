package flightsrv

import (
	"context"
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/protobuf/types/known/timestamppb"

	"contrail/descriptors"
	"contrail/flightsrv/internal/wire"
	"contrail/tablecore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// maxEndpoints bounds the endpoints of a FlightInfo, whatever a client asks for.
const maxEndpoints = 1024

// GetFlightInfo plans a scan, or the whole table of a PATH, at one version and
// says where to get its rows.
func (s *Server) GetFlightInfo(ctx context.Context, descriptor *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	scan, err := scanOf(descriptor)
	if err != nil {
		return nil, err
	}
	plan, err := s.plan(ctx, scan)
	if err != nil {
		return nil, err
	}
	endpoints, err := s.endpoints(ctx, scan, plan)
	if err != nil {
		return nil, err
	}
	metadata, err := json.Marshal(descriptors.FlightMetadata{Table: plan.Table().String(), TableID: plan.TableID(),
		Version: plan.Version(), SchemaID: plan.SchemaID()})
	if err != nil {
		return nil, err
	}
	return &flight.FlightInfo{
		Schema:           wire.SchemaBytes(plan.Schema()),
		FlightDescriptor: descriptor,
		Endpoint:         endpoints,
		TotalRecords:     plan.Rows(),
		TotalBytes:       -1, // what the rows take depends on the client's encoding of them
		Ordered:          true,
		AppMetadata:      metadata,
	}, nil
}

// scanOf returns the scan that a descriptor asks for.
func scanOf(d *flight.FlightDescriptor) (*descriptors.Scan, error) {
	switch d.GetType() {
	case flight.DescriptorPATH:
		table, err := descriptors.TableOfPath(d.GetPath())
		if err != nil {
			return nil, err
		}
		return &descriptors.Scan{Table: table}, nil
	case flight.DescriptorCMD:
		return descriptors.ParseScan(d.GetCmd())
	default:
		return nil, tableerr.InvalidField("descriptor", "the descriptor is neither a path nor a command")
	}
}

// plan plans a scan. Equal scans of one version give equal plans.
func (s *Server) plan(ctx context.Context, scan *descriptors.Scan) (*tablecore.ScanPlan, error) {
	table, err := s.table(ctx, scan.Table)
	if err != nil {
		return nil, err
	}
	o := tablecore.ScanOptions{Columns: scan.Columns, Start: scan.Start, End: scan.End, Version: scan.Version,
		TableID: scan.TableID, Profile: scan.Profile, BatchRows: int(scan.BatchRows)}
	if scan.Entities != nil {
		o.Entities = make([]tablecore.EntityFilter, len(scan.Entities))
		for i, e := range scan.Entities {
			o.Entities[i] = e.Map()
		}
	}
	if scan.Split != nil {
		o.Split = &tablecore.Split{Index: int(scan.Split.Index), Count: int(scan.Split.Count)}
	}
	return table.PlanScan(ctx, o)
}

// endpoints returns one endpoint for each split of the plan, its ticket pinned
// to the plan's table and version.
func (s *Server) endpoints(ctx context.Context, scan *descriptors.Scan, plan *tablecore.ScanPlan) ([]*flight.FlightEndpoint, error) {
	splits, err := plan.Splits(ctx, int(min(max(1, scan.MaxEndpoints), maxEndpoints)))
	if err != nil {
		return nil, err
	}
	version := plan.Version()
	pinned := *scan
	pinned.Table, pinned.TableID, pinned.Version, pinned.MaxEndpoints = plan.Table().String(), plan.TableID(), &version, 0
	expires := timestamppb.New(s.opts.Clock().Add(s.opts.TicketLifetime))
	locations := make([]*flight.Location, len(s.opts.Advertise))
	for i, uri := range s.opts.Advertise {
		locations[i] = &flight.Location{Uri: uri}
	}
	endpoints := make([]*flight.FlightEndpoint, len(splits))
	for i := range splits {
		if len(splits) > 1 {
			pinned.Split = &descriptors.Split{Index: int64(i), Count: int64(len(splits))}
		}
		ticket, err := pinned.Encode()
		if err != nil {
			return nil, err
		}
		endpoints[i] = &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: ticket}, Location: locations, ExpirationTime: expires}
	}
	return endpoints, nil
}

// nameOf returns the table's name of a request that has been parsed, for
// errors that happen on the way to the table.
func nameOf(text string) string {
	name, err := tabledef.ParseName(text)
	if err != nil {
		return text
	}
	return name.String()
}
