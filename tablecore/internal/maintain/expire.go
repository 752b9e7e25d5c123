package maintain

import (
	"context"
	"encoding/json"
	"errors"
	"sort"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
)

// ExpireConfig says what a table may give up.
type ExpireConfig struct {
	Now time.Time
	// Retention is how long a version stays readable after its successor was
	// committed.
	Retention time.Duration
	// Pinned is the oldest version that somebody relies on.
	Pinned int64
	// CommitTime tells when a version was committed, objstore.ErrNotExist for one
	// whose commit is gone, which is older than any that is there.
	CommitTime func(ctx context.Context, version int64) (time.Time, error)
}

// Expire moves on the oldest version that readers may ask for. It is planned on
// one version and is to be committed right behind it.
type Expire struct {
	from   *snapshot.Snapshot
	oldest int64
}

// PlanExpire finds the oldest version that stays: the first one whose successor
// is not older than the retention, at most a pinned one and the newest, and none
// at all while versions are held. It reads a few commits and changes nothing.
func PlanExpire(ctx context.Context, s *snapshot.Snapshot, cfg ExpireConfig) (*Expire, error) {
	e := &Expire{from: s, oldest: s.Upkeep.OldestVersion}
	last := min(s.Version(), cfg.Pinned)
	if last <= e.oldest || cfg.Now.Before(HeldUntil(s)) {
		return e, nil
	}
	var failed error
	moved := sort.Search(int(last-e.oldest), func(i int) bool {
		at, err := cfg.CommitTime(ctx, e.oldest+int64(i)+1)
		switch {
		case errors.Is(err, objstore.ErrNotExist):
			return false
		case err != nil:
			failed = err
			return true
		}
		return cfg.Now.Sub(at) <= cfg.Retention
	})
	if failed != nil {
		return nil, failed
	}
	e.oldest += int64(moved)
	return e, nil
}

// Oldest is the oldest version that stays.
func (e *Expire) Oldest() int64 { return e.oldest }

// NoOp says whether that is the one it is already.
func (e *Expire) NoOp() bool { return e.oldest == e.from.Upkeep.OldestVersion }

// Revalidate makes sure that s is the version that it was planned on.
// TABLE_NOT_FOUND or VERSION_CONFLICT.
func (e *Expire) Revalidate(_ context.Context, s *snapshot.Snapshot) error {
	return sameVersion(e.from, s)
}

// Commit returns the actions of the commit, whose extra goes into commitInfo.
func (e *Expire) Commit(extra map[string]json.RawMessage) (*deltalog.Commit, error) {
	upkeep := e.from.Upkeep
	upkeep.OldestVersion = e.oldest
	action, err := upkeep.Action()
	if err != nil {
		return nil, err
	}
	return &deltalog.Commit{Info: &deltalog.CommitInfo{Operation: "VACUUM", OperationParameters: map[string]string{}, Extra: extra},
		Domains: []*deltalog.DomainMetadata{action}}, nil
}
