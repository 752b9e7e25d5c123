package maintain

import (
	"context"
	"time"

	"contrail/tablecore/internal/attempt"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/staging"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// OpVacuum is the operation of the commit that a vacuum makes when it expires
// versions.
const OpVacuum = "vacuum"

// Dispositions of the files that a vacuum looks at.
const (
	Retained      = "retained"
	Removable     = "removable" // in a dry run, or left when a vacuum stopped
	Deleted       = "deleted"
	AlreadyAbsent = "already_absent"
)

// Reasons for a disposition.
const (
	ReferencedByCommit = "referenced_by_commit"
	WithinRetention    = "within_retention"
	ChangedMeanwhile   = "changed_since_planning"
	Unrecognized       = "unrecognized_artifact"
	Unreferenced       = "unreferenced"
	Unreadable         = "invalid_or_unreadable_parquet"
	InFlight           = "in_flight"
)

// Artifact is a file that a vacuum has looked at.
type Artifact struct {
	objstore.Info
	Disposition, Reason string
	// Version is the first retained version that refers to the file, nil where
	// that is not the reason.
	Version *int64
}

// Count is a number of files and their bytes.
type Count struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

func (c *Count) add(bytes int64) {
	c.Files++
	c.Bytes += bytes
}

// Totals are the sums of a vacuum by disposition.
type Totals struct {
	Considered    Count `json:"considered"`
	Retained      Count `json:"retained"`
	Removable     Count `json:"removable"`
	Deleted       Count `json:"deleted"`
	AlreadyAbsent Count `json:"already_absent"`
}

func (t *Totals) count(a Artifact) {
	t.Considered.add(a.Size)
	switch a.Disposition {
	case Retained:
		t.Retained.add(a.Size)
	case Removable:
		t.Removable.add(a.Size)
	case Deleted:
		t.Deleted.add(a.Size)
	case AlreadyAbsent:
		t.AlreadyAbsent.add(a.Size)
	}
}

// artifactsAtOnce is how many files a vacuum looks at before it deletes and
// tells of them.
const artifactsAtOnce = 1000

// VacuumConfig is what a vacuum works with.
type VacuumConfig struct {
	Store objstore.Store // the table's own
	Log   *deltalog.Log
	// Clock tells the time. It must not be behind the newest commit.
	Clock func() time.Time
	// OlderThan is the time that files are older than which nothing refers to
	// and that were never part of a version.
	OlderThan time.Time
	// Retention is how long files stay that a commit has dropped.
	Retention time.Duration
	// Oldest is the oldest version whose files stay.
	Oldest int64
	// Apply deletes. Without it nothing is changed.
	Apply bool
	// Refresh returns the newest version of the table.
	Refresh func(ctx context.Context) (*snapshot.Snapshot, error)
	// InFlight looks for the attempts of running writers.
	InFlight func(ctx context.Context) (attempt.Flight, error)
	// Tell gets the files that were looked at, in the order of their paths and
	// some at a time. It may keep the slice.
	Tell func([]Artifact) error
}

// Vacuum is one pass over the files of a table. Plan makes it, Run runs it.
type Vacuum struct {
	cfg    VacuumConfig
	refs   *references
	flight attempt.Flight
	staged map[string]bool
	begins int64 // the version that the oldest readable state was read from, −1 for none
	totals Totals
}

// PlanVacuum finds out what must stay of a table whose newest version is s. It
// changes nothing. It reads the commits of all retained versions.
func PlanVacuum(ctx context.Context, s *snapshot.Snapshot, cfg VacuumConfig) (*Vacuum, error) {
	v := &Vacuum{cfg: cfg}
	oldest, err := cfg.Log.LoadOldest(ctx, cfg.Oldest)
	if err != nil {
		return nil, err
	}
	v.begins = oldest.Checkpoint().Version
	if v.refs, err = newReferences(ctx, cfg, oldest, s); err != nil {
		return nil, err
	}
	return v, v.look(ctx)
}

// look brings up to date who is at work on the table.
func (v *Vacuum) look(ctx context.Context) (err error) {
	if v.flight, err = v.cfg.InFlight(ctx); err != nil {
		return err
	}
	// A commit may be under way that began in time.
	v.staged, err = staging.Waiting(ctx, v.cfg.Store, v.cfg.Clock().Add(-attempt.Life))
	return err
}

// renew takes in what was committed, and who has begun to work on the table,
// since the last look: before files are deleted, that they are not needed is
// found out again.
func (v *Vacuum) renew(ctx context.Context) error {
	s, err := v.cfg.Refresh(ctx)
	if err != nil {
		return err
	}
	if s.Def.ID != v.refs.tableID || s.Version() < v.refs.newest {
		return &tableerr.TableNotFound{}
	}
	if err := v.refs.follow(ctx, v.cfg.Log, s); err != nil {
		return err
	}
	return v.look(ctx)
}

// Run looks at each file of the table but those of the log, in the order of
// their paths, and deletes, where Apply is set, those that nobody needs. After
// an error the totals are those up to there, and the path is where it stopped.
func (v *Vacuum) Run(ctx context.Context) (totals Totals, path string, err error) {
	batch := make([]Artifact, 0, artifactsAtOnce)
	for info, err := range files(ctx, v.cfg.Store) {
		if err != nil {
			return v.totals, path, err
		}
		path = info.Key
		batch = append(batch, v.decide(info))
		if len(batch) < artifactsAtOnce {
			continue
		}
		if stopped, err := v.flush(ctx, batch); err != nil {
			return v.totals, stopped, err
		}
		batch = make([]Artifact, 0, artifactsAtOnce)
	}
	stopped, err := v.flush(ctx, batch)
	return v.totals, stopped, err
}

// flush deletes what is to be deleted of a batch and tells of all of it. With an
// error it returns the first path that it could not deal with.
func (v *Vacuum) flush(ctx context.Context, batch []Artifact) (path string, err error) {
	if len(batch) == 0 {
		return "", nil
	}
	if v.cfg.Apply && anyRemovable(batch) {
		path = batch[0].Key
		if err = v.renew(ctx); err == nil {
			for i, a := range batch {
				batch[i] = v.decide(a.Info)
			}
		}
	}
	if err == nil {
		path, err = v.settle(ctx, batch)
	}
	for _, a := range batch {
		v.totals.count(a)
	}
	if tellErr := v.cfg.Tell(batch); err == nil && tellErr != nil {
		return batch[0].Key, tellErr
	}
	return path, err
}

func anyRemovable(batch []Artifact) bool {
	for _, a := range batch {
		if a.Disposition == Removable {
			return true
		}
	}
	return false
}

// CleanUpLog removes the commits that no retained version needs: those below the
// checkpoint from which the oldest one is read, but only up to the first whose
// request id is still remembered, since it holds the report. It returns how many.
func (v *Vacuum) CleanUpLog(ctx context.Context, s *snapshot.Snapshot) (int, error) {
	return v.cfg.Log.CleanUp(ctx, v.begins, s.OldestRemembered(v.cfg.Clock().UnixMilli()))
}
