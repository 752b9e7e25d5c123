package predicate

import (
	"bytes"
	"fmt"
	"math/big"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"contrail/tablecore/tabledef"
)

// Select returns which rows of a batch satisfy the filter, in mask's memory if
// it suffices. column gives a column's stored values by name; it lends the
// array. The filter must not be nil.
func (f *Filter) Select(rows int, column func(name string) arrow.Array, mask []bool) ([]bool, error) {
	if cap(mask) < rows {
		mask = make([]bool, rows)
	}
	mask = mask[:rows]
	for i := range mask {
		mask[i] = true
	}
	for i := range f.tests {
		t := &f.tests[i]
		values := column(t.column)
		if values == nil || values.Len() != rows {
			return nil, fmt.Errorf("predicate: column %q is not in the batch", t.column)
		}
		if err := t.apply(mask, values); err != nil {
			return nil, err
		}
	}
	return mask, nil
}

// apply clears the rows that do not satisfy the test.
func (t *test) apply(mask []bool, values arrow.Array) error {
	if t.op == opIsNull {
		for i := range mask {
			mask[i] = mask[i] && values.IsNull(i)
		}
		return nil
	}
	if values.NullN() > 0 {
		for i := range mask {
			mask[i] = mask[i] && values.IsValid(i)
		}
	}
	if t.op == opIsNotNull {
		return nil
	}
	switch t.order {
	case orderInteger:
		return t.applyIntegers(mask, values)
	case orderFloat:
		return t.applyFloats(mask, values)
	case orderDecimal:
		if a, ok := values.(*array.Decimal128); ok {
			t.applyDecimals(mask, a.Values())
			return nil
		}
	case orderDecimalText:
		if a, ok := values.(*array.String); ok {
			return t.applyDecimalTexts(mask, a)
		}
	case orderBytes:
		switch a := values.(type) {
		case *array.String:
			t.applyBytes(mask, a.ValueOffsets(), a.ValueBytes())
			return nil
		case *array.Binary:
			t.applyBytes(mask, a.ValueOffsets(), a.ValueBytes())
			return nil
		}
	}
	return t.misfit(values)
}

func (t *test) misfit(values arrow.Array) error {
	return fmt.Errorf("predicate: column %q is stored as %s, which cannot be compared", t.column, tabledef.TypeName(values.DataType()))
}

func (t *test) applyIntegers(mask []bool, values arrow.Array) error {
	switch a := values.(type) {
	case *array.Boolean:
		for i := range mask {
			if mask[i] {
				v := int64(0)
				if a.Value(i) {
					v = 1
				}
				mask[i] = t.holdsInt(v)
			}
		}
	case *array.Int8:
		maskInts(mask, a.Int8Values(), t.ints)
	case *array.Int16:
		maskInts(mask, a.Int16Values(), t.ints)
	case *array.Int32:
		maskInts(mask, a.Int32Values(), t.ints)
	case *array.Int64:
		maskInts(mask, a.Int64Values(), t.ints)
	case *array.Date32:
		maskInts(mask, a.Date32Values(), t.ints)
	case *array.Timestamp:
		maskInts(mask, a.TimestampValues(), t.ints)
	default:
		return t.misfit(values)
	}
	return nil
}

func (t *test) holdsInt(v int64) bool { return inRanges(v, t.ints) }

// inRanges says whether a value lies in one of the ranges.
func inRanges(v int64, ranges []intRange) bool {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].hi >= v })
	return i < len(ranges) && ranges[i].lo <= v
}

// maskInts keeps the values that lie in the ranges.
func maskInts[T ~int8 | ~int16 | ~int32 | ~int64](mask []bool, values []T, ranges []intRange) {
	switch len(ranges) {
	case 0:
		clear(mask)
	case 1:
		lo, hi := ranges[0].lo, ranges[0].hi
		for i, v := range values[:len(mask)] {
			mask[i] = mask[i] && lo <= int64(v) && int64(v) <= hi
		}
	default:
		for i, v := range values[:len(mask)] {
			mask[i] = mask[i] && inRanges(int64(v), ranges)
		}
	}
}

func (t *test) applyFloats(mask []bool, values arrow.Array) error {
	switch a := values.(type) {
	case *array.Float32:
		maskFloats(mask, a.Float32Values(), t.ints)
	case *array.Float64:
		maskFloats(mask, a.Float64Values(), t.ints)
	default:
		return t.misfit(values)
	}
	return nil
}

func maskFloats[T float32 | float64](mask []bool, values []T, ranges []intRange) {
	if len(ranges) == 1 {
		lo, hi := ranges[0].lo, ranges[0].hi
		for i, v := range values[:len(mask)] {
			key := floatKey(float64(v))
			mask[i] = mask[i] && lo <= key && key <= hi
		}
		return
	}
	for i, v := range values[:len(mask)] {
		mask[i] = mask[i] && inRanges(floatKey(float64(v)), ranges)
	}
}

func (t *test) applyDecimals(mask []bool, values []decimal128.Num) {
	for i, v := range values[:len(mask)] {
		mask[i] = mask[i] && t.holdsDecimal(v)
	}
}

func (t *test) holdsDecimal(v decimal128.Num) bool {
	i := sort.Search(len(t.decimals), func(i int) bool { return t.decimals[i].hi.Cmp(v) >= 0 })
	return i < len(t.decimals) && t.decimals[i].lo.Cmp(v) <= 0
}

// applyDecimalTexts compares decimals that are stored as their exact text.
func (t *test) applyDecimalTexts(mask []bool, values *array.String) error {
	power := new(big.Rat).SetInt(powerOfTen(int64(t.scale)))
	for i := range mask {
		if !mask[i] {
			continue
		}
		v, ok := parseNumber(values.Value(i))
		if !ok {
			return fmt.Errorf("predicate: column %q holds %q, which is no decimal", t.column, values.Value(i))
		}
		mask[i] = t.holdsWide(floorOf(v.Mul(v, power)).floor)
	}
	return nil
}

func (t *test) holdsWide(v *big.Int) bool {
	for _, r := range t.wide {
		if (r.lo == nil || r.lo.Cmp(v) <= 0) && (r.hi == nil || v.Cmp(r.hi) <= 0) {
			return true
		}
	}
	return false
}

// applyBytes compares texts or binaries. bytes begins at the first offset.
func (t *test) applyBytes(mask []bool, offsets []int32, data []byte) {
	if len(mask) == 0 {
		return
	}
	base := offsets[0]
	var last []byte // texts repeat in sorted and in dictionary columns
	held, known := false, false
	for i := range mask {
		if !mask[i] {
			continue
		}
		v := data[offsets[i]-base : offsets[i+1]-base]
		if !known || !bytes.Equal(v, last) {
			last, held, known = v, t.holdsBytes(v), true
		}
		mask[i] = held
	}
}

func (t *test) holdsBytes(v []byte) bool {
	i := sort.Search(len(t.bytes), func(i int) bool { return !t.bytes[i].below(v) })
	return i < len(t.bytes) && bytes.Compare(t.bytes[i].lo, v) <= 0
}
