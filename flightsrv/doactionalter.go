package flightsrv

import (
	"context"

	"contrail/descriptors"
	"contrail/tablecore"
	"contrail/tablecore/tableerr"
)

// The actions that change what a table is, or how it is read, and none of its
// rows. Once their request is read they go on without their client.

func (s *Server) addColumns(ctx context.Context, body []byte) (any, error) {
	r, err := descriptors.ParseAddColumns(body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	schema, err := requestedSchema(r.SchemaIPC, r.Columns)
	if err != nil {
		return nil, tableerr.WithTable(err, table.Name().String())
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return table.AddColumns(ctx, tablecore.AddColumnsOptions{Schema: schema, ExpectedVersion: r.ExpectedVersion, TableID: r.TableID})
}

func (s *Server) setProperties(ctx context.Context, body []byte) (any, error) {
	r, err := descriptors.ParseSetProperties(body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return table.SetProperties(ctx, tablecore.SetPropertiesOptions{Properties: r.Properties, LeastSnapshotRetention: s.opts.TicketLifetime,
		ExpectedVersion: r.ExpectedVersion, TableID: r.TableID})
}

func (s *Server) checkpoint(ctx context.Context, body []byte) (any, error) {
	r, err := descriptors.ParseCheckpoint(body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return table.Checkpoint(ctx, tablecore.CheckpointOptions{ExpectedVersion: r.ExpectedVersion, TableID: r.TableID})
}
