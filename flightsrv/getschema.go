package flightsrv

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"contrail/flightsrv/internal/wire"
)

// GetSchema returns the schema of the rows of a scan or listing, also of a table
// that has none.
func (s *Server) GetSchema(ctx context.Context, descriptor *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	request, err := readOf(descriptor)
	if err != nil {
		return nil, err
	}
	r, err := s.resolve(ctx, request)
	if err != nil {
		return nil, err
	}
	return &flight.SchemaResult{Schema: wire.SchemaBytes(r.schema())}, nil
}
