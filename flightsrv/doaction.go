package flightsrv

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/protobuf/proto"

	"contrail/descriptors"
	"contrail/tablecore"
)

// Bounds of an action that goes on although its client is gone: the second is for
// one that may write many files anew, as staged rows do that replace others.
const (
	actionTimeout = time.Minute
	commitTimeout = time.Hour
)

// action is what an action does with its body. It may send messages before its
// answer, which becomes the result object.
type action func(s *Server, ctx context.Context, body []byte, out messages) (any, error)

// actions holds our actions.
var actions = map[string]action{
	descriptors.ActionCreateTable:   (*Server).createTable,
	descriptors.ActionDropTable:     (*Server).dropTable,
	descriptors.ActionListTables:    (*Server).listTables,
	descriptors.ActionDescribeTable: onTable(descriptors.ParseDescribeTable, tableCall.describe),
	descriptors.ActionAddColumns:    change(descriptors.ParseAddColumns, tableCall.addColumns),
	descriptors.ActionOptimize:      onTable(descriptors.ParseOptimize, tableCall.optimize),
	descriptors.ActionUpgrade:       onTable(descriptors.ParseUpgrade, tableCall.upgrade),
	descriptors.ActionRollback:      change(descriptors.ParseRollback, tableCall.rollback),
	descriptors.ActionSetProperties: change(descriptors.ParseSetProperties, tableCall.setProperties),
	descriptors.ActionCheckpoint:    change(descriptors.ParseCheckpoint, tableCall.checkpoint),
	descriptors.ActionVacuum:        onTable(descriptors.ParseVacuum, tableCall.vacuum),
	descriptors.ActionCheck:         (*Server).check,
	descriptors.ActionCommitStaged:  changeWithin(commitTimeout, descriptors.ParseCommitStaged, tableCall.commitStaged),
	descriptors.ActionAbortStaged:   change(descriptors.ParseAbortStaged, tableCall.abortStaged),
	descriptors.ActionServerInfo:    (*Server).serverInfo,
}

// standard holds the actions of Flight itself, which use its own messages.
var standard = map[string]func(*Server, context.Context, []byte) (proto.Message, error){
	flight.CloseSessionActionType:        (*Server).closeSession,
	flight.CancelFlightInfoActionType:    (*Server).cancelFlightInfo,
	flight.RenewFlightEndpointActionType: (*Server).renewFlightEndpoint,
}

// DoAction runs one action. The last message of ours is {"result":{…}}.
func (s *Server) DoAction(action *flight.Action, stream flight.FlightService_DoActionServer) error {
	if run, ok := standard[action.GetType()]; ok {
		answer, err := run(s, stream.Context(), action.GetBody())
		if err != nil {
			return err
		}
		body, err := proto.Marshal(answer)
		if err != nil {
			return err
		}
		return stream.Send(&flight.Result{Body: body})
	}
	run, ok := actions[action.GetType()]
	if !ok {
		return descriptors.UnknownAction(action.GetType())
	}
	answer, err := run(s, stream.Context(), action.GetBody(), messages{stream})
	if err != nil {
		return err
	}
	body, err := descriptors.EncodeResult(answer)
	if err != nil {
		return err
	}
	return stream.Send(&flight.Result{Body: body})
}

// onTable is an action on the table that its request names. It ends with its
// client.
func onTable[R descriptors.TableRequest](parse func([]byte) (R, error), do func(tableCall, context.Context, R) (any, error)) action {
	return func(s *Server, ctx context.Context, body []byte, out messages) (any, error) {
		request, err := parse(body)
		if err != nil {
			return nil, err
		}
		table, err := s.table(ctx, request.TableName())
		if err != nil {
			return nil, err
		}
		return do(tableCall{s, table, out}, ctx, request)
	}
}

// change is onTable for what goes on without its client once the table is
// found.
func change[R descriptors.TableRequest](parse func([]byte) (R, error), do func(tableCall, context.Context, R) (any, error)) action {
	return changeWithin(actionTimeout, parse, do)
}

// changeWithin is change with a bound of its own.
func changeWithin[R descriptors.TableRequest](limit time.Duration, parse func([]byte) (R, error), do func(tableCall, context.Context, R) (any, error)) action {
	return onTable(parse, func(c tableCall, ctx context.Context, request R) (any, error) {
		ctx, cancel := detached(ctx, limit)
		defer cancel()
		return do(c, ctx, request)
	})
}

// detached returns a context for work that must not stop half-way because its
// client dropped the answer's iterator, which cancels the call.
func detached(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// closeSession answers the standard action of clients that say goodbye.
func (s *Server) closeSession(context.Context, []byte) (proto.Message, error) {
	return &flight.CloseSessionResult{Status: flight.CloseSessionResultClosed}, nil
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
