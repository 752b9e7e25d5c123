package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"contrail/tablecore/internal/attempt"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/staging"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// ref is what the log says of a file.
type ref struct {
	// last is the newest version that has the file, MaxInt64 while it is live.
	last int64
	own  bool  // Contrail wrote it
	size int64 // that the log says, 0 where it does not
}

// log checks the log up to the version.
func (c *checker) log(ctx context.Context) error {
	_, err := c.verifyLog(ctx, c.snap.Version(), c.snap.Upkeep.OldestVersion)
	if err != nil {
		return err
	}
	// What is in memory may have come from a state file that is wrong.
	if c.truth != nil && c.truth.Difference(c.snap.State) != "" {
		if c.snap, err = snapshot.New(c.truth); err != nil {
			return err
		}
	}
	for _, f := range c.snap.Files { // also where the log has a gap
		c.noteAdd(f.Add)
	}
	return nil
}

func (c *checker) verifyLog(ctx context.Context, upTo, oldest int64) (int64, error) {
	first := true
	return c.cfg.Log.Verify(ctx, upTo, oldest, deltalog.Audit{
		Step: func(version int64) error {
			c.tell("log", version, max(upTo, version)+1, "versions")
			return nil
		},
		Commit: c.note,
		State: func(s *deltalog.State) error {
			if first {
				c.noteState(s)
				first = false
			}
			if s.Version() == c.head.version() {
				c.headState = s
			}
			if s.Version() == upTo {
				c.truth = s
			}
			return nil
		},
		Problem: func(p deltalog.Problem) error { return c.problem(ctx, p) },
	})
}

// note notes the files that a commit names.
func (c *checker) note(commit *deltalog.Commit) error {
	for _, r := range commit.Removes {
		if path, err := r.File(); err == nil {
			old := c.refs[path]
			c.refs[path] = ref{commit.Version - 1, old.own, old.size}
		}
	}
	for _, a := range commit.Adds {
		c.noteAdd(a)
	}
	return nil
}

func (c *checker) noteAdd(a *deltalog.Add) {
	if path, err := a.File(); err == nil {
		c.refs[path] = ref{math.MaxInt64, a.Tags[tabledef.TagWriter] != "", a.Size}
	}
}

// noteState notes the files of the state that the log begins with.
func (c *checker) noteState(s *deltalog.State) {
	for _, a := range s.Files() {
		c.noteAdd(a)
	}
	for r := range s.Removes() {
		if path, err := r.File(); err == nil {
			if _, known := c.refs[path]; !known {
				c.refs[path] = ref{last: -1}
			}
		}
	}
}

// problem tells of something wrong with the log.
func (c *checker) problem(ctx context.Context, p deltalog.Problem) error {
	if p.Missing && c.cfg.Newest != nil {
		newest, err := c.cfg.Newest(ctx)
		if err == nil && p.Version < newest.Upkeep.OldestVersion {
			return nil // cleaned up meanwhile
		}
		if err != nil && tableerr.TokenOf(err) == "" {
			return err
		}
	}
	c.gap = c.gap || p.Commit
	f := Finding{Severity: Error, Kind: BadLog, Path: p.Key, Text: p.Text}
	if p.Harmless {
		f.Severity = Warning
	}
	if c.cfg.Repair && p.Checkpoint != nil {
		err := c.cfg.Log.ReplaceCheckpoint(ctx, p.Checkpoint)
		if err != nil && !errors.Is(err, deltalog.ErrReplaced) {
			return err
		}
		f.Repaired = err == nil
	}
	return c.add(f)
}

// others looks at all files of the table: for those that nobody refers to, and
// for those that older versions need.
func (c *checker) others(ctx context.Context) error {
	kept := c.keptPaths()
	staged, err := staging.Waiting(ctx, c.cfg.Store, c.cfg.Now.Add(-attempt.Life))
	if err != nil {
		return fmt.Errorf("looking for staged appends: %w", err)
	}
	atWork, err := c.cfg.AtWork(ctx)
	if err != nil {
		return fmt.Errorf("looking for writers at work: %w", err)
	}
	seen, done := map[string]int64{}, int64(0) // seen: what is there of the files that the log names, in bytes
	c.tell("others", done, -1, "files")
	for info, err := range c.cfg.Store.List(ctx, "", "") {
		if err != nil {
			return fmt.Errorf("listing the table: %w", err)
		}
		done++
		c.tell("others", done, -1, "files")
		if _, named := c.refs[info.Key]; named {
			seen[info.Key] = info.Size
			continue
		}
		if c.gap || kept[info.Key] || staged[info.Key] || atWork.Covers(info.Modified) || c.exempt(info) {
			continue // what a commit refers to that cannot be read, nobody knows
		}
		if err := c.add(Finding{Severity: Warning, Kind: Orphan, Path: info.Key, Text: fmt.Sprintf("no version refers to this file of %d bytes", info.Size)}); err != nil {
			return err
		}
	}
	return c.older(ctx, seen)
}

// keptPaths are the files beside data files, and the head with its state file.
func (c *checker) keptPaths() map[string]bool {
	kept := map[string]bool{derived.HeadPath: true}
	for path := range c.refs {
		kept[derived.SidecarPath(path)] = true
	}
	return kept
}

// working is where the table's working space lies.
var working = []string{derived.StateDir, attempt.Dir, staging.ManifestDir, staging.ClaimDir}

// exempt says whether a file that no data refers to is none to tell of: another
// writer's or working space, a state file, or one that is too young.
func (c *checker) exempt(info objstore.Info) bool {
	top, _, _ := strings.Cut(info.Key, "/")
	switch {
	case slices.ContainsFunc(working, func(prefix string) bool { return strings.HasPrefix(info.Key, prefix) }):
		return true
	case top == "_contrail":
	case strings.HasPrefix(top, "_"), strings.HasPrefix(top, "."), strings.HasPrefix(info.Key, "deletion_vector_"):
		return true
	}
	return c.cfg.Now.Sub(info.Modified) < attempt.Life
}

// older tells of files that are gone, or of another size, though an older version
// that can still be asked for has them. Those of the newest one were told of
// already.
func (c *checker) older(ctx context.Context, seen map[string]int64) error {
	oldest := int64(math.MaxInt64)
	for _, path := range slices.Sorted(maps.Keys(c.refs)) {
		r := c.refs[path]
		size, there := seen[path]
		if r.last == math.MaxInt64 || r.last < 0 || there && (size == r.size || r.size == 0) {
			continue
		}
		if oldest == math.MaxInt64 { // as late as can be: it may have moved on
			newest, err := c.cfg.Newest(ctx)
			if err != nil {
				return err
			}
			oldest = newest.Upkeep.OldestVersion
		}
		if r.last < oldest {
			continue
		}
		f := Finding{Severity: Error, Kind: MissingFile, Path: path, Text: fmt.Sprintf("data file of version %d is missing", r.last)}
		if there {
			f.Kind, f.Text = BadFile, fmt.Sprintf("data file of version %d has %d bytes, the log says %d", r.last, size, r.size)
		}
		if !r.own {
			f.Severity = Warning // whose other writers may remove what they replaced
		}
		if err := c.add(f); err != nil {
			return err
		}
	}
	return nil
}
