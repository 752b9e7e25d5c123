package deltalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"contrail/tablecore/objstore"
)

// Resume returns the newest state as LoadLatest does, from a state that
// DecodeState has read instead of a checkpoint. digest is the SHA-256 of the
// commit the state was made with: a log that does not hold that commit is not
// the one the state is of, or was cleaned up past it (ErrReplaced). Whatever the
// error, LoadLatest may still succeed; it is also the better way to a log whose
// newest checkpoint lies far behind the state, and the one to judge a log with
// a gap: both are ErrReplaced, too.
//
// It asks for commits by name, so that it costs the same however long the log
// is: one read for s's commit and for each behind it, and three requests.
func (l *Log) Resume(ctx context.Context, s *State, digest [sha256.Size]byte) (*State, error) {
	hint, hinted := l.readHint(ctx)
	if hinted && hint-s.version >= checkpointAlwaysAfter {
		return nil, fmt.Errorf("a checkpoint of version %d: %w", hint, ErrReplaced)
	}
	c, err := l.ReadCommit(ctx, s.version)
	if errors.Is(err, objstore.ErrNotExist) || err == nil && c.Digest != digest {
		return nil, ErrReplaced
	}
	if err != nil {
		return nil, err
	}
	s = s.standingOn(c)
	for ended := false; !ended; {
		if s, ended, err = l.next(ctx, s); err != nil {
			return nil, err
		}
	}
	if hinted && hint > s.version {
		return nil, fmt.Errorf("a checkpoint of version %d, but no commit %d: %w", hint, s.version+1, ErrReplaced)
	}
	return s, l.accept(s)
}

// next returns the state after the commit that follows s. Where there is none
// the log has ended, unless there is one behind it: then one is missing.
func (l *Log) next(ctx context.Context, s *State) (state *State, ended bool, err error) {
	c, err := l.ReadCommit(ctx, s.version+1)
	if errors.Is(err, objstore.ErrNotExist) {
		_, err = l.store.Head(ctx, CommitKey(s.version+2))
		if errors.Is(err, objstore.ErrNotExist) {
			return s, true, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("looking for version %d: %w", s.version+2, err)
		}
		// Both may have come meanwhile.
		if c, err = l.ReadCommit(ctx, s.version+1); errors.Is(err, objstore.ErrNotExist) {
			return nil, false, fmt.Errorf("commit %d is missing: %w", s.version+1, ErrReplaced)
		}
	}
	if err != nil {
		return nil, false, err
	}
	state, err = s.Apply(c)
	return state, false, err
}
