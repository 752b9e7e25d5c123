package ingest

import (
	"context"
	"maps"
	"slices"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/parallel"
	"contrail/tablecore/internal/rewrite"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// An append to a table that overwrites takes the rows in its intervals out of
// the committed files that hold them. What becomes of such a file depends on the
// file and the append alone, so a replacement that was written stays right as
// long as the file is live, whatever else others commit.

// replacement is what becomes of a committed file with rows that the append
// replaces.
type replacement struct {
	rows   int64 // that are replaced
	remove *deltalog.Remove
	file   *newfile.File // with the other rows; nil where there are none
}

// Overwrites says whether the append replaces committed rows; then it needs a
// Plan.
func (a *Append) Overwrites() bool { return a.def.Uniqueness == tabledef.UniqueOverwrite }

// RowsReplaced is how many committed rows the append replaces by its plan.
func (a *Append) RowsReplaced() int64 {
	n := int64(0)
	for _, r := range a.replaced {
		n += r.rows
	}
	return n
}

// Plan makes the checks of Revalidate on a snapshot, finds the files with rows
// in the append's intervals, and writes each anew without these rows. What an
// earlier plan has written is used where it still holds, and removed where not.
// UNSUPPORTED where the table only takes rows and one would have to go. After
// an error Discard removes everything.
func (a *Append) Plan(ctx context.Context, s *snapshot.Snapshot) error {
	if err := a.checkTable(s); err != nil || a.result.Coverage == nil {
		return err
	}
	live := map[string]bool{}
	var more []*snapshot.File
	first, last := a.span(s)
	for f := range s.Meeting(first, last) {
		hit, err := a.hits(ctx, s, f, first, last)
		if err != nil {
			return err
		}
		if hit {
			live[f.Path] = true
		}
		if hit && a.replaced[f.Path] == nil {
			more = append(more, f)
		}
	}
	if err := checkAppendOnly(s, len(live)); err != nil {
		return err
	}
	for path, r := range a.replaced {
		if !live[path] {
			r.discard(ctx, a)
			delete(a.replaced, path)
		}
	}
	return a.replaceAll(ctx, s, more)
}

// checkAppendOnly refuses to take rows out of a table that is for appending
// only.
func checkAppendOnly(s *snapshot.Snapshot, files int) error {
	if files == 0 || !s.State.AppendOnly() {
		return nil
	}
	return &tableerr.Unsupported{Feature: "delta.appendOnly", Msg: "the append would replace rows of a table that may only be appended to: delta.appendOnly is true"}
}

// checkPlan makes sure that the plan holds on a snapshot: the files it replaces
// are live, and no others have rows in the append's intervals.
func (a *Append) checkPlan(ctx context.Context, s *snapshot.Snapshot) error {
	for path := range a.replaced {
		if s.State.File(path) == nil {
			return txn.ErrReplan
		}
	}
	first, last := a.span(s)
	for f := range s.Meeting(first, last) {
		if a.replaced[f.Path] != nil {
			continue
		}
		if hit, err := a.hits(ctx, s, f, first, last); err != nil {
			return err
		} else if hit {
			return txn.ErrReplan
		}
	}
	return checkAppendOnly(s, len(a.replaced))
}

// hits says whether a file has rows in the append's intervals, which lie between
// the ordinals first and last.
func (a *Append) hits(ctx context.Context, s *snapshot.Snapshot, f *snapshot.File, first, last uint64) (bool, error) {
	if a.replaced[f.Path] != nil {
		return true, nil
	}
	overlap, err := a.overlap(ctx, s, f, first, last)
	return overlap.Count > 0, err
}

// replaceAll writes files anew, some at once.
func (a *Append) replaceAll(ctx context.Context, s *snapshot.Snapshot, files []*snapshot.File) error {
	if len(files) == 0 {
		return nil
	}
	out, err := newfile.NewWriter(newfile.Config{Store: a.cfg.Store, Def: s.Def, Write: datafile.WriteOptions{Mem: a.cfg.Mem}, NewID: a.cfg.NewID,
		Software: a.cfg.Software, Modified: a.cfg.Now()})
	if err != nil {
		return err
	}
	done := make([]*replacement, len(files))
	cfg := rewrite.Config{Snapshot: s, Files: a.cfg.Files, Out: out}
	err = parallel.Each(ctx, len(files), writers, func(ctx context.Context, i int) (err error) {
		done[i], err = a.replace(ctx, cfg, files[i])
		return err
	})
	if err != nil {
		out.Discard(ctx)
		return storeError(err)
	}
	for i, f := range files {
		a.replaced[f.Path] = done[i]
	}
	return nil
}

// replace writes a file anew without the rows in the append's intervals.
func (a *Append) replace(ctx context.Context, cfg rewrite.Config, f *snapshot.File) (*replacement, error) {
	keep, gone, err := a.survivors(ctx, cfg, f)
	if err != nil {
		return nil, err
	}
	r := &replacement{rows: gone, remove: rewrite.Remove(f)}
	if len(keep) == 0 {
		return r, nil
	}
	written, err := rewrite.Write(ctx, cfg, f, rewrite.Change{Keep: keep})
	if err != nil {
		return nil, err
	}
	r.file = &written.File
	a.cfg.Files.Keep(a.def, r.file.Path, &r.file.Index)
	return r, nil
}

// discard removes what was written in place of the file.
func (r *replacement) discard(ctx context.Context, a *Append) {
	if r.file != nil {
		newfile.Remove(ctx, a.cfg.Store, r.file.Keys())
	}
}

// addReplacements adds the plan's part of the commit of a version.
func (a *Append) addReplacements(c *deltalog.Commit, version int64) {
	for _, path := range slices.Sorted(maps.Keys(a.replaced)) {
		r := a.replaced[path]
		remove := *r.remove
		c.Removes = append(c.Removes, &remove)
		if r.file != nil {
			c.Adds = append(c.Adds, r.file.AddAt(version))
		}
	}
	if len(c.Removes) > 0 {
		// In Delta's words an append that replaces rows is a merge on the keys.
		c.Info.Operation = "MERGE"
		c.Info.OperationParameters = map[string]string{"matchedPredicates": `[{"actionType":"update"}]`, "notMatchedPredicates": `[{"actionType":"insert"}]`}
	}
}

// survivors returns the rows of a file that are not in the append's intervals,
// and how many are.
func (a *Append) survivors(ctx context.Context, cfg rewrite.Config, f *snapshot.File) (keep []datafile.RowRange, gone int64, err error) {
	s := cfg.Snapshot
	index, err := cfg.Files.Index(ctx, s, f)
	if err != nil {
		return nil, 0, err
	}
	file, err := cfg.Files.Open(ctx, s, f)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	m := &matcher{snapshot: s, mine: a.result.Coverage, path: f.Path}
	if index.Sorted() {
		err = m.sorted(ctx, file.File, index.Directory)
	} else {
		err = m.unsorted(ctx, file.File)
	}
	if err != nil {
		return nil, 0, err
	}
	m.keepUpTo(file.Rows())
	return m.keep, m.gone, nil
}
