package tablecore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/maintain"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// RollbackOptions say what a table is rolled back to.
type RollbackOptions struct {
	// Version is the version whose content becomes the newest one's.
	Version int64
	// ExpectedVersion is the version the caller knows. Any other one is
	// VERSION_CONFLICT, so nothing is undone that nobody has seen.
	ExpectedVersion int64
	// Release also gives the table back to other Delta writers. It needs a
	// version from before the table was Contrail's.
	Release bool
	// DryRun only says what would happen.
	DryRun bool
	// TableID, when not empty, must be the table's identity.
	TableID string
}

// RollbackReport is the result of a rollback.
type RollbackReport struct {
	StartingVersion  int64    `json:"starting_version"`
	CommittedVersion int64    `json:"committed_version"`
	TargetVersion    int64    `json:"target_version"`
	FilesAdded       int      `json:"files_added"`
	FilesRemoved     int      `json:"files_removed"`
	Rows             int64    `json:"rows"`
	FormatVersion    string   `json:"format_version"`
	NoOp             bool     `json:"no_op"`
	DryRun           bool     `json:"dry_run"`
	Undone           []Undone `json:"undone"`
}

// Undone is a version that a rollback takes back.
type Undone struct {
	Version   int64   `json:"version"`
	Operation string  `json:"operation"`
	RequestID *string `json:"request_id"` // nil when the client gave none
	RowsAdded int64   `json:"rows_added"`
}

// Rollback makes an earlier version's content, or that of a later one which an
// earlier rollback has left behind, the table's newest. It is one new commit:
// no version is lost, and rolling back to the version before it undoes it. It
// is made right behind ExpectedVersion or not at all. Errors: VERSION_CONFLICT,
// VERSION_NOT_FOUND, VERSION_EXPIRED, FILE_MISSING, UNSUPPORTED,
// FORMAT_UNWRITABLE, INVALID; after each of them nothing has changed.
func (t *Table) Rollback(ctx context.Context, o RollbackOptions) (*RollbackReport, error) {
	defer t.delicate.begin()()
	report, err := t.rollback(ctx, o)
	if err != nil {
		return nil, t.wrap(storeError(err))
	}
	return report, nil
}

func (t *Table) rollback(ctx context.Context, o RollbackOptions) (*RollbackReport, error) {
	from, err := t.at(ctx, At{TableID: o.TableID})
	if err != nil {
		return nil, err
	}
	if err := maintain.CheckFormat(from); err != nil {
		return nil, err
	}
	if err := checkExpected(from, &o.ExpectedVersion); err != nil {
		return nil, err
	}
	target, err := t.txn.At(ctx, o.Version)
	if err != nil {
		return nil, err
	}
	plan, err := maintain.PlanRollback(from, target, o.Release)
	if err != nil {
		return nil, err
	}
	report := &RollbackReport{StartingVersion: from.Version(), CommittedVersion: from.Version(), TargetVersion: o.Version,
		Rows: target.Rows, FormatVersion: target.Def.Format.String(), DryRun: o.DryRun, Undone: []Undone{}}
	if report.NoOp = o.Version == from.Version(); report.NoOp {
		return report, nil
	}
	report.FilesAdded, report.FilesRemoved = plan.Files()
	if report.Undone, err = t.undone(ctx, from, o.Version); err != nil {
		return nil, err
	}
	if err := plan.CheckFiles(ctx, t.store); err != nil || o.DryRun {
		return report, err
	}
	report.CommittedVersion++
	_, err = t.publishPinned(ctx, pinned{operation: maintain.OpRollback, base: from, report: report, revalidate: plan.Revalidate, commit: plan.Commit})
	return report, err
}

// undone lists the versions behind target that are not taken back yet, the
// newest first.
func (t *Table) undone(ctx context.Context, from *snapshot.Snapshot, target int64) ([]Undone, error) {
	list := []Undone{}
	for version := from.Version(); version > target; version-- {
		if from.Upkeep.Abandons(version) {
			continue
		}
		c, err := t.log.ReadCommit(ctx, version)
		if errors.Is(err, objstore.ErrNotExist) {
			return nil, &tableerr.Corrupt{Path: deltalog.CommitKey(version), Msg: "a commit that the rollback would undo is gone", Cause: err}
		}
		if err != nil {
			return nil, err
		}
		u := Undone{Version: version}
		var requestID string
		if u.Operation, requestID = operationOf(c); clientGave(c, requestID) {
			u.RequestID = &requestID
		}
		for _, a := range c.Adds {
			u.RowsAdded += max(0, snapshot.NumRecords(a.Stats))
		}
		list = append(list, u)
	}
	return list, nil
}

// clientGave says whether a commit's request id is one that its client gave, and
// may give again: those are remembered.
func clientGave(c *deltalog.Commit, requestID string) bool {
	return requestID != "" && slices.ContainsFunc(c.Txns, func(t *deltalog.Txn) bool { return strings.HasSuffix(t.AppID, "/"+requestID) })
}
