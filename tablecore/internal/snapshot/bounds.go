package snapshot

import (
	"encoding/json"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"contrail/tablecore/internal/predicate"
	"contrail/tablecore/tabledef"
)

// columnStats are the statistics of a file by column.
type columnStats map[string]predicate.Bounds

// Bounds returns what the log says about the values of a column in a file of
// the snapshot; false where it says nothing. The statistics are parsed once a
// file.
func (s *Snapshot) Bounds(f *File, column string) (predicate.Bounds, bool) {
	if column == s.Def.IndexColumn && f.Bounded {
		return s.indexBounds(f), true
	}
	return s.Statistics(f, column)
}

// Statistics is Bounds by the file's statistics alone, without the exact bounds
// of the index column that its tags hold.
func (s *Snapshot) Statistics(f *File, column string) (predicate.Bounds, bool) {
	stats := f.stats.Load()
	if stats == nil {
		parsed := s.parseStats(f)
		stats = &parsed
		f.stats.Store(stats)
	}
	b, ok := (*stats)[column]
	return b, ok
}

// indexBounds turns the exact bounds of the tags into stored values.
func (s *Snapshot) indexBounds(f *File) predicate.Bounds {
	b := predicate.Bounds{Rows: f.Rows}
	if s.Def.IndexType == tabledef.IndexUint64 {
		b.Min, b.Max = decimal128.FromU64(f.Min), decimal128.FromU64(f.Max)
		return b
	}
	factor := int64(1)
	declared := s.IndexField().Type
	if stored, ok := tabledef.StorageType(declared).(*arrow.TimestampType); ok {
		factor = int64(declared.(*arrow.TimestampType).Unit.Multiplier() / stored.Unit.Multiplier())
	}
	low, high := int64(f.Min^1<<63), int64(f.Max^1<<63)
	if low*factor/factor != low || high*factor/factor != high {
		return b // no stored value is that large
	}
	b.Min, b.Max = low*factor, high*factor
	return b
}

// parseStats reads a file's statistics. Whatever is not understood is not
// known.
func (s *Snapshot) parseStats(f *File) columnStats {
	var raw struct {
		Min   map[string]json.RawMessage `json:"minValues"`
		Max   map[string]json.RawMessage `json:"maxValues"`
		Nulls map[string]json.RawMessage `json:"nullCount"`
		Tight *bool                      `json:"tightBounds"`
	}
	stats := columnStats{}
	if s.Def.Stored == nil || json.Unmarshal([]byte(f.Add.Stats), &raw) != nil || raw.Tight != nil && !*raw.Tight {
		return stats
	}
	own := f.Add.Tags[tabledef.TagWriter] != ""
	for _, field := range s.Def.Stored.Fields() {
		b := predicate.Bounds{Rows: f.Rows, Nulls: -1}
		if n, err := strconv.ParseInt(string(raw.Nulls[field.Name]), 10, 64); err == nil && n >= 0 {
			b.Nulls = n
		}
		if stored := tabledef.StorageType(field.Type); stored != nil {
			b.Min = statValue(raw.Min[field.Name], stored, field.Type, own, false)
			b.Max = statValue(raw.Max[field.Name], stored, field.Type, own, true)
		}
		if b.Nulls >= 0 || b.Min != nil || b.Max != nil {
			stats[field.Name] = b
		}
	}
	return stats
}

// statValue reads a bound as Delta writes it (PROTOCOL.md, Per-file
// Statistics). own says that Contrail wrote it; others cut times to
// milliseconds, leave a NaN out of their maxima and differ in how they cut
// texts and decimals, so their bounds are widened or not used.
func statValue(raw json.RawMessage, stored, declared arrow.DataType, own, isMax bool) any {
	if len(raw) == 0 {
		return nil
	}
	switch t := stored.(type) {
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type:
		if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			return n
		}
	case *arrow.Float32Type:
		// Others write the shortest text that means the value among floats of 32 bits.
		return floatBound(raw, 32, own, isMax)
	case *arrow.Float64Type:
		return floatBound(raw, 64, own, isMax)
	case *arrow.Decimal128Type:
		if own {
			return decimalBound(raw, t.Scale, isMax)
		}
	case *arrow.Date32Type:
		if day, err := time.Parse(time.DateOnly, text(raw)); err == nil {
			return day.Unix() / 86400
		}
	case *arrow.TimestampType:
		return timeBound(text(raw), own, isMax)
	case *arrow.StringType:
		if _, wide := declared.(arrow.DecimalType); !wide {
			return textBound(raw, own, isMax)
		}
	}
	return nil
}

// floatBound reads a float, but no maximum of another writer, above which there
// may be a NaN.
func floatBound(raw json.RawMessage, bits int, own, isMax bool) any {
	v, err := strconv.ParseFloat(string(raw), bits)
	if err != nil || !own && isMax {
		return nil
	}
	return v
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// foreignText is from how many characters on other writers may have cut a
// text.
const foreignText = 32

func textBound(raw json.RawMessage, own, isMax bool) any {
	if raw[0] != '"' {
		return nil
	}
	s := text(raw)
	if !own && isMax && utf8.RuneCountInString(s) >= foreignText {
		return nil
	}
	return []byte(s)
}

// timeBound reads a time in microseconds.
func timeBound(s string, own, isMax bool) any {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		v, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		const milli = 1000
		us := v.UnixMicro()
		switch {
		case !own && isMax:
			us += milli
		case !own:
			us -= milli
		}
		return us
	}
	return nil
}

func decimalBound(raw json.RawMessage, scale int32, isMax bool) any {
	floor, exact, ok := predicate.ParseDecimal(string(raw), scale)
	if !ok {
		return nil
	}
	if isMax && !exact {
		floor.Add(floor, big.NewInt(1))
	}
	const most = 127
	if floor.BitLen() >= most {
		return nil
	}
	return decimal128.FromBigInt(floor)
}

// NumRecords reads the row count out of a file's statistics, −1 when they do
// not say.
func NumRecords(stats string) int64 { return numRecords(stats) }
