package predicate

import (
	"bytes"
	"math"
	"math/big"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Ranges of values, both ends included. A comparison is a list of them that
// ascend and do not touch.
type (
	intRange     struct{ lo, hi int64 }
	decimalRange struct{ lo, hi decimal128.Num }
	// bigRange is open where an end is nil.
	bigRange struct{ lo, hi *big.Int }
	// bytesRange is unbounded above where hi is nil, and reaches up to hi, but
	// not including it, where open is set.
	bytesRange struct {
		lo, hi []byte
		open   bool
	}
)

var one = big.NewInt(1)

// add adds the values that stand in op's relation to a literal.
func (t *test) add(op string, l literal) {
	if t.order == orderBytes {
		t.addBytes(op, l.bytes)
		return
	}
	at, next := l.floor, new(big.Int).Add(l.floor, one)
	below := at // the last value below the literal
	if l.exact {
		below = new(big.Int).Sub(at, one)
	}
	from := next // the first value at or above the literal
	if l.exact {
		from = at
	}
	switch op {
	case opEqual:
		if l.exact {
			t.addNumbers(bigRange{at, at})
		}
	case opNotEqual:
		t.addNumbers(bigRange{nil, below})
		t.addNumbers(bigRange{next, nil})
	case opLess:
		t.addNumbers(bigRange{nil, below})
	case opAtMost:
		t.addNumbers(bigRange{nil, at})
	case opGreater:
		t.addNumbers(bigRange{next, nil})
	case opAtLeast:
		t.addNumbers(bigRange{from, nil})
	}
}

// addNumbers adds what a column can hold of a range.
func (t *test) addNumbers(r bigRange) {
	switch t.order {
	case orderInteger, orderFloat:
		if lo, hi, ok := clamp(r, minInt64, maxInt64); ok {
			t.ints = append(t.ints, intRange{lo.Int64(), hi.Int64()})
		}
	case orderDecimal:
		if lo, hi, ok := clamp(r, minDecimal, maxDecimal); ok {
			t.decimals = append(t.decimals, decimalRange{decimal128.FromBigInt(lo), decimal128.FromBigInt(hi)})
		}
	case orderDecimalText:
		t.wide = append(t.wide, r)
	}
}

// minDecimal and maxDecimal enclose every decimal of 38 digits; decimal128
// converts nothing larger.
var (
	maxDecimal = new(big.Int).Sub(new(big.Int).Lsh(one, 127), one)
	minDecimal = new(big.Int).Neg(maxDecimal)
)

func clamp(r bigRange, lowest, highest *big.Int) (lo, hi *big.Int, ok bool) {
	lo, hi = lowest, highest
	if r.lo != nil && r.lo.Cmp(lo) > 0 {
		lo = r.lo
	}
	if r.hi != nil && r.hi.Cmp(hi) < 0 {
		hi = r.hi
	}
	return lo, hi, lo.Cmp(hi) <= 0
}

func (t *test) addBytes(op string, v []byte) {
	after := append(bytes.Clone(v), 0) // the least text above v
	if v == nil {
		v = []byte{}
	}
	switch op {
	case opEqual:
		t.bytes = append(t.bytes, bytesRange{lo: v, hi: v})
	case opNotEqual:
		t.bytes = append(t.bytes, bytesRange{hi: v, open: true}, bytesRange{lo: after})
	case opLess:
		t.bytes = append(t.bytes, bytesRange{hi: v, open: true})
	case opAtMost:
		t.bytes = append(t.bytes, bytesRange{hi: v})
	case opGreater:
		t.bytes = append(t.bytes, bytesRange{lo: after})
	case opAtLeast:
		t.bytes = append(t.bytes, bytesRange{lo: v})
	}
}

// normalise sorts the ranges. Only points can be several and out of order, so
// nothing overlaps but repetitions.
func (t *test) normalise() {
	slices.SortFunc(t.ints, func(a, b intRange) int { return cmpInt(a.lo, b.lo) })
	t.ints = slices.Compact(t.ints)
	slices.SortFunc(t.decimals, func(a, b decimalRange) int { return a.lo.Cmp(b.lo) })
	t.decimals = slices.Compact(t.decimals)
	slices.SortFunc(t.bytes, func(a, b bytesRange) int { return bytes.Compare(a.lo, b.lo) })
	t.bytes = slices.CompactFunc(t.bytes, func(a, b bytesRange) bool {
		return bytes.Equal(a.lo, b.lo) && bytes.Equal(a.hi, b.hi) && a.open == b.open
	})
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// below says whether every value of the range is less than v.
func (r bytesRange) below(v []byte) bool {
	if r.hi == nil {
		return false
	}
	c := bytes.Compare(r.hi, v)
	return c < 0 || c == 0 && r.open
}

// floatKey maps doubles to integers in the order of table-semantics: NaN above
// everything and equal to itself, both zeros equal.
func floatKey(v float64) int64 {
	if v != v {
		return math.MaxInt64
	}
	bits := int64(math.Float64bits(v + 0)) // −0 becomes +0
	return bits ^ int64(uint64(bits>>63)>>1)
}
