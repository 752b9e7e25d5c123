package tablecore

import (
	"context"
	"time"

	"contrail/tablecore/internal/maintain"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

const (
	// defaultVacuumAge is how old files are that a vacuum removes, by default.
	defaultVacuumAge = 7 * 24 * time.Hour
	// leastVacuumAge is how old they are at least: a writer that has been at work
	// for a minute shows itself, but not all clocks agree.
	leastVacuumAge = time.Hour
	// clockTolerance is by how much the newest commit may be ahead of the clock:
	// commits that follow each other within a millisecond have times that run
	// ahead.
	clockTolerance = time.Second
)

// VacuumOptions say what a vacuum removes. The zero value changes nothing and
// tells what would be removed.
type VacuumOptions struct {
	// OlderThan is the time that files are older than which were never committed;
	// default 7 days ago. It is not in the future, and an hour ago at most unless
	// Force is set. Files that a commit has dropped stay for the table's snapshot
	// retention, whatever this says.
	OlderThan *time.Time
	// Apply removes.
	Apply bool
	// Expire first gives up the versions that were succeeded longer ago than the
	// snapshot retention, whose files can then go.
	Expire bool
	// Force takes any OlderThan. Other processes must not be writing then: their
	// first minute is not seen.
	Force bool
	// LeastSnapshotRetention is what a shorter contrail.snapshot-retention counts
	// as: how long the caller's readers rely on a version.
	LeastSnapshotRetention time.Duration
	// ExpectedVersion is the only version of the table that is vacuumed.
	ExpectedVersion *int64
	// TableID, when not empty, must be the table's identity.
	TableID string
	// Artifacts gets what becomes of each file, at most 1,000 at a time in the
	// order of their paths. Its error ends the vacuum. May be nil.
	Artifacts func([]VacuumArtifact) error
	// Progress is told how far the vacuum has come. May be nil.
	Progress func(Progress)
}

// VacuumArtifact is what becomes of one file.
type VacuumArtifact struct {
	Path     string `json:"path"` // relative to the table
	Bytes    int64  `json:"bytes"`
	Modified Time   `json:"modified"`
	// Disposition is retained, removable, deleted or already_absent.
	Disposition string `json:"disposition"`
	// Reason is referenced_by_commit, within_retention, changed_since_planning,
	// unrecognized_artifact, unreferenced, invalid_or_unreadable_parquet or
	// in_flight.
	Reason string `json:"reason"`
	// Version is the first retained version that refers to the file, nil where
	// the reason is another.
	Version *int64 `json:"version"`
}

// VacuumReport is the result of a vacuum. The versions differ where it has
// expired others.
type VacuumReport struct {
	StartingVersion  int64 `json:"starting_version"`
	CommittedVersion int64 `json:"committed_version"`
	OlderThan        Time  `json:"older_than"`
	Apply            bool  `json:"apply"`
	maintain.Totals
}

// Vacuum removes, or names, files in the table's directory that no retained
// version refers to, that no running writer has made and that are old enough;
// and log files that no retained version needs. Nothing that a reader may ask
// for goes. Errors: INVALID, CLOCK_BEHIND, VERSION_CONFLICT, FORMAT_UNWRITABLE;
// VACUUM_INCOMPLETE where it has stopped in the middle, after which it can be
// repeated.
func (t *Table) Vacuum(ctx context.Context, o VacuumOptions) (*VacuumReport, error) {
	r, err := t.vacuum(ctx, o)
	if err != nil {
		return nil, t.wrap(storeError(err))
	}
	return r, nil
}

func (t *Table) vacuum(ctx context.Context, o VacuumOptions) (*VacuumReport, error) {
	s, err := t.at(ctx, At{TableID: o.TableID})
	if err != nil {
		return nil, err
	}
	if err := checkVacuum(s, o); err != nil {
		return nil, err
	}
	now, err := t.pastNewest(s)
	if err != nil {
		return nil, err
	}
	olderThan, err := o.olderThan(now)
	if err != nil {
		return nil, err
	}
	report := &VacuumReport{StartingVersion: s.Version(), CommittedVersion: s.Version(), OlderThan: Time{olderThan}, Apply: o.Apply}
	oldest := s.Upkeep.OldestVersion
	if o.Expire {
		if s, oldest, err = t.expire(ctx, s, o, now); err != nil {
			return nil, err
		}
		report.CommittedVersion = s.Version()
	}
	// Whoever has begun to read meanwhile keeps his files.
	return report, t.runVacuum(ctx, s, t.pins.oldest(oldest, now), o, report)
}

// checkVacuum makes the checks of a vacuum on a version. What would be removed
// is told also of a table that this software must not write.
func checkVacuum(s *snapshot.Snapshot, o VacuumOptions) error {
	if o.Apply || s.Def.IndexColumn == "" {
		if err := s.CheckWritable(); err != nil {
			return err
		}
	}
	return checkExpected(s, o.ExpectedVersion)
}

// pastNewest returns the time, which is not before the newest commit: only then
// it tells how old something is.
func (t *Table) pastNewest(s *snapshot.Snapshot) (time.Time, error) {
	now := t.warehouse.opts.Clock()
	ms, ok := s.State.Timestamp()
	if newest := time.UnixMilli(ms); ok && newest.After(now) {
		if newest.Sub(now) > clockTolerance {
			return now, &tableerr.ClockBehind{Newest: newest}
		}
		return newest, nil
	}
	return now, nil
}

// olderThan is the moment that the options mean.
func (o VacuumOptions) olderThan(now time.Time) (time.Time, error) {
	if o.OlderThan == nil {
		return now.Add(-defaultVacuumAge), nil
	}
	refuse := func(why string) error {
		text := o.OlderThan.UTC().Format(time.RFC3339Nano)
		return tableerr.InvalidField("older_than", "older_than %s %s", text, why).WithValue(text)
	}
	switch {
	case o.OlderThan.After(now):
		return now, refuse("lies in the future")
	case !o.Force && o.OlderThan.After(now.Add(-leastVacuumAge)):
		return now, refuse("is less than an hour ago, which takes force: files of running writers may be no older")
	}
	return *o.OlderThan, nil
}

// snapshotRetention is how long replaced files stay.
func (o VacuumOptions) snapshotRetention(def *tabledef.Definition) time.Duration {
	return max(def.SnapshotRetention(), o.LeastSnapshotRetention)
}

// runVacuum looks at the files of a table whose versions from oldest on are
// retained.
func (t *Table) runVacuum(ctx context.Context, s *snapshot.Snapshot, oldest int64, o VacuumOptions, report *VacuumReport) error {
	v, err := maintain.PlanVacuum(ctx, s, maintain.VacuumConfig{
		Store: t.store, Log: t.log, Clock: t.warehouse.opts.Clock, OlderThan: report.OlderThan.Time, Retention: o.snapshotRetention(s.Def),
		Oldest: oldest, Apply: o.Apply, Refresh: t.txn.Refresh, InFlight: t.attempts.InFlight, Tell: o.tell()})
	if err != nil {
		return err
	}
	var path string
	report.Totals, path, err = v.Run(ctx)
	if err == nil && o.Apply {
		path, err = "_delta_log", t.cleanUpLog(ctx, v)
	}
	if err != nil && o.Apply && ctx.Err() == nil {
		return &tableerr.VacuumIncomplete{Path: path, PartialReport: report, Cause: err}
	}
	return err
}

// tell returns what passes on what becomes of files.
func (o VacuumOptions) tell() func([]maintain.Artifact) error {
	done := int64(0)
	return func(list []maintain.Artifact) error {
		if done += int64(len(list)); o.Progress != nil {
			o.Progress(Progress{Step: "vacuum", Done: done, Unit: "files"})
		}
		if o.Artifacts == nil {
			return nil
		}
		artifacts := make([]VacuumArtifact, len(list))
		for i, a := range list {
			artifacts[i] = VacuumArtifact{Path: a.Key, Bytes: a.Size, Modified: Time{a.Modified}, Disposition: a.Disposition, Reason: a.Reason, Version: a.Version}
		}
		return o.Artifacts(artifacts)
	}
}

// cleanUpLog removes log files. Where the commit goes that the head stands on, a
// new head is written, so that the next process opens the table as fast.
func (t *Table) cleanUpLog(ctx context.Context, v *maintain.Vacuum) error {
	s, err := t.txn.Refresh(ctx)
	if err != nil {
		return err
	}
	commits, err := v.CleanUpLog(ctx, s)
	if commits > 0 {
		t.stateWriter.considerWhole(s)
	}
	return err
}
