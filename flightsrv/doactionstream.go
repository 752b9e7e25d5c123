package flightsrv

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"contrail/descriptors"
	"contrail/tablecore"
)

// streaming holds the actions that send messages before their result.
var streaming = map[string]func(*Server, context.Context, []byte, messages) (any, error){
	descriptors.ActionCheck:    (*Server).check,
	descriptors.ActionOptimize: (*Server).optimize,
	descriptors.ActionUpgrade:  (*Server).upgrade,
	descriptors.ActionVacuum:   (*Server).vacuum,
}

// messages sends what goes before an action's result. It is for one goroutine
// at a time.
type messages struct {
	stream flight.FlightService_DoActionServer
}

// send sends one object. It fails when the client is gone.
func (m messages) send(message any) error {
	body, err := descriptors.EncodeMessage(message)
	if err != nil {
		return err
	}
	return m.stream.Send(&flight.Result{Body: body})
}

// progress tells how far the action has come. Whether the client is still there
// is for the action's context to say.
func (m messages) progress(p tablecore.Progress) {
	_ = m.send(map[string]tablecore.Progress{"progress": p})
}
