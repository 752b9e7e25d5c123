package deltalog

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The units that Delta's interval properties take. Months and years have no
// fixed length and are refused there too.
var intervalUnits = map[string]time.Duration{
	"week": 7 * 24 * time.Hour, "day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second,
	"millisecond": time.Millisecond, "microsecond": time.Microsecond, "nanosecond": time.Nanosecond,
}

// ParseInterval reads the value of a Delta property such as
// delta.deletedFileRetentionDuration: "interval" and one or more pairs of a
// whole number and a unit, in any case, as in "interval 1 week 12 hours".
func ParseInterval(text string) (time.Duration, error) {
	words := strings.Fields(strings.ToLower(text))
	if len(words) > 0 && words[0] == "interval" {
		words = words[1:]
	}
	if len(words) == 0 || len(words)%2 != 0 {
		return 0, fmt.Errorf("%s is no interval such as \"interval 7 days\"", quoted(text))
	}
	var total time.Duration
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		unit, known := intervalUnits[strings.TrimSuffix(words[i+1], "s")]
		if err == nil && (!known || n < 0) {
			err = errors.New("unknown unit or negative number")
		}
		if err == nil && n > int64((math.MaxInt64-total)/unit) {
			err = errors.New("too long")
		}
		if err != nil {
			return 0, fmt.Errorf("interval %s: %w", quoted(text), err)
		}
		total += time.Duration(n) * unit
	}
	return total, nil
}

// FormatInterval returns the property's text for a duration, in the largest
// unit that gives a whole number.
func FormatInterval(d time.Duration) string {
	for _, unit := range []string{"day", "hour", "minute", "second", "millisecond", "microsecond"} {
		if n := d / intervalUnits[unit]; n > 0 && d%intervalUnits[unit] == 0 {
			return fmt.Sprintf("interval %d %ss", n, unit)
		}
	}
	return fmt.Sprintf("interval %d nanoseconds", d)
}
