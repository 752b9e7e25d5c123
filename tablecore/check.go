package tablecore

import (
	"context"
	"errors"

	"contrail/tablecore/internal/check"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/series"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// CheckOptions say how a table is checked.
type CheckOptions struct {
	// Repair writes derived data anew where they are missing or wrong: what lies
	// beside data files, checkpoints, the state file and the head. It changes no
	// row and makes no version.
	Repair bool
	// TableID, when not empty, must be the table's identity.
	TableID string
	// Findings gets what is found, up to 1,000 at a time. Its error ends the
	// check. May be nil.
	Findings func([]CheckFinding) error
	// Progress is told how far the check has come. May be nil.
	Progress func(Progress)
}

// CheckFinding is one thing that is wrong with a table.
type CheckFinding = check.Finding

// CheckReport is the result of a check.
type CheckReport struct {
	Version int64 `json:"version"`
	// OK says that there is no error.
	OK           bool  `json:"ok"`
	FilesChecked int64 `json:"files_checked"`
	// Errors and Warnings count findings, without those that were repaired.
	Errors   int64 `json:"errors"`
	Warnings int64 `json:"warnings"`
	Repaired int64 `json:"repaired"`
}

// Check compares what the newest version's log, data files and derived data say
// with the rows, and reports what does not agree. Damage is a finding, also that
// of a table that cannot be opened for it, and no error. Others may write
// meanwhile. Errors: TABLE_NOT_FOUND, FORMAT_UNREADABLE, UNSUPPORTED, and with
// Repair FORMAT_UNWRITABLE.
func (w *Warehouse) Check(ctx context.Context, name tabledef.Name, o CheckOptions) (*CheckReport, error) {
	if o.Findings == nil {
		o.Findings = func([]CheckFinding) error { return nil }
	}
	report, err := w.check(ctx, name, o)
	if err != nil {
		return nil, tableerr.WithTable(storeError(err), name.String())
	}
	return report, nil
}

func (w *Warehouse) check(ctx context.Context, name tabledef.Name, o CheckOptions) (*CheckReport, error) {
	t, err := w.Table(ctx, name)
	if tableerr.TokenOf(err) == tableerr.TokenCorrupt {
		return w.checkLog(ctx, name, o, err)
	}
	if err != nil {
		return nil, err
	}
	s, err := t.at(ctx, At{TableID: o.TableID})
	if tableerr.TokenOf(err) == tableerr.TokenCorrupt {
		return w.checkLog(ctx, name, o, err)
	}
	if err != nil {
		return nil, err
	}
	if o.Repair {
		if err := s.CheckWritable(); err != nil {
			return nil, err
		}
	}
	totals, err := check.Run(ctx, t.checkConfig(s, o))
	if err != nil {
		return nil, err
	}
	return newCheckReport(s.Version(), totals), nil
}

func newCheckReport(version int64, n check.Totals) *CheckReport {
	return &CheckReport{Version: version, OK: n.Errors == 0, FilesChecked: n.Files, Errors: n.Errors, Warnings: n.Warnings, Repaired: n.Repaired}
}

// checkConfig is what a check of a version works with.
func (t *Table) checkConfig(s *snapshot.Snapshot, o CheckOptions) check.Config {
	c := check.Config{Store: t.store, Log: t.log, Snapshot: s, Newest: t.txn.Refresh, At: t.txn.At, Files: t.files,
		// One of its own, which does not begin with what a state file says.
		Series: series.NewCache(t.warehouse.opts.SeriesMemory).Table(t.files, nil, nil),
		Mem:    t.files.Allocator(), Now: t.warehouse.opts.Clock(), AtWork: t.attempts.InFlight, Repair: o.Repair, Findings: o.Findings,
		RepairState: func(ctx context.Context, s *snapshot.Snapshot) error {
			// What was made from the wrong one is forgotten, the handle with it.
			t.series.Forget(s.Def.ID)
			t.warehouse.forget(t)
			return t.states.Rewrite(ctx, s)
		}}
	if o.Progress != nil {
		c.Progress = func(step string, done, total int64, unit string) {
			p := Progress{Step: step, Done: done, Unit: unit}
			if total >= 0 {
				p.Total = &total
			}
			o.Progress(p)
		}
	}
	return c
}

// checkLog checks the log alone, of a table that cannot be opened: why says what
// is wrong with it.
func (w *Warehouse) checkLog(ctx context.Context, name tabledef.Name, o CheckOptions, why error) (report *CheckReport, err error) {
	store, err := w.opts.Store.Sub(ctx, name.Dir(), false)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, notFound(name)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	log := deltalog.New(store, deltalog.Options{Allocator: w.opts.Allocator})
	version, totals, err := check.Log(ctx, check.Config{Store: store, Log: log, Findings: o.Findings})
	if err != nil {
		return nil, err
	}
	if totals.Errors == 0 { // what it is, the log alone does not show
		return nil, why
	}
	return newCheckReport(version, totals), nil
}
