package deltalog

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// latest is the target that means the newest version.
const latest = int64(-1)

// loadAttempts is how often a load begins again because a file that it saw in
// the listing was cleaned up before it was read.
const loadAttempts = 4

func (l *Log) load(ctx context.Context, target int64) (*State, error) {
	var s *State
	var err error
	for range loadAttempts {
		s, err = l.loadOnce(ctx, target)
		if !errors.Is(err, objstore.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if err := l.accept(s); err != nil {
		return nil, err
	}
	return s, nil
}

// loadOnce tries the part of the log that the hint points to, and the whole
// log where that does not give a state.
func (l *Log) loadOnce(ctx context.Context, target int64) (*State, error) {
	if from, ok := l.readHint(ctx); ok && (target == latest || from <= target) {
		ls, err := l.list(ctx, from)
		if err != nil {
			return nil, err
		}
		s, err := l.build(ctx, ls, target)
		if tableerr.TokenOf(err) == "" && !errors.Is(err, objstore.ErrNotExist) {
			return s, err
		}
	}
	ls, err := l.list(ctx, 0)
	if err != nil {
		return nil, err
	}
	return l.build(ctx, ls, target)
}

// readHint returns the version that _last_checkpoint names. Whatever is wrong
// with the file, the log is read without it.
func (l *Log) readHint(ctx context.Context) (int64, bool) {
	data, err := l.store.Get(ctx, hintKey)
	if err != nil {
		return 0, false
	}
	version, err := parseHint(data)
	return version, err == nil
}

func parseHint(data []byte) (int64, error) {
	if len(data) > MaxLineBytes || !utf8.Valid(data) {
		return 0, errors.New("no hint")
	}
	r := &jsonReader{data: data}
	var version *int64
	err := r.object(func(key []byte) (err error) {
		if string(key) != "version" {
			return r.skip()
		}
		version, err = r.integer()
		return err
	})
	if err == nil {
		err = r.end()
	}
	if err == nil && (version == nil || *version < 0 || *version > maxVersion) {
		err = errors.New("no version")
	}
	if err != nil {
		return 0, err
	}
	return *version, nil
}

// build makes the state at target from what a listing found: from the newest
// checkpoint that can be read, else from the first commit.
func (l *Log) build(ctx context.Context, ls *listing, target int64) (*State, error) {
	want := target
	switch {
	case ls.newest < 0:
		return nil, &tableerr.TableNotFound{}
	case target == latest:
		want = ls.newest
	case target > ls.newest:
		return nil, &tableerr.VersionNotFound{Version: target, Current: ls.newest}
	}
	var damage error
	for _, version := range ls.candidates(want) {
		s, err := l.readCheckpoint(ctx, version, ls.checkpoints[version].whole())
		if err == nil {
			return l.replay(ctx, ls, s, want, target)
		}
		if tableerr.TokenOf(err) == "" {
			return nil, err
		}
		if damage == nil {
			damage = err
		}
	}
	var s *State
	err := l.noStart(ls, want, target)
	if err == nil {
		s, err = l.replay(ctx, ls, NewState(), want, target)
	}
	if err != nil && damage != nil && tableerr.TokenOf(err) != "" {
		err = damage // the older log was cleaned up because of this checkpoint
	}
	return s, err
}

// noStart returns the error for a log without a first commit.
func (l *Log) noStart(ls *listing, want, target int64) error {
	if _, ok := ls.commits[0]; ok {
		return nil
	}
	for version, c := range ls.checkpoints {
		if c.v2 && version <= want {
			return unsupported(featureV2Checkpoint)
		}
	}
	if target != latest {
		return &tableerr.VersionExpired{Version: target, Current: ls.newest}
	}
	return missingCommit(0)
}

func missingCommit(version int64) error {
	return &tableerr.Corrupt{Path: CommitKey(version), Msg: "the commit is missing although later ones exist"}
}

// replay applies the commits after s up to want. Commits that the listing
// lacks are asked for by name, because a directory that grows while it is
// listed may show a commit and not the one before.
func (l *Log) replay(ctx context.Context, ls *listing, s *State, want, target int64) (*State, error) {
	if s.version == want {
		return l.standOn(ctx, ls, s)
	}
	for s.version < want {
		version := s.version + 1
		size, listed := ls.commits[version]
		if size > MaxCommitBytes {
			return nil, &tableerr.Corrupt{Path: CommitKey(version), Msg: fmt.Sprintf("longer than %d bytes", MaxCommitBytes)}
		}
		c, err := l.ReadCommit(ctx, version)
		if errors.Is(err, objstore.ErrNotExist) && !listed {
			return nil, ls.gap(version, target)
		}
		if err != nil {
			return nil, err
		}
		if s, err = s.Apply(c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// gap returns the error for a commit that is not there. Below a later
// checkpoint it may have been cleaned up, so an old version has expired.
func (ls *listing) gap(version, target int64) error {
	if target != latest {
		for v, c := range ls.checkpoints {
			if v >= version && c.whole() != nil {
				return &tableerr.VersionExpired{Version: target, Current: ls.newest}
			}
		}
	}
	return missingCommit(version)
}

// standOn anchors a state that came from a checkpoint alone on its commit,
// which also knows the time, if that is still there.
func (l *Log) standOn(ctx context.Context, ls *listing, s *State) (*State, error) {
	if _, listed := ls.commits[s.version]; !listed {
		return s, nil
	}
	c, err := l.ReadCommit(ctx, s.version)
	if err != nil {
		return nil, err
	}
	return s.standingOn(c), nil
}

// standingOn returns s anchored on the commit of its version.
func (s *State) standingOn(c *Commit) *State {
	next := *s
	next.timestamp = c.Timestamp()
	next.anchor = commitAnchor(c)
	return &next
}
