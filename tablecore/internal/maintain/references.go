package maintain

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/parallel"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// references are the files that a table needs.
type references struct {
	tableID string
	newest  int64 // the version up to which commits were taken in
	at      int64 // its time in ms since the epoch, or that of one before it where it has none
	// live has the files of all retained versions, with the first version that
	// has them.
	live map[string]int64
	// dropped has the files that a `remove` names, with the time of that in ms
	// since the epoch: what it says itself or when it was committed, whichever is
	// later.
	dropped map[string]int64
	// derived has derived data, with the version it describes.
	derived map[string]int64
	// beside has the derived data beside live data files; nil until it is asked
	// for.
	beside map[string]int64
	// heldUntil is until when dropped files stay whatever their age.
	heldUntil time.Time
}

// commitsAtOnce is how many commits are read side by side.
const commitsAtOnce = 256

// newReferences gathers what the versions from oldest on need.
func newReferences(ctx context.Context, cfg VacuumConfig, oldest *deltalog.State, s *snapshot.Snapshot) (*references, error) {
	r := &references{tableID: s.Def.ID, newest: oldest.Version(), live: map[string]int64{}, dropped: map[string]int64{}, derived: map[string]int64{}}
	for _, a := range oldest.Files() {
		if path, err := a.File(); err == nil {
			r.live[path] = oldest.Version()
		}
	}
	r.at, _ = oldest.Timestamp()
	for remove := range s.State.Removes() {
		at := remove.DeletionTimestamp
		if at == 0 {
			at = r.at // it was committed by then, or follow comes upon its commit
		}
		r.drop(remove, at)
	}
	if err := r.follow(ctx, cfg.Log, s); err != nil {
		return nil, err
	}
	return r, r.addDerived(ctx, cfg.Store)
}

// version returns the version that needs a file, if one does.
func (r *references) version(key string) (int64, bool) {
	if version, ok := r.live[key]; ok {
		return version, true
	}
	if !strings.HasPrefix(key, derived.FilesDir) {
		version, ok := r.derived[key]
		return version, ok
	}
	if r.beside == nil {
		r.beside = make(map[string]int64, len(r.live))
		for path, version := range r.live {
			r.beside[derived.SidecarPath(path)] = version
		}
	}
	version, ok := r.beside[key]
	return version, ok
}

// HeldUntil is the time before which no version of a table may be expired; zero
// where nobody has asked for that.
func HeldUntil(s *snapshot.Snapshot) time.Time {
	text, ok := s.State.Metadata().Configuration[tabledef.KeyKeepUntil]
	if !ok {
		return time.Time{}
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.UnixMilli(math.MaxInt64) // what was meant is not known, so nothing is given up
	}
	return until
}

// follow takes in the commits up to the version of s.
func (r *references) follow(ctx context.Context, log *deltalog.Log, s *snapshot.Snapshot) error {
	r.heldUntil = HeldUntil(s)
	for r.newest < s.Version() {
		commits := make([]*deltalog.Commit, min(commitsAtOnce, s.Version()-r.newest))
		err := parallel.Each(ctx, len(commits), lookups, func(ctx context.Context, i int) (err error) {
			commits[i], err = readCommit(ctx, log, r.newest+1+int64(i))
			return err
		})
		if err != nil {
			return err
		}
		for _, c := range commits {
			r.take(c)
		}
	}
	return nil
}

func readCommit(ctx context.Context, log *deltalog.Log, version int64) (*deltalog.Commit, error) {
	c, err := log.ReadCommit(ctx, version)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, &tableerr.Corrupt{Path: deltalog.CommitKey(version), Msg: "the commit of a retained version is missing, so nobody can tell what it needs", Cause: err}
	}
	return c, err
}

// take takes in one commit.
func (r *references) take(c *deltalog.Commit) {
	if at := c.Timestamp(); at != nil {
		r.at = max(r.at, *at)
	}
	for _, remove := range c.Removes {
		r.drop(remove, max(r.at, remove.DeletionTimestamp))
	}
	for _, a := range c.Adds {
		if path, err := a.File(); err == nil {
			if _, known := r.live[path]; !known {
				r.live[path] = c.Version
				if r.beside != nil {
					r.beside[derived.SidecarPath(path)] = c.Version
				}
			}
		}
	}
	r.newest = c.Version
}

// drop takes in that a file was dropped at a time.
func (r *references) drop(remove *deltalog.Remove, at int64) {
	if path, err := remove.File(); err == nil {
		r.dropped[path] = max(r.dropped[path], at)
	}
}

// keptStates is how many state files stay.
const keptStates = 2

// addDerived takes in the head and the state files that opening may need. Those
// of data files are found from the data files.
func (r *references) addDerived(ctx context.Context, store objstore.Store) error {
	r.derived[derived.HeadPath] = r.newest
	if data, err := store.Get(ctx, derived.HeadPath); err == nil {
		if head, err := derived.DecodeHead(data); err == nil {
			r.derived[derived.HeadPath] = head.Of.Version
			r.derived[derived.StatePath(head.Of.TableID, head.Of.Version)] = head.Of.Version
		}
	} else if !errors.Is(err, objstore.ErrNotExist) {
		return err
	}
	var states []int64 // ascending, as the names are
	for info, err := range store.List(ctx, derived.StateDir, "") {
		if err != nil {
			return err
		}
		digits, _, _ := strings.Cut(strings.TrimPrefix(info.Key, derived.StateDir), "-")
		version, err := strconv.ParseInt(digits, 10, 64)
		if err == nil && info.Key == derived.StatePath(r.tableID, version) {
			states = append(states, version)
		}
	}
	for _, version := range states[max(0, len(states)-keptStates):] {
		r.derived[derived.StatePath(r.tableID, version)] = version
	}
	return nil
}
