package predicate

import (
	"encoding/json"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// Span is a set of consecutive index ordinals, both ends included; see package
// interval for ordinals.
type Span struct {
	First, Last uint64
	Empty       bool
}

// All is the span of every index value.
var All = Span{Last: ^uint64(0)}

// Contains says whether an ordinal lies in the span.
func (s Span) Contains(ordinal uint64) bool {
	return !s.Empty && s.First <= ordinal && ordinal <= s.Last
}

// Meets says whether the span shares an ordinal with [first, last].
func (s Span) Meets(first, last uint64) bool {
	return !s.Empty && first <= s.Last && s.First <= last
}

// Covers says whether [first, last] lies wholly in the span.
func (s Span) Covers(first, last uint64) bool {
	return !s.Empty && s.First <= first && last <= s.Last
}

// ParseSpan reads the half-open range [start, end) of a request over an index
// column of type index. A nil bound is open. A bound finer than the column's
// unit is compared exactly. INVALID when a bound is not understood, or when
// start is not before end.
func ParseSpan(start, end json.RawMessage, index arrow.DataType) (Span, error) {
	return parseRange(start, end, index, ceilDiv)
}

// ParseTouched reads the range [start, end) of a request as ParseSpan does, but
// returns the ticks that it touches: the one that a bound finer than the
// column's unit lies in belongs to the span.
func ParseTouched(start, end json.RawMessage, index arrow.DataType) (Span, error) {
	return parseRange(start, end, index, floorDiv)
}

// parseRange reads a range; round brings its start to a whole tick.
func parseRange(start, end json.RawMessage, index arrow.DataType, round func(a, b *big.Int) *big.Int) (Span, error) {
	span := All
	lower, err := parseBound("start", start, index)
	if err != nil {
		return Span{}, err
	}
	upper, err := parseBound("end", end, index)
	if err != nil {
		return Span{}, err
	}
	if lower != nil && upper != nil && lower.Cmp(upper) >= 0 {
		return Span{}, tableerr.InvalidField("start", "start must be before end: the range is half-open and %s … %s holds nothing", shorten(start), shorten(end)).WithValue(start)
	}
	unit := ticksNanos(index)
	if lower != nil {
		span.First, span.Empty = ordinalAtLeast(round(lower, unit), index)
	}
	if upper != nil {
		last := new(big.Int).Sub(ceilDiv(upper, unit), big.NewInt(1))
		ordinal, empty := ordinalAtMost(last, index)
		span.Last, span.Empty = ordinal, span.Empty || empty
	}
	span.Empty = span.Empty || span.First > span.Last
	return span, nil
}

// ParseAtMost reads a point in the index as the span of all that is not behind
// it. field names it in errors; nil means no bound.
func ParseAtMost(field string, at json.RawMessage, index arrow.DataType) (Span, error) {
	v, err := parseBound(field, at, index)
	if err != nil || v == nil {
		return All, err
	}
	span := All
	span.Last, span.Empty = ordinalAtMost(floorDiv(v, ticksNanos(index)), index)
	return span, nil
}

// parseBound returns a bound in nanoseconds for timestamps, else as it is; nil
// where there is none.
func parseBound(field string, raw json.RawMessage, index arrow.DataType) (*big.Int, error) {
	if raw == nil {
		return nil, nil
	}
	ts, ok := index.(*arrow.TimestampType)
	if !ok {
		return parseInteger(field, raw)
	}
	if text, ok := jsonText(raw); ok && !integerText.MatchString(text) {
		return parseTime(field, text, ts.TimeZone != "")
	}
	n, err := parseInteger(field, raw)
	if err != nil {
		return nil, notA(field, raw, "a time in RFC 3339 or a whole number in the column's unit")
	}
	return n.Mul(n, ticksNanos(index)), nil
}

// ticksNanos is the length of one tick of a timestamp in nanoseconds; 1 for
// integers.
func ticksNanos(index arrow.DataType) *big.Int {
	if ts, ok := index.(*arrow.TimestampType); ok {
		return big.NewInt(int64(ts.Unit.Multiplier()))
	}
	return big.NewInt(1)
}

// floorDiv is ⌊a/b⌋ for positive b, for which Euclidean division rounds down.
func floorDiv(a, b *big.Int) *big.Int { return new(big.Int).Div(a, b) }

// ceilDiv is ⌈a/b⌉ for positive b.
func ceilDiv(a, b *big.Int) *big.Int {
	q, r := new(big.Int).DivMod(a, b, new(big.Int)) // Euclidean: r ≥ 0
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

var (
	minInt64  = big.NewInt(-1 << 63)
	maxInt64  = big.NewInt(1<<63 - 1)
	maxUint64 = new(big.Int).SetUint64(^uint64(0))
)

// domain returns the smallest and the largest raw value of an index type.
func domain(index arrow.DataType) (lowest, highest *big.Int) {
	if index.ID() == arrow.UINT64 {
		return new(big.Int), maxUint64
	}
	return minInt64, maxInt64
}

// ordinalAtLeast returns the first ordinal whose value is at least v; none says
// that there is none.
func ordinalAtLeast(v *big.Int, index arrow.DataType) (ordinal uint64, none bool) {
	lowest, highest := domain(index)
	if v.Cmp(lowest) <= 0 {
		return 0, false
	}
	if v.Cmp(highest) > 0 {
		return 0, true
	}
	return toOrdinal(v, index), false
}

// ordinalAtMost returns the last ordinal whose value is at most v.
func ordinalAtMost(v *big.Int, index arrow.DataType) (ordinal uint64, none bool) {
	lowest, highest := domain(index)
	if v.Cmp(highest) >= 0 {
		return ^uint64(0), false
	}
	if v.Cmp(lowest) < 0 {
		return 0, true
	}
	return toOrdinal(v, index), false
}

func toOrdinal(v *big.Int, index arrow.DataType) uint64 {
	if index.ID() == arrow.UINT64 {
		return v.Uint64()
	}
	return uint64(v.Int64()) ^ 1<<63
}
