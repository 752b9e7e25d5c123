package datafile

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// intEncoder writes integers, dates and times in DELTA_BINARY_PACKED.
type intEncoder[T int32 | int64] struct {
	typ   arrow.DataType
	plain func(T) []byte
	all   extremes[T]
}

func (e *intEncoder[T]) encode(c *chunkWriter, in *leafInput, s *scratch) (metadata.EncodedStatistics, error) {
	var chunk extremes[T]
	at := valueCursor{arrays: in.arrays}
	for p := range in.shapes {
		nulls := in.pageLevels(p, at, s)
		values := e.values(&at, p, nulls, s)
		s.body = appendDelta(s.body, values)
		bounds := integerExtremes(values)
		chunk.merge(bounds, lessNumber)
		if err := c.dataPage(p.rows, p.entries, nulls, encDeltaBinary, s.body, bounds.encoded(e.plain)); err != nil {
			return metadata.EncodedStatistics{}, err
		}
	}
	e.all.merge(chunk, lessNumber)
	return chunk.encoded(e.plain), nil
}

func (e *intEncoder[T]) values(at *valueCursor, p pageShape, nulls int, s *scratch) []T {
	var found any
	if in := slotNulls(p, nulls); e.typ.ID() == arrow.INT64 || e.typ.ID() == arrow.TIMESTAMP {
		found = gather(at, p, in, s.valid, &s.i64, func(a arrow.Array) []int64 {
			if ts, ok := a.(*array.Timestamp); ok {
				return arrow.GetData[int64](arrow.GetBytes(ts.TimestampValues()))
			}
			return a.(*array.Int64).Int64Values()
		}, keep)
	} else {
		found = e.values32(at, p, in, s)
	}
	return found.([]T)
}

func (e *intEncoder[T]) values32(at *valueCursor, p pageShape, nulls int, s *scratch) []int32 {
	switch e.typ.ID() {
	case arrow.INT8:
		return gather(at, p, nulls, s.valid, &s.i32, func(a arrow.Array) []int8 { return a.(*array.Int8).Int8Values() },
			func(v int8) int32 { return int32(v) })
	case arrow.INT16:
		return gather(at, p, nulls, s.valid, &s.i32, func(a arrow.Array) []int16 { return a.(*array.Int16).Int16Values() },
			func(v int16) int32 { return int32(v) })
	case arrow.DATE32:
		return gather(at, p, nulls, s.valid, &s.i32, func(a arrow.Array) []int32 {
			return arrow.GetData[int32](arrow.GetBytes(a.(*array.Date32).Date32Values()))
		}, keep)
	}
	return gather(at, p, nulls, s.valid, &s.i32, func(a arrow.Array) []int32 { return a.(*array.Int32).Int32Values() }, keep)
}

func keep[T any](v T) T { return v }

// slotNulls returns how many of a page's slots are null; the nulls of a nested
// leaf take none.
func slotNulls(p pageShape, nulls int) int {
	if p.slots < p.entries {
		return 0
	}
	return nulls
}

func (e *intEncoder[T]) finish(s *ColumnStats) {
	if e.all.any {
		s.Min, s.Max = narrow(int64(e.all.min), e.typ), narrow(int64(e.all.max), e.typ)
	}
}

// floatEncoder writes floating-point numbers in PLAIN.
type floatEncoder[T float32 | float64] struct {
	plain func(T) []byte
	all   extremes[T]
}

func (e *floatEncoder[T]) encode(c *chunkWriter, in *leafInput, s *scratch) (metadata.EncodedStatistics, error) {
	var chunk extremes[T]
	at := valueCursor{arrays: in.arrays}
	for p := range in.shapes {
		nulls := in.pageLevels(p, at, s)
		var found any
		switch any(e).(type) {
		case *floatEncoder[float32]:
			found = gather(&at, p, slotNulls(p, nulls), s.valid, &s.f32, func(a arrow.Array) []float32 { return a.(*array.Float32).Float32Values() }, keep)
		default:
			found = gather(&at, p, slotNulls(p, nulls), s.valid, &s.f64, func(a arrow.Array) []float64 { return a.(*array.Float64).Float64Values() }, keep)
		}
		values := found.([]T)
		bounds := floatExtremes(values)
		chunk.merge(bounds, lessNumber)
		body := arrow.GetBytes(values)
		if len(s.body) > 0 {
			s.body = append(s.body, body...)
			body = s.body
		}
		if err := c.dataPage(p.rows, p.entries, nulls, encPlain, body, bounds.encoded(e.plain)); err != nil {
			return metadata.EncodedStatistics{}, err
		}
	}
	e.all.merge(chunk, lessNumber)
	return chunk.encoded(e.plain), nil
}

func (e *floatEncoder[T]) finish(s *ColumnStats) {
	s.HasNaN = e.all.nan
	if e.all.any {
		s.Min, s.Max = e.all.min, e.all.max
	}
}

// boolEncoder writes booleans in PLAIN, a bit each.
type boolEncoder struct{ seen [2]bool }

func (e *boolEncoder) encode(c *chunkWriter, in *leafInput, s *scratch) (metadata.EncodedStatistics, error) {
	var chunk [2]bool
	at := valueCursor{arrays: in.arrays}
	for p := range in.shapes {
		nulls := in.pageLevels(p, at, s)
		start := len(s.body)
		present := p.entries - nulls
		s.body = append(s.body, make([]byte, (present+7)/8)...)
		set := packBools(s.body[start:], &at, p, slotNulls(p, nulls), s.valid)
		seen := [2]bool{set < present, set > 0}
		chunk = [2]bool{chunk[0] || seen[0], chunk[1] || seen[1]}
		if err := c.dataPage(p.rows, p.entries, nulls, encPlain, s.body, boolStats(seen)); err != nil {
			return metadata.EncodedStatistics{}, err
		}
	}
	e.seen = [2]bool{e.seen[0] || chunk[0], e.seen[1] || chunk[1]}
	return boolStats(chunk), nil
}

// packBools packs the values of the page's valid slots and returns how many
// are true.
func packBools(dst []byte, at *valueCursor, p pageShape, nulls int, valid []byte) int {
	to, set := 0, 0
	for done := 0; done < p.slots; {
		arr, from, end := at.next(p.slots - done)
		values := arr.Data().Buffers()[1].Bytes()
		offset := arr.Data().Offset()
		if nulls == 0 {
			set += copyBits(dst, to, values, offset+from, end-from)
			to += end - from
		} else {
			for i := from; i < end; i++ {
				if !bitAt(valid, done+i-from) {
					continue
				}
				if bitAt(values, offset+i) {
					setBits(dst, to, 1)
					set++
				}
				to++
			}
		}
		done += end - from
	}
	return set
}

func boolStats(seen [2]bool) metadata.EncodedStatistics {
	e := extremes[bool]{min: !seen[0], max: seen[1], any: seen[0] || seen[1]}
	return e.encoded(func(v bool) []byte {
		if v {
			return []byte{1}
		}
		return []byte{0}
	})
}

func (e *boolEncoder) finish(s *ColumnStats) {
	if e.seen[0] || e.seen[1] {
		s.Min, s.Max = !e.seen[0], e.seen[1]
	}
}

// decimalEncoder writes decimals in PLAIN, big-endian in the fewest bytes that
// their precision needs.
type decimalEncoder struct {
	width int
	all   extremes[decimal128.Num]
}

func newDecimalEncoder(precision int32) *decimalEncoder {
	return &decimalEncoder{width: int(pqarrow.DecimalSize(precision))}
}

func (e *decimalEncoder) encode(c *chunkWriter, in *leafInput, s *scratch) (metadata.EncodedStatistics, error) {
	var chunk extremes[decimal128.Num]
	at := valueCursor{arrays: in.arrays}
	for p := range in.shapes {
		nulls := in.pageLevels(p, at, s)
		var bounds extremes[decimal128.Num]
		none := slotNulls(p, nulls) == 0
		for done := 0; done < p.slots; {
			arr, from, end := at.next(p.slots - done)
			for i, v := range arr.(*array.Decimal128).Values()[from:end] {
				if none || bitAt(s.valid, done+i) {
					bounds.merge(extremes[decimal128.Num]{min: v, max: v, any: true}, lessDecimal)
					s.body = e.append(s.body, v)
				}
			}
			done += end - from
		}
		chunk.merge(bounds, lessDecimal)
		if err := c.dataPage(p.rows, p.entries, nulls, encPlain, s.body, bounds.encoded(e.plain)); err != nil {
			return metadata.EncodedStatistics{}, err
		}
	}
	e.all.merge(chunk, lessDecimal)
	return chunk.encoded(e.plain), nil
}

func (e *decimalEncoder) append(dst []byte, v decimal128.Num) []byte {
	var wide [16]byte
	binary.BigEndian.PutUint64(wide[:], uint64(v.HighBits()))
	binary.BigEndian.PutUint64(wide[8:], v.LowBits())
	return append(dst, wide[16-e.width:]...)
}

func (e *decimalEncoder) plain(v decimal128.Num) []byte { return e.append(nil, v) }

func (e *decimalEncoder) finish(s *ColumnStats) {
	if e.all.any {
		s.Min, s.Max = e.all.min, e.all.max
	}
}
