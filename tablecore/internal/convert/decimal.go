package convert

import (
	"math"
	"math/big"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	small "github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// maxTextDecimal is the longest text of a decimal: 76 digits, a sign, a point
// and a zero before it.
const maxTextDecimal = 80

// settleDecimals converts decimals that fit their precision to 128 bits, or to
// text where these are too few.
func settleDecimals(mem memory.Allocator, arr arrow.Array, t arrow.DecimalType, to arrow.DataType) arrow.Array {
	if to.ID() == arrow.STRING {
		return decimalsToText(mem, arr.(*array.Decimal256), t.GetScale())
	}
	return fixed(mem, arr, to, func(dst []byte) {
		out := arrow.GetData[decimal128.Num](dst)
		switch a := arr.(type) {
		case *array.Decimal32:
			for i, v := range a.Values() {
				out[i] = decimal128.FromI64(int64(v))
			}
		case *array.Decimal64:
			for i, v := range a.Values() {
				out[i] = decimal128.FromI64(int64(v))
			}
		case *array.Decimal128:
			copy(out, a.Values())
		case *array.Decimal256:
			for i, v := range a.Values() {
				words := v.Array()
				out[i] = decimal128.New(int64(words[1]), words[0])
			}
		}
	})
}

func decimalsToText(mem memory.Allocator, arr *array.Decimal256, scale int32) arrow.Array {
	b := array.NewStringBuilder(mem)
	defer b.Release()
	b.Reserve(arr.Len())
	for i, v := range arr.Values() {
		if arr.IsNull(i) {
			b.AppendNull()
			continue
		}
		b.Append(decimalText(v.BigInt(), scale))
	}
	return b.NewArray()
}

// decimalText writes an unscaled value as exact decimal text: an optional
// minus, at least one digit, and scale digits after a point.
func decimalText(unscaled *big.Int, scale int32) string {
	digits := new(big.Int).Abs(unscaled).String()
	if missing := int(scale) + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	sign := ""
	if unscaled.Sign() < 0 {
		sign = "-"
	}
	point := len(digits) - int(scale)
	if scale == 0 {
		return sign + digits
	}
	return sign + digits[:point] + "." + digits[point:]
}

// parseDecimalText is the inverse of decimalText. It reports false for any
// other text, also for one that says the same number in another way.
func parseDecimalText(text string, precision, scale int32) (decimal256.Num, bool) {
	var zero decimal256.Num
	if len(text) > maxTextDecimal {
		return zero, false
	}
	digits := strings.TrimPrefix(text, "-")
	if scale > 0 {
		point := len(digits) - int(scale) - 1
		if point < 1 || digits[point] != '.' {
			return zero, false
		}
		digits = digits[:point] + digits[point+1:]
	}
	if strings.Trim(digits, "0123456789") != "" {
		return zero, false
	}
	unscaled, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return zero, false
	}
	if strings.HasPrefix(text, "-") {
		unscaled.Neg(unscaled)
	}
	if unscaled.BitLen() > 255 || decimalText(unscaled, scale) != text {
		return zero, false
	}
	v := decimal256.FromBigInt(unscaled)
	return v, v.FitsInPrecision(precision)
}

// decimalsFromStorage restores decimals of 32, 64 or 256 bits.
func decimalsFromStorage(mem memory.Allocator, arr arrow.Array, to arrow.DecimalType) (arrow.Array, error) {
	if text, ok := arr.(*array.String); ok {
		return decimalsFromText(mem, text, to)
	}
	stored := arr.(*array.Decimal128)
	bad := -1
	out := fixed(mem, arr, to, func(dst []byte) {
		for i, v := range stored.Values() {
			fits := true
			switch to.ID() {
			case arrow.DECIMAL32:
				arrow.GetData[small.Decimal32](dst)[i] = small.Decimal32(int32(v.LowBits()))
				fits = decimal128.FromI64(int64(int32(v.LowBits()))) == v
			case arrow.DECIMAL64:
				arrow.GetData[small.Decimal64](dst)[i] = small.Decimal64(int64(v.LowBits()))
				fits = decimal128.FromI64(int64(v.LowBits())) == v
			default:
				arrow.GetData[decimal256.Num](dst)[i] = decimal256.FromDecimal128(v)
			}
			if !fits && bad < 0 && arr.IsValid(i) {
				bad = i
			}
		}
	})
	if bad >= 0 {
		out.Release()
		return nil, damagedValue(decimalText(stored.Value(bad).BigInt(), to.GetScale()), to)
	}
	return out, nil
}

func decimalsFromText(mem memory.Allocator, arr *array.String, to arrow.DecimalType) (arrow.Array, error) {
	bad := -1
	out := fixed(mem, arr, to, func(dst []byte) {
		values := arrow.GetData[decimal256.Num](dst)
		for i := range values {
			values[i] = decimal256.Num{}
			if arr.IsNull(i) {
				continue
			}
			v, ok := parseDecimalText(arr.Value(i), to.GetPrecision(), to.GetScale())
			if !ok && bad < 0 {
				bad = i
			}
			values[i] = v
		}
	})
	if bad >= 0 {
		out.Release()
		return nil, damagedValue(arr.Value(bad), to)
	}
	return out, nil
}

// overPrecision returns a test for the slots of a decimal array whose value
// has more digits than its type says, nil for other arrays. (The least number
// of 128 or 256 bits is its own absolute value.)
func overPrecision(arr arrow.Array) func(i int) bool {
	switch a := arr.(type) {
	case *array.Decimal32:
		most := int64(math.Pow10(int(a.DataType().(arrow.DecimalType).GetPrecision()))) - 1
		return func(i int) bool { v := int64(a.Value(i)); return v > most || v < -most }
	case *array.Decimal64:
		most := int64(math.Pow10(int(a.DataType().(arrow.DecimalType).GetPrecision()))) - 1
		return func(i int) bool { v := int64(a.Value(i)); return v > most || v < -most }
	case *array.Decimal128:
		p := a.DataType().(arrow.DecimalType).GetPrecision()
		return func(i int) bool { v := a.Value(i); return !v.FitsInPrecision(p) || v.Abs().Sign() < 0 }
	case *array.Decimal256:
		p := a.DataType().(arrow.DecimalType).GetPrecision()
		return func(i int) bool { v := a.Value(i); return !v.FitsInPrecision(p) || v.Abs().Sign() < 0 }
	}
	return nil
}

// decimalValue writes a decimal for an error.
func decimalValue(arr arrow.Array, i int) string {
	scale := arr.DataType().(arrow.DecimalType).GetScale()
	switch a := arr.(type) {
	case *array.Decimal32:
		return decimalText(big.NewInt(int64(a.Value(i))), scale)
	case *array.Decimal64:
		return decimalText(big.NewInt(int64(a.Value(i))), scale)
	case *array.Decimal128:
		return decimalText(a.Value(i).BigInt(), scale)
	default:
		return decimalText(arr.(*array.Decimal256).Value(i).BigInt(), scale)
	}
}
