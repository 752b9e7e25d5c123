package tablecore

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/alter"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/tabledef"
)

// AddColumnsOptions say which columns a table is to gain.
type AddColumnsOptions struct {
	// Schema holds the columns in their order, all of them nullable, and no
	// metadata of its own.
	Schema *arrow.Schema
	// ExpectedVersion is the only version that may be changed.
	ExpectedVersion *int64
	// TableID, when not empty, must be the table's identity.
	TableID string
}

// AddColumns adds nullable columns behind those the table has, in one commit
// that touches no data: the rows there are read as null in them. From then on
// appends may leave out nullable columns, old ones too. INVALID, which comes
// before VERSION_CONFLICT, names the column that cannot be added.
func (t *Table) AddColumns(ctx context.Context, o AddColumnsOptions) (*AddColumnsReport, error) {
	return alterTable(ctx, t, alteration[AddColumnsReport]{
		operation: alter.OpAddColumns, expected: o.ExpectedVersion, tableID: o.TableID,
		plan: func(s *snapshot.Snapshot) (*alter.Change, error) { return alter.PlanAddColumns(s, o.Schema) },
		report: func(from, to int64, _ *tabledef.Definition) *AddColumnsReport {
			return &AddColumnsReport{StartingVersion: from, CommittedVersion: to, Columns: alter.ColumnNames(o.Schema)}
		},
	})
}

// SetPropertiesOptions say which properties of a table are to change.
type SetPropertiesOptions struct {
	// Properties has a value for each key, nil for one that is to be removed;
	// see tabledef.Registry. Keys that do not begin with "contrail." or "delta."
	// are the caller's own.
	Properties map[string]*string
	// LeastSnapshotRetention is the shortest that contrail.snapshot-retention
	// may become: how long the caller's readers rely on a version.
	LeastSnapshotRetention time.Duration
	// ExpectedVersion is the only version that may be changed.
	ExpectedVersion *int64
	// TableID, when not empty, must be the table's identity.
	TableID string
}

// SetProperties sets and removes properties of the table in one commit, or in
// none where they are so already. INVALID, which comes before VERSION_CONFLICT,
// names the property that cannot be set.
func (t *Table) SetProperties(ctx context.Context, o SetPropertiesOptions) (*SetPropertiesReport, error) {
	return alterTable(ctx, t, alteration[SetPropertiesReport]{
		operation: alter.OpSetProperties, expected: o.ExpectedVersion, tableID: o.TableID,
		plan: func(s *snapshot.Snapshot) (*alter.Change, error) {
			return alter.PlanSetProperties(s, o.Properties, o.LeastSnapshotRetention)
		},
		report: func(from, to int64, def *tabledef.Definition) *SetPropertiesReport {
			return &SetPropertiesReport{StartingVersion: from, CommittedVersion: to, Properties: maps.Clone(def.Properties)}
		},
	})
}

// alteration is a verb that changes what a table is and answers with an R.
type alteration[R any] struct {
	operation string
	expected  *int64
	tableID   string
	plan      func(s *snapshot.Snapshot) (*alter.Change, error)
	// report describes the change from one version to another, after which the
	// table is def.
	report func(from, to int64, def *tabledef.Definition) *R
}

// alterTable runs an alteration.
func alterTable[R any](ctx context.Context, t *Table, a alteration[R]) (*R, error) {
	defer t.undisturbed(a.expected)()
	r, err := a.run(ctx, t)
	if err != nil {
		return nil, t.wrap(storeError(err))
	}
	return r, nil
}

// run judges the alteration on the newest version and publishes it. What it
// asks for is judged before the version it expects.
func (a alteration[R]) run(ctx context.Context, t *Table) (report *R, err error) {
	s, err := t.txn.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	c, err := a.check(s)
	if err != nil {
		return nil, err
	}
	if err := checkExpected(s, a.expected); err != nil {
		return nil, err
	}
	if c.NoOp() {
		return a.report(s.Version(), s.Version(), c.Def), nil
	}
	id, err := t.warehouse.newUUID()
	if err != nil {
		return nil, err
	}
	_, err = t.txn.Publish(ctx, &txn.Edit{ID: id, RequestID: id, Operation: a.operation, Row: txn.RowAlter, ExpectedVersion: a.expected, Base: s,
		Revalidate: func(_ context.Context, now *snapshot.Snapshot) (err error) {
			c, err = a.check(now)
			return err
		},
		Commit: func(now *snapshot.Snapshot) (*deltalog.Commit, error) {
			report = a.report(s.Version(), now.Version()+1, c.Def)
			text, err := json.Marshal(report)
			if err != nil {
				return nil, err
			}
			return c.Commit(txn.Extra(a.operation, id, text)), nil
		}})
	return report, err
}

// check makes the verb's checks on a version, the format's first.
func (a alteration[R]) check(s *snapshot.Snapshot) (*alter.Change, error) {
	if err := s.CheckWritable(); err != nil {
		return nil, err
	}
	if err := checkID(s, a.tableID); err != nil {
		return nil, err
	}
	return a.plan(s)
}
