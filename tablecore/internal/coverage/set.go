// Package coverage holds sets of (entity, interval) pairs: which intervals each
// entity of a file, an append or a table has rows in.
//
// A set is kept in its encoded form, one stream of runs of consecutive
// interval ids an entity, with a sparse directory for searching in long
// streams. A dense entity costs a few bytes whatever its length, a run that
// stands alone one to four at usual distances.
//
// Roaring bitmaps were tried first and are no match for fine granularities: of
// a million ticks of 100 symbols at 1 µs, each id has a container of its own,
// which takes 52 MB and 9 MB serialized, and 100,000 entities of five
// intervals take 24 MB without their keys; here it is 4 MB, 4 MB, and 6 MB with
// them.
//
// Sets are immutable and safe for concurrent use.
package coverage

import (
	"iter"
	"math"
	"sort"
)

// Set is a set of (entity, interval) pairs. The zero value is empty.
type Set struct {
	keys    string   // all entity keys in ascending order, one after another
	keyEnds []uint32 // where each ends in keys
	spans   []span   // by entity
	data    []byte   // the runs after each entity's first
	ends    []uint32 // where each entity's runs end in data
	skips   []skip   // places in long streams
	skipped []uint32 // where each entity's skips end
}

// span is what is known of an entity's intervals without its stream.
type span struct {
	first, firstEnd uint64 // the first run
	last            uint64 // the last interval
	count           uint64 // of intervals, at most 2^64-1
}

// Entities returns the number of entities.
func (s *Set) Entities() int { return len(s.spans) }

// Key returns the key of an entity; keys ascend with i.
func (s *Set) Key(i int) string {
	start := uint32(0)
	if i > 0 {
		start = s.keyEnds[i-1]
	}
	return s.keys[start:s.keyEnds[i]]
}

// First and Last return an entity's first and last interval.
func (s *Set) First(i int) uint64 { return s.spans[i].first }

// Last returns an entity's last interval.
func (s *Set) Last(i int) uint64 { return s.spans[i].last }

// Count returns the number of an entity's intervals, 2^64-1 for 2^64.
func (s *Set) Count(i int) uint64 { return s.spans[i].count }

// Total returns the number of pairs, 2^64-1 for more.
func (s *Set) Total() uint64 {
	total := uint64(0)
	for i := range s.spans {
		total = addSaturating(total, s.spans[i].count)
	}
	return total
}

// Find returns the place of an entity, or where it would stand.
func (s *Set) Find(key string) (i int, found bool) {
	i = s.search(key, 0)
	return i, i < s.Entities() && s.Key(i) == key
}

// search returns the first entity from a place on whose key is not below key.
func (s *Set) search(key string, from int) int {
	return from + sort.Search(s.Entities()-from, func(i int) bool { return s.Key(from+i) >= key })
}

// Contains says whether an entity has a row in an interval.
func (s *Set) Contains(key string, id uint64) bool {
	i, found := s.Find(key)
	if !found || id < s.spans[i].first || id > s.spans[i].last {
		return false
	}
	c := s.cursor(i)
	return c.seek(id) && c.start <= id
}

// Runs yields an entity's intervals as runs [first, last] of consecutive ids,
// ascending, with at least one missing interval between two of them.
func (s *Set) Runs(i int) iter.Seq2[uint64, uint64] {
	return func(yield func(first, last uint64) bool) {
		c := s.cursor(i)
		for ok := true; ok; ok = c.next() {
			if !yield(c.start, c.end) {
				return
			}
		}
	}
}

// Bytes returns about how much memory the set holds.
func (s *Set) Bytes() int64 {
	return int64(len(s.keys)) + 4*int64(cap(s.keyEnds)) + 32*int64(cap(s.spans)) + int64(cap(s.data)) +
		4*int64(cap(s.ends)) + 24*int64(cap(s.skips)) + 4*int64(cap(s.skipped)) + 200
}

func addSaturating(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint64
}

// runLength returns the number of ids in [start, end], 2^64-1 for 2^64.
func runLength(start, end uint64) uint64 {
	if n := end - start; n < math.MaxUint64 {
		return n + 1
	}
	return math.MaxUint64
}
