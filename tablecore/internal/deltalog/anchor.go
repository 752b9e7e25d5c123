package deltalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"

	"contrail/tablecore/objstore"
)

// anchor is what a state remembers of the file it stands on, to see later that
// the file is still there and still the same: the commit of the state's
// version or, where only a checkpoint of it exists, that.
type anchor struct {
	key    string
	size   int64
	digest [sha256.Size]byte // of a commit's bytes
	commit bool
	// modified is the file's time in ns since the epoch once it is known to
	// belong to the digest, else 0.
	modified atomic.Int64
}

// CommitDigest returns the SHA-256 of the commit that s stands on, and whether
// it stands on one: else it came from a checkpoint alone.
func (s *State) CommitDigest() ([sha256.Size]byte, bool) {
	if s.anchor == nil || !s.anchor.commit {
		return [sha256.Size]byte{}, false
	}
	return s.anchor.digest, true
}

// compareBytesUpTo is the size up to which a commit is read again to see that
// it is unchanged, since that costs no more than asking for size and time and
// is exact. Longer ones are compared by size and time.
const compareBytesUpTo = 256 << 10

func commitAnchor(c *Commit) *anchor {
	return &anchor{key: CommitKey(c.Version), size: c.Size, digest: c.Digest, commit: true}
}

// checkpointAnchor stands on a checkpoint; info was taken before it was read.
func checkpointAnchor(info objstore.Info) *anchor {
	a := &anchor{key: info.Key, size: info.Size}
	a.modified.Store(info.Modified.UnixNano())
	return a
}

// Stands tells whether the file that s stands on is still there, unchanged. If
// not, the table was replaced, or its log was cleaned up past s: s must not be
// written on, and the log is to be opened anew. A writer asks before and after
// its put (see WithdrawCommit). It costs one store operation; two, once, for a
// commit that is too long to be read each time.
func (l *Log) Stands(ctx context.Context, s *State) (bool, error) {
	a := s.anchor
	if a == nil {
		return false, errors.New("a state before version 0 stands on no file")
	}
	same, err := l.unchanged(ctx, a)
	if errors.Is(err, objstore.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for version %d: %w", s.version, err)
	}
	return same, nil
}

func (l *Log) unchanged(ctx context.Context, a *anchor) (bool, error) {
	if a.commit && a.size <= compareBytesUpTo {
		return l.sameBytes(ctx, a)
	}
	info, err := l.store.Head(ctx, a.key)
	if err != nil || info.Size != a.size {
		return false, err
	}
	modified := info.Modified.UnixNano()
	if known := a.modified.Load(); known == modified && known != 0 {
		return true, nil
	}
	if !a.commit {
		return a.modified.Load() == modified, nil
	}
	same, err := l.sameBytes(ctx, a)
	if same {
		// The time was taken before the bytes were read, so it is theirs, or
		// older than theirs and will not match next time.
		a.modified.Store(modified)
	}
	return same, err
}

func (l *Log) sameBytes(ctx context.Context, a *anchor) (bool, error) {
	data, err := l.store.Get(ctx, a.key)
	return err == nil && sha256.Sum256(data) == a.digest, err
}
