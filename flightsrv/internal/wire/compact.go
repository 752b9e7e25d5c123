package wire

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// compact returns the column without bytes that belong to other rows. Arrow's
// IPC writer cuts most arrays to their slice by itself, but ships every buffer
// of a view array, and a dictionary whole. The result is the caller's.
func (s *Stream) compact(column arrow.Array) arrow.Array {
	switch a := column.(type) {
	case *array.StringView:
		return compactViews(a, a.ValueHeader, func(i int) []byte { return []byte(a.Value(i)) })
	case *array.BinaryView:
		return compactViews(a, a.ValueHeader, a.Value)
	case *array.Dictionary:
		if size, err := dictionarySize(a); err == nil && size <= s.target {
			break
		}
		if smaller := compactDictionary(a); smaller != nil {
			return smaller
		}
	}
	column.Retain()
	return column
}

// compactViews copies the values of a view array into one buffer. Where they
// are too long together for one, the array is returned as it is: no message
// could hold it.
func compactViews(a arrow.Array, view func(int) *arrow.ViewHeader, value func(int) []byte) arrow.Array {
	n := a.Len()
	total := 0
	for i := range n {
		if v := view(i); a.IsValid(i) && !v.IsInline() {
			total += v.Len()
		}
	}
	if total > math.MaxInt32 {
		a.Retain()
		return a
	}
	views := make([]arrow.ViewHeader, n)
	long := make([]byte, 0, total)
	for i := range n {
		if !a.IsValid(i) {
			continue
		}
		v := value(i)
		views[i].SetBytes(v)
		if !views[i].IsInline() {
			views[i].SetIndexOffset(0, int32(len(long)))
			long = append(long, v...)
		}
	}
	buffers := []*memory.Buffer{validity(a), memory.NewBufferBytes(arrow.ViewHeaderTraits.CastToBytes(views))}
	if len(long) > 0 {
		buffers = append(buffers, memory.NewBufferBytes(long))
	}
	data := array.NewData(a.DataType(), n, buffers, nil, a.NullN(), 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// validity returns the validity bitmap of an array from bit 0 on, nil where
// nothing is null.
func validity(a arrow.Array) *memory.Buffer {
	if a.NullN() == 0 {
		return nil
	}
	bits := make([]byte, bitutil.BytesForBits(int64(a.Len())))
	bitutil.CopyBitmap(a.NullBitmapBytes(), a.Data().Offset(), a.Len(), bits, 0)
	return memory.NewBufferBytes(bits)
}

// compactDictionary returns the array with a dictionary of only the values it
// uses, in order of first use; nil where the dictionary is no text or bytes.
func compactDictionary(a *array.Dictionary) arrow.Array {
	values, ok := a.Dictionary().(array.BinaryLike)
	if !ok {
		return nil
	}
	typ := a.DataType().(*arrow.DictionaryType)
	dictionary := array.NewBuilder(scratch, typ.ValueType)
	defer dictionary.Release()
	indices := array.NewBuilder(scratch, typ.IndexType)
	defer indices.Release()
	indices.Reserve(a.Len())
	known := make(map[int]int)
	for i := range a.Len() {
		if a.IsNull(i) {
			indices.AppendNull()
			continue
		}
		old := a.GetValueIndex(i)
		index, seen := known[old]
		if !seen {
			index = len(known)
			known[old] = index
			appendValue(dictionary, values, old)
		}
		appendIndex(indices, index)
	}
	shortIndices, shortValues := indices.NewArray(), dictionary.NewArray()
	defer shortIndices.Release()
	defer shortValues.Release()
	return array.NewDictionaryArray(typ, shortIndices, shortValues)
}

func appendValue(to array.Builder, values array.BinaryLike, i int) {
	if values.IsNull(i) {
		to.AppendNull()
		return
	}
	start := int(values.ValueOffset64(i) - values.ValueOffset64(0))
	value := values.ValueBytes()[start : start+values.ValueLen(i)]
	switch b := to.(type) {
	case *array.StringBuilder:
		b.Append(string(value))
	case *array.LargeStringBuilder:
		b.Append(string(value))
	case *array.BinaryBuilder:
		b.Append(value)
	}
}

func appendIndex(to array.Builder, i int) {
	switch b := to.(type) {
	case *array.Int8Builder:
		b.Append(int8(i))
	case *array.Int16Builder:
		b.Append(int16(i))
	case *array.Int32Builder:
		b.Append(int32(i))
	case *array.Int64Builder:
		b.Append(int64(i))
	case *array.Uint8Builder:
		b.Append(uint8(i))
	case *array.Uint16Builder:
		b.Append(uint16(i))
	case *array.Uint32Builder:
		b.Append(uint32(i))
	case *array.Uint64Builder:
		b.Append(uint64(i))
	}
}
