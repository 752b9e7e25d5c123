package convert_test

import (
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
)

// fuzzTypes are what FuzzAlignNested makes arrays of.
var fuzzTypes = []arrow.DataType{
	arrow.ListOf(arrow.PrimitiveTypes.Int32),
	arrow.LargeListOfField(strict("item", arrow.BinaryTypes.String)),
	arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Date64),
	arrow.StructOf(strict("a", arrow.BinaryTypes.LargeString), loose("b", arrow.ListOf(&arrow.Decimal64Type{Precision: 3}))),
	arrow.MapOf(arrow.BinaryTypes.String, dictT),
	arrow.ListOf(arrow.ListOf(arrow.BinaryTypes.BinaryView)),
	arrow.StructOf(loose("t", stamp(arrow.Second, "")), loose("f", &arrow.FixedSizeBinaryType{ByteWidth: 3}), loose("d", dictT)),
}

// carver cuts an input into the parts of an array.
type carver struct{ data []byte }

func (c *carver) take(n int) []byte {
	n = min(n, len(c.data))
	part := c.data[:n]
	c.data = c.data[n:]
	return append([]byte(nil), part...)
}

func (c *carver) number() int {
	b := append(c.take(1), 0)
	return int(b[0])
}

// build makes array data whose buffers hold whatever the input says.
func (c *carver) build(dt arrow.DataType, length int) *array.Data {
	layout := dt.Layout()
	var buffers []*memory.Buffer
	for range layout.Buffers {
		if part := c.take(c.number() % 64); len(part) > 0 {
			buffers = append(buffers, memory.NewBufferBytes(part))
		} else {
			buffers = append(buffers, nil)
		}
	}
	var children []arrow.ArrayData
	if nested, ok := dt.(arrow.NestedType); ok {
		for _, f := range nested.Fields() {
			children = append(children, c.build(f.Type, c.number()%16))
		}
	}
	offset, nulls := c.number()%3, c.number()%4-1
	if d, ok := dt.(*arrow.DictionaryType); ok {
		return array.NewDataWithDictionary(dt, length, buffers, nulls, offset, c.build(d.ValueType, c.number()%8))
	}
	return array.NewData(dt, length, buffers, children, nulls, offset)
}

// hostile builds an array, or nothing where arrow-go itself refuses.
func (c *carver) hostile(dt arrow.DataType) (arr arrow.Array) {
	defer func() {
		if recover() != nil {
			arr = nil
		}
	}()
	return array.MakeFromData(c.build(dt, 1+c.number()%8))
}

// FuzzAlignNested aligns nested arrays whose parts need not fit together. What
// is accepted must go to its storage form and back.
func FuzzAlignNested(f *testing.F) {
	offsets := binary.LittleEndian.AppendUint32(nil, 0)
	offsets = binary.LittleEndian.AppendUint32(offsets, 1)
	list := append([]byte{0, 0, 8}, offsets...)
	f.Add(uint8(0), append(list, 1, 0, 4, 7, 0, 0, 0))
	f.Add(uint8(1), append(list, 1, 0, 8, 0, 0, 0, 0, 1, 0, 0, 0, 1, 'x'))
	f.Add(uint8(4), append(list, 1, 0, 1, 0, 8, 0, 0, 0, 0, 1, 0, 0, 0, 1, 'k', 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 1, 0, 0, 0, 1, 'v'))
	f.Add(uint8(3), []byte{1, 1, 0xFF, 2, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF})
	f.Add(uint8(6), make([]byte, 64))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		dt := fuzzTypes[int(kind)%len(fuzzTypes)]
		arr := (&carver{data}).hostile(dt)
		if arr == nil || alignOne(t, arr, dt) != nil {
			return
		}
		mem := memory.NewGoAllocator()
		stored, err := convert.ToStorage(mem, arr)
		if err != nil {
			t.Fatalf("aligned, but not stored: %v", err)
		}
		if hides(arr) {
			return // what lies under a null is not written to a file
		}
		back, err := convert.FromStorage(mem, stored, dt)
		if err != nil {
			t.Fatalf("stored, but not read: %v", err)
		}
		if err := array.ValidateFull(back); err != nil {
			t.Fatal(err)
		}
	})
}

// hides says whether an array, or one inside it, has a null that others may lie
// under.
func hides(arr arrow.Array) bool {
	switch a := arr.(type) {
	case *array.Struct:
		for i := range a.NumField() {
			if hides(a.Field(i)) {
				return true
			}
		}
	case array.ListLike:
		if hides(a.ListValues()) {
			return true
		}
	default:
		return false
	}
	bits := arr.NullBitmapBytes()
	for i := range arr.Len() {
		at := arr.Data().Offset() + i
		if len(bits) > 0 && bits[at>>3]>>(at&7)&1 == 0 {
			return true
		}
	}
	return false
}
