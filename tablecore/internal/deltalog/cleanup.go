package deltalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// LoadOldest returns the state at a version or, where the log begins behind it,
// as that of a table does whose former owner has cleaned it up, at the first
// version from there on that the log still gives. Unlike LoadAt it takes states
// with features that this software cannot read: what a state refers to must
// stay, whoever reads it. Its Checkpoint is the one that it was read from.
func (l *Log) LoadOldest(ctx context.Context, version int64) (s *State, err error) {
	for range loadAttempts {
		if s, err = l.loadOldest(ctx, version); !errors.Is(err, objstore.ErrNotExist) {
			break
		}
	}
	return s, err
}

func (l *Log) loadOldest(ctx context.Context, version int64) (*State, error) {
	ls, err := l.list(ctx, 0)
	if err != nil {
		return nil, err
	}
	s, err := l.build(ctx, ls, version)
	if tableerr.TokenOf(err) != tableerr.TokenVersionExpired {
		return s, err
	}
	later := ls.candidates(ls.newest)
	slices.Reverse(later)
	for _, v := range later {
		if v < version {
			continue
		}
		if s, err = l.build(ctx, ls, v); err == nil || tableerr.TokenOf(err) == "" {
			break
		}
	}
	return s, err
}

// CleanUp removes what lies below the checkpoint of a version, which must be
// whole, or else nothing: the commits of versions below first, and the older
// checkpoints. It goes one by one in ascending order and returns how many
// commits it has removed. Whatever stops it, the commits from some version on
// are all there.
//
// That order is what keeps off a writer that slept and has a version in mind
// which is removed here: as long as its version is there, so is the next one.
func (l *Log) CleanUp(ctx context.Context, checkpoint, first int64) (commits int, err error) {
	if checkpoint <= 0 {
		return 0, nil
	}
	files, whole, err := l.below(ctx, checkpoint)
	if err != nil || !whole {
		return 0, err
	}
	files = slices.DeleteFunc(files, func(f namedFile) bool { return f.kind == kindCommit && f.version >= first })
	keys := make([]string, len(files))
	for i, f := range files {
		keys[i] = f.key
	}
	n, err := l.store.DeleteAll(ctx, keys)
	for _, f := range files[:n] {
		if f.kind == kindCommit {
			commits++
		}
	}
	if err != nil {
		return commits, fmt.Errorf("cleaning up the log: %w", err)
	}
	return commits, nil
}

// namedFile is a file of the log with its key.
type namedFile struct {
	logFile
	key string
}

// below lists the files of versions below one, ascending, and says whether there
// is a whole checkpoint of that one.
func (l *Log) below(ctx context.Context, version int64) (files []namedFile, whole bool, err error) {
	at := &listing{commits: map[int64]int64{}, checkpoints: map[int64]*checkpointFiles{}}
	for info, err := range l.store.List(ctx, logDir, "") {
		if err != nil {
			return nil, false, fmt.Errorf("listing the log: %w", err)
		}
		name := strings.TrimPrefix(info.Key, logDir)
		f := parseLogName(name)
		if f.kind == kindOther {
			continue
		}
		if f.version > version {
			break
		}
		if f.version == version {
			at.note(name, info)
			continue
		}
		files = append(files, namedFile{f, info.Key})
	}
	c := at.checkpoints[version]
	return files, c != nil && c.whole() != nil, nil
}
