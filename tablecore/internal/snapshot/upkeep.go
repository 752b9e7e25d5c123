package snapshot

import (
	"cmp"
	"encoding/json"
	"slices"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/tableerr"
)

// UpkeepDomain is where maintenance keeps what it knows of the table.
const UpkeepDomain = "contrail.state"

// Upkeep is what maintenance records about a table's versions. The zero value
// is that of a table that has seen none.
type Upkeep struct {
	// OldestVersion is the oldest version that readers may ask for.
	OldestVersion int64 `json:"oldest_version"`
	// Abandoned are the versions that rollbacks have left behind: ascending
	// ranges that do not touch. Request ids committed in them are forgotten.
	Abandoned []VersionRange `json:"abandoned,omitempty"`
	// UpgradedFrom is the version that the last upgrade of the format was made
	// on, which undoes it; nil where there was none.
	UpgradedFrom *int64 `json:"upgraded_from,omitempty"`
}

// VersionRange is a range of versions with both its ends.
type VersionRange [2]int64

// Abandons says whether a version lies in an abandoned range.
func (u Upkeep) Abandons(version int64) bool {
	_, found := slices.BinarySearchFunc(u.Abandoned, version, func(r VersionRange, v int64) int {
		switch {
		case r[1] < v:
			return -1
		case r[0] > v:
			return 1
		}
		return 0
	})
	return found
}

// RolledBack returns what is abandoned once version next has taken a table back
// to target, whose own upkeep is u: what was abandoned then, and every version
// in between. Undoing a rollback thus brings back what it had abandoned.
func (u Upkeep) RolledBack(target, next int64) []VersionRange {
	return append(slices.Clone(u.Abandoned), VersionRange{target + 1, next - 1})
}

// Forgetting returns u with the versions abandoned, too, that made the request
// ids a log still holds: a table that was released and is adopted again has
// none of their rows.
func (u Upkeep) Forgetting(state *deltalog.State) Upkeep {
	all := slices.Clone(u.Abandoned)
	for t := range state.Txns() {
		if r := parseRequest(t); r != nil && r.Version >= 0 && r.Version <= state.Version() {
			all = append(all, VersionRange{r.Version, r.Version})
		}
	}
	slices.SortFunc(all, func(a, b VersionRange) int { return cmp.Compare(a[0], b[0]) })
	u.Abandoned = nil
	for _, r := range all {
		if last := len(u.Abandoned) - 1; last >= 0 && r[0] <= u.Abandoned[last][1]+1 {
			u.Abandoned[last][1] = max(u.Abandoned[last][1], r[1])
		} else {
			u.Abandoned = append(u.Abandoned, r)
		}
	}
	return u
}

// Action returns the upkeep as an action of the log.
func (u Upkeep) Action() (*deltalog.DomainMetadata, error) {
	text, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	return &deltalog.DomainMetadata{Domain: UpkeepDomain, Configuration: string(text)}, nil
}

// upkeepOf reads the upkeep out of a state. CORRUPT for what this software
// would never have written.
func upkeepOf(state *deltalog.State) (Upkeep, error) {
	d := state.Domain(UpkeepDomain)
	if d == nil {
		return Upkeep{}, nil
	}
	var u Upkeep
	if err := json.Unmarshal([]byte(d.Configuration), &u); err != nil || !u.ascends(state.Version()) {
		return Upkeep{}, &tableerr.Corrupt{Path: deltalog.CommitKey(state.Version()), Msg: "the domain " + UpkeepDomain + " of the log is damaged", Cause: err}
	}
	return u, nil
}

// ascends says whether the versions are in order and none of them newer than
// the given one.
func (u Upkeep) ascends(newest int64) bool {
	last := int64(-1)
	for _, r := range u.Abandoned {
		if r[0] <= last || r[1] < r[0] {
			return false
		}
		last = r[1]
	}
	return last <= newest && u.OldestVersion >= 0 && u.OldestVersion <= newest
}
