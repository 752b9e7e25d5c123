// Package interval is the arithmetic of intervals: which interval an index
// value lies in, where an interval begins and ends, and what either reads like.
//
// Inside the core an index value is an ordinal, a uint64 that keeps the order
// of the values: a signed value (a timestamp in its column's unit, an int64)
// with its top bit flipped, a uint64 as it is. An interval's id is
// floor(value / width), with the top bit flipped too where values are signed,
// so that ids keep the order as well (table-semantics.md, "Intervals and
// uniqueness").
//
// The package is pure and its types are values, safe for concurrent use.
package interval

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

const signBit = 1 << 63

// Domain is the index axis of a table: the kind of its values and the width of
// its intervals. The zero Domain is that of uint64 values without intervals.
type Domain struct {
	signed    bool
	timestamp bool
	unit      arrow.TimeUnit
	// The width is hi<<64 | lo ticks; both are 0 without a granularity, where
	// each value counts as an interval of its own.
	hi, lo uint64
	div    divisor
}

// New returns the axis of an index of the given type. unit is the column's
// unit and counts for timestamps only. A zero granularity gives an axis
// without intervals. A width that is no whole number of ticks is
// *tableerr.Invalid.
func New(index tabledef.IndexType, unit arrow.TimeUnit, g tabledef.Granularity) (Domain, error) {
	d := Domain{signed: index != tabledef.IndexUint64, timestamp: index == tabledef.IndexTimestamp, unit: unit}
	if g.IsZero() {
		d.div = newDivisor(1)
		return d, nil
	}
	d.lo = g.N
	if d.timestamp {
		// 2^32-1 weeks are below 2^82 ns, so hi < tick and the division by a
		// tick has a quotient of at most 128 bits, taken in two steps.
		tick := uint64(unit.Multiplier())
		hi, lo := bits.Mul64(g.N, g.Nanos())
		var rem uint64
		d.hi, rem = hi/tick, hi%tick
		d.lo, rem = bits.Div64(rem, lo, tick)
		if rem != 0 {
			return Domain{}, tableerr.InvalidField("index_granularity", "index granularity %s is no whole number of ticks of an index in %s", g, unit)
		}
	}
	if d.hi == 0 && d.lo == 0 {
		return Domain{}, tableerr.InvalidField("index_granularity", "index granularity %s has no length", g)
	}
	if d.oneStep() {
		d.div = newDivisor(d.lo)
	}
	return d, nil
}

// oneStep says whether values are to be divided at all: an interval that is at
// least as wide as the domain on one side of zero has quotient 0.
func (d Domain) oneStep() bool { return d.hi == 0 && (!d.signed || d.lo < signBit) }

// HasIntervals says whether there is a granularity.
func (d Domain) HasIntervals() bool { return d.hi != 0 || d.lo != 0 }

// SignedOrdinal returns the ordinal of a timestamp or an int64.
func SignedOrdinal(v int64) uint64 { return uint64(v) ^ signBit }

// SignedValue returns the timestamp or int64 with an ordinal.
func SignedValue(ordinal uint64) int64 { return int64(ordinal ^ signBit) }

// Signed says whether the axis has signed values, for which SignedOrdinal and
// SignedValue translate; the ordinal of a uint64 is the value itself.
func (d Domain) Signed() bool { return d.signed }

// ID returns the id of the interval that holds an index value.
func (d Domain) ID(ordinal uint64) uint64 {
	if !d.signed {
		return d.quotient(ordinal)
	}
	// floor(v/w) is v/w for v >= 0 and -1 - (-1-v)/w below; -1-v is ^v.
	v := int64(ordinal ^ signBit)
	s := uint64(v >> 63)
	return d.quotient(uint64(v)^s) ^ s ^ signBit
}

func (d Domain) quotient(u uint64) uint64 {
	if d.HasIntervals() && !d.oneStep() {
		return 0
	}
	return d.div.divide(u)
}

// IDs puts the interval ids of index values into dst, which is at least as
// long as ordinals and may be the same slice.
func (d Domain) IDs(dst, ordinals []uint64) {
	dst = dst[:len(ordinals)]
	if !d.HasIntervals() {
		copy(dst, ordinals)
		return
	}
	switch {
	case !d.oneStep():
		for i, o := range ordinals {
			dst[i] = d.ID(o)
		}
	case d.signed:
		d.div.signedIDs(dst, ordinals)
	default:
		d.div.unsignedIDs(dst, ordinals)
	}
}

// Bounds returns the ordinals of an interval's first and last index value. An
// interval that reaches beyond the domain is cut to it. The result for an id
// that no value has is some value at the domain's nearer end.
func (d Domain) Bounds(id uint64) (first, last uint64) {
	if !d.signed {
		return d.spread(id, math.MaxUint64)
	}
	q := int64(id ^ signBit)
	s := uint64(q >> 63)
	a, b := d.spread(uint64(q)^s, math.MaxInt64)
	if s == 0 {
		return a ^ signBit, b ^ signBit
	}
	return ^b ^ signBit, ^a ^ signBit
}

// spread returns the first and the last u with u/width = q, at most limit.
func (d Domain) spread(q, limit uint64) (first, last uint64) {
	if !d.HasIntervals() {
		return min(q, limit), min(q, limit)
	}
	if d.hi != 0 {
		if q > 0 {
			return limit, limit
		}
		return 0, limit
	}
	hi, lo := bits.Mul64(q, d.lo)
	if hi != 0 || lo > limit {
		return limit, limit
	}
	end, carry := bits.Add64(lo, d.lo-1, 0)
	if carry != 0 {
		end = limit
	}
	return lo, min(end, limit)
}

// MinID returns the id of the domain's first interval.
func (d Domain) MinID() uint64 { return d.ID(0) }

// MaxID returns the id of the domain's last interval.
func (d Domain) MaxID() uint64 { return d.ID(math.MaxUint64) }

// Text returns an interval as "[start, end)": RFC 3339 in UTC for timestamps,
// decimal for integers. The domain's last interval has no value after it and
// reads "[start, end]".
func (d Domain) Text(id uint64) string {
	first, last := d.Bounds(id)
	if last == math.MaxUint64 {
		return fmt.Sprintf("[%s, %s]", d.ValueText(first), d.ValueText(last))
	}
	return fmt.Sprintf("[%s, %s)", d.ValueText(first), d.ValueText(last+1))
}
