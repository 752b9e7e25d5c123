package deltalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// Problem is something wrong with the files of a log.
type Problem struct {
	Key  string // of the file
	Text string
	// Commit says that the file is a commit, Missing that it is not there.
	Commit, Missing bool
	Version         int64 // of the commit
	// Harmless says that readers do without the file.
	Harmless bool
	// Checkpoint is the version's state where the file is a checkpoint that can
	// be written anew from it (ReplaceCheckpoint), nil for others.
	Checkpoint *State
}

// Audit is what a verification tells of. Its errors end it.
type Audit struct {
	// Step is told of each version, before anything else.
	Step func(version int64) error
	// Commit gets each commit that was read, State the state it leads to.
	Commit func(c *Commit) error
	State  func(s *State) error
	// Problem gets what is wrong.
	Problem func(p Problem) error
}

// Verify reads the whole log up to a version, −1 for the newest, and compares
// each of its checkpoints with the commits: that no version from oldest on is
// missing, that each file is whole, and that all of them tell the same. Log
// files of versions below oldest may have been cleaned up. It returns the
// version it came to, −1 where there is no log.
//
// Only errors of the store, of the context and of the audit are errors; damage
// is a Problem.
func (l *Log) Verify(ctx context.Context, upTo, oldest int64, audit Audit) (int64, error) {
	ls, err := l.list(ctx, 0)
	if err != nil {
		return -1, err
	}
	if upTo < 0 {
		upTo = ls.newest
	}
	v := verifier{log: l, audit: audit, listing: ls, upTo: upTo}
	if err := v.from(ctx, v.start(oldest)); err != nil {
		return -1, err
	}
	return upTo, v.hint(ctx)
}

// verifier walks over one log.
type verifier struct {
	log     *Log
	audit   Audit
	listing *listing
	upTo    int64
	state   *State // after the last commit that led on, nil where none did
}

// start is the version to begin behind: that of the newest checkpoint at or
// below oldest or, where the first commits are gone, of the first one whose
// commit is there or follows; −1 means with the first commit.
func (v *verifier) start(oldest int64) int64 {
	versions := v.listing.candidates(v.upTo)
	slices.Reverse(versions)
	begin := int64(-1)
	for _, version := range versions {
		if version <= oldest && oldest > 0 {
			begin = version
		}
	}
	if _, whole := v.listing.commits[0]; begin >= 0 || whole || len(versions) == 0 {
		return begin
	}
	first := v.upTo
	for v.listing.commits[first-1] > 0 {
		first--
	}
	for _, version := range versions {
		if version >= first-1 {
			return version
		}
	}
	return versions[0]
}

// from verifies the versions behind a checkpoint.
func (v *verifier) from(ctx context.Context, begin int64) error {
	if begin < 0 {
		v.state, begin = NewState(), 0
	}
	for version := begin; version <= v.upTo; version++ {
		if err := v.version(ctx, version); err != nil {
			return err
		}
	}
	return nil
}

// version verifies the files of one version.
func (v *verifier) version(ctx context.Context, version int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := v.audit.Step(version); err != nil {
		return err
	}
	if err := v.commit(ctx, version); err != nil {
		return err
	}
	if err := v.checkpoint(ctx, version); err != nil || v.state == nil {
		return err
	}
	return v.audit.State(v.state)
}

// commit reads a version's commit. The one of a checkpoint that the walk begins
// with is read for what it names alone.
func (v *verifier) commit(ctx context.Context, version int64) error {
	c, err := v.log.ReadCommit(ctx, version)
	known := v.state != nil
	switch {
	case errors.Is(err, objstore.ErrNotExist) && !known:
		return nil // it lies before the checkpoint that follows, or behind a version that was told of
	case errors.Is(err, objstore.ErrNotExist):
		v.state = nil
		return v.audit.Problem(Problem{Key: CommitKey(version), Text: "the commit is missing although later ones exist", Commit: true, Missing: true, Version: version})
	case tableerr.TokenOf(err) != "":
		v.state = nil
		return v.audit.Problem(Problem{Key: CommitKey(version), Text: textOf(err), Commit: true, Version: version})
	case err != nil:
		return err
	}
	if err := v.audit.Commit(c); err != nil || !known {
		return err
	}
	if v.state, err = v.state.Apply(c); err != nil {
		v.state = nil
		return v.audit.Problem(Problem{Key: CommitKey(version), Text: textOf(err), Commit: true, Version: version})
	}
	return nil
}

// textOf is what is wrong with a file of the log, without its name.
func textOf(err error) string {
	var damage *tableerr.Corrupt
	if errors.As(err, &damage) && damage.Msg != "" {
		return damage.Msg
	}
	return err.Error()
}

// checkpoint compares a version's checkpoint with the commits. Where these lead
// nowhere the walk goes on from it.
func (v *verifier) checkpoint(ctx context.Context, version int64) error {
	files := v.listing.checkpoints[version].wholeFiles()
	if files == nil {
		return nil
	}
	s, err := v.log.readCheckpoint(ctx, version, files)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil // cleaned up meanwhile
	}
	if err != nil && tableerr.TokenOf(err) == "" {
		return err
	}
	p := Problem{Key: files[0].Key, Harmless: v.state != nil, Checkpoint: v.state}
	if len(files) > 1 {
		p.Checkpoint = nil
	}
	switch {
	case err != nil:
		p.Text = textOf(err)
		return v.audit.Problem(p)
	case v.state == nil:
		v.state = s
		return nil
	}
	if p.Text = v.state.Difference(s); p.Text != "" {
		p.Text, p.Harmless = "the checkpoint does not agree with the commits: "+p.Text, false
		return v.audit.Problem(p)
	}
	return nil
}

// wholeFiles is whole for a version that may have no checkpoint.
func (c *checkpointFiles) wholeFiles() []objstore.Info {
	if c == nil {
		return nil
	}
	return c.whole()
}

// hint looks whether _last_checkpoint leads to a checkpoint.
func (v *verifier) hint(ctx context.Context) error {
	data, err := v.log.store.Get(ctx, hintKey)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", hintKey, err)
	}
	p := Problem{Key: hintKey, Harmless: true}
	if v.state != nil && v.state.version == v.upTo {
		p.Checkpoint = v.state
	}
	version, err := parseHint(data)
	if err != nil {
		p.Text = "it names no version: " + err.Error()
		return v.audit.Problem(p)
	}
	if version > v.upTo || v.listing.checkpoints[version] != nil {
		return nil
	}
	// The checkpoint may be newer than the listing.
	switch now, err := v.log.list(ctx, version); {
	case err != nil:
		return err
	case now.checkpoints[version] != nil:
		return nil
	}
	p.Text = fmt.Sprintf("it names version %d, of which there is no checkpoint", version)
	return v.audit.Problem(p)
}

// ReplaceCheckpoint writes the checkpoint of s in the place of one that is
// wrong, and points _last_checkpoint to it unless that names a newer one. It has
// the conditions of WriteCheckpoint.
func (l *Log) ReplaceCheckpoint(ctx context.Context, s *State) error {
	if err := s.CheckWritable(); err != nil {
		return err
	}
	data, err := l.encodeCheckpoint(ctx, s)
	if err != nil {
		return fmt.Errorf("encoding the checkpoint of version %d: %w", s.version, err)
	}
	switch stands, err := l.Stands(ctx, s); {
	case err != nil:
		return err
	case !stands:
		return ErrReplaced
	}
	if err := l.store.Put(ctx, CheckpointKey(s.version), data); err != nil {
		return fmt.Errorf("writing the checkpoint of version %d: %w", s.version, err)
	}
	return l.writeHint(ctx, s, CheckpointRef{Version: s.version, Bytes: int64(len(data)), logBytes: s.logBytes})
}
