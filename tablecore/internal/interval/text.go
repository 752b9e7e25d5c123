package interval

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
)

const secondsPerDay = 86400

// ValueText returns an index value as text: a timestamp in RFC 3339 and UTC,
// with as many digits of a second as it needs and years outside 0000 to 9999
// signed and of at least six digits; an integer in decimal.
func (d Domain) ValueText(ordinal uint64) string {
	switch {
	case d.timestamp:
		return timestampText(SignedValue(ordinal), d.unit)
	case d.signed:
		return strconv.FormatInt(SignedValue(ordinal), 10)
	default:
		return strconv.FormatUint(ordinal, 10)
	}
}

// timestampText does not go through time.Time, which cannot hold all seconds
// that an int64 counts.
func timestampText(v int64, unit arrow.TimeUnit) string {
	perSecond, digits := int64(1), 0
	switch unit {
	case arrow.Millisecond:
		perSecond, digits = 1e3, 3
	case arrow.Microsecond:
		perSecond, digits = 1e6, 6
	case arrow.Nanosecond:
		perSecond, digits = 1e9, 9
	}
	seconds, fraction := floorDiv(v, perSecond)
	days, second := floorDiv(seconds, secondsPerDay)
	year, month, day := civil(days)

	b := make([]byte, 0, 40)
	b = appendYear(b, year)
	b = appendPadded(append(b, '-'), month, 2)
	b = appendPadded(append(b, '-'), day, 2)
	b = appendPadded(append(b, 'T'), second/3600, 2)
	b = appendPadded(append(b, ':'), second/60%60, 2)
	b = appendPadded(append(b, ':'), second%60, 2)
	if fraction != 0 {
		for fraction%10 == 0 {
			fraction /= 10
			digits--
		}
		b = appendPadded(append(b, '.'), fraction, digits)
	}
	return string(append(b, 'Z'))
}

func floorDiv(v, by int64) (quotient, rest int64) {
	quotient, rest = v/by, v%by
	if rest < 0 {
		quotient--
		rest += by
	}
	return quotient, rest
}

// civil returns the date of the proleptic Gregorian calendar that is so many
// days after 1970-01-01; the year 0 is 1 BC.
func civil(days int64) (year, month, day int64) {
	const (
		perEra   = 146097 // days in 400 years
		toMarch0 = 719468 // from 0000-03-01, the start of an era, to 1970-01-01
	)
	era, doe := floorDiv(days+toMarch0, perEra)
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	m := (5*doy + 2) / 153 // months since March
	day = doy - (153*m+2)/5 + 1
	year = era*400 + yoe
	if m < 10 {
		return year, m + 3, day
	}
	return year + 1, m - 9, day
}

func appendYear(b []byte, year int64) []byte {
	switch {
	case year < 0:
		return appendPadded(append(b, '-'), -year, 6)
	case year > 9999:
		return appendPadded(append(b, '+'), year, 6)
	default:
		return appendPadded(b, year, 4)
	}
}

// appendPadded appends v >= 0 with at least so many digits.
func appendPadded(b []byte, v int64, digits int) []byte {
	text := strconv.FormatInt(v, 10)
	for n := len(text); n < digits; n++ {
		b = append(b, '0')
	}
	return append(b, text...)
}
