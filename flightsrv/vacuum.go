package flightsrv

import (
	"context"

	"contrail/descriptors"
	"contrail/tablecore"
)

// vacuum sends what becomes of each file before its sums. It ends when its
// client goes away: what was removed by then was not needed.
func (s *Server) vacuum(ctx context.Context, body []byte, out messages) (any, error) {
	r, err := descriptors.ParseVacuum(body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	return table.Vacuum(ctx, tablecore.VacuumOptions{OlderThan: r.OlderThan, Apply: r.Apply, Expire: r.Expire, Force: r.Force,
		LeastSnapshotRetention: s.opts.TicketLifetime, ExpectedVersion: r.ExpectedVersion, TableID: r.TableID, Progress: out.progress,
		Artifacts: func(list []tablecore.VacuumArtifact) error {
			return out.send(map[string][]tablecore.VacuumArtifact{"artifacts": list})
		}})
}
