package flightsrv

import (
	"github.com/apache/arrow-go/v18/arrow/flight"

	"contrail/descriptors"
)

// ListActions describes the actions with their fields.
func (s *Server) ListActions(_ *flight.Empty, stream flight.FlightService_ListActionsServer) error {
	actions := append(descriptors.Actions(),
		descriptors.Action{Name: flight.CloseSessionActionType, Text: "Answers that the session is closed; the server keeps none.", Fields: []descriptors.Field{}},
		descriptors.Action{Name: flight.CancelFlightInfoActionType, Fields: []descriptors.Field{},
			Text: "Ends what this connection reads of a FlightInfo. Flight's CancelFlightInfoRequest and CancelFlightInfoResult."},
		descriptors.Action{Name: flight.RenewFlightEndpointActionType, Fields: []descriptors.Field{},
			Text: "Gives an endpoint a later expiration. Flight's RenewFlightEndpointRequest and FlightEndpoint."})
	for _, a := range actions {
		if err := stream.Send(&flight.ActionType{Type: a.Name, Description: a.Description()}); err != nil {
			return err
		}
	}
	return nil
}
