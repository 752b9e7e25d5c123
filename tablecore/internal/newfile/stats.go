package newfile

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/tabledef"
)

// statColumns is how many of the first flat columns have statistics in the log,
// Delta's own default.
const statColumns = 32

// said is what the log says of the values of a file.
type said struct {
	low, high, nulls map[string]json.RawMessage
	nan              []string
}

// Describes says whether an action tells of its file what this package tells of
// one that it writes, so that columns copied from there can be described.
func Describes(add *deltalog.Add) bool {
	_, ok := readSaid(add)
	return ok
}

func readSaid(add *deltalog.Add) (said, bool) {
	var raw struct {
		Low   map[string]json.RawMessage `json:"minValues"`
		High  map[string]json.RawMessage `json:"maxValues"`
		Nulls map[string]json.RawMessage `json:"nullCount"`
	}
	var s said
	if add.Tags[tabledef.TagWriter] == "" || json.Unmarshal([]byte(add.Tags[tabledef.TagNaN]), &s.nan) != nil ||
		json.Unmarshal([]byte(add.Stats), &raw) != nil || raw.Nulls == nil {
		return said{}, false
	}
	s.low, s.high, s.nulls = raw.Low, raw.High, raw.Nulls
	return s, true
}

// stats returns a file's statistics as Delta writes them (PROTOCOL.md,
// Per-file Statistics): bounds that some engine could misread are left out.
// schema has the file's storage types; original tells of the columns that were
// copied.
func stats(rows int64, columns []datafile.ColumnStats, schema *arrow.Schema, original said) string {
	var low, high, nulls []member
	flat := 0
	for i, c := range columns {
		t := schema.Field(i).Type
		if arrow.IsNested(t.ID()) || flat == statColumns {
			continue
		}
		flat++
		if c.Copied {
			low, high, nulls = kept(low, c.Name, original.low), kept(high, c.Name, original.high), kept(nulls, c.Name, original.nulls)
			continue
		}
		if text, ok := bound(c.Min, t); ok {
			low = append(low, member{c.Name, text})
		}
		if text, ok := bound(c.Max, t); ok && !c.HasNaN { // NaN is above the maximum
			high = append(high, member{c.Name, text})
		}
		nulls = append(nulls, member{c.Name, strconv.AppendInt(nil, c.NullCount, 10)})
	}
	return string(object([]member{
		{"numRecords", strconv.AppendInt(nil, rows, 10)},
		{"minValues", object(low)}, {"maxValues", object(high)}, {"nullCount", object(nulls)},
	}))
}

// kept adds what is known of a copied column.
func kept(members []member, name string, known map[string]json.RawMessage) []member {
	if value, ok := known[name]; ok {
		members = append(members, member{name, value})
	}
	return members
}

// member is a name with a JSON value.
type member struct {
	name  string
	value []byte
}

// object writes a JSON object that keeps the order of its members.
func object(members []member) []byte {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, quote(m.name)...), ':')
		b = append(b, m.value...)
	}
	return append(b, '}')
}

// quote returns a string as JSON. It has no error to hide: invalid UTF-8 is
// replaced, and all text in a table is valid.
func quote(s string) []byte {
	b, _ := json.Marshal(s)
	return b
}

// bound returns a minimum or maximum as Delta writes it, false where there is
// none to write: no value, a type without bounds (bool, binary), a float that
// JSON or an engine's comparison does not handle (NaN, ±Inf, −0.0), a decimal
// beyond what a reader that goes through a double keeps, a year that Delta's
// text form lacks.
func bound(v any, t arrow.DataType) ([]byte, bool) {
	switch v := v.(type) {
	case int8:
		return strconv.AppendInt(nil, int64(v), 10), true
	case int16:
		return strconv.AppendInt(nil, int64(v), 10), true
	case int32:
		return strconv.AppendInt(nil, int64(v), 10), true
	case int64:
		return strconv.AppendInt(nil, v, 10), true
	case float32:
		return float(float64(v))
	case float64:
		return float(v)
	case string:
		return quote(v), true
	case arrow.Date32:
		return timeText(time.Unix(int64(v)*86400, 0), "2006-01-02", "2006-01-02")
	case arrow.Timestamp:
		zone := ""
		if ts, ok := t.(*arrow.TimestampType); ok && ts.TimeZone != "" {
			zone = "Z"
		}
		return timeText(time.UnixMicro(int64(v)), "2006-01-02T15:04:05.000"+zone, "2006-01-02T15:04:05.000000"+zone)
	case decimal128.Num:
		return decimalBound(v, t.(*arrow.Decimal128Type).Scale)
	}
	return nil, false
}

// maxExactDigits is how many digits of a fraction survive a double.
const maxExactDigits = 15

func decimalBound(v decimal128.Num, scale int32) ([]byte, bool) {
	n := v.BigInt()
	switch {
	case scale > 0 && v.FitsInPrecision(maxExactDigits):
		return []byte(v.ToString(scale)), true
	case scale == 0 && n.IsInt64() && n.Int64() >= -1<<53 && n.Int64() <= 1<<53:
		return strconv.AppendInt(nil, n.Int64(), 10), true
	default:
		return nil, false
	}
}

func float(v float64) ([]byte, bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 && math.Signbit(v) {
		return nil, false
	}
	b, err := json.Marshal(v)
	return b, err == nil
}

// timeText writes a time in milliseconds, Delta's usual form, or in
// microseconds where it has any, so that no reader has to widen a bound.
func timeText(v time.Time, millis, micros string) ([]byte, bool) {
	v = v.UTC()
	if v.Year() < 1 || v.Year() > 9999 {
		return nil, false
	}
	if v.Nanosecond()%1e6 != 0 {
		millis = micros
	}
	return quote(v.Format(millis)), true
}
