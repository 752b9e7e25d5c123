package snapshot

import (
	"maps"
	"slices"

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
	// Redefined: schema or properties were changed (add_columns,
	// set_properties). An append that brings the schema is no more than that.
	Redefined
	// Reset: the protocol, the format version, the identity or what is
	// abandoned has changed (rollback, upgrade, protocol).
	Reset

	numEffects = iota
)

// effectsOf returns what a commit does to the table before it. after is the
// upkeep that it leaves.
func effectsOf(c *deltalog.Commit, before *Snapshot, after Upkeep) Effects {
	e := Added
	if len(c.Removes) > 0 {
		e |= Rewrote
	}
	for _, a := range c.Adds {
		if path, err := a.File(); err == nil && before.State.File(path) != nil {
			e |= Rewrote
		}
	}
	if m := c.Metadata; m != nil {
		old := before.State.Metadata()
		if !adopts(m, before) {
			e |= Redefined
		}
		if m.ID != old.ID || m.Configuration[tabledef.KeyFormatVersion] != old.Configuration[tabledef.KeyFormatVersion] {
			e |= Reset
		}
	}
	released := slices.ContainsFunc(c.Domains, func(d *deltalog.DomainMetadata) bool { return d.Domain == UpkeepDomain && d.Removed })
	if c.Protocol != nil || released || !slices.Equal(after.Abandoned, before.Upkeep.Abandoned) {
		e |= Reset
	}
	return e
}

// adopts says whether metadata only gives a table the schema that it lacked.
func adopts(m *deltalog.Metadata, before *Snapshot) bool {
	if before.Def.Stored != nil {
		return false
	}
	without := maps.Clone(m.Configuration)
	delete(without, tabledef.KeyArrowSchema)
	return maps.Equal(without, before.State.Metadata().Configuration)
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
