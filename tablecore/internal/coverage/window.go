package coverage

import (
	"iter"
	"math/big"
)

// Window is a range of interval ids, both ends included.
type Window struct{ First, Last uint64 }

// Length returns the number of ids in the window, 2^64-1 for 2^64.
func (w Window) Length() uint64 { return runLength(w.First, w.Last) }

// Gaps yields the runs of a window that ascending runs inside it leave out.
func Gaps(runs iter.Seq2[uint64, uint64], w Window) iter.Seq2[uint64, uint64] {
	return func(yield func(first, last uint64) bool) {
		next := w.First
		for first, last := range runs {
			if first > next && !yield(next, first-1) {
				return
			}
			if last == w.Last {
				return
			}
			next = last + 1
		}
		yield(next, w.Last)
	}
}

// Summary counts the intervals of a window; 2^64 is counted as 2^64-1.
type Summary struct {
	Covered, Missing uint64
	LongestGap       uint64
	Ratio            float64 // of covered intervals, from 0 to 1
}

// Summarize counts ascending runs inside a window and what they leave out.
func Summarize(runs iter.Seq2[uint64, uint64], w Window) Summary {
	var s Summary
	counted := func(yield func(first, last uint64) bool) {
		for first, last := range runs {
			s.Covered = addSaturating(s.Covered, runLength(first, last))
			if !yield(first, last) {
				return
			}
		}
	}
	for first, last := range Gaps(counted, w) {
		n := runLength(first, last)
		s.Missing = addSaturating(s.Missing, n)
		s.LongestGap = max(s.LongestGap, n)
	}
	s.Ratio = ratio(s.Covered, s.Missing)
	return s
}

// ratio returns the double nearest to covered / (covered + missing). A count
// that was cut stands alone: the other one is 0.
func ratio(covered, missing uint64) float64 {
	const exact = 1 << 53 // up to here doubles hold every integer
	switch {
	case missing == 0:
		return 1
	case covered < exact/2 && missing < exact/2:
		return float64(covered) / float64(covered+missing)
	}
	part := new(big.Int).SetUint64(covered)
	all := new(big.Int).SetUint64(missing)
	nearest, _ := new(big.Rat).SetFrac(part, all.Add(all, part)).Float64()
	return nearest
}

// LastWindow returns the newest n consecutive ids that lie in one of the runs;
// ok is false where no run is that long. n is at least 1.
func LastWindow(runs iter.Seq2[uint64, uint64], n uint64) (w Window, ok bool) {
	for first, last := range runs {
		if last-first >= n-1 {
			w, ok = Window{last - (n - 1), last}, true
		}
	}
	return w, ok
}

// Subtract returns the pairs of a that are not in b.
func Subtract(a, b *Set) (*Set, error) {
	out := NewBuilder()
	at := 0
	for i := range a.Entities() {
		key := a.Key(i)
		out.Entity(key)
		if at = b.search(key, at); at == b.Entities() || b.Key(at) != key {
			for first, last := range a.Runs(i) {
				out.AddRun(first, last)
			}
			continue
		}
		subtractRuns(out, a.cursor(i), b.cursor(at))
	}
	return out.Finish()
}

// subtractRuns adds the ids of a that b does not have.
func subtractRuns(out *Builder, a, b cursor) {
	for ok := true; ok; ok = a.next() {
		next, left := a.start, true
		for left && b.seek(next) && b.start <= a.end {
			if b.start > next {
				out.AddRun(next, b.start-1)
			}
			if left = b.end < a.end; left {
				next = b.end + 1
			}
		}
		if left {
			out.AddRun(next, a.end)
		}
	}
}
