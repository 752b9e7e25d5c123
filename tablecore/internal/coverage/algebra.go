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
	for h := newSources(sets); len(h) > 0; h.next() {
		top := &h[0]
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
	for h := newSources(sets); len(h) > 0; h.next() {
		top := &h[0]
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

// source is a set of a union with how far it has been read.
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

// sources is a heap by entity key and start of the run.
type sources []source

// newSources begins at the first run of each set.
func newSources(sets []*Set) sources {
	var h sources
	for _, s := range sets {
		if s.Entities() > 0 {
			h = append(h, source{set: s, cursor: s.cursor(0)})
		}
	}
	heap.Init(&h)
	return h
}

// next moves behind the smallest run.
func (h *sources) next() {
	if (*h)[0].advance() {
		heap.Fix(h, 0)
	} else {
		heap.Pop(h)
	}
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
