package ingest

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
)

// column buffers one payload column of an append, or its index column, in the
// declared type.
type column interface {
	// put copies rows [from, from+n) of arr, which is borrowed.
	put(h *heap, arr arrow.Array, from, n int, at place) error
	// gather returns the given rows in a storage or declared type. It may be
	// called by several goroutines at once.
	gather(mem memory.Allocator, rows []uint32) (arrow.Array, error)
	// free returns the column's memory.
	free(h *heap)
}

// newColumn returns the buffer of a column of a declared type.
func newColumn(declared arrow.DataType) column {
	t := convert.AlignedType(declared)
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.DICTIONARY:
		return newTextColumn()
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return &plainColumn{typ: arrow.BinaryTypes.Binary}
	case arrow.BOOL:
		return &boolColumn{}
	case arrow.DECIMAL128, arrow.LIST, arrow.STRUCT, arrow.MAP:
		return &arrayColumn{typ: t}
	}
	switch t.(arrow.FixedWidthDataType).Bytes() {
	case 1:
		return &fixedColumn[uint8]{typ: t}
	case 2:
		return &fixedColumn[uint16]{typ: t}
	case 4:
		return &fixedColumn[uint32]{typ: t}
	default:
		return &fixedColumn[uint64]{typ: t}
	}
}

// putValidity copies the validity of rows [from, from+n) of arr.
func putValidity(m *bitmap, h *heap, arr arrow.Array, from, n int, at place) {
	if arr.NullN() == 0 {
		m.putOnes(h, n, at)
		return
	}
	m.put(h, arr.NullBitmapBytes(), arr.Data().Offset()+from, n, at)
}

// gatherValidity returns the validity bitmap of rows and the number of nulls;
// the buffer is nil when there are none.
func gatherValidity(m *bitmap, mem memory.Allocator, rows []uint32) (*memory.Buffer, int) {
	if m.full() {
		return nil, 0
	}
	buf := newBuffer(mem, (len(rows)+7)/8)
	nulls := len(rows) - m.gather(buf.Bytes(), rows)
	if nulls == 0 {
		buf.Release()
		return nil, 0
	}
	return buf, nulls
}

// newBuffer returns a buffer of n bytes whose content is undefined.
func newBuffer(mem memory.Allocator, n int) *memory.Buffer {
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(n)
	return buf
}

// newArray makes an array of buffers, whose references it takes over.
func newArray(t arrow.DataType, n, nulls int, buffers ...*memory.Buffer) arrow.Array {
	data := array.NewData(t, n, buffers, nil, nulls, 0)
	defer data.Release()
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	return array.MakeFromData(data)
}

// fixedColumn buffers values of one width.
type fixedColumn[T word] struct {
	typ    arrow.DataType
	values words[T]
	valid  bitmap
}

func (c *fixedColumn[T]) put(h *heap, arr arrow.Array, from, n int, at place) error {
	c.values.put(h, fixedValues[T](arr)[from:from+n], at)
	putValidity(&c.valid, h, arr, from, n, at)
	return nil
}

// fixedValues views the values of a fixed-width array of T's width.
func fixedValues[T word](arr arrow.Array) []T {
	data := arr.Data()
	return view[T](data.Buffers()[1].Bytes())[data.Offset() : data.Offset()+data.Len()]
}

func (c *fixedColumn[T]) gather(mem memory.Allocator, rows []uint32) (arrow.Array, error) {
	var t T
	valid, nulls := gatherValidity(&c.valid, mem, rows)
	buf := newBuffer(mem, len(rows)*len(raw([]T{t})))
	c.values.gather(view[T](buf.Bytes()), rows)
	return newArray(c.typ, len(rows), nulls, valid, buf), nil
}

func (c *fixedColumn[T]) free(h *heap) {
	c.values.free(h)
	c.valid.free(h)
}

// boolColumn buffers bits.
type boolColumn struct{ values, valid bitmap }

func (c *boolColumn) put(h *heap, arr arrow.Array, from, n int, at place) error {
	data := arr.Data()
	c.values.put(h, data.Buffers()[1].Bytes(), data.Offset()+from, n, at)
	putValidity(&c.valid, h, arr, from, n, at)
	return nil
}

func (c *boolColumn) gather(mem memory.Allocator, rows []uint32) (arrow.Array, error) {
	valid, nulls := gatherValidity(&c.valid, mem, rows)
	buf := newBuffer(mem, (len(rows)+7)/8)
	c.values.gather(buf.Bytes(), rows)
	return newArray(arrow.FixedWidthTypes.Boolean, len(rows), nulls, valid, buf), nil
}

func (c *boolColumn) free(h *heap) {
	c.values.free(h)
	c.valid.free(h)
}

// constant is what columns without rows of their own have in common: there is
// nothing to buffer, and they are gathered once (store.constants).
type constant struct{}

func (constant) put(*heap, arrow.Array, int, int, place) error          { return nil }
func (constant) gather(memory.Allocator, []uint32) (arrow.Array, error) { return nil, nil }
func (constant) free(*heap)                                             {}

// absentColumn stands for a column that the stream does not have: null in
// every row.
type absentColumn struct {
	constant
	typ arrow.DataType
}

// stampColumn is the insertion time of rows that bring none: the moment the
// append began.
type stampColumn struct {
	constant
	typ   arrow.DataType
	stamp int64
}

// array returns the column's first n rows.
func (c stampColumn) array(mem memory.Allocator, n int) arrow.Array {
	buf := newBuffer(mem, n*8)
	fill(view[uint64](buf.Bytes()), uint64(c.stamp))
	return newArray(c.typ, n, 0, nil, buf)
}

// stampedColumn is the insertion time of a stream that brings it: a null is
// replaced by the moment the append began.
type stampedColumn struct {
	fixedColumn[uint64]
	stamp int64
}

func (c *stampedColumn) put(h *heap, arr arrow.Array, from, n int, at place) error {
	c.values.put(h, fixedValues[uint64](arr)[from:from+n], at)
	c.valid.putOnes(h, n, at)
	if arr.NullN() == 0 {
		return nil
	}
	stored := c.values.chunks[at.chunk][at.pos:]
	for i := range n {
		if arr.IsNull(from + i) {
			stored[i] = uint64(c.stamp)
		}
	}
	return nil
}
