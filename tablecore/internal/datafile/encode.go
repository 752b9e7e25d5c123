package datafile

import (
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// leafEncoder encodes the values of one leaf, a row group at a time, and keeps
// the bounds of all of them.
type leafEncoder interface {
	// encode writes the pages of one row group and returns its statistics.
	encode(c *chunkWriter, in *leafInput, s *scratch) (metadata.EncodedStatistics, error)
	// know takes in the bounds, as they stand in a row group's statistics, of
	// values that somebody else encoded; false where they are none.
	know(low, high []byte) bool
	// finish puts the bounds of all values into the column's statistics.
	finish(s *ColumnStats)
}

// newLeafEncoder returns the encoder for values of an Arrow type.
func newLeafEncoder(typ arrow.DataType) (leafEncoder, error) {
	switch t := typ.(type) {
	case *arrow.BooleanType:
		return &boolEncoder{}, nil
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Date32Type:
		return &intEncoder[int32]{typ: typ, plain: plainInt32}, nil
	case *arrow.Int64Type, *arrow.TimestampType:
		return &intEncoder[int64]{typ: typ, plain: plainInt64}, nil
	case *arrow.Float32Type:
		return &floatEncoder[float32]{plain: plainFloat32}, nil
	case *arrow.Float64Type:
		return &floatEncoder[float64]{plain: plainFloat64}, nil
	case *arrow.Decimal128Type:
		return newDecimalEncoder(t.Precision), nil
	case *arrow.StringType:
		return &bytesEncoder{text: true}, nil
	case *arrow.BinaryType:
		return &bytesEncoder{}, nil
	}
	return nil, fmt.Errorf("values of type %s cannot be stored", typ)
}

// compact says whether values of a type are small by their encoding alone, so
// that Auto does not compress them.
func compact(typ arrow.DataType) bool {
	switch typ.ID() {
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.DATE32, arrow.TIMESTAMP:
		return true
	}
	return false
}

// leafInput is what one row group has for a leaf.
type leafInput struct {
	arrays   []arrow.Array
	rows     int
	nullable bool
	levels   *levels // of a nested leaf, whose arrays hold no nulls
	maxDef   int
	maxRep   int
}

// scratch is the working memory of one encoding goroutine.
type scratch struct {
	body   []byte
	valid  []byte
	i32    []int32
	i64    []int64
	f32    []float32
	f64    []float64
	dict   dictionaryBuilder
	levels []uint32
}

// scratches are the working memories of one writer. They are kept for the next
// one, as are the chunks that it encodes: a small file is written in less time
// than it takes to allocate and collect them.
type scratches [encoders]scratch

var scratchesPool = sync.Pool{New: func() any { return new(scratches) }}

func takeScratches() *scratches { return scratchesPool.Get().(*scratches) }

// giveScratches keeps what holds no values any more and is not large.
func giveScratches(s *scratches) {
	bytes := 0
	for i := range s {
		bytes += s[i].forget()
	}
	if bytes <= maxKeptScratch {
		scratchesPool.Put(s)
	}
}

// forget lets go of arrays and returns how many bytes are left.
func (s *scratch) forget() int {
	s.dict = dictionaryBuilder{values: s.dict.values, indices: s.dict.indices}
	s.dict.reset()
	return cap(s.body) + cap(s.valid) + 4*(cap(s.i32)+cap(s.f32)+cap(s.levels)+cap(s.dict.indices)) + 8*(cap(s.i64)+cap(s.f64)) + 24*cap(s.dict.values)
}

// valueCursor walks the slots of consecutive arrays.
type valueCursor struct {
	arrays []arrow.Array
	at     int // in the first of them
}

// next returns the longest part of at most n slots that lies in one array.
func (c *valueCursor) next(n int) (arr arrow.Array, from, end int) {
	for c.at == c.arrays[0].Len() {
		c.arrays, c.at = c.arrays[1:], 0
	}
	arr, from = c.arrays[0], c.at
	end = min(arr.Len(), from+n)
	c.at = end
	return arr, from, end
}

// pageShape is the part of a leaf's rows that makes one page.
type pageShape struct {
	rows, entries int
	slots         int // slots of the arrays
	firstEntry    int
}

// shapes cuts the rows of an input into pages of at most pageRows rows or
// entries.
func (in *leafInput) shapes(yield func(pageShape) bool) {
	if in.levels == nil {
		for from := 0; from < in.rows; from += pageRows {
			n := min(pageRows, in.rows-from)
			if !yield(pageShape{rows: n, entries: n, slots: n, firstEntry: from}) {
				return
			}
		}
		return
	}
	in.levels.shapes(in.maxDef, yield)
}

// pageLevels appends a page's levels to s.body. The validity of the slots of a
// flat leaf is left in s.valid; the result is the number of nulls.
func (in *leafInput) pageLevels(p pageShape, at valueCursor, s *scratch) (nulls int) {
	s.body = s.body[:0]
	if in.levels != nil {
		return in.levels.appendTo(p, in.maxDef, in.maxRep, s)
	}
	if !in.nullable {
		return 0
	}
	s.valid = bitRoom(clearBits(s.valid), p.slots)
	for done := 0; done < p.slots; {
		arr, from, end := at.next(p.slots - done)
		n := end - from
		if d, ok := arr.(*array.Dictionary); ok && d.Dictionary().NullN() > 0 {
			dictionaryBits(s.valid, done, d, from, n)
		} else if arr.NullN() == 0 {
			setBits(s.valid, done, n)
		} else {
			bitutil.CopyBitmap(arr.NullBitmapBytes(), arr.Data().Offset()+from, n, s.valid, done)
		}
		done += n
	}
	// Bits behind the last slot may have been copied along.
	if rest := p.slots & 7; rest > 0 {
		s.valid[p.slots>>3] &= 1<<rest - 1
	}
	s.body = appendLevels(s.body, func(b []byte) []byte { return appendBitRuns(b, s.valid, p.slots) })
	return p.slots - popcount(s.valid[:(p.slots+7)/8])
}

// dictionaryBits marks the valid slots of a dictionary array, a null of whose
// dictionary is null too.
func dictionaryBits(bitmap []byte, to int, d *array.Dictionary, from, n int) {
	for i := range n {
		if d.IsValid(from+i) && d.Dictionary().IsValid(d.GetValueIndex(from+i)) {
			setBits(bitmap, to+i, 1)
		}
	}
}

// gather returns the values of the page's valid slots. values gives those of a
// whole array; they are copied only where a page spans arrays or has nulls.
func gather[T, A any](at *valueCursor, p pageShape, nulls int, valid []byte, store *[]T, values func(arrow.Array) []A, convert func(A) T) []T {
	out := (*store)[:0]
	for done := 0; done < p.slots; {
		arr, from, end := at.next(p.slots - done)
		part := values(arr)[from:end]
		if same, ok := any(part).([]T); ok && nulls == 0 {
			if len(part) == p.slots {
				return same
			}
			out = append(out, same...)
		} else {
			for i, v := range part {
				if nulls == 0 || bitAt(valid, done+i) {
					out = append(out, convert(v))
				}
			}
		}
		done += len(part)
	}
	*store = out
	return out
}
