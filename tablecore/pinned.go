package tablecore

import (
	"context"
	"encoding/json"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
)

// pinned is a commit that is made right behind the version it was planned on, or
// not at all.
type pinned struct {
	operation string
	base      *snapshot.Snapshot
	report    any // what the history has of it
	// revalidate makes sure that a version is base, perhaps read again.
	revalidate func(ctx context.Context, s *snapshot.Snapshot) error
	// commit makes the commit's actions; extra goes into its commitInfo.
	commit func(extra map[string]json.RawMessage) (*deltalog.Commit, error)
}

// publishPinned makes a commit and returns its version. Any other one that came
// in between is VERSION_CONFLICT.
func (t *Table) publishPinned(ctx context.Context, p pinned) (*snapshot.Snapshot, error) {
	id, err := t.warehouse.newUUID()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(p.report)
	if err != nil {
		return nil, err
	}
	expected := p.base.Version()
	return t.txn.Publish(ctx, &txn.Edit{ID: id, RequestID: id, Operation: p.operation, Base: p.base,
		Row: txn.RowPinned, ExpectedVersion: &expected, Revalidate: p.revalidate,
		Commit: func(*snapshot.Snapshot) (*deltalog.Commit, error) {
			return p.commit(txn.Extra(p.operation, id, text))
		}})
}
