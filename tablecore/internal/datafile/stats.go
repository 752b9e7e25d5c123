package datafile

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

const (
	// statChars is the number of characters (bytes of a binary column) to which
	// a bound in ColumnStats is cut, Delta's own choice.
	statChars = 32
	// indexChars is the same for the page index.
	indexChars = 64
	// maxChunkBound is the longest bound in a column chunk's statistics, which
	// must not be cut: engines answer MIN and MAX with them.
	maxChunkBound = 256
)

// ColumnStats describes the values of one flat column of a written file.
type ColumnStats struct {
	Name string
	// Min and Max are the least and greatest value: bool, int8, int16, int32,
	// int64, float32, float64, string, []byte, arrow.Date32, arrow.Timestamp,
	// decimal128.Num. NaN is left out of both; they are nil where there is no
	// value to name, and for nested columns. Zeros compare equal whatever their
	// sign, so a zero bound may have either.
	Min, Max any
	// NullCount counts the nulls.
	NullCount int64
	// HasNaN says that at least one value is NaN. Engines that hold NaN for the
	// greatest value must not be given Max then.
	HasNaN bool
	// MinCut and MaxCut say that the bound is not a value but was cut to 32
	// characters (bytes for binary); a cut maximum is still at least as great,
	// byte by byte, as every value.
	MinCut, MaxCut bool
	// Copied says that values were copied from another file, whose statistics
	// hold: there are none here.
	Copied bool
}

// extremes are the bounds of some values, of a page, a chunk or a file.
type extremes[T any] struct {
	min, max T
	any      bool
	nan      bool
}

// merge takes in the bounds of more values.
func (e *extremes[T]) merge(more extremes[T], less func(a, b T) bool) {
	e.nan = e.nan || more.nan
	switch {
	case !more.any:
	case !e.any:
		e.min, e.max, e.any = more.min, more.max, true
	default:
		if less(more.min, e.min) {
			e.min = more.min
		}
		if less(e.max, more.max) {
			e.max = more.max
		}
	}
}

// encoded returns the bounds as Parquet statistics. Bounds next to a NaN are
// left out: engines do not agree where NaN sorts, so pruning on them could
// lose rows.
func (e *extremes[T]) encoded(plain func(T) []byte) metadata.EncodedStatistics {
	var s metadata.EncodedStatistics
	if e.any && !e.nan {
		s.SetMin(plain(e.min))
		s.SetMax(plain(e.max))
	}
	return s
}

func lessNumber[T int32 | int64 | float32 | float64](a, b T) bool { return a < b }

func integerExtremes[T int32 | int64](values []T) (e extremes[T]) {
	if len(values) == 0 {
		return e
	}
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	return extremes[T]{min: low, max: high, any: true}
}

func floatExtremes[T float32 | float64](values []T) (e extremes[T]) {
	for _, v := range values {
		switch {
		case v != v:
			e.nan = true
		case !e.any:
			e.min, e.max, e.any = v, v, true
		case v < e.min:
			e.min = v
		case v > e.max:
			e.max = v
		}
	}
	if !e.any {
		return e
	}
	// Readers may compare zeros by their bits, so that each bound is written
	// with the sign that covers both (parquet.thrift, ColumnOrder).
	if e.min == 0 {
		e.min = T(math.Copysign(0, -1))
	}
	if e.max == 0 {
		e.max = 0
	}
	return e
}

func plainInt32(v int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }
func plainInt64(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
func plainFloat32(v float32) []byte {
	return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
}
func plainFloat64(v float64) []byte {
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
}

func lessDecimal(a, b decimal128.Num) bool { return a.Less(b) }

func lessBytes(a, b []byte) bool { return bytes.Compare(a, b) < 0 }

// add takes in one value.
func addBytes(e *extremes[[]byte], v []byte) {
	switch {
	case !e.any:
		e.min, e.max, e.any = v, v, true
	case bytes.Compare(v, e.min) < 0:
		e.min = v
	case bytes.Compare(v, e.max) > 0:
		e.max = v
	}
}

// chunkBytes returns the statistics of a chunk of strings, without bounds that
// are too long.
func chunkBytes(e *extremes[[]byte]) metadata.EncodedStatistics {
	if !e.any || len(e.min) > maxChunkBound || len(e.max) > maxChunkBound {
		return metadata.EncodedStatistics{}
	}
	return e.encoded(bytes.Clone)
}

// pageBytesStats returns the statistics of a page of strings, cut as the page
// index allows.
func pageBytesStats(e *extremes[[]byte], text bool) metadata.EncodedStatistics {
	var s metadata.EncodedStatistics
	if !e.any {
		return s
	}
	if high, _ := cutMax(e.max, indexChars, text); high != nil {
		low, _ := cutMin(e.min, indexChars, text)
		s.SetMin(bytes.Clone(low))
		s.SetMax(high)
	}
	return s
}

// charsEnd returns the length in bytes of the first n characters of s.
func charsEnd(s []byte, n int) int {
	end := 0
	for ; n > 0 && end < len(s); n-- {
		_, size := utf8.DecodeRune(s[end:])
		end += size
	}
	return end
}

// cutMin cuts a value to n characters, or bytes where it is no text. The
// result shares its memory.
func cutMin(v []byte, n int, text bool) (low []byte, cut bool) {
	end := min(len(v), n)
	if text {
		end = charsEnd(v, n)
	}
	return v[:end], end < len(v)
}

// cutMax cuts a value likewise so that the result still compares greater than
// or equal to every value that v bounds. It is nil where none can be found.
func cutMax(v []byte, n int, text bool) (high []byte, cut bool) {
	low, cut := cutMin(v, n, text)
	if !cut {
		return bytes.Clone(v), false
	}
	if text {
		return cutMaxText(v, len(low))
	}
	raised := bytes.Clone(low)
	for i := len(raised) - 1; i >= 0; i-- {
		if raised[i] < 0xFF {
			raised[i]++
			return raised[:i+1], true
		}
	}
	return nil, true
}

// cutMaxText ends a cut text in the greatest character, which must not be
// smaller than what it stands for.
func cutMaxText(v []byte, end int) ([]byte, bool) {
	greatest := []byte(string(utf8.MaxRune))
	for bytes.HasPrefix(v[end:], greatest) {
		end += len(greatest)
	}
	if end == len(v) {
		return bytes.Clone(v), false
	}
	return append(bytes.Clone(v[:end]), greatest...), true
}

// columnBytes puts the bounds of a file's strings into its statistics.
func columnBytes(s *ColumnStats, e *extremes[[]byte], text bool) {
	if !e.any {
		return
	}
	low, lowCut := cutMin(e.min, statChars, text)
	high, highCut := cutMax(e.max, statChars, text)
	s.MinCut, s.MaxCut = lowCut, highCut
	if text {
		s.Min, s.Max = string(low), string(high)
		return
	}
	s.Min = bytes.Clone(low)
	if high != nil {
		s.Max = high
	}
}

// narrow returns an integer bound in the Go type of a column's Arrow type.
func narrow(v int64, typ arrow.DataType) any {
	switch typ.ID() {
	case arrow.INT8:
		return int8(v)
	case arrow.INT16:
		return int16(v)
	case arrow.INT32:
		return int32(v)
	case arrow.DATE32:
		return arrow.Date32(v)
	case arrow.TIMESTAMP:
		return arrow.Timestamp(v)
	}
	return v
}
