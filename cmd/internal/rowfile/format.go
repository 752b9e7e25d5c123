package rowfile

import (
	"encoding/base64"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// AppendCell appends the text of a value that is not null, as it stands in a
// CSV file: JSON for nested values, without quotes for all others.
func AppendCell(dst []byte, column arrow.Array, row int) []byte {
	column = plainArray(column)
	if arrow.IsNested(column.DataType().ID()) {
		return AppendJSON(dst, column, row)
	}
	dst, _ = appendScalar(dst, column, row)
	return dst
}

// AppendJSON appends a value as JSON, as the protocol's answers have it. Maps
// are lists of pairs.
func AppendJSON(dst []byte, column arrow.Array, row int) []byte {
	column, row = plainValue(column, row)
	if column.IsNull(row) {
		return append(dst, "null"...)
	}
	switch a := column.(type) {
	case *array.Struct:
		return appendFields(dst, a, row)
	case *array.Map:
		start, end := a.ValueOffsets(row)
		return appendElements(dst, start, end, func(dst []byte, i int) []byte {
			dst = AppendJSON(append(dst, '['), a.Keys(), i)
			return append(AppendJSON(append(dst, ','), a.Items(), i), ']')
		})
	case array.ListLike:
		start, end := a.ValueOffsets(row)
		return appendElements(dst, start, end, func(dst []byte, i int) []byte { return AppendJSON(dst, a.ListValues(), i) })
	}
	from := len(dst)
	dst, quote := appendScalar(dst, column, row)
	if !quote {
		return dst
	}
	text := string(dst[from:])
	return AppendQuoted(dst[:from], text)
}

// plainArray takes extension types off, and plainValue dictionaries too.
func plainArray(column arrow.Array) arrow.Array {
	if e, ok := column.(array.ExtensionArray); ok {
		return plainArray(e.Storage())
	}
	return column
}

func plainValue(column arrow.Array, row int) (arrow.Array, int) {
	column = plainArray(column)
	if d, ok := column.(*array.Dictionary); ok && d.IsValid(row) {
		return plainValue(d.Dictionary(), d.GetValueIndex(row))
	}
	return column, row
}

func appendFields(dst []byte, a *array.Struct, row int) []byte {
	dst = append(dst, '{')
	for i, f := range a.DataType().(*arrow.StructType).Fields() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendQuoted(dst, f.Name), ':')
		dst = AppendJSON(dst, a.Field(i), row)
	}
	return append(dst, '}')
}

func appendElements(dst []byte, start, end int64, element func([]byte, int) []byte) []byte {
	dst = append(dst, '[')
	for i := start; i < end; i++ {
		if i > start {
			dst = append(dst, ',')
		}
		dst = element(dst, int(i))
	}
	return append(dst, ']')
}

// appendScalar appends a value's text and tells whether it is a text in JSON.
func appendScalar(dst []byte, column arrow.Array, row int) (_ []byte, quote bool) {
	column, row = plainValue(column, row)
	switch a := column.(type) {
	case *array.String:
		return append(dst, a.Value(row)...), true
	case *array.LargeString:
		return append(dst, a.Value(row)...), true
	case *array.StringView:
		return append(dst, a.Value(row)...), true
	case *array.Binary:
		return base64.StdEncoding.AppendEncode(dst, a.Value(row)), true
	case *array.LargeBinary:
		return base64.StdEncoding.AppendEncode(dst, a.Value(row)), true
	case *array.BinaryView:
		return base64.StdEncoding.AppendEncode(dst, a.Value(row)), true
	case *array.FixedSizeBinary:
		return base64.StdEncoding.AppendEncode(dst, a.Value(row)), true
	case *array.Boolean:
		return strconv.AppendBool(dst, a.Value(row)), false
	case *array.Float64:
		return appendFloatText(dst, a.Value(row), 64)
	case *array.Float32:
		return appendFloatText(dst, float64(a.Value(row)), 32)
	case *array.Float16:
		return appendFloatText(dst, float64(a.Value(row).Float32()), 32)
	case *array.Timestamp:
		return appendTimeText(dst, a.DataType().(*arrow.TimestampType), a.Value(row))
	case *array.Date32:
		return a.Value(row).ToTime().AppendFormat(dst, time.DateOnly), true
	case *array.Date64:
		return a.Value(row).ToTime().AppendFormat(dst, time.DateOnly), true
	}
	return appendCount(dst, column, row)
}

// appendCount is appendScalar for whole numbers, what is counted in them, and
// decimals.
func appendCount(dst []byte, column arrow.Array, row int) (_ []byte, quote bool) {
	switch a := column.(type) {
	case *array.Int64:
		return strconv.AppendInt(dst, a.Value(row), 10), false
	case *array.Int32:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), false
	case *array.Int16:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), false
	case *array.Int8:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), false
	case *array.Uint64:
		return strconv.AppendUint(dst, a.Value(row), 10), false
	case *array.Uint32:
		return strconv.AppendUint(dst, uint64(a.Value(row)), 10), false
	case *array.Uint16:
		return strconv.AppendUint(dst, uint64(a.Value(row)), 10), false
	case *array.Uint8:
		return strconv.AppendUint(dst, uint64(a.Value(row)), 10), false
	case *array.Time32:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), false
	case *array.Time64:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), false
	case *array.Duration:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), false
	}
	unscaled, scale := unscaledDecimal(column, row)
	return appendDecimalText(dst, unscaled, scale), true
}

// unscaledDecimal returns the digits of a decimal as an integer, and how many
// of them stand behind the point.
func unscaledDecimal(column arrow.Array, row int) (*big.Int, int) {
	typ, ok := column.DataType().(arrow.DecimalType)
	if !ok {
		return new(big.Int), 0
	}
	v := new(big.Int)
	switch a := column.(type) {
	case *array.Decimal32:
		v.SetInt64(int64(a.Value(row)))
	case *array.Decimal64:
		v.SetInt64(int64(a.Value(row)))
	case *array.Decimal128:
		v = a.Value(row).BigInt()
	case *array.Decimal256:
		v = a.Value(row).BigInt()
	}
	return v, int(typ.GetScale())
}

// appendDecimalText writes all digits of the scale: 1.50 at a scale of 2.
func appendDecimalText(dst []byte, unscaled *big.Int, scale int) []byte {
	if unscaled.Sign() < 0 {
		dst = append(dst, '-')
	}
	digits := new(big.Int).Abs(unscaled).String()
	if scale <= 0 {
		return append(append(dst, digits...), strings.Repeat("0", -scale)...)
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	dst = append(dst, digits[:len(digits)-scale]...)
	return append(append(dst, '.'), digits[len(digits)-scale:]...)
}

// appendFloatText writes the shortest text that reads back as the value, and
// names for what has no digits, which JSON has as texts.
func appendFloatText(dst []byte, v float64, bits int) (_ []byte, quote bool) {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...), true
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...), true
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...), true
	}
	form := byte('f')
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		form = 'e'
	}
	return strconv.AppendFloat(dst, v, form, -1, bits), false
}

// appendTimeText writes a time in UTC, with Z where its column has a zone. What
// has no year of four digits is written as the integer that it is.
func appendTimeText(dst []byte, t *arrow.TimestampType, v arrow.Timestamp) (_ []byte, quote bool) {
	moment := v.ToTime(t.Unit)
	if year := moment.Year(); year < 0 || year > 9999 {
		return strconv.AppendInt(dst, int64(v), 10), false
	}
	layout := "2006-01-02T15:04:05.999999999"
	if t.TimeZone != "" {
		layout += "Z"
	}
	return moment.AppendFormat(dst, layout), true
}

// AppendQuoted appends a text as JSON. Bytes that are no UTF-8 become the
// replacement character.
func AppendQuoted(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r < 0x20 || r == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
