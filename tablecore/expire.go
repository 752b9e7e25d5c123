package tablecore

import (
	"context"
	"time"

	"contrail/tablecore/internal/maintain"
	"contrail/tablecore/internal/snapshot"
)

// expireReport is what the history has of a commit that expires versions.
type expireReport struct {
	StartingVersion  int64 `json:"starting_version"`
	CommittedVersion int64 `json:"committed_version"`
	OldestVersion    int64 `json:"oldest_version"`
}

// expire moves on the table's oldest version, as a commit right behind s, or in
// a dry run only finds it. It returns the newest version then and the oldest.
// Any other commit in between is VERSION_CONFLICT.
func (t *Table) expire(ctx context.Context, s *snapshot.Snapshot, o VacuumOptions, now time.Time) (*snapshot.Snapshot, int64, error) {
	plan, err := maintain.PlanExpire(ctx, s, maintain.ExpireConfig{Now: now, Retention: o.snapshotRetention(s.Def),
		Pinned: t.pins.oldest(s.Version(), now), CommitTime: t.commitTime})
	if err != nil {
		return nil, 0, err
	}
	if plan.NoOp() || !o.Apply {
		return s, plan.Oldest(), nil
	}
	landed, err := t.publishPinned(ctx, pinned{operation: maintain.OpVacuum, base: s, report: expireReport{s.Version(), s.Version() + 1, plan.Oldest()},
		revalidate: plan.Revalidate, commit: plan.Commit})
	if err != nil {
		return nil, 0, err
	}
	return landed, plan.Oldest(), nil
}
