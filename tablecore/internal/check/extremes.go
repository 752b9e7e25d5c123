package check

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"contrail/tablecore/internal/predicate"
)

// extremes are the bounds of some stored values, as predicate.Bounds has them.
type extremes struct {
	min, max any // int64, float64, []byte or decimal128.Num; nil for none
	nulls    int64
	nan      bool
}

// merge takes in the extremes of more values.
func (e *extremes) merge(more extremes) {
	e.nulls += more.nulls
	e.nan = e.nan || more.nan
	if more.min == nil {
		return
	}
	if e.min == nil {
		e.min, e.max = more.min, more.max
		return
	}
	if n, ok := compare(more.min, e.min); ok && n < 0 {
		e.min = more.min
	}
	if n, ok := compare(more.max, e.max); ok && n > 0 {
		e.max = more.max
	}
}

// compare compares two values of one kind.
func compare(a, b any) (int, bool) {
	switch x := a.(type) {
	case int64:
		y, ok := b.(int64)
		return cmp.Compare(x, y), ok
	case float64:
		y, ok := b.(float64)
		if x == y {
			return 0, ok // zeros of either sign
		}
		return cmp.Compare(x, y), ok
	case []byte:
		y, ok := b.([]byte)
		return bytes.Compare(x, y), ok
	case decimal128.Num:
		y, ok := b.(decimal128.Num)
		return x.Cmp(y), ok
	}
	return 0, false
}

// contradicts says where bounds do not hold for values; "" where they do.
func contradicts(b predicate.Bounds, actual extremes) string {
	if b.Nulls >= 0 && b.Nulls != actual.nulls {
		return fmt.Sprintf("%d nulls are told of, there are %d", b.Nulls, actual.nulls)
	}
	if n, ok := compare(actual.min, b.Min); ok && n < 0 {
		return fmt.Sprintf("the minimum is %s, there is %s", shown(b.Min), shown(actual.min))
	}
	if n, ok := compare(actual.max, b.Max); ok && n > 0 {
		return fmt.Sprintf("the maximum is %s, there is %s", shown(b.Max), shown(actual.max))
	}
	if b.Max != nil && actual.nan {
		return fmt.Sprintf("the maximum is %s, there is a NaN", shown(b.Max))
	}
	return ""
}

// shown is a bound in a message.
func shown(v any) string {
	switch v := v.(type) {
	case []byte:
		const most = 64
		if len(v) > most {
			return fmt.Sprintf("%q…", v[:most])
		}
		return fmt.Sprintf("%q", v)
	case decimal128.Num:
		return v.BigInt().String() + " (unscaled)"
	}
	return fmt.Sprint(v)
}

// extremesOf returns the extremes of the values of an array from one place on to
// before another. Of booleans and nested values only nulls are counted.
func extremesOf(arr arrow.Array, from, to int) (e extremes) {
	valid := func(i int) bool {
		ok := arr.IsValid(i)
		if !ok {
			e.nulls++
		}
		return ok
	}
	switch a := arr.(type) {
	case *array.Int8:
		ofIntegers(&e, a.Int8Values(), from, to, valid)
	case *array.Int16:
		ofIntegers(&e, a.Int16Values(), from, to, valid)
	case *array.Int32:
		ofIntegers(&e, a.Int32Values(), from, to, valid)
	case *array.Int64:
		ofIntegers(&e, a.Int64Values(), from, to, valid)
	case *array.Date32:
		ofIntegers(&e, a.Date32Values(), from, to, valid)
	case *array.Timestamp:
		ofIntegers(&e, a.TimestampValues(), from, to, valid)
	case *array.Float32:
		ofFloats(&e, a.Float32Values(), from, to, valid)
	case *array.Float64:
		ofFloats(&e, a.Float64Values(), from, to, valid)
	case *array.String:
		ofTexts(&e, a, from, to, valid)
	case *array.Binary:
		ofTexts(&e, texts{a}, from, to, valid)
	case *array.Decimal128:
		ofDecimals(&e, a, from, to, valid)
	default:
		for i := from; i < to; i++ {
			valid(i)
		}
	}
	return e
}

func ofIntegers[T ~int8 | ~int16 | ~int32 | ~int64](e *extremes, values []T, from, to int, valid func(int) bool) {
	var low, high T
	some := false
	for i := from; i < to; i++ {
		if !valid(i) {
			continue
		}
		v := values[i]
		if !some {
			low, high, some = v, v, true
		}
		low, high = min(low, v), max(high, v)
	}
	if some {
		e.min, e.max = int64(low), int64(high)
	}
}

func ofFloats[T float32 | float64](e *extremes, values []T, from, to int, valid func(int) bool) {
	var low, high T
	some := false
	for i := from; i < to; i++ {
		v := values[i]
		switch {
		case !valid(i):
		case v != v:
			e.nan = true
		case !some:
			low, high, some = v, v, true
		default:
			low, high = min(low, v), max(high, v)
		}
	}
	if some {
		e.min, e.max = float64(low), float64(high)
	}
}

// texts gives binary values as texts.
type texts struct{ *array.Binary }

// Value returns a value without copying it.
func (t texts) Value(i int) string { return t.ValueString(i) }

func ofTexts(e *extremes, a interface{ Value(int) string }, from, to int, valid func(int) bool) {
	low, high, some := "", "", false
	for i := from; i < to; i++ {
		if !valid(i) {
			continue
		}
		v := a.Value(i)
		if !some {
			low, high, some = v, v, true
		}
		low, high = min(low, v), max(high, v)
	}
	if some {
		e.min, e.max = []byte(low), []byte(high) // copies, which outlive the array
	}
}

func ofDecimals(e *extremes, a *array.Decimal128, from, to int, valid func(int) bool) {
	var low, high decimal128.Num
	some := false
	for i := from; i < to; i++ {
		if !valid(i) {
			continue
		}
		v := a.Value(i)
		switch {
		case !some:
			low, high, some = v, v, true
		case v.Less(low):
			low = v
		case high.Less(v):
			high = v
		}
	}
	if some {
		e.min, e.max = low, high
	}
}
