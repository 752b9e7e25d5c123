package flightsrv

import (
	"context"

	"contrail/descriptors"
	"contrail/tablecore"
)

// upgrade tells how far each step is, and then what it did. It ends with its
// client behind a step: the next upgrade goes on from there.
func (s *Server) upgrade(ctx context.Context, body []byte, out messages) (any, error) {
	r, err := descriptors.ParseUpgrade(body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	return table.Upgrade(ctx, tablecore.UpgradeOptions{
		IndexColumn: r.IndexColumn, IndexGranularity: r.IndexGranularity, EntityColumns: r.EntityColumns, Timezone: r.Timezone, Uniqueness: r.Uniqueness,
		KeepSnapshots: r.KeepSnapshots, KeepSnapshotsUntil: r.KeepSnapshotsUntil, NoCompact: r.NoCompact, DryRun: r.DryRun,
		ExpectedVersion: r.ExpectedVersion, TableID: r.TableID, Progress: out.progress,
	})
}
