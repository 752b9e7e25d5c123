package flightsrv

import (
	"context"

	"contrail/descriptors"
	"contrail/tablecore"
)

// optimize tells how far it is, and then what it did. It ends with its client
// until it commits: what was written is removed then.
func (s *Server) optimize(ctx context.Context, body []byte, out messages) (any, error) {
	r, err := descriptors.ParseOptimize(body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	return table.Optimize(ctx, tablecore.OptimizeOptions{Layout: r.Layout, TargetFileBytes: r.TargetFileBytes, MaxFiles: r.MaxFiles,
		DryRun: r.DryRun, ExpectedVersion: r.ExpectedVersion, TableID: r.TableID, Progress: out.progress})
}
