package flightsrv

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/descriptors"
	"contrail/tablecore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// The actions on the warehouse, and on tables that need not be there or open.

func (s *Server) createTable(ctx context.Context, body []byte, _ messages) (any, error) {
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
	ctx, cancel := detached(ctx, actionTimeout)
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

func (s *Server) dropTable(ctx context.Context, body []byte, _ messages) (any, error) {
	r, err := descriptors.ParseDropTable(body)
	if err != nil {
		return nil, err
	}
	name, err := tabledef.ParseName(r.Table)
	if err != nil {
		return nil, err
	}
	ctx, cancel := detached(ctx, actionTimeout)
	defer cancel()
	return s.opts.Warehouse.DropTable(ctx, name, tablecore.DropOptions{ExpectedVersion: r.ExpectedVersion, DryRun: r.DryRun, TableID: r.TableID})
}

func (s *Server) listTables(ctx context.Context, body []byte, _ messages) (any, error) {
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

// check answers with what it finds, as it finds it, and then with the report. It
// ends with its client: what it repairs is right whenever it stops.
func (s *Server) check(ctx context.Context, body []byte, out messages) (any, error) {
	r, err := descriptors.ParseCheck(body)
	if err != nil {
		return nil, err
	}
	name, err := tabledef.ParseName(r.Table)
	if err != nil {
		return nil, err
	}
	return s.opts.Warehouse.Check(ctx, name, tablecore.CheckOptions{Repair: r.Repair, TableID: r.TableID, Progress: out.progress,
		Findings: func(found []tablecore.CheckFinding) error {
			return out.send(map[string][]tablecore.CheckFinding{"findings": found})
		}})
}

func (s *Server) serverInfo(_ context.Context, body []byte, _ messages) (any, error) {
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
