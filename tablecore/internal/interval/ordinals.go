package interval

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// AppendOrdinals appends the ordinals of an index column's values to dst. The
// array has the column's declared type or its storage type: a timestamp finer
// than the axis is rounded down to its unit, a decimal must be a uint64. What
// lies under a null is undefined. The array is borrowed.
func (d Domain) AppendOrdinals(dst []uint64, arr arrow.Array) ([]uint64, error) {
	dst = slices.Grow(dst, arr.Len())
	if arr.Len() > 0 && arr.NullN() == arr.Len() {
		return nil, errors.New("an index column holds nothing but nulls") // and may have no buffer
	}
	switch a := arr.(type) {
	case *array.Timestamp:
		return d.appendTimestamps(dst, a)
	case *array.Int64:
		if d.signed {
			return appendSigned(dst, a.Values()), nil
		}
	case *array.Uint64:
		if !d.signed {
			return append(dst, a.Values()...), nil
		}
	case *array.Decimal128:
		if !d.signed {
			return appendDecimals(dst, a)
		}
	}
	return nil, fmt.Errorf("an index column cannot be read from %s", arr.DataType())
}

func (d Domain) appendTimestamps(dst []uint64, a *array.Timestamp) ([]uint64, error) {
	t, ok := a.DataType().(*arrow.TimestampType)
	if !ok || !d.timestamp {
		return nil, fmt.Errorf("an index column cannot be read from %s", a.DataType())
	}
	ratio := int64(d.unit.Multiplier() / t.Unit.Multiplier())
	switch ratio {
	case 0:
		return nil, fmt.Errorf("an index in %s cannot be read from %s", d.unit, t)
	case 1:
		return appendSigned(dst, a.Values()), nil
	}
	for _, v := range a.Values() {
		whole, _ := floorDiv(int64(v), ratio)
		dst = append(dst, SignedOrdinal(whole))
	}
	return dst, nil
}

// StoredOrdinal returns the ordinal of a timestamp or integer of a signed axis
// as AppendOrdinals does, given as it lies in a column of type t.
func (d Domain) StoredOrdinal(t arrow.DataType, v int64) uint64 {
	if stored, ok := t.(*arrow.TimestampType); ok && d.timestamp {
		if ratio := int64(d.unit.Multiplier() / stored.Unit.Multiplier()); ratio > 1 {
			v, _ = floorDiv(v, ratio)
		}
	}
	return SignedOrdinal(v)
}

func appendSigned[T ~int64](dst []uint64, values []T) []uint64 {
	n := len(dst)
	dst = slices.Grow(dst, len(values))[:n+len(values)]
	tail := dst[n:]
	for i, v := range values {
		tail[i] = uint64(v) ^ signBit
	}
	return dst
}

func appendDecimals(dst []uint64, a *array.Decimal128) ([]uint64, error) {
	for i, v := range a.Values() {
		if v.HighBits() != 0 && a.IsValid(i) {
			return nil, fmt.Errorf("row %d holds no unsigned integer of 64 bits", i)
		}
		dst = append(dst, v.LowBits())
	}
	return dst, nil
}
