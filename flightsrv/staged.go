package flightsrv

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/descriptors"
	"contrail/flightsrv/internal/wire"
	"contrail/tablecore"
)

// Staged appends: rows that several clients write, and one of them commits.

// stage checks what can be checked without rows, and then writes them.
func (s *Server) stage(ctx context.Context, put *wire.Put, r *descriptors.Stage) (any, error) {
	o := tablecore.StageOptions{Compression: r.Compression, MaxRowsPerRowGroup: r.MaxRowsPerRowGroup, MaxBytesPerRowGroup: r.MaxBytesPerRowGroup, TableID: r.TableID}
	return s.put(ctx, put, r.Table, wire.Ending{Rows: r.Rows, Marker: r.EndMarker},
		func(t *tablecore.Table, schema *arrow.Schema) error { return t.CheckStage(ctx, schema, o) },
		func(t *tablecore.Table, rows tablecore.RowReader) (any, error) { return t.Stage(ctx, rows, o) })
}

func (s *Server) commitStaged(ctx context.Context, body []byte) (any, error) {
	r, err := descriptors.ParseCommitStaged(body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return table.CommitStaged(ctx, tablecore.CommitStagedOptions{RequestID: r.RequestID, Staged: r.Staged, ExpectedVersion: r.ExpectedVersion, TableID: r.TableID})
}

func (s *Server) abortStaged(ctx context.Context, body []byte) (any, error) {
	r, err := descriptors.ParseAbortStaged(body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return table.AbortStaged(ctx, tablecore.AbortStagedOptions{Staged: r.Staged, TableID: r.TableID})
}
