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
// newest checkpoint lies far behind the state, which is ErrReplaced, too.
//
// It costs one listing, and one read for s's commit and for each behind it.
func (l *Log) Resume(ctx context.Context, s *State, digest [sha256.Size]byte) (*State, error) {
	ls, err := l.list(ctx, s.version)
	if err != nil {
		return nil, err
	}
	if newest := ls.candidates(ls.newest); len(newest) > 0 && newest[0]-s.version >= checkpointAlwaysAfter {
		return nil, fmt.Errorf("a checkpoint of version %d: %w", newest[0], ErrReplaced)
	}
	c, err := l.ReadCommit(ctx, s.version)
	if errors.Is(err, objstore.ErrNotExist) || err == nil && c.Digest != digest {
		return nil, ErrReplaced
	}
	if err != nil {
		return nil, err
	}
	s = s.standingOn(c)
	if s.version < ls.newest {
		if s, err = l.replay(ctx, ls, s, ls.newest, latest); err != nil {
			return nil, err
		}
	}
	return s, l.accept(s)
}
