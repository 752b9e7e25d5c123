package snapshot

import (
	"slices"
	"strings"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/pmap"
	"contrail/tablecore/tabledef"
)

const (
	// requestPrefix begins the application of every txn action that remembers
	// a request id: contrail/<first 16 hex of the digest>/<op>/<request id>.
	requestPrefix = "contrail/"
	// DigestLen is how many hex digits of a digest are kept.
	DigestLen = 16
	// requestAge and maxRequests say how long a request id is remembered:
	// whichever comes first.
	requestAge  = 7 * 24 * time.Hour
	maxRequests = 100_000
)

// Request is what a table remembers of a request id.
type Request struct {
	ID string
	// Op is the put that the id came with, Digest the beginning of the digest of
	// its rows.
	Op, Digest string
	// Version is the version that the put made.
	Version int64

	updated *int64 // in-commit time in ms since the epoch, nil when unknown
}

// AppID returns the application of the txn action that remembers a request.
func (r *Request) AppID() string {
	return requestPrefix + r.Digest + "/" + r.Op + "/" + r.ID
}

// parseRequest reads a txn action, nil for one that is no request's.
func parseRequest(t *deltalog.Txn) *Request {
	rest, ok := strings.CutPrefix(t.AppID, requestPrefix)
	if !ok {
		return nil
	}
	digest, rest, _ := strings.Cut(rest, "/")
	op, id, ok := strings.Cut(rest, "/")
	if !ok || len(digest) != DigestLen || id == "" {
		return nil
	}
	return &Request{ID: id, Op: op, Digest: digest, Version: t.Version, updated: t.LastUpdated}
}

// Request returns what the table remembers of a request id, nil when it does
// not know it or has known it for too long. now is the clock's time in ms since
// the epoch. An id's age is the time between commits: a clock that is ahead
// forgets nothing until a commit has its time.
func (s *Snapshot) Request(id string, now int64) *Request {
	r, _ := s.requests.Get(id)
	if r == nil || r.updated != nil && *r.updated < s.rememberedSince(now) {
		return nil
	}
	return r
}

// rememberedSince is the time before which request ids are forgotten.
func (s *Snapshot) rememberedSince(now int64) int64 {
	return s.byCommits(now) - requestAge.Milliseconds()
}

// byCommits is the time by which things grow old: the clock's, but not ahead of
// the newest commit.
func (s *Snapshot) byCommits(now int64) int64 {
	if newest, ok := s.State.Timestamp(); ok {
		return min(now, newest)
	}
	return now
}

// indexRequests makes the index of a state's request ids. Of several actions
// about one id the newest counts, and none of a version that was abandoned.
func indexRequests(state *deltalog.State, upkeep Upkeep) pmap.Map[*Request] {
	var index pmap.Map[*Request]
	o := &pmap.Owner{}
	for t := range state.Txns() {
		r := parseRequest(t)
		if r == nil || upkeep.Abandons(r.Version) {
			continue
		}
		if other, _ := index.Get(r.ID); other == nil || other.Version < r.Version {
			index.Set(o, r.ID, r)
		}
	}
	return index
}

// noteRequests adds a commit's request ids to the index.
func (s *Snapshot) noteRequests(txns []*deltalog.Txn) {
	o := &pmap.Owner{}
	for _, t := range txns {
		if r := parseRequest(t); r != nil {
			s.requests.Set(o, r.ID, r)
		}
	}
}

// OldestRemembered returns the version of the oldest commit whose report a
// repeated put may still ask for, whether or not its version is abandoned at
// present; the newest version where there is none.
func (s *Snapshot) OldestRemembered(now int64) int64 {
	oldest := s.Version()
	since := s.rememberedSince(now)
	for t := range s.State.Txns() {
		if r := parseRequest(t); r != nil && (r.updated == nil || *r.updated >= since) {
			oldest = min(oldest, r.Version)
		}
	}
	return oldest
}

// Revived returns the txn actions of request ids that a rollback to target must
// write again: s has a newer one in their place, made in a version that is
// abandoned from then on. (What else target remembers is in s still.)
func (s *Snapshot) Revived(target *Snapshot, abandoned Upkeep) []*deltalog.Txn {
	var again []*deltalog.Txn
	for t := range target.State.Txns() {
		now := s.State.Txn(t.AppID)
		if parseRequest(t) != nil && now != nil && now.Version != t.Version && !abandoned.Abandons(t.Version) {
			again = append(again, &deltalog.Txn{AppID: t.AppID, Version: t.Version})
		}
	}
	slices.SortFunc(again, func(a, b *deltalog.Txn) int { return strings.Compare(a.AppID, b.AppID) })
	return again
}

// Expire returns the state that a checkpoint of s made at now (ms since the
// epoch) holds, and what it leaves out: request ids that are forgotten, and
// tombstones of our own files that are older than the snapshot retention. What
// other software has written is recognised, once it was removed, by its tombstone
// alone, which therefore stays. It looks at every one.
func (s *Snapshot) Expire(now int64) (*deltalog.State, deltalog.Forgotten) {
	state := s.State.Expire(deltalog.Expiry{TxnPrefix: requestPrefix, TxnsBefore: s.rememberedSince(now), MaxTxns: maxRequests,
		RemovesBefore: s.byCommits(now) - s.Def.SnapshotRetention().Milliseconds(), Removable: tabledef.IsDataFile})
	return state, s.State.Without(state)
}

// Forget returns s without actions that Expire found in s or in an older
// snapshot. It costs what it forgets.
func (s *Snapshot) Forget(gone deltalog.Forgotten) *Snapshot {
	if len(gone.Txns) == 0 && len(gone.Removes) == 0 {
		return s
	}
	c, o := *s, &pmap.Owner{}
	c.State = s.State.Forget(gone)
	for _, t := range gone.Txns {
		r := parseRequest(t)
		if r == nil || c.State.Txn(t.AppID) != nil {
			continue
		}
		if known, _ := c.requests.Get(r.ID); known != nil && known.AppID() == t.AppID {
			c.requests.Remove(o, r.ID)
		}
	}
	return &c
}
