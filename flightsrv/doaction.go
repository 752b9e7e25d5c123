package flightsrv

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/protobuf/proto"

	"contrail/descriptors"
	"contrail/tablecore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// actionTimeout bounds an action that goes on although its client is gone.
const actionTimeout = time.Minute

// actions holds what each action does with its body; the answer becomes the
// result object.
var actions = map[string]func(*Server, context.Context, []byte) (any, error){
	descriptors.ActionCreateTable:   (*Server).createTable,
	descriptors.ActionDropTable:     (*Server).dropTable,
	descriptors.ActionListTables:    (*Server).listTables,
	descriptors.ActionDescribeTable: (*Server).describeTable,
	descriptors.ActionAddColumns:    (*Server).addColumns,
	descriptors.ActionRollback:      (*Server).rollback,
	descriptors.ActionSetProperties: (*Server).setProperties,
	descriptors.ActionCheckpoint:    (*Server).checkpoint,
	descriptors.ActionCommitStaged:  (*Server).commitStaged,
	descriptors.ActionAbortStaged:   (*Server).abortStaged,
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
	answer, err := s.run(action, stream)
	if err != nil {
		return err
	}
	body, err := descriptors.EncodeResult(answer)
	if err != nil {
		return err
	}
	return stream.Send(&flight.Result{Body: body})
}

// run runs one of our actions and returns its result.
func (s *Server) run(action *flight.Action, stream flight.FlightService_DoActionServer) (any, error) {
	if run, ok := actions[action.GetType()]; ok {
		return run(s, stream.Context(), action.GetBody())
	}
	if run, ok := streaming[action.GetType()]; ok {
		return run(s, stream.Context(), action.GetBody(), messages{stream})
	}
	return nil, descriptors.UnknownAction(action.GetType())
}

// detached returns a context for work that must not stop half-way because its
// client dropped the answer's iterator, which cancels the call.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), actionTimeout)
}

func (s *Server) createTable(ctx context.Context, body []byte) (any, error) {
	r, err := descriptors.ParseCreateTable(body)
	if err != nil {
		return nil, err
	}
	name, err := tabledef.ParseName(r.Table)
	if err != nil {
		return nil, err
	}
	schema, err := requestedSchema(r.SchemaIPC, r.Columns)
	if err != nil {
		return nil, tableerr.WithTable(err, name.String())
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return s.opts.Warehouse.CreateTable(ctx, tablecore.CreateOptions{
		Name: name, IndexColumn: r.IndexColumn, IndexType: r.IndexType, IndexGranularity: r.IndexGranularity,
		EntityColumns: r.EntityColumns, Timezone: r.Timezone, Uniqueness: r.Uniqueness,
		IngestTimeColumn: r.IngestTimeColumn, Properties: r.Properties, Schema: schema,
		LeastSnapshotRetention: s.opts.TicketLifetime,
	})
}

// requestedSchema returns the schema that a request gives as an IPC message or
// as columns, nil where it has none.
func requestedSchema(ipc []byte, columns []descriptors.Column) (*arrow.Schema, error) {
	if ipc != nil {
		schema, err := tabledef.DecodeSchemaIPC(ipc)
		if err != nil {
			e := tableerr.InvalidField("schema_ipc", "schema_ipc is no IPC schema message: %v", err)
			e.Cause = err
			return nil, e
		}
		return schema, nil
	}
	if columns == nil {
		return nil, nil
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		typ, err := tabledef.ParseType(c.Type)
		if err != nil {
			return nil, &tableerr.Invalid{Field: fmt.Sprintf("columns[%d].type", i), Value: c.Type, Msg: err.Error(), Cause: err}
		}
		fields[i] = arrow.Field{Name: c.Name, Type: typ, Nullable: !c.NotNull}
	}
	return arrow.NewSchema(fields, nil), nil
}

func (s *Server) dropTable(ctx context.Context, body []byte) (any, error) {
	r, err := descriptors.ParseDropTable(body)
	if err != nil {
		return nil, err
	}
	name, err := tabledef.ParseName(r.Table)
	if err != nil {
		return nil, err
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return s.opts.Warehouse.DropTable(ctx, name, tablecore.DropOptions{ExpectedVersion: r.ExpectedVersion, DryRun: r.DryRun, TableID: r.TableID})
}

func (s *Server) listTables(ctx context.Context, body []byte) (any, error) {
	r, err := descriptors.ParseListTables(body)
	if err != nil {
		return nil, err
	}
	if r.Namespace != "" {
		if err := tabledef.CheckNamePart("namespace", r.Namespace); err != nil {
			return nil, err
		}
	}
	tables, err := s.opts.Warehouse.ListTables(ctx, r.Namespace)
	if err != nil {
		return nil, err
	}
	return descriptors.NewTableList(tables), nil
}

func (s *Server) describeTable(ctx context.Context, body []byte) (any, error) {
	r, err := descriptors.ParseDescribeTable(body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	return table.Describe(ctx, tablecore.At{Version: r.Version, AsOf: r.AsOf, TableID: r.TableID})
}

func (s *Server) rollback(ctx context.Context, body []byte) (any, error) {
	r, err := descriptors.ParseRollback(body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return table.Rollback(ctx, tablecore.RollbackOptions{
		Version: r.Version, ExpectedVersion: r.ExpectedVersion, Release: r.Release, DryRun: r.DryRun, TableID: r.TableID,
	})
}

// table returns the table of a request's name.
func (s *Server) table(ctx context.Context, text string) (*tablecore.Table, error) {
	name, err := tabledef.ParseName(text)
	if err != nil {
		return nil, err
	}
	return s.opts.Warehouse.Table(ctx, name)
}

func (s *Server) serverInfo(_ context.Context, body []byte) (any, error) {
	if err := descriptors.ParseServerInfo(body); err != nil {
		return nil, err
	}
	return descriptors.ServerInfo{
		Name: "contrail", Version: tabledef.SoftwareVersion, ProtocolVersion: descriptors.ProtocolVersion,
		FormatVersion:          tabledef.CurrentFormat.String(),
		MaxReceiveMessageBytes: s.opts.Limits.MaxReceiveMessageBytes, MaxSendMessageBytes: s.opts.Limits.MaxSendMessageBytes,
		DefaultProfile: descriptors.ProfileCompat, Served: s.served.total(),
	}, nil
}

// closeSession answers the standard action of clients that say goodbye.
func (s *Server) closeSession(context.Context, []byte) (proto.Message, error) {
	return &flight.CloseSessionResult{Status: flight.CloseSessionResultClosed}, nil
}
