package convert

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/tabledef"
)

// AlignedType returns the type that Align brings a column of a declared type
// to: the declared one for numbers, booleans, timestamps, texts, binaries and
// dictionaries of texts, the storage type for all others.
func AlignedType(declared arrow.DataType) arrow.DataType {
	if staysDeclared(declared) {
		return declared
	}
	return tabledef.StorageType(declared)
}

func staysDeclared(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.BOOL, arrow.DATE32, arrow.TIMESTAMP:
		return true
	}
	return widthRank[t.ID()].family != 0 || isText(t) || isBinary(t) || isTextDictionary(t)
}

// settle converts a checked array to the storage type to, value for value. The
// array must be sound, hold no views and no text dictionaries, and have passed
// the checks of its declared type: a value that the storage type cannot hold
// becomes another one. Too much text or too many elements for 32-bit offsets
// are a *tableerr.Invalid.
func settle(mem memory.Allocator, arr arrow.Array, to arrow.DataType) (arrow.Array, error) {
	switch a := arr.(type) {
	case *array.Struct:
		return settleStruct(mem, a, to.(*arrow.StructType))
	case array.ListLike:
		return settleList(mem, a, to)
	}
	if arrow.TypeEqual(arr.DataType(), to) {
		arr.Retain()
		return arr, nil
	}
	switch t := arr.DataType().(type) {
	case *arrow.TimestampType:
		return scaledTimes(mem, arr, t), nil
	case *arrow.Time32Type, *arrow.Time64Type, *arrow.DurationType:
		return retyped(arr, to), nil
	case *arrow.Date64Type:
		return fixed(mem, arr, to, func(dst []byte) {
			days := view[int32](dst)
			for i, ms := range words[int64](arr) {
				days[i] = int32(ms / millisPerDay)
			}
		}), nil
	case *arrow.FixedSizeBinaryType:
		return blobsToBinary(mem, arr, t.ByteWidth)
	case arrow.DecimalType:
		return settleDecimals(mem, arr, t, to), nil
	}
	if isText(arr.DataType()) || isBinary(arr.DataType()) {
		return toText(mem, arr, to)
	}
	return ToStorage(mem, arr)
}

const millisPerDay = 24 * 3600 * 1000

// blobsToBinary gives values of one width offsets.
func blobsToBinary(mem memory.Allocator, arr arrow.Array, width int) (arrow.Array, error) {
	data := arr.Data()
	if int64(data.Offset()+data.Len())*int64(width) > maxSmallText {
		return nil, errTextSize(arr.DataType())
	}
	offsets := memory.NewResizableBuffer(mem)
	defer offsets.Release()
	offsets.Resize((data.Len() + 1) * arrow.Int32SizeBytes)
	for i, out := 0, view[int32](offsets.Bytes()); i <= data.Len(); i++ {
		out[i] = int32((data.Offset() + i) * width)
	}
	return withValidity(mem, arr, arrow.BinaryTypes.Binary, offsets, data.Buffers()[1]), nil
}

func settleStruct(mem memory.Allocator, arr *array.Struct, to *arrow.StructType) (arrow.Array, error) {
	children := make([]arrow.Array, 0, arr.NumField())
	defer func() { releaseArrays(children) }()
	for i := range arr.NumField() {
		child, err := settle(mem, arr.Field(i), to.Field(i).Type)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return joined(mem, arr, to, nil, children...), nil
}

// settleList makes a list or map with 32-bit offsets from 0 on.
func settleList(mem memory.Allocator, arr array.ListLike, to arrow.DataType) (arrow.Array, error) {
	first, last := elementRange(arr)
	if last-first > maxSmallText {
		return nil, errTextSize(arr.DataType())
	}
	values := array.NewSlice(arr.ListValues(), first, last)
	defer values.Release()
	child, err := settle(mem, values, to.(arrow.ListLikeType).Elem())
	if err != nil {
		return nil, err
	}
	defer child.Release()
	offsets := offsetsFrom[int32](mem, arr, first)
	defer offsets.Release()
	return joined(mem, arr, to, offsets, child), nil
}

// elementRange returns the range of the elements that the rows of a list have.
func elementRange(arr array.ListLike) (first, last int64) {
	if arr.Len() == 0 {
		return 0, 0
	}
	first, _ = arr.ValueOffsets(0)
	_, last = arr.ValueOffsets(arr.Len() - 1)
	return first, last
}

// offsetsFrom returns the offsets of a list, counted from an element.
func offsetsFrom[O int32 | int64](mem memory.Allocator, arr array.ListLike, first int64) *memory.Buffer {
	var o O
	buf := memory.NewResizableBuffer(mem)
	buf.Resize((arr.Len() + 1) * sizeOf(o))
	out := view[O](buf.Bytes())
	out[0] = 0
	for i := range arr.Len() {
		_, end := arr.ValueOffsets(i)
		out[i+1] = O(end - first)
	}
	return buf
}

// joined makes a nested array with arr's length and validity. offsets is nil
// where the type has none; buffers and children stay the caller's.
func joined(mem memory.Allocator, arr arrow.Array, to arrow.DataType, offsets *memory.Buffer, children ...arrow.Array) arrow.Array {
	bits := validity(mem, arr)
	if bits != nil {
		defer bits.Release()
	}
	buffers := []*memory.Buffer{bits}
	if offsets != nil {
		buffers = append(buffers, offsets)
	}
	datas := make([]arrow.ArrayData, len(children))
	for i, c := range children {
		datas[i] = c.Data()
	}
	data := array.NewData(to, arr.Len(), buffers, datas, nullCount(arr), 0)
	defer data.Release()
	return array.MakeFromData(data)
}

func releaseArrays(arrays []arrow.Array) {
	for _, a := range arrays {
		a.Release()
	}
}

// decodeValues gives every row of a sound dictionary its value. values are the
// dictionary's, in the type wanted.
func decodeValues(mem memory.Allocator, arr *array.Dictionary, values arrow.Array) (arrow.Array, error) {
	if err := unfold(mem, unfoldedBytes(arr, values)); err != nil {
		return nil, err
	}
	at := make([]int, arr.Len())
	for i := range at {
		at[i] = valueIndex(arr, values, i)
	}
	out, err := assemble.Pick(mem, values, at)
	if err != nil {
		return nil, errTextSize(arr.DataType())
	}
	return out, nil
}
