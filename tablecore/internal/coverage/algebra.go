package coverage

import (
	"container/heap"
	"math"
)

// Overlap says what two sets have in common.
type Overlap struct {
	Count uint64 // of pairs, at most 2^64-1
	// The smallest common pair, by entity key and then by interval; it means
	// nothing when Count is 0.
	Key string
	ID  uint64
}

// Plus adds what another pair of sets has in common.
func (o Overlap) Plus(other Overlap) Overlap {
	sum := o
	if o.Count == 0 || other.Count > 0 && (other.Key < o.Key || other.Key == o.Key && other.ID < o.ID) {
		sum.Key, sum.ID = other.Key, other.ID
	}
	sum.Count = addSaturating(o.Count, other.Count)
	return sum
}

// Intersect compares two sets. It looks up the entities of the smaller set in
// the larger one, and skips over stretches of runs that have no counterpart,
// so a small append meets a large file cheaply.
func Intersect(a, b *Set) Overlap {
	if a.Entities() > b.Entities() {
		a, b = b, a
	}
	var out Overlap
	at := 0
	for i := range a.Entities() {
		key := a.Key(i)
		at = b.search(key, at)
		if at == b.Entities() {
			break
		}
		if b.Key(at) != key || a.spans[i].last < b.spans[at].first || b.spans[at].last < a.spans[i].first {
			continue
		}
		count, first := intersectRuns(a.cursor(i), b.cursor(at))
		if count > 0 && out.Count == 0 {
			out.Key, out.ID = key, first
		}
		out.Count = addSaturating(out.Count, count)
	}
	return out
}

// intersectRuns returns how many ids two entities have in common and the
// smallest of them.
func intersectRuns(a, b cursor) (count, first uint64) {
	for {
		low, high := max(a.start, b.start), min(a.end, b.end)
		if low <= high {
			if count == 0 {
				first = low
			}
			count = addSaturating(count, runLength(low, high))
			if high == math.MaxUint64 {
				return count, first
			}
			low = high + 1
		}
		if !a.seek(low) || !b.seek(low) {
			return count, first
		}
	}
}

// Union returns the pairs that are in any of the sets.
func Union(sets ...*Set) (*Set, error) {
	b := NewBuilder()
	for m := newMerge(sets); !m.done(); m.next() {
		top := &m.sources[0]
		if key := top.set.Key(top.entity); !b.started || key != b.key {
			b.Entity(key)
		}
		b.AddRun(top.cursor.start, top.cursor.end)
	}
	return b.Finish()
}

// Shared returns the smallest pair, by entity key and then by interval, that
// more than one of the sets has.
func Shared(sets ...*Set) (key string, id uint64, found bool) {
	last := uint64(0) // covered interval of the entity
	begun := false
	for m := newMerge(sets); !m.done(); m.next() {
		top := &m.sources[0]
		if next := top.set.Key(top.entity); !begun || next != key {
			key, last, begun = next, top.cursor.end, true
			continue
		}
		// Runs come by their start, so a run before this one reaches its start or
		// none does.
		if top.cursor.start <= last {
			return key, top.cursor.start, true
		}
		last = top.cursor.end
	}
	return "", 0, false
}

// source is a set of a merge with how far it has been read.
type source struct {
	set    *Set
	entity int
	cursor cursor
}

// advance goes to the next run of the set and says whether there is one.
func (s *source) advance() bool {
	if s.cursor.next() {
		return true
	}
	s.entity++
	if s.entity == s.set.Entities() {
		return false
	}
	s.cursor = s.set.cursor(s.entity)
	return true
}

// merge goes over the runs of several sets, by entity key and start of the run.
type merge struct {
	sources sources // the first one has the run
	// turn is where another set goes on with the first one's entity. Up to there
	// its runs come in a row: sets of files that were cut by time hardly mix.
	turn uint64
}

// newMerge begins at the smallest run.
func newMerge(sets []*Set) *merge {
	m := &merge{}
	for _, s := range sets {
		if s.Entities() > 0 {
			m.sources = append(m.sources, source{set: s, cursor: s.cursor(0)})
		}
	}
	heap.Init(&m.sources)
	m.turn = m.sources.turn()
	return m
}

func (m *merge) done() bool { return len(m.sources) == 0 }

// next moves behind the smallest run.
func (m *merge) next() {
	top := &m.sources[0]
	entity := top.entity
	switch {
	case !top.advance():
		heap.Pop(&m.sources)
	case top.entity == entity && top.cursor.start <= m.turn:
		return
	default:
		heap.Fix(&m.sources, 0)
	}
	m.turn = m.sources.turn()
}

// sources is a heap by entity key and start of the run.
type sources []source

// turn is the smallest start that another source than the first has in the first
// one's entity. Whichever comes next is one of the two below the first.
func (h sources) turn() uint64 {
	turn := uint64(math.MaxUint64)
	for i := 1; i < min(len(h), 3); i++ {
		if h[i].set.Key(h[i].entity) == h[0].set.Key(h[0].entity) {
			turn = min(turn, h[i].cursor.start)
		}
	}
	return turn
}

func (h sources) Len() int      { return len(h) }
func (h sources) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h sources) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	ka, kb := a.set.Key(a.entity), b.set.Key(b.entity)
	if ka != kb {
		return ka < kb
	}
	return a.cursor.start < b.cursor.start
}

// Push implements heap.Interface; nothing is ever pushed.
func (h *sources) Push(x any) { *h = append(*h, x.(source)) }

// Pop implements heap.Interface.
func (h *sources) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
