package tabledef

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"contrail/tablecore/tableerr"
)

// IndexType is the kind of a table's index column.
type IndexType string

// The index types.
const (
	IndexTimestamp IndexType = "timestamp"
	IndexInt64     IndexType = "int64"
	IndexUint64    IndexType = "uint64"
)

// Granularity is the width of an interval: N units. Unit is one of ns, us, ms,
// s, m, h, d, w for timestamps and empty for integer indexes. The zero value
// means that the table has no intervals.
type Granularity struct {
	N    uint64
	Unit string
}

// unitNanos is the length of each unit in nanoseconds.
var unitNanos = map[string]uint64{
	"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86400e9, "w": 7 * 86400e9,
}

// unitAliases are the other spellings of units that are understood.
var unitAliases = map[string]string{
	"nanosecond": "ns", "nanoseconds": "ns", "nanos": "ns", "nano": "ns",
	"microsecond": "us", "microseconds": "us", "micros": "us", "micro": "us", "µs": "us", "μs": "us",
	"millisecond": "ms", "milliseconds": "ms", "millis": "ms", "milli": "ms",
	"sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	"day": "d", "days": "d", "week": "w", "weeks": "w",
}

var granularityText = regexp.MustCompile(`^\s*\+?([0-9]+)\s*([A-Za-zµμ]+)\s*$`)

// IsZero says whether there are no intervals.
func (g Granularity) IsZero() bool { return g.N == 0 }

// String returns the canonical text: "1h", "60m", or the plain number.
func (g Granularity) String() string {
	if g.IsZero() {
		return ""
	}
	return strconv.FormatUint(g.N, 10) + g.Unit
}

// Nanos returns the length of the unit in nanoseconds; 0 for integers.
func (g Granularity) Nanos() uint64 { return unitNanos[g.Unit] }

// ParseGranularity reads a granularity's text for an index type. Empty text
// gives the zero value.
func ParseGranularity(text string, index IndexType) (Granularity, error) {
	if text == "" {
		return Granularity{}, nil
	}
	if index == IndexTimestamp {
		return parseTimeGranularity(text)
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(text), "+"), 10, 64)
	if err != nil || n == 0 {
		return Granularity{}, badGranularity(text, "a whole number from 1 to 2^64-1 for an integer index")
	}
	return Granularity{N: n}, nil
}

func parseTimeGranularity(text string) (Granularity, error) {
	m := granularityText.FindStringSubmatch(text)
	if m == nil {
		return Granularity{}, badGranularity(text, `a number and a unit such as "1h"`)
	}
	unit := strings.ToLower(m[2])
	if alias, ok := unitAliases[unit]; ok {
		unit = alias
	}
	if _, ok := unitNanos[unit]; !ok {
		return Granularity{}, badGranularity(text, "one of the units ns, us, ms, s, m, h, d, w")
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	if err != nil || n == 0 || n > math.MaxUint32 {
		return Granularity{}, badGranularity(text, "a number from 1 to 2^32-1")
	}
	return Granularity{N: n, Unit: unit}, nil
}

func badGranularity(text, want string) error {
	return tableerr.InvalidField("index_granularity", "index granularity %q is not understood; it takes %s", text, want).WithValue(text)
}
