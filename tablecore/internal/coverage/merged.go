package coverage

import (
	"iter"
	"math"
)

// Merged is the union of two sets that is not made: a large one and a small
// one, so that a few more pairs do not cost a copy of all. It is immutable and
// safe for concurrent use. The zero value is empty.
type Merged struct {
	base, more *Set
}

// NewMerged returns the union of two sets, either of which may be nil.
func NewMerged(base, more *Set) *Merged {
	m := &Merged{base, more}
	if m.base == nil {
		m.base = &Set{}
	}
	if m.more == nil {
		m.more = &Set{}
	}
	return m
}

// Parts returns the two sets.
func (m *Merged) Parts() (base, more *Set) { return m.base, m.more }

// Set returns the union as a set.
func (m *Merged) Set() (*Set, error) {
	switch {
	case m.more.Entities() == 0:
		return m.base, nil
	case m.base.Entities() == 0:
		return m.more, nil
	}
	return Union(m.base, m.more)
}

// Bytes returns about how much memory the sets hold.
func (m *Merged) Bytes() int64 { return m.base.Bytes() + m.more.Bytes() }

// Entity is a place of an entity in a Merged.
type Entity struct {
	Key        string
	base, more int // −1 where the part does not have it
}

// Find returns an entity; one that is in neither set has no intervals.
func (m *Merged) Find(key string) (e Entity, found bool) {
	e = Entity{key, -1, -1}
	if i, ok := m.base.Find(key); ok {
		e.base, found = i, true
	}
	if i, ok := m.more.Find(key); ok {
		e.more, found = i, true
	}
	return e, found
}

// Entities yields all entities by key.
func (m *Merged) Entities() iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		i, k := 0, 0
		for i < m.base.Entities() || k < m.more.Entities() {
			e := Entity{"", -1, -1}
			if i < m.base.Entities() {
				e.Key, e.base = m.base.Key(i), i
			}
			if k < m.more.Entities() {
				switch key := m.more.Key(k); {
				case e.base < 0 || key < e.Key:
					e.Key, e.base, e.more = key, -1, k
				case key == e.Key:
					e.more = k
				}
			}
			if e.base >= 0 {
				i++
			}
			if e.more >= 0 {
				k++
			}
			if !yield(e) {
				return
			}
		}
	}
}

// Runs yields the runs of an entity's intervals inside a window, cut to it,
// ascending and with a missing interval between two of them.
func (m *Merged) Runs(e Entity, w Window) iter.Seq2[uint64, uint64] {
	return func(yield func(first, last uint64) bool) {
		var cursors []cursor
		if e.base >= 0 {
			cursors = append(cursors, m.base.cursor(e.base))
		}
		if e.more >= 0 {
			cursors = append(cursors, m.more.cursor(e.more))
		}
		live := cursors[:0]
		for i := range cursors {
			if cursors[i].seek(w.First) {
				live = append(live, cursors[i])
			}
		}
		joinRuns(live, w, yield)
	}
}

// joinRuns merges the runs of cursors that stand at or behind a window's
// beginning.
func joinRuns(cursors []cursor, w Window, yield func(first, last uint64) bool) {
	for len(cursors) > 0 {
		k := 0
		if len(cursors) > 1 && cursors[1].start < cursors[0].start {
			k = 1
		}
		first, last := cursors[k].start, cursors[k].end
		if first > w.Last {
			return
		}
		for grown := true; grown; {
			grown = false
			for i := 0; i < len(cursors); i++ {
				for c := &cursors[i]; c.start <= last || last < math.MaxUint64 && c.start == last+1; {
					last = max(last, c.end)
					grown = true
					if !c.next() {
						cursors = append(cursors[:i], cursors[i+1:]...)
						i--
						break
					}
				}
			}
		}
		if !yield(max(first, w.First), min(last, w.Last)) || last >= w.Last {
			return
		}
	}
}
