package datafile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// bytesEncoder writes strings and binary values: as indices into a dictionary
// where values repeat, else in DELTA_LENGTH_BYTE_ARRAY.
type bytesEncoder struct {
	text bool
	all  extremes[[]byte]
}

func (e *bytesEncoder) encode(c *chunkWriter, in *leafInput, s *scratch) (stats metadata.EncodedStatistics, err error) {
	var chunk extremes[[]byte]
	if err = s.dict.build(in.arrays); err == nil {
		err = e.encodeIndices(c, in, s, &chunk)
	} else if errors.Is(err, errNoRepetition) {
		err = e.encodeDirect(c, in, s, &chunk)
	}
	s.dict.reset()
	if err != nil {
		return stats, err
	}
	// The bounds outlive the arrays that they point into.
	merged := e.all
	merged.merge(chunk, lessBytes)
	merged.min, merged.max = bytes.Clone(merged.min), bytes.Clone(merged.max)
	e.all = merged
	return chunkBytes(&chunk), nil
}

func (e *bytesEncoder) finish(s *ColumnStats) { columnBytes(s, &e.all, e.text) }

// encodeIndices writes the dictionary that s.dict holds and the indices.
func (e *bytesEncoder) encodeIndices(c *chunkWriter, in *leafInput, s *scratch, chunk *extremes[[]byte]) error {
	d := &s.dict
	s.body = s.body[:0]
	for _, v := range d.values {
		s.body = binary.LittleEndian.AppendUint32(s.body, uint32(len(v)))
		s.body = append(s.body, v...)
		addBytes(chunk, v)
	}
	// Indices are small as they are: only a long dictionary leaves much to gain.
	if long := len(s.body) >= pageBytes/4; !long && c.adaptive && c.codec == compress.Codecs.Snappy {
		c.codec = compress.Codecs.Uncompressed
	} else if long && c.cold {
		if err := c.chooseCold(s.body); err != nil {
			return err
		}
	}
	c.adaptive, c.cold = false, false
	if err := c.dictionaryPage(len(d.values), s.body); err != nil {
		return err
	}
	width := max(1, bitsFor(max(0, len(d.values)-1)))
	at, rest := valueCursor{arrays: in.arrays}, d.indices
	seen := make([]int, len(d.values)) // page that a value was last met in
	for p := range in.shapes {
		nulls := in.pageLevels(p, at, s)
		advance(&at, p.slots)
		indices := rest[:p.entries-nulls]
		rest = rest[len(indices):]
		s.body = append(s.body, byte(width))
		s.body = appendRuns(s.body, indices, width)
		bounds := d.bounds(indices, seen, len(c.pages)+1)
		if err := c.dataPage(p.rows, p.entries, nulls, encRLEDict, s.body, pageBytesStats(&bounds, e.text)); err != nil {
			return err
		}
	}
	return nil
}

func advance(at *valueCursor, n int) {
	for n > 0 {
		_, from, end := at.next(n)
		n -= end - from
	}
}

// encodeDirect writes lengths and bytes, cutting pages by bytes too.
func (e *bytesEncoder) encodeDirect(c *chunkWriter, in *leafInput, s *scratch, chunk *extremes[[]byte]) error {
	at := valueCursor{arrays: in.arrays}
	for whole := range in.shapes {
		for p := range in.cutBytes(whole, at) {
			nulls := in.pageLevels(p, at, s)
			bounds, err := s.appendSized(&at, p, slotNulls(p, nulls))
			if err != nil {
				return err
			}
			chunk.merge(bounds, lessBytes)
			if err := c.dataPage(p.rows, p.entries, nulls, encDeltaLength, s.body, pageBytesStats(&bounds, e.text)); err != nil {
				return err
			}
			if len(c.pages) == 1 && c.codec == compress.Codecs.Uncompressed {
				c.out = grow(c.out, in.bytes()-len(c.out))
			}
		}
	}
	return nil
}

// bytes returns about how many bytes the values of a leaf take.
func (in *leafInput) bytes() int {
	n := int64(0)
	for _, arr := range in.arrays {
		n += rowsBytes(arr.Data())
	}
	return int(n)
}

// cutBytes cuts the page of a flat leaf further where its values are long.
func (in *leafInput) cutBytes(p pageShape, at valueCursor) func(yield func(pageShape) bool) {
	return func(yield func(pageShape) bool) {
		if in.levels != nil {
			yield(p)
			return
		}
		from, size := 0, 0
		for done := 0; done < p.slots; {
			arr, first, end := at.next(p.slots - done)
			view, err := viewBytes(arr)
			for i := first; i < end && err == nil; i++ {
				if arr.IsValid(i) {
					v, _ := view.at(i) // a bad index is reported where it is written
					size += len(v)
				}
				if size < pageBytes {
					continue
				}
				n := done + i - first + 1 - from
				if !yield(pageShape{rows: n, entries: n, slots: n, firstEntry: p.firstEntry + from}) {
					return
				}
				from, size = from+n, 0
			}
			done += end - first
		}
		if n := p.slots - from; n > 0 {
			yield(pageShape{rows: n, entries: n, slots: n, firstEntry: p.firstEntry + from})
		}
	}
}

// appendSized appends the values of a page's valid slots in
// DELTA_LENGTH_BYTE_ARRAY to s.body.
func (s *scratch) appendSized(at *valueCursor, p pageShape, nulls int) (bounds extremes[[]byte], err error) {
	lengths := s.i32[:0]
	again := *at
	for done := 0; done < p.slots; {
		arr, from, end := at.next(p.slots - done)
		view, err := viewBytes(arr)
		if err != nil {
			return bounds, err
		}
		for i := from; i < end; i++ {
			if nulls == 0 || bitAt(s.valid, done+i-from) {
				v, err := view.at(i)
				if err != nil {
					return bounds, err
				}
				lengths = append(lengths, int32(len(v)))
				addBytes(&bounds, v)
			}
		}
		done += end - from
	}
	s.i32 = lengths
	s.body = appendDelta(s.body, lengths)
	for done := 0; done < p.slots; {
		arr, from, end := again.next(p.slots - done)
		view, err := viewBytes(arr)
		if err != nil {
			return bounds, err
		}
		if run, ok := view.contiguous(from, end); ok && nulls == 0 {
			s.body = append(s.body, run...)
			done += end - from
			continue
		}
		for i := from; i < end; i++ {
			if nulls == 0 || bitAt(s.valid, done+i-from) {
				v, err := view.at(i)
				if err != nil {
					return bounds, err
				}
				s.body = append(s.body, v...)
			}
		}
		done += end - from
	}
	return bounds, nil
}

// bytesView gives the values of a string, binary or dictionary array.
type bytesView struct {
	arr     arrow.Array
	offsets []int32 // of the array or its dictionary
	data    []byte
	indices []int32 // nil where the array is no dictionary array
}

func viewBytes(arr arrow.Array) (bytesView, error) {
	v := bytesView{arr: arr}
	values := arr
	if d, ok := arr.(*array.Dictionary); ok {
		indices, ok := d.Indices().(*array.Int32)
		if !ok {
			return v, fmt.Errorf("dictionary indices of type %s are not supported", d.Indices().DataType())
		}
		v.indices, values = indices.Int32Values(), d.Dictionary()
	}
	switch values.(type) {
	case *array.String, *array.Binary:
	default:
		return v, fmt.Errorf("values of type %s are not bytes", values.DataType())
	}
	buffers := values.Data().Buffers()
	if values.Len() > 0 {
		v.offsets = arrow.GetData[int32](buffers[1].Bytes())[values.Data().Offset():][:values.Len()+1]
	}
	if buffers[2] != nil {
		v.data = buffers[2].Bytes()
	}
	return v, nil
}

// at returns the value of a valid slot.
func (v *bytesView) at(i int) ([]byte, error) {
	if v.indices != nil {
		index := v.indices[i]
		if index < 0 || int(index)+1 >= len(v.offsets) {
			return nil, fmt.Errorf("row %d refers to value %d of a dictionary of %d", i, index, max(0, len(v.offsets)-1))
		}
		i = int(index)
	}
	return v.data[v.offsets[i]:v.offsets[i+1]], nil
}

// contiguous returns the bytes of the values [from, end) where they lie one
// after another.
func (v *bytesView) contiguous(from, end int) ([]byte, bool) {
	if v.indices != nil {
		return nil, false
	}
	return v.data[v.offsets[from]:v.offsets[end]], true
}
