package rowfile

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"

	"contrail/tablecore/tabledef"
)

// appendText appends what a text means in the builder's type. zone is what a
// time without one is taken to be in; nil refuses it where the type has a zone.
func appendText(b array.Builder, text string, zone *time.Location) error {
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(text)
	case *array.LargeStringBuilder:
		b.Append(text)
	case *array.StringViewBuilder:
		b.Append(text)
	case *array.BooleanBuilder:
		return appendBool(b, text)
	case *array.Float64Builder:
		return appendFloat(text, 64, b.Append)
	case *array.Float32Builder:
		return appendFloat(text, 32, func(v float64) { b.Append(float32(v)) })
	case *array.Float16Builder:
		return appendFloat(text, 32, func(v float64) { b.Append(float16.New(float32(v))) })
	case *array.TimestampBuilder:
		return appendTimestamp(b, text, zone)
	case *array.Date32Builder:
		return appendDate(text, func(day time.Time) { b.Append(arrow.Date32FromTime(day)) })
	case *array.Date64Builder:
		return appendDate(text, func(day time.Time) { b.Append(arrow.Date64FromTime(day)) })
	case *array.BinaryBuilder:
		return appendBinary(text, b.Append)
	case *array.BinaryViewBuilder:
		return appendBinary(text, b.Append)
	case *array.FixedSizeBinaryBuilder:
		return appendFixed(b, text)
	case *array.BinaryDictionaryBuilder:
		return appendEntry(b, text)
	default:
		return appendNumber(b, text)
	}
	return nil
}

// appendNumber is appendText for whole numbers, what is counted in them, and
// decimals.
func appendNumber(b array.Builder, text string) error {
	switch b := b.(type) {
	case *array.Int64Builder:
		return appendInt(text, 64, b.Append)
	case *array.Int32Builder:
		return appendInt(text, 32, func(v int64) { b.Append(int32(v)) })
	case *array.Int16Builder:
		return appendInt(text, 16, func(v int64) { b.Append(int16(v)) })
	case *array.Int8Builder:
		return appendInt(text, 8, func(v int64) { b.Append(int8(v)) })
	case *array.Uint64Builder:
		return appendUint(text, 64, b.Append)
	case *array.Uint32Builder:
		return appendUint(text, 32, func(v uint64) { b.Append(uint32(v)) })
	case *array.Uint16Builder:
		return appendUint(text, 16, func(v uint64) { b.Append(uint16(v)) })
	case *array.Uint8Builder:
		return appendUint(text, 8, func(v uint64) { b.Append(uint8(v)) })
	case *array.Time32Builder:
		unit := b.Type().(*arrow.Time32Type).Unit
		return appendTimeOfDay(text, unit, 32, func(v int64) { b.Append(arrow.Time32(v)) })
	case *array.Time64Builder:
		unit := b.Type().(*arrow.Time64Type).Unit
		return appendTimeOfDay(text, unit, 64, func(v int64) { b.Append(arrow.Time64(v)) })
	case *array.DurationBuilder:
		return appendInt(text, 64, func(v int64) { b.Append(arrow.Duration(v)) })
	case *array.Decimal32Builder:
		return appendDecimal(b.Type(), text, func(v *big.Int) { b.Append(decimal.Decimal32(v.Int64())) })
	case *array.Decimal64Builder:
		return appendDecimal(b.Type(), text, func(v *big.Int) { b.Append(decimal.Decimal64(v.Int64())) })
	case *array.Decimal128Builder:
		return appendDecimal(b.Type(), text, func(v *big.Int) { b.Append(decimal128.FromBigInt(v)) })
	case *array.Decimal256Builder:
		return appendDecimal(b.Type(), text, func(v *big.Int) { b.Append(decimal256.FromBigInt(v)) })
	}
	return fmt.Errorf("a value of type %s cannot be given as text; use Parquet or Arrow", tabledef.TypeName(b.Type()))
}

// isNoValue reports a text that is no value of a type.
func isNoValue(text, what string) error {
	const longest = 40
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return fmt.Errorf("%q is no %s", text, what)
}

func appendBool(b *array.BooleanBuilder, text string) error {
	switch strings.ToLower(text) {
	case "true":
		b.Append(true)
	case "false":
		b.Append(false)
	default:
		return isNoValue(text, "bool, which is true or false")
	}
	return nil
}

func appendInt(text string, bits int, add func(int64)) error {
	v, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return isNoValue(text, fmt.Sprintf("whole number of %d bits", bits))
	}
	add(v)
	return nil
}

func appendUint(text string, bits int, add func(uint64)) error {
	v, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return isNoValue(text, fmt.Sprintf("whole number from 0 up of %d bits", bits))
	}
	add(v)
	return nil
}

// appendFloat takes decimal notation, and names for what has none.
func appendFloat(text string, bits int, add func(float64)) error {
	v, err := strconv.ParseFloat(text, bits)
	if err != nil || strings.ContainsAny(text, "xX_") {
		return isNoValue(text, "number that the type can hold")
	}
	add(v)
	return nil
}

func appendBinary(text string, add func([]byte)) error {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return isNoValue(text, "base64")
	}
	add(raw)
	return nil
}

// appendEntry appends a value of a dictionary of texts or of binary values.
func appendEntry(b *array.BinaryDictionaryBuilder, text string) (err error) {
	switch b.Type().(*arrow.DictionaryType).ValueType.ID() {
	case arrow.BINARY, arrow.LARGE_BINARY:
		addErr := appendBinary(text, func(raw []byte) { err = b.Append(raw) })
		return errors.Join(addErr, err)
	}
	return b.AppendString(text)
}

func appendFixed(b *array.FixedSizeBinaryBuilder, text string) error {
	width := b.Type().(*arrow.FixedSizeBinaryType).ByteWidth
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != width {
		return isNoValue(text, fmt.Sprintf("base64 of %d bytes", width))
	}
	b.Append(raw)
	return nil
}

func appendDate(text string, add func(time.Time)) error {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return isNoValue(text, "date such as 2013-01-31")
	}
	add(day)
	return nil
}

// appendTimeOfDay takes an integer of the unit, or a clock's time.
func appendTimeOfDay(text string, unit arrow.TimeUnit, bits int, add func(int64)) error {
	if !strings.Contains(text, ":") {
		return appendInt(text, bits, add)
	}
	clock, err := time.Parse(time.TimeOnly, text)
	if err != nil || tooFine(text) {
		return isNoValue(text, "time of day such as 15:04:05")
	}
	nanos := int64(clock.Sub(clock.Truncate(24 * time.Hour)))
	if nanos%int64(unit.Multiplier()) != 0 {
		return isNoValue(text, "time of day in "+unit.String())
	}
	add(nanos / int64(unit.Multiplier()))
	return nil
}

// appendDecimal takes digits with at most as many behind the point as the type
// has.
func appendDecimal(typ arrow.DataType, text string, add func(*big.Int)) error {
	d := typ.(arrow.DecimalType)
	whole, fraction, _ := strings.Cut(text, ".")
	fraction = strings.TrimRight(fraction, "0")
	zeros := int(d.GetScale()) - len(fraction)
	digits := strings.TrimLeft(whole, "+-")
	if zeros < 0 || digits+fraction == "" || strings.Trim(digits+fraction, "0123456789") != "" || len(whole)-len(digits) > 1 {
		return isNoValue(text, tabledef.TypeName(typ))
	}
	v, _ := new(big.Int).SetString(digits+fraction+strings.Repeat("0", zeros), 10)
	if len(v.String()) > int(d.GetPrecision()) {
		return isNoValue(text, tabledef.TypeName(typ))
	}
	if whole[:len(whole)-len(digits)] == "-" {
		v.Neg(v)
	}
	add(v)
	return nil
}

// errNoZone says that a time lacks the zone that its column has.
var errNoZone = errors.New("the time has no zone and its column has one; say which is meant with --assume-zone, such as UTC")

// appendTimestamp takes a time, or an integer of the unit.
func appendTimestamp(b *array.TimestampBuilder, text string, zone *time.Location) error {
	typ := b.Type().(*arrow.TimestampType)
	if isDigits(text) {
		return appendInt(text, 64, func(v int64) { b.Append(arrow.Timestamp(v)) })
	}
	moment, zoned, ok := parseTime(text)
	switch {
	case !ok:
		return isNoValue(text, "time such as 2013-01-31T06:00:00Z")
	case zoned && typ.TimeZone == "":
		return fmt.Errorf("the time %s has a zone, which its column has not", text)
	case !zoned && typ.TimeZone != "":
		if zone == nil {
			return errNoZone
		}
		var err error
		if moment, err = inZone(moment, zone); err != nil {
			return fmt.Errorf("the time %s %w", text, err)
		}
	}
	v, ok := inUnit(moment, typ.Unit)
	if !ok {
		return isNoValue(text, tabledef.TypeName(typ)+": it is finer than the unit, or out of range")
	}
	b.Append(v)
	return nil
}

// inZone is the moment at which the clocks of a zone show what naked, in UTC,
// shows. Clocks that are set forward or back make times that never were and
// times that were twice; which of the two is meant only an offset can say.
func inZone(naked time.Time, zone *time.Location) (time.Time, error) {
	y, month, d := naked.Date()
	h, m, s := naked.Clock()
	moment := time.Date(y, month, d, h, m, s, naked.Nanosecond(), zone)
	if !shows(moment, naked) {
		return moment, fmt.Errorf("is skipped in %s, where the clocks are set forward", zone)
	}
	start, end := moment.ZoneBounds() // in which one offset holds
	for _, other := range []time.Time{start.Add(-1), end} {
		if again := naked.Add(-offset(other)).In(zone); !again.Equal(moment) && shows(again, naked) {
			return moment, fmt.Errorf("comes twice in %s, where the clocks are set back; give it with its offset", zone)
		}
	}
	return moment, nil
}

// shows tells whether the clocks at a moment show naked.
func shows(moment, naked time.Time) bool { return moment.Add(offset(moment)).Equal(naked) }

// offset is how far the clocks at a moment are ahead of UTC.
func offset(moment time.Time) time.Duration {
	_, seconds := moment.Zone()
	return time.Duration(seconds) * time.Second
}

func isDigits(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

var zonedLayouts = []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04Z07:00"}
var nakedLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"}

// parseTime reads a time; zoned tells whether it says its zone.
func parseTime(text string) (moment time.Time, zoned, ok bool) {
	if len(text) < len(time.DateOnly) || text[4] != '-' || tooFine(text) {
		return moment, false, false
	}
	if len(text) > len(time.DateOnly) && text[10] == ' ' {
		text = text[:10] + "T" + text[11:]
	}
	for _, layout := range zonedLayouts {
		if moment, err := time.Parse(layout, text); err == nil {
			return moment, true, true
		}
	}
	for _, layout := range nakedLayouts {
		if moment, err := time.Parse(layout, text); err == nil {
			return moment, false, true
		}
	}
	return moment, false, false
}

// tooFine tells times with more than nine digits of a second, the rest of which
// package time would drop.
func tooFine(text string) bool {
	at := strings.IndexAny(text, ".,")
	if at < 0 {
		return false
	}
	fraction := text[at+1:]
	return len(fraction)-len(strings.TrimLeft(fraction, "0123456789")) > 9
}

// inUnit counts a time in a unit since 1970, exactly or not at all.
func inUnit(moment time.Time, unit arrow.TimeUnit) (arrow.Timestamp, bool) {
	each := int64(unit.Multiplier())
	nanos := int64(moment.Nanosecond())
	perSecond := int64(time.Second) / each
	seconds := moment.Unix()
	if nanos%each != 0 || seconds > math.MaxInt64/perSecond-1 || seconds < math.MinInt64/perSecond+1 {
		return 0, false
	}
	return arrow.Timestamp(seconds*perSecond + nanos/each), true
}
