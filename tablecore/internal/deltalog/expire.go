package deltalog

import (
	"cmp"
	"slices"
	"strings"
)

// Expiry says what a state may forget. The zero value forgets nothing.
type Expiry struct {
	// RemovesBefore forgets the tombstones of files that were removed before
	// that time, in ms since the epoch.
	RemovesBefore int64
	// TxnsBefore forgets the txn actions that were updated before that time, in
	// ms since the epoch; those without a time stay.
	TxnsBefore int64
	// TxnPrefix and MaxTxns, where positive, forget all but the newest (highest
	// version) of the txn actions whose application begins with the prefix.
	TxnPrefix string
	MaxTxns   int
}

// Expire returns s without what e says may be forgotten. It looks at every
// tombstone and txn, so it belongs beside a checkpoint, not a commit.
func (s *State) Expire(e Expiry) *State {
	next, o := *s, &owner{}
	for key, r := range s.removes.all() {
		if r.DeletionTimestamp < e.RemovesBefore {
			next.removes.remove(o, key)
		}
	}
	var counted []*Txn
	for key, t := range s.txns.all() {
		switch {
		case t.LastUpdated != nil && *t.LastUpdated < e.TxnsBefore:
			next.txns.remove(o, key)
		case e.MaxTxns > 0 && strings.HasPrefix(key, e.TxnPrefix):
			counted = append(counted, t)
		}
	}
	if e.MaxTxns > 0 && len(counted) > e.MaxTxns {
		slices.SortFunc(counted, func(a, b *Txn) int {
			return cmp.Or(cmp.Compare(b.Version, a.Version), cmp.Compare(a.AppID, b.AppID))
		})
		for _, t := range counted[e.MaxTxns:] {
			next.txns.remove(o, t.AppID)
		}
	}
	return &next
}
