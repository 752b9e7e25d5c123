package predicate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tabledef"
)

// literal is a value of a request on the scale on which a column's values are
// compared: for numbers the greatest stored number that is at most the value,
// and whether it is the value.
type literal struct {
	floor *big.Int
	exact bool
	bytes []byte
}

var (
	numberText = regexp.MustCompile(`^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$`)
	dateText   = regexp.MustCompile(`^(\d{4}|[+-]\d{6})-(\d\d)-(\d\d)$`)
)

const (
	// maxDigits bounds a number's text, and farExponent is from where on a number
	// is beyond, or nearer to zero than, everything a column can hold: doubles
	// end at 10^308 and begin at 10^-324, decimals have 76 digits.
	maxDigits   = 1000
	farExponent = 400
)

// parseLiteral reads a JSON value as one of a column's declared type, which is
// flat.
func parseLiteral(field string, raw json.RawMessage, declared arrow.DataType) (literal, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || !json.Valid(raw) {
		return literal{}, notA(field, raw, "a JSON value")
	}
	switch t := declared.(type) {
	case *arrow.BooleanType:
		return parseBool(field, raw)
	case *arrow.TimestampType:
		return parseInstant(field, raw, t)
	case *arrow.Date32Type, *arrow.Date64Type:
		return parseDate(field, raw, declared)
	case *arrow.Time32Type, *arrow.Time64Type, *arrow.DurationType:
		n, err := parseInteger(field, raw)
		if err != nil {
			return literal{}, notA(field, raw, "a whole number in the column's unit")
		}
		return literal{floor: n, exact: true}, nil
	case *arrow.Float16Type, *arrow.Float32Type, *arrow.Float64Type:
		return parseFloat(field, raw)
	case arrow.DecimalType:
		return parseDecimal(field, raw, t.GetScale())
	}
	switch {
	case arrow.IsInteger(declared.ID()):
		return parseWhole(field, raw)
	case isBinaryType(declared.ID()):
		return parseBinary(field, raw)
	}
	text, ok := jsonText(raw)
	if !ok {
		return literal{}, notA(field, raw, "a text")
	}
	return literal{bytes: []byte(text)}, nil
}

func isBinaryType(id arrow.Type) bool {
	switch id {
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		return true
	}
	return false
}

func parseBool(field string, raw json.RawMessage) (literal, error) {
	switch string(raw) {
	case "true":
		return literal{floor: big.NewInt(1), exact: true}, nil
	case "false":
		return literal{floor: new(big.Int), exact: true}, nil
	}
	return literal{}, notA(field, raw, "true or false")
}

func parseBinary(field string, raw json.RawMessage) (literal, error) {
	text, ok := jsonText(raw)
	if !ok || strings.ContainsAny(text, "\r\n") {
		return literal{}, notA(field, raw, "base64 text")
	}
	value, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return literal{}, notA(field, raw, "base64 text")
	}
	return literal{bytes: value}, nil
}

// parseWhole reads a number, which need not be whole, or the decimal text of a
// whole one.
func parseWhole(field string, raw json.RawMessage) (literal, error) {
	if raw[0] == '"' {
		n, err := parseInteger(field, raw)
		return literal{floor: n, exact: true}, err
	}
	return parseDecimal(field, raw, 0)
}

// parseDecimal reads a number, or a number's text, as one of so many decimals.
func parseDecimal(field string, raw json.RawMessage, scale int32) (literal, error) {
	text := string(raw)
	if s, ok := jsonText(raw); ok {
		text = s
	}
	value, ok := parseNumber(text)
	if !ok {
		return literal{}, notA(field, raw, "a number")
	}
	value.Mul(value, new(big.Rat).SetInt(powerOfTen(int64(scale))))
	return floorOf(value), nil
}

// parseFloat reads a number or the text of one that JSON cannot say. Whole
// numbers count exactly; others are the double that is nearest to them, which
// is what a client has written in decimal.
func parseFloat(field string, raw json.RawMessage) (literal, error) {
	if text, ok := jsonText(raw); ok {
		special := map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}
		f, known := special[text]
		if !known {
			return literal{}, notA(field, raw, `a number, "NaN", "Infinity" or "-Infinity"`)
		}
		return literal{floor: big.NewInt(floatKey(f)), exact: true}, nil
	}
	text := string(raw)
	value, ok := parseNumber(text)
	if !ok {
		return literal{}, notA(field, raw, "a number")
	}
	if strings.ContainsAny(text, ".eE") {
		nearest, err := strconv.ParseFloat(text, 64)
		if err == nil && (nearest != 0 || value.Sign() == 0) {
			return literal{floor: big.NewInt(floatKey(nearest)), exact: true}, nil
		}
	}
	nearest, exact := value.Float64()
	if !exact {
		if math.IsInf(nearest, 1) {
			nearest = math.MaxFloat64
		} else if !math.IsInf(nearest, -1) && new(big.Rat).SetFloat64(nearest).Cmp(value) > 0 {
			nearest = math.Nextafter(nearest, math.Inf(-1))
		}
	}
	return literal{floor: big.NewInt(floatKey(nearest)), exact: exact}, nil
}

// parseInstant reads a time's text, or a whole number in the column's unit, as
// ticks of the unit in which the column is stored.
func parseInstant(field string, raw json.RawMessage, t *arrow.TimestampType) (literal, error) {
	var ns *big.Int
	if text, ok := jsonText(raw); ok && !integerText.MatchString(text) {
		var err error
		if ns, err = parseTime(field, text, t.TimeZone != ""); err != nil {
			return literal{}, err
		}
	} else {
		n, err := parseInteger(field, raw)
		if err != nil {
			return literal{}, notA(field, raw, "a time in RFC 3339 or a whole number in the column's unit")
		}
		ns = n.Mul(n, ticksNanos(t))
	}
	tick := big.NewInt(1) // where nanoseconds are stored as a number
	if stored, ok := tabledef.StorageType(t).(*arrow.TimestampType); ok {
		tick = ticksNanos(stored)
	}
	return floorOf(new(big.Rat).SetFrac(ns, tick)), nil
}

// parseDate reads a day.
func parseDate(field string, raw json.RawMessage, declared arrow.DataType) (literal, error) {
	text, _ := jsonText(raw)
	m := dateText.FindStringSubmatch(text)
	if m == nil {
		return literal{}, notA(field, raw, `a date such as "2013-01-01"`)
	}
	year, _ := strconv.Atoi(m[1])
	month, _ := strconv.Atoi(m[2])
	day, _ := strconv.Atoi(m[3])
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if date.Year() != year || int(date.Month()) != month || date.Day() != day {
		return literal{}, notA(field, raw, "a date that exists")
	}
	const daySeconds = 86400
	value := big.NewInt(date.Unix() / daySeconds) // midnights divide evenly
	if tabledef.StorageType(declared).ID() != arrow.DATE32 {
		value.Mul(value, big.NewInt(daySeconds*1000))
	}
	return literal{floor: value, exact: true}, nil
}

// parseNumber reads a number as JSON writes it, exactly where it is one that a
// column could hold; what is further away than that is only as far as it takes.
func parseNumber(text string) (*big.Rat, bool) {
	m := numberText.FindStringSubmatch(text)
	if m == nil || len(m[2])+len(m[3]) > maxDigits {
		return nil, false
	}
	digits, _ := new(big.Int).SetString(m[2]+m[3], 10)
	if m[1] != "" {
		digits.Neg(digits)
	}
	if digits.Sign() == 0 {
		return new(big.Rat), true
	}
	exponent := int64(0)
	if m[4] != "" {
		// Out of range, strconv gives the nearest there is.
		exponent, _ = strconv.ParseInt(m[4], 10, 64)
		exponent = max(-1<<40, min(1<<40, exponent))
	}
	exponent -= int64(len(m[3]))
	value := new(big.Rat).SetInt(digits)
	switch size := exponent + int64(len(strings.TrimLeft(m[2]+m[3], "0"))); {
	case size > farExponent:
		return far(digits.Sign(), farExponent), true
	case size < -farExponent:
		return far(digits.Sign(), -farExponent), true
	case exponent > 0:
		value.Mul(value, new(big.Rat).SetInt(powerOfTen(exponent)))
	case exponent < 0:
		value.Quo(value, new(big.Rat).SetInt(powerOfTen(-exponent)))
	}
	return value, true
}

// far is ±10^exponent.
func far(sign int, exponent int64) *big.Rat {
	value := new(big.Rat).SetInt(powerOfTen(max(exponent, -exponent)))
	if exponent < 0 {
		value.Inv(value)
	}
	if sign < 0 {
		value.Neg(value)
	}
	return value
}

func powerOfTen(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

func floorOf(value *big.Rat) literal {
	floor, rest := new(big.Int).DivMod(value.Num(), value.Denom(), new(big.Int))
	return literal{floor: floor, exact: rest.Sign() == 0}
}

// ParseDecimal reads a number's text as a decimal of so many digits after the
// point: the unscaled whole number, rounded down, and whether it is exact.
func ParseDecimal(text string, scale int32) (floor *big.Int, exact, ok bool) {
	value, ok := parseNumber(text)
	if !ok {
		return nil, false, false
	}
	l := floorOf(value.Mul(value, new(big.Rat).SetInt(powerOfTen(int64(scale)))))
	return l.floor, l.exact, true
}
