package maintain

import (
	"context"
	"encoding/json"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/rewrite"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// OpRetention is the operation of commits that drop old rows, in the log and
// the history.
const OpRetention = "retention"

// Retention drops the files of a table all of whose rows are older than its
// property contrail.retention lets them be. Rows go with their file and not
// before, so all ways to read a version agree about them. It is planned anew
// for each version that it may follow: PlanRetention, Revalidate and Commit.
type Retention struct {
	base *snapshot.Snapshot
	drop dropped
}

// dropped is what goes from one version.
type dropped struct {
	files  []*snapshot.File
	before uint64 // the index ordinal that they lie before
}

// PlanRetention finds the files of a version that are to be dropped: those whose
// newest row lies further behind the newest row of the table than
// contrail.retention. Files of other writers whose bounds are not known stay and
// do not count. A table of integers, one that takes appends only, and one
// without the property drop nothing. It reads and writes nothing.
func PlanRetention(s *snapshot.Snapshot) *Retention {
	return &Retention{base: s, drop: expired(s)}
}

func expired(s *snapshot.Snapshot) dropped {
	ticks := s.Def.RetentionTicks()
	if ticks == 0 || s.Layout == nil || s.Def.IndexType != tabledef.IndexTimestamp || s.State.AppendOnly() {
		return dropped{}
	}
	newest := uint64(0)
	for _, f := range s.Files {
		if f.Bounded {
			newest = max(newest, f.Max)
		}
	}
	if newest < ticks {
		return dropped{}
	}
	d := dropped{before: newest - ticks}
	for _, f := range s.Files {
		if f.Bounded && f.Max < d.before {
			d.files = append(d.files, f)
		}
	}
	return d
}

// Empty says that there is nothing to drop.
func (r *Retention) Empty() bool { return len(r.drop.files) == 0 }

// Base is the snapshot that the plan was made for.
func (r *Retention) Base() *snapshot.Snapshot { return r.base }

// Revalidate finds out what is to be dropped from another version.
// TABLE_NOT_FOUND, FORMAT_UNWRITABLE, UNSUPPORTED, or ErrNothingLeft.
func (r *Retention) Revalidate(_ context.Context, s *snapshot.Snapshot) error {
	if s.Def.ID != r.base.Def.ID {
		return &tableerr.TableNotFound{}
	}
	if err := s.CheckWritable(); err != nil {
		return err
	}
	if r.drop = expired(s); r.Empty() {
		return ErrNothingLeft
	}
	return nil
}

// Dropped counts what goes with a commit.
type Dropped struct {
	Files       int
	Rows, Bytes int64
	// Before is the index value that all their rows lie before.
	Before any
}

// Dropped tells what goes from s, the version that the plan was made or
// revalidated for last. Rows leaves out those of files that do not say.
func (r *Retention) Dropped(s *snapshot.Snapshot) Dropped {
	d := Dropped{Files: len(r.drop.files), Before: s.IndexValue(r.drop.before)}
	for _, f := range r.drop.files {
		d.Rows += max(0, f.Rows)
		d.Bytes += f.Add.Size
	}
	return d
}

// Commit returns the actions of the commit that follows the version that the
// plan was made or revalidated for last.
func (r *Retention) Commit(extra map[string]json.RawMessage) *deltalog.Commit {
	c := &deltalog.Commit{Info: &deltalog.CommitInfo{Operation: "DELETE", OperationParameters: map[string]string{"predicate": "[]"}, Extra: extra}}
	for _, f := range r.drop.files {
		c.Removes = append(c.Removes, rewrite.Remove(f))
	}
	return c
}
