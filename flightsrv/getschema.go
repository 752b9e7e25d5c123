package flightsrv

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"contrail/flightsrv/internal/wire"
)

// GetSchema returns the schema of a scan's rows, also of a table that has none.
func (s *Server) GetSchema(ctx context.Context, descriptor *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	scan, err := scanOf(descriptor)
	if err != nil {
		return nil, err
	}
	plan, err := s.plan(ctx, scan)
	if err != nil {
		return nil, err
	}
	return &flight.SchemaResult{Schema: wire.SchemaBytes(plan.Schema())}, nil
}
