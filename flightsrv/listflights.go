package flightsrv

import (
	"github.com/apache/arrow-go/v18/arrow/flight"

	"contrail/tablecore/tabledef"
)

// ListFlights gives one FlightInfo a table: its PATH descriptor and nothing
// else, so that listing opens no table. The criteria are empty or a namespace.
func (s *Server) ListFlights(criteria *flight.Criteria, stream flight.FlightService_ListFlightsServer) error {
	namespace := string(criteria.GetExpression())
	if namespace != "" {
		if err := tabledef.CheckNamePart("criteria", namespace); err != nil {
			return err
		}
	}
	names, err := s.opts.Warehouse.TableNames(stream.Context(), namespace)
	if err != nil {
		return err
	}
	for _, name := range names {
		info := &flight.FlightInfo{
			FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{name.Namespace, name.Table}},
			TotalRecords:     -1,
			TotalBytes:       -1,
		}
		if err := stream.Send(info); err != nil {
			return err
		}
	}
	return nil
}
