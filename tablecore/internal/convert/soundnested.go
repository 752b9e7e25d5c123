package convert

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tabledef"
)

// soundChild is soundArray for an array inside another one, where every
// dictionary is replaced by its values.
func soundChild(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	out, err := soundArray(mem, arr)
	if err != nil {
		return nil, err
	}
	dict, ok := out.(*array.Dictionary)
	if !ok {
		return out, nil
	}
	defer out.Release()
	return decoded(mem, dict)
}

// decoded returns the values of a sound dictionary's rows.
func decoded(mem memory.Allocator, arr *array.Dictionary) (arrow.Array, error) {
	if arr.Len() > 0 {
		return decodeValues(mem, arr, arr.Dictionary())
	}
	b := array.NewBuilder(mem, arr.DataType().(*arrow.DictionaryType).ValueType) // without rows it may have no dictionary
	defer b.Release()
	none := b.NewArray()
	defer none.Release()
	return soundArray(mem, none)
}

// soundStruct checks a struct's children. The result begins at offset 0.
func soundStruct(mem memory.Allocator, arr *array.Struct) (arrow.Array, error) {
	t := arr.DataType().(*arrow.StructType)
	data := arr.Data()
	if len(data.Children()) != t.NumFields() {
		return nil, unsound(arr)
	}
	for _, c := range data.Children() {
		if c.Len() < data.Offset()+data.Len() {
			return nil, unsound(arr)
		}
	}
	children := make([]arrow.Array, 0, t.NumFields())
	defer func() { releaseArrays(children) }()
	fields := t.Fields()
	for i := range fields {
		child, err := soundChild(mem, arr.Field(i))
		if err != nil {
			return nil, err
		}
		children = append(children, child)
		fields[i].Type = child.DataType()
	}
	return joined(mem, arr, arrow.StructOf(fields...), nil, children...), nil
}

// soundList checks a list or a map and what its rows hold. The result is a list
// or a map of the same width of offsets, which begin at 0; a list of fixed size
// becomes one with offsets.
func soundList(mem memory.Allocator, arr array.ListLike) (arrow.Array, error) {
	if !soundRanges(arr) {
		return nil, unsound(arr)
	}
	first, last := elementRange(arr)
	values := array.NewSlice(arr.ListValues(), first, last)
	defer values.Release()
	child, err := soundChild(mem, values)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	elem := arr.DataType().(arrow.ListLikeType).ElemField()
	elem.Type = child.DataType()
	var to arrow.DataType
	switch arr.DataType().(type) {
	case *arrow.MapType:
		if nullCount(child) > 0 {
			return nil, unsound(arr)
		}
		to = tabledef.WithChildren(arr.DataType(), elem.Type.(*arrow.StructType).Fields())
	case *arrow.ListType:
		to = arrow.ListOfField(elem)
	default:
		offsets := offsetsFrom[int64](mem, arr, first)
		defer offsets.Release()
		return joined(mem, arr, arrow.LargeListOfField(elem), offsets, child), nil
	}
	offsets := offsetsFrom[int32](mem, arr, first)
	defer offsets.Release()
	return joined(mem, arr, to, offsets, child), nil
}

// soundRanges says whether the rows of a list follow each other in its
// elements.
func soundRanges(arr array.ListLike) bool {
	children := arr.Data().Children()
	if len(children) != 1 {
		return false
	}
	if arr.Len() == 0 {
		return true
	}
	n := int64(children[0].Len())
	if t, ok := arr.DataType().(*arrow.FixedSizeListType); ok {
		return t.Len() > 0 && int64(arr.Data().Offset()+arr.Len()) <= n/int64(t.Len())
	}
	last, _ := arr.ValueOffsets(0)
	if last < 0 {
		return false
	}
	for i := range arr.Len() {
		start, end := arr.ValueOffsets(i)
		if start != last || end < start {
			return false
		}
		last = end
	}
	return last <= n
}

// soundBlobs says whether the values of a fixed_size_binary lie in its buffer.
func soundBlobs(arr *array.FixedSizeBinary) bool {
	width := arr.DataType().(*arrow.FixedSizeBinaryType).ByteWidth
	if arr.Len() == 0 {
		return true
	}
	buf := arr.Data().Buffers()[1]
	return width > 0 && buf != nil && arr.Data().Offset()+arr.Len() <= buf.Len()/width
}

// maskedByValues makes a null of the dictionary's values a null of the row.
func maskedByValues(mem memory.Allocator, arr *array.Dictionary, values arrow.Array) arrow.Array {
	bits := memory.NewResizableBuffer(mem)
	defer bits.Release()
	bits.Resize((arr.Len() + 7) / 8)
	mask := bits.Bytes()
	clear(mask)
	nulls := 0
	for i := range arr.Len() {
		if valueIndex(arr, values, i) >= 0 {
			mask[i>>3] |= 1 << (i & 7)
		} else {
			nulls++
		}
	}
	t := arr.DataType().(*arrow.DictionaryType)
	indices := fixed(mem, arr, t.IndexType, func(dst []byte) {
		width := len(dst) / max(1, arr.Len())
		copy(dst, arr.Data().Buffers()[1].Bytes()[arr.Data().Offset()*width:])
	})
	defer indices.Release()
	typ := &arrow.DictionaryType{IndexType: t.IndexType, ValueType: values.DataType(), Ordered: t.Ordered}
	data := array.NewDataWithDictionary(typ, arr.Len(), []*memory.Buffer{bits, indices.Data().Buffers()[1]}, nulls, 0, values.Data().(*array.Data))
	defer data.Release()
	return array.NewDictionaryData(data)
}
