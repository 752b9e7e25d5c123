package tablecore

import (
	"context"
	"encoding/json"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/maintain"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
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
	id, err := t.warehouse.newUUID()
	if err != nil {
		return nil, 0, err
	}
	text, err := json.Marshal(expireReport{s.Version(), s.Version() + 1, plan.Oldest()})
	if err != nil {
		return nil, 0, err
	}
	expected := s.Version()
	landed, err := t.txn.Publish(ctx, &txn.Edit{ID: id, Operation: maintain.OpVacuum, RequestID: id, Base: s,
		Row: txn.RowPinned, ExpectedVersion: &expected, Revalidate: plan.Revalidate,
		Commit: func(*snapshot.Snapshot) (*deltalog.Commit, error) {
			return plan.Commit(txn.Extra(maintain.OpVacuum, id, text))
		}})
	if err != nil {
		return nil, 0, err
	}
	return landed, plan.Oldest(), nil
}
