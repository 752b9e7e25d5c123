package predicate

import (
	"bytes"
	"math"
	"sort"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Bounds is what is known of the values of a column in some rows, say a file's
// or a page's.
type Bounds struct {
	// Rows is the number of rows, Nulls that of nulls among them; −1 where it is
	// not known.
	Rows, Nulls int64
	// Min and Max enclose every value that is not null, in the order of filters
	// (so Max is nil where there may be a NaN). They are of the column's stored
	// values: int64 for integers, times, dates and booleans, float64, []byte, or
	// decimal128.Num; nil where nothing is known.
	Min, Max any
}

// MayMatch says whether rows of which bounds tells may satisfy the filter; it
// is false only where none does. bounds returns false for a column of which
// nothing is known.
func (f *Filter) MayMatch(bounds func(column string) (Bounds, bool)) bool {
	if f == nil {
		return true
	}
	for i := range f.tests {
		if b, ok := bounds(f.tests[i].column); ok && !f.tests[i].mayMatch(b) {
			return false
		}
	}
	return true
}

func (t *test) mayMatch(b Bounds) bool {
	if t.op == opIsNull {
		return b.Nulls != 0
	}
	if b.Rows >= 0 && b.Nulls >= b.Rows {
		return false // nothing but nulls
	}
	if t.op == opIsNotNull {
		return true
	}
	switch t.order {
	case orderInteger:
		return meetsInts(b.Min, b.Max, t.ints, func(v int64) int64 { return v })
	case orderFloat:
		return meetsInts(b.Min, b.Max, t.ints, floatKey)
	case orderDecimal:
		return t.meetsDecimals(b.Min, b.Max)
	case orderBytes:
		return t.meetsBytes(b.Min, b.Max)
	default:
		return true
	}
}

// meetsInts says whether a value between two bounds can lie in the ranges.
func meetsInts[T any](lowest, highest any, ranges []intRange, key func(T) int64) bool {
	if len(ranges) == 0 {
		return false
	}
	lo, hi := ranges[0].lo, ranges[len(ranges)-1].hi
	if v, ok := lowest.(T); ok {
		lo = max(lo, key(v))
	}
	if v, ok := highest.(T); ok {
		if w, ok := lowest.(T); ok && key(w) > key(v) {
			return true // bounds the wrong way round say nothing
		}
		hi = min(hi, key(v))
	}
	if lo > hi {
		return false
	}
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].hi >= lo })
	return i < len(ranges) && ranges[i].lo <= hi
}

func (t *test) meetsDecimals(lowest, highest any) bool {
	lo, hasLo := lowest.(decimal128.Num)
	hi, hasHi := highest.(decimal128.Num)
	if hasLo && hasHi && hi.Less(lo) {
		return true
	}
	for _, r := range t.decimals {
		if (!hasLo || !r.hi.Less(lo)) && (!hasHi || !hi.Less(r.lo)) {
			return true
		}
	}
	return false
}

func (t *test) meetsBytes(lowest, highest any) bool {
	lo, hasLo := lowest.([]byte)
	hi, hasHi := highest.([]byte)
	if hasLo && hasHi && bytes.Compare(lo, hi) > 0 {
		return true
	}
	for _, r := range t.bytes {
		if (!hasLo || !r.below(lo)) && (!hasHi || bytes.Compare(r.lo, hi) <= 0) {
			return true
		}
	}
	return false
}

// Hull returns the least and the greatest stored value of an integer or time
// column that can satisfy the filter; lo > hi says that none can. For other
// columns it is every value.
func (f *Filter) Hull(column string) (lo, hi int64) {
	lo, hi = math.MinInt64, math.MaxInt64
	if f == nil {
		return lo, hi
	}
	for i := range f.tests {
		t := &f.tests[i]
		switch {
		case t.column != column || t.order != orderInteger || t.op == opIsNotNull || t.op == opIsNull:
		case len(t.ints) == 0:
			return 1, 0
		default:
			lo, hi = max(lo, t.ints[0].lo), min(hi, t.ints[len(t.ints)-1].hi)
		}
	}
	return lo, hi
}
