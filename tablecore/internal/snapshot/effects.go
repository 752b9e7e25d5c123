package snapshot

import (
	"bytes"
	"encoding/json"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/tabledef"
)

// Effects say what commits have done to a table, as far as it matters to a
// writer who has not seen them. They are read from the commits' actions: the
// operation that a commit names is its writer's word alone.
type Effects uint8

// The effects, each a column of the conflict matrix (table-semantics.md).
const (
	// Added is what every commit does at least: files were added, or nothing
	// changed but what maintenance keeps for itself (append, expire).
	Added Effects = 1 << iota
	// Rewrote: live files were removed or replaced (update, overwrite,
	// optimize, retention).
	Rewrote
	// Redefined: schema or properties were written (add_columns,
	// set_properties, an append that brings the schema).
	Redefined
	// Reset: the protocol, the format version, the identity or what is
	// abandoned has changed (rollback, upgrade, protocol).
	Reset

	numEffects = iota
)

// stateDomain is where maintenance keeps what it knows of the table.
const stateDomain = "contrail.state"

// effectsOf returns what a commit does to the table before it.
func effectsOf(c *deltalog.Commit, before *deltalog.State) Effects {
	e := Added
	if len(c.Removes) > 0 {
		e |= Rewrote
	}
	for _, a := range c.Adds {
		if path, err := a.File(); err == nil && before.File(path) != nil {
			e |= Rewrote
		}
	}
	if m := c.Metadata; m != nil {
		e |= Redefined
		old := before.Metadata()
		if m.ID != old.ID || m.Configuration[tabledef.KeyFormatVersion] != old.Configuration[tabledef.KeyFormatVersion] {
			e |= Reset
		}
	}
	if c.Protocol != nil {
		e |= Reset
	}
	for _, d := range c.Domains {
		if d.Domain == stateDomain && (d.Removed || !bytes.Equal(abandoned(d), abandoned(before.Domain(stateDomain)))) {
			e |= Reset
		}
	}
	return e
}

// abandoned returns the list of versions that rollbacks have left behind, as
// compact JSON. Whatever cannot be read equals nothing that can.
func abandoned(d *deltalog.DomainMetadata) []byte {
	if d == nil {
		return nil
	}
	var state struct {
		Abandoned json.RawMessage `json:"abandoned"`
	}
	if json.Unmarshal([]byte(d.Configuration), &state) != nil {
		return []byte("unreadable")
	}
	var compact bytes.Buffer
	if len(state.Abandoned) == 0 || json.Compact(&compact, state.Abandoned) != nil || compact.String() == "[]" || compact.String() == "null" {
		return nil
	}
	return compact.Bytes()
}

// effectLog remembers for each effect the newest version that had it, of the
// versions behind from.
type effectLog struct {
	from   int64
	newest [numEffects]int64
}

func (l *effectLog) note(version int64, e Effects) {
	for i := range l.newest {
		if e&(1<<i) != 0 {
			l.newest[i] = version
		}
	}
}

// EffectsSince returns what the commits behind a version have done together,
// none for s's own version or a later one. Where that is not known, because
// the table was opened since, it is everything.
func (s *Snapshot) EffectsSince(version int64) Effects {
	if version >= s.Version() {
		return 0
	}
	var e Effects
	for i, newest := range s.effects.newest {
		if newest > version || version < s.effects.from {
			e |= 1 << i
		}
	}
	return e
}
