package deltalog

import (
	"cmp"
	"slices"
	"strings"

	"contrail/tablecore/internal/pmap"
)

// Expiry says what a state may forget. The zero value forgets nothing.
type Expiry struct {
	// RemovesBefore forgets the tombstones of files that were removed before
	// that time, in ms since the epoch, of those that Removable picks; nil picks
	// all. One without a time counts as old.
	RemovesBefore int64
	Removable     func(file string) bool
	// TxnPrefix limits what follows to the txn actions whose application begins
	// with it: how long others are kept is for their writers to say.
	TxnPrefix string
	// TxnsBefore forgets the txn actions that were updated before that time, in
	// ms since the epoch; those without a time stay.
	TxnsBefore int64
	// MaxTxns, where positive, forgets all but the newest (highest version).
	MaxTxns int
}

// Expire returns s without what e says may be forgotten. It looks at every
// tombstone and txn, so it belongs beside a checkpoint, not a commit.
func (s *State) Expire(e Expiry) *State {
	next, o := *s, &pmap.Owner{}
	for key, r := range s.removes.All() {
		if r.DeletionTimestamp < e.RemovesBefore && (e.Removable == nil || e.Removable(r.file)) {
			next.removes.Remove(o, key)
		}
	}
	var counted []*Txn
	for key, t := range s.txns.All() {
		switch {
		case !strings.HasPrefix(key, e.TxnPrefix):
		case t.LastUpdated != nil && *t.LastUpdated < e.TxnsBefore:
			next.txns.Remove(o, key)
		case e.MaxTxns > 0:
			counted = append(counted, t)
		}
	}
	if e.MaxTxns > 0 && len(counted) > e.MaxTxns {
		slices.SortFunc(counted, func(a, b *Txn) int {
			return cmp.Or(cmp.Compare(b.Version, a.Version), cmp.Compare(a.AppID, b.AppID))
		})
		for _, t := range counted[e.MaxTxns:] {
			next.txns.Remove(o, t.AppID)
		}
	}
	return &next
}

// Forgotten are actions of a state that another state of the same log lacks.
type Forgotten struct {
	Txns    []*Txn
	Removes []*Remove
}

// Without returns the txn actions and tombstones of s that expired, which Expire
// has made of it, lacks.
func (s *State) Without(expired *State) (gone Forgotten) {
	if s.txns.Len() != expired.txns.Len() {
		for key, t := range s.txns.All() {
			if expired.Txn(key) == nil {
				gone.Txns = append(gone.Txns, t)
			}
		}
	}
	if s.removes.Len() != expired.removes.Len() {
		for key, r := range s.removes.All() {
			if kept, _ := expired.removes.Get(key); kept == nil {
				gone.Removes = append(gone.Removes, r)
			}
		}
	}
	return gone
}

// Forget returns s without some actions. One that was written again since, or is
// gone already, is let be. It costs what it forgets.
func (s *State) Forget(gone Forgotten) *State {
	next, o := *s, &pmap.Owner{}
	for _, t := range gone.Txns {
		if s.Txn(t.AppID) == t {
			next.txns.Remove(o, t.AppID)
		}
	}
	for _, r := range gone.Removes {
		if now, _ := s.removes.Get(r.key()); now == r {
			next.removes.Remove(o, r.key())
		}
	}
	return &next
}
