package flightsrv

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/protobuf/types/known/timestamppb"

	"contrail/descriptors"
	"contrail/flightsrv/internal/wire"
	"contrail/tablecore/tableerr"
)

// maxEndpoints bounds the endpoints of a FlightInfo, whatever a client asks for.
const maxEndpoints = 1024

// GetFlightInfo plans a scan, or the whole table of a PATH, at one version, or
// describes a listing, and says where to get its rows.
func (s *Server) GetFlightInfo(ctx context.Context, descriptor *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	request, err := readOf(descriptor)
	if err != nil {
		return nil, err
	}
	r, err := s.resolve(ctx, request)
	if err != nil {
		return nil, err
	}
	endpoints, err := s.endpoints(ctx, r)
	if err != nil {
		return nil, err
	}
	metadata, err := r.metadata()
	if err != nil {
		return nil, err
	}
	info := &flight.FlightInfo{
		Schema:           wire.SchemaBytes(r.schema()),
		FlightDescriptor: descriptor,
		Endpoint:         endpoints,
		TotalRecords:     -1,
		TotalBytes:       -1, // what the rows take depends on the client's encoding of them
		Ordered:          true,
		AppMetadata:      metadata,
	}
	if r.plan != nil {
		info.TotalRecords, info.Ordered = r.plan.Rows(), r.plan.Ordered()
	}
	return info, nil
}

// readOf returns what a descriptor asks for.
func readOf(d *flight.FlightDescriptor) (*descriptors.Read, error) {
	switch d.GetType() {
	case flight.DescriptorPATH:
		table, err := descriptors.TableOfPath(d.GetPath())
		if err != nil {
			return nil, err
		}
		return &descriptors.Read{Scan: &descriptors.Scan{Table: table}}, nil
	case flight.DescriptorCMD:
		return descriptors.ParseCommand(d.GetCmd())
	default:
		return nil, tableerr.InvalidField("descriptor", "the descriptor is neither a path nor a command")
	}
}

// endpoints returns one endpoint for each split of a plan, or the one of a
// listing, its ticket pinned to the table and version.
func (s *Server) endpoints(ctx context.Context, r *read) ([]*flight.FlightEndpoint, error) {
	count := 1
	if r.plan != nil {
		splits, err := r.plan.Splits(ctx, int(min(max(1, r.request.Scan.MaxEndpoints), maxEndpoints)))
		if err != nil {
			return nil, err
		}
		count = len(splits)
	}
	until := s.opts.Clock().Add(s.opts.TicketLifetime)
	r.pin(until)
	expires := timestamppb.New(until)
	locations := make([]*flight.Location, len(s.opts.Advertise))
	for i, uri := range s.opts.Advertise {
		locations[i] = &flight.Location{Uri: uri}
	}
	endpoints := make([]*flight.FlightEndpoint, count)
	for i := range endpoints {
		ticket, err := r.pinned(i, count)
		if err != nil {
			return nil, err
		}
		endpoints[i] = &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: ticket}, Location: locations, ExpirationTime: expires}
	}
	return endpoints, nil
}
