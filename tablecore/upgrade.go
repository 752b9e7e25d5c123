package tablecore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/maintain"
	"contrail/tablecore/internal/parallel"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// UpgradeOptions say how a table is brought up to date. The zero value means the
// defaults.
type UpgradeOptions struct {
	// IndexColumn and the four behind it are what a plain Delta table becomes: the
	// first is required there, the others are as in CreateOptions. For any other
	// table they are left out or are those that it has.
	IndexColumn      string
	IndexGranularity string
	EntityColumns    []string
	Timezone         string
	Uniqueness       string
	// KeepSnapshots, a duration such as "7d", or KeepSnapshotsUntil say how long
	// the versions before the upgrade can be rolled back to at least; a week by
	// default. A hold that lasts longer stays.
	KeepSnapshots      string
	KeepSnapshotsUntil *time.Time
	// NoCompact leaves the data files as they are.
	NoCompact bool
	// DryRun only says what would happen.
	DryRun bool
	// ExpectedVersion, when set, is the only version that the upgrade may begin
	// with.
	ExpectedVersion *int64
	// TableID, when not empty, must be the table's identity.
	TableID string
	// Progress, when set, is told how far each step has come. It may be called by
	// several goroutines, but not at once.
	Progress func(Progress)
}

// The steps of an upgrade, in their order.
const (
	StepHoldSnapshots    = "hold_snapshots"
	StepRecordFormat     = "record_format"
	StepRewriteFiles     = "rewrite_files"
	StepBuildDerivedData = "build_derived_data"
	StepWriteHead        = "write_head"
)

// UpgradeStep is a step that had work to do, or has in a dry run.
type UpgradeStep struct {
	Step    string `json:"step"`
	Commits bool   `json:"commits"`
	// Version is the step's commit, nil for none and in a dry run.
	Version *int64 `json:"version"`
	// Files and Bytes are those that the step reads, and writes anew or writes
	// something about.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// UpgradeReport is the result of an upgrade.
type UpgradeReport struct {
	StartingVersion    int64         `json:"starting_version"`
	CommittedVersion   int64         `json:"committed_version"`
	FromFormat         string        `json:"from_format"`
	ToFormat           string        `json:"to_format"`
	KeepSnapshotsUntil Time          `json:"keep_snapshots_until"`
	RollbackTo         int64         `json:"rollback_to"`
	Steps              []UpgradeStep `json:"steps"` // not nil
	NoOp               bool          `json:"no_op"`
	DryRun             bool          `json:"dry_run"`
}

// upgradeRounds is how often an upgrade is planned anew because other writers
// were faster.
const upgradeRounds = 100

// Upgrade brings a table to the current format, in steps each of which leaves a
// table that works: what was interrupted is finished by another Upgrade, and a
// table that is current is left alone. It gives a plain Delta table its keys,
// after it has made sure that its rows fit them. Errors beside those of Optimize:
// INVALID, NULL_KEY and UNIQUENESS_VIOLATED for such a table, before anything has
// changed; VERSION_CONFLICT with ExpectedVersion, or where other writers never
// leave room.
func (t *Table) Upgrade(ctx context.Context, o UpgradeOptions) (*UpgradeReport, error) {
	defer t.delicate.begin()()
	report, err := t.upgrade(ctx, o)
	if err != nil {
		return nil, t.wrap(storeError(err))
	}
	return report, nil
}

func (t *Table) upgrade(ctx context.Context, o UpgradeOptions) (report *UpgradeReport, err error) {
	for range upgradeRounds {
		u := &upgrade{table: t, o: o}
		if err := u.begin(ctx); err != nil {
			return nil, err
		}
		if o.DryRun {
			return u.report, u.foresee(ctx)
		}
		err = u.record(ctx)
		if tableerr.TokenOf(err) == tableerr.TokenVersionConflict && o.ExpectedVersion == nil {
			continue // what was planned for a version is committed on that one only
		}
		if err != nil {
			return nil, err
		}
		return u.report, u.finish(ctx)
	}
	return nil, err
}

// upgrade is one upgrade, planned on one version.
type upgrade struct {
	table  *Table
	o      UpgradeOptions
	plan   *maintain.Upgrade
	next   *snapshot.Snapshot // with what is to be recorded
	report *UpgradeReport
}

// begin makes all checks on the newest version.
func (u *upgrade) begin(ctx context.Context) error {
	s, err := u.table.txn.Refresh(ctx)
	if err != nil {
		return err
	}
	if err := s.Def.Format.CheckWritable(); err != nil {
		return err
	}
	if err := checkID(s, u.o.TableID); err != nil {
		return err
	}
	request, err := u.request()
	if err != nil {
		return err
	}
	if u.plan, err = maintain.PlanUpgrade(s, request); err != nil {
		return err
	}
	if err := checkExpected(s, u.o.ExpectedVersion); err != nil {
		return err
	}
	if err := u.plan.CheckRows(ctx, u.table.files, u.tell(StepRecordFormat)); err != nil {
		return err
	}
	u.report = &UpgradeReport{StartingVersion: s.Version(), CommittedVersion: s.Version(), FromFormat: s.Def.Format.String(), ToFormat: u.plan.Format().String(),
		RollbackTo: u.plan.RollbackTo(), Steps: []UpgradeStep{}, DryRun: u.o.DryRun}
	u.next, err = u.plan.Next()
	return err
}

// request reads the options.
func (u *upgrade) request() (maintain.UpgradeRequest, error) {
	now := u.table.warehouse.opts.Clock()
	r := maintain.UpgradeRequest{Now: now, Keys: tabledef.Keys{IndexColumn: u.o.IndexColumn, IndexGranularity: u.o.IndexGranularity,
		EntityColumns: u.o.EntityColumns, Timezone: u.o.Timezone, Uniqueness: u.o.Uniqueness}}
	switch {
	case u.o.KeepSnapshots != "" && u.o.KeepSnapshotsUntil != nil:
		return r, tableerr.InvalidField("keep_snapshots_until", "keep_snapshots_until does not go together with keep_snapshots")
	case u.o.KeepSnapshotsUntil != nil && !u.o.KeepSnapshotsUntil.After(now):
		text := u.o.KeepSnapshotsUntil.UTC().Format(time.RFC3339Nano)
		return r, tableerr.InvalidField("keep_snapshots_until", "keep_snapshots_until is a time to come, not %s", text).WithValue(text)
	case u.o.KeepSnapshotsUntil != nil:
		r.KeepUntil = *u.o.KeepSnapshotsUntil
	case u.o.KeepSnapshots != "":
		d, ok := tabledef.ParseDuration(u.o.KeepSnapshots)
		if !ok {
			return r, tableerr.InvalidField("keep_snapshots", "keep_snapshots takes %s, not %q", tabledef.KindDuration, u.o.KeepSnapshots).WithValue(u.o.KeepSnapshots)
		}
		r.KeepUntil = now.Add(d)
	}
	return r, nil
}

// tell returns what is told how many files of a step are done.
func (u *upgrade) tell(step string) func(done, total int64) {
	return func(done, total int64) {
		if u.o.Progress != nil {
			u.o.Progress(Progress{Step: step, Done: done, Total: &total, Unit: "files"})
		}
	}
}

// rewrites plans which files of a version are rewritten.
func (u *upgrade) rewrites(s *snapshot.Snapshot) *maintain.Optimize {
	if u.o.NoCompact {
		return &maintain.Optimize{}
	}
	return maintain.PlanOptimize(s, maintain.OptimizeConfig{})
}

// recorded lists the steps of the first commit, which has the given version.
func (u *upgrade) recorded(rewrites bool, version *int64) {
	for _, step := range []struct {
		name string
		has  bool
	}{{StepHoldSnapshots, u.plan.Holds(rewrites)}, {StepRecordFormat, u.plan.Records()}} {
		if step.has {
			u.report.Steps = append(u.report.Steps, UpgradeStep{Step: step.name, Commits: true, Version: version})
		}
	}
	u.report.KeepSnapshotsUntil = Time{u.plan.HoldsUntil(rewrites)}
}

// record commits what is to be recorded, if anything.
func (u *upgrade) record(ctx context.Context) error {
	rewrites := !u.rewrites(u.next).Empty()
	if !u.plan.Records() && !u.plan.Holds(rewrites) {
		u.recorded(rewrites, nil)
		return nil
	}
	version := u.report.StartingVersion + 1
	u.recorded(rewrites, &version)
	u.report.CommittedVersion = version
	_, err := u.table.publishPinned(ctx, pinned{operation: maintain.OpUpgrade, base: u.plan.Base(), report: u.report, revalidate: u.plan.Revalidate,
		commit: func(extra map[string]json.RawMessage) (*deltalog.Commit, error) {
			return u.plan.Commit(rewrites, extra)
		}})
	return err
}

// finish does the steps behind the first commit, each on the version that is the
// newest then.
func (u *upgrade) finish(ctx context.Context) error {
	if err := u.rewrite(ctx); err != nil {
		return err
	}
	s := u.table.txn.Current()
	if err := s.CheckWritable(); err != nil {
		return err // another writer has undone the upgrade
	}
	head := u.headDue(ctx, s)
	if err := u.build(ctx, s, head); err != nil {
		return err
	}
	if head {
		if err := u.writeHead(ctx, s); err != nil {
			return err
		}
	}
	u.report.NoOp = len(u.report.Steps) == 0
	return nil
}

// rewrite rewrites the files that are not as they should be. Of commits that come
// meanwhile it leaves alone what they have replaced.
func (u *upgrade) rewrite(ctx context.Context) error {
	plan := u.rewrites(u.table.txn.Current())
	if plan.Empty() {
		return nil
	}
	w, tell := u.table.rewriter(), u.tell(StepRewriteFiles)
	w.Progress = func(done int) { tell(int64(done), int64(plan.Planned().FilesIn)) }
	var expected *int64
	if len(u.report.Steps) == 0 {
		expected = u.o.ExpectedVersion // this is the first commit
	}
	before := *u.report
	err := u.table.rewriteFiles(ctx, plan, w, rewriting{operation: maintain.OpUpgrade, expected: expected, report: func(s *snapshot.Snapshot) any {
		version, counts := s.Version()+1, plan.Counts(s)
		u.report.CommittedVersion = version
		u.report.Steps = append(slices.Clip(before.Steps), UpgradeStep{Step: StepRewriteFiles, Commits: true, Version: &version, Files: counts.FilesIn, Bytes: counts.BytesIn})
		return u.report
	}})
	if errors.Is(err, maintain.ErrNothingLeft) {
		*u.report, err = before, nil // a commit was tried, but others had replaced the files
	}
	return err
}

// headDue says whether the table's head, and the state that it names, are to be
// written: after a commit of the upgrade, or where none stands that knows of the
// last one.
func (u *upgrade) headDue(ctx context.Context, s *snapshot.Snapshot) bool {
	least := int64(0)
	if from := s.Upkeep.UpgradedFrom; from != nil {
		least = *from + 1
	}
	if len(u.report.Steps) > 0 {
		least = s.Version()
	}
	return u.table.states.Due(ctx, s, least)
}

// build stores the coverage and entity directory of each file that lacks them.
// all says that a state follows, which takes those of every file.
func (u *upgrade) build(ctx context.Context, s *snapshot.Snapshot, all bool) error {
	lacking, err := u.lacking(ctx, s)
	if err != nil {
		return err
	}
	tell := u.tell(StepBuildDerivedData)
	for i, f := range lacking {
		if err := u.table.files.Derive(ctx, s, f); err != nil {
			return err
		}
		tell(int64(i+1), int64(len(lacking)))
	}
	u.built(s, lacking, all)
	return nil
}

// built lists the step of build.
func (u *upgrade) built(s *snapshot.Snapshot, lacking []*snapshot.File, all bool) {
	files := lacking
	if all && s.Layout != nil {
		files = s.Files
	}
	if len(files) == 0 {
		return
	}
	step := UpgradeStep{Step: StepBuildDerivedData, Files: len(files)}
	for _, f := range files {
		step.Bytes += f.Add.Size
	}
	u.report.Steps = append(u.report.Steps, step)
}

// lookups is how many files are looked at at once.
const lookups = 4

// lacking returns the files whose coverage or entity directory is not stored, or
// is damaged.
func (u *upgrade) lacking(ctx context.Context, s *snapshot.Snapshot) ([]*snapshot.File, error) {
	if s.Layout == nil {
		return nil, nil
	}
	stored := make([]bool, len(s.Files))
	err := parallel.Each(ctx, len(s.Files), lookups, func(ctx context.Context, i int) (err error) {
		stored[i], err = u.table.files.Derived(ctx, s, s.Files[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	var lacking []*snapshot.File
	for i, f := range s.Files {
		if !stored[i] {
			lacking = append(lacking, f)
		}
	}
	return lacking, nil
}

// writeHead writes the state of a version and the head that names it.
func (u *upgrade) writeHead(ctx context.Context, s *snapshot.Snapshot) error {
	if err := u.table.stateWriter.write(ctx, s, true); err != nil {
		return err
	}
	info, err := u.table.store.Head(ctx, derived.HeadPath)
	if err != nil {
		return err
	}
	u.report.Steps = append(u.report.Steps, UpgradeStep{Step: StepWriteHead, Files: 1, Bytes: info.Size})
	return nil
}

// foresee lists what the upgrade would do.
func (u *upgrade) foresee(ctx context.Context) error {
	plan := u.rewrites(u.next)
	u.recorded(!plan.Empty(), nil)
	if counts := plan.Planned(); !plan.Empty() {
		u.report.Steps = append(u.report.Steps, UpgradeStep{Step: StepRewriteFiles, Commits: true, Files: counts.FilesIn, Bytes: counts.BytesIn})
	}
	lacking, err := u.lacking(ctx, u.next)
	if err != nil {
		return err
	}
	head := len(u.report.Steps) > 0 || u.headDue(ctx, u.next)
	u.built(u.next, lacking, head)
	if head {
		u.report.Steps = append(u.report.Steps, UpgradeStep{Step: StepWriteHead, Files: 1, Bytes: headBytes(u.next)})
	}
	u.report.NoOp = len(u.report.Steps) == 0
	return nil
}

// headBytes is about how large the head of a version is.
func headBytes(s *snapshot.Snapshot) int64 {
	const first = 1 << 14
	head, err := derived.Head{Of: derived.Of{TableID: s.Def.ID, Version: s.Version()}, First: first}.Encode()
	if err != nil {
		return 0
	}
	return int64(len(head))
}
