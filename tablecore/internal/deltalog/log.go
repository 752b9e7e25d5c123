package deltalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// Options configure a Log. The zero value is the default.
type Options struct {
	// AllowExternalPaths takes tables whose live files lie outside the table's
	// directory. Without it they are *tableerr.Unsupported.
	AllowExternalPaths bool
	// CheckProperties, when set, judges a table by its properties before the
	// features it uses are looked at: a newer format may need newer features,
	// and it is the format that tells a user what to do. Its error is passed on
	// as it is.
	CheckProperties func(configuration map[string]string) error
	// Allocator is where checkpoints are decoded and encoded.
	Allocator memory.Allocator
}

// Log is the transaction log of one table. It holds no state of its own and is
// safe for concurrent use.
type Log struct {
	store objstore.Store
	opts  Options
}

// New returns the log of the table that store holds.
func New(store objstore.Store, opts Options) *Log {
	if opts.Allocator == nil {
		opts.Allocator = memory.DefaultAllocator
	}
	return &Log{store: store, opts: opts}
}

// ErrReplaced says that a state no longer stands on the log: see Stands.
var ErrReplaced = errors.New("the log no longer holds the commit this state stands on")

// LoadLatest returns the newest state, from a checkpoint and the commits behind
// it. Errors: *tableerr.TableNotFound when the log holds no version,
// *tableerr.Corrupt for damage and for a gap, *tableerr.Unsupported.
func (l *Log) LoadLatest(ctx context.Context) (*State, error) {
	return l.load(ctx, latest)
}

// LoadAt returns the state at a version. Errors beside those of LoadLatest:
// *tableerr.VersionNotFound for a version the table never had,
// *tableerr.VersionExpired for one whose log files were cleaned up.
func (l *Log) LoadAt(ctx context.Context, version int64) (*State, error) {
	if version < 0 {
		s, err := l.load(ctx, latest)
		if err != nil {
			return nil, err
		}
		return nil, &tableerr.VersionNotFound{Version: version, Current: s.version}
	}
	return l.load(ctx, version)
}

// ReadCommit reads the commit of a version. It is objstore.ErrNotExist when
// there is none.
func (l *Log) ReadCommit(ctx context.Context, version int64) (*Commit, error) {
	data, err := l.store.Get(ctx, CommitKey(version))
	if errors.Is(err, objstore.ErrTooLarge) {
		return nil, &tableerr.Corrupt{Path: CommitKey(version), Msg: fmt.Sprintf("longer than %d bytes", MaxCommitBytes), Cause: err}
	}
	if err != nil {
		return nil, fmt.Errorf("reading commit %d: %w", version, err)
	}
	return ParseCommit(version, data)
}

// Refresh asks for commits newer than s, by name, and returns the newest state
// with the commits it took to get there; s itself and none when nothing is new.
// ErrReplaced when s does not stand any more. With nothing new it costs what
// Stands costs and one operation.
func (l *Log) Refresh(ctx context.Context, s *State) (*State, []*Commit, error) {
	switch stands, err := l.Stands(ctx, s); {
	case err != nil:
		return nil, nil, err
	case !stands:
		return nil, nil, ErrReplaced
	}
	var commits []*Commit
	for {
		c, err := l.ReadCommit(ctx, s.version+1)
		if errors.Is(err, objstore.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		next, err := s.Apply(c)
		if err != nil {
			return nil, nil, err
		}
		s, commits = next, append(commits, c)
	}
	if len(commits) > 0 {
		if err := l.accept(s); err != nil {
			return nil, nil, err
		}
	}
	return s, commits, nil
}

// HasCommit says whether the log holds the commit of a version. It costs one
// store operation.
func (l *Log) HasCommit(ctx context.Context, version int64) (bool, error) {
	_, err := l.store.Head(ctx, CommitKey(version))
	if errors.Is(err, objstore.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for commit %d: %w", version, err)
	}
	return true, nil
}

// WithdrawCommit takes back a commit that this process has just put and must
// not acknowledge, because the version it was made on has gone meanwhile
// (Stands): it is deleted if its bytes are the ones given. Whether or not it
// was there, the caller has lost the race.
func (l *Log) WithdrawCommit(ctx context.Context, version int64, data []byte) error {
	same, err := l.sameBytes(ctx, commitAnchor(&Commit{Version: version, Digest: sha256.Sum256(data)}))
	if err == nil && same {
		err = l.store.Delete(ctx, CommitKey(version))
	}
	if err != nil && !errors.Is(err, objstore.ErrNotExist) {
		return fmt.Errorf("withdrawing commit %d: %w", version, err)
	}
	return nil
}

// accept refuses states that this software must not read.
func (l *Log) accept(s *State) error {
	if check := l.opts.CheckProperties; check != nil {
		if err := check(s.metadata.Configuration); err != nil {
			return err
		}
	}
	if err := s.CheckReadable(); err != nil {
		return err
	}
	if l.opts.AllowExternalPaths {
		return nil
	}
	return s.CheckPaths()
}
