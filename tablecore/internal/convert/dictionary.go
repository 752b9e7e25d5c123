package convert

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// decodeDictionary turns a dictionary of strings into plain strings. Indices
// must be sound (see soundIndices).
func decodeDictionary(mem memory.Allocator, arr *array.Dictionary) (arrow.Array, error) {
	values, err := toText(mem, arr.Dictionary(), arrow.BinaryTypes.LargeString)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	offsets, bytes := TextParts[int64](values)
	total := int64(0)
	for i := range arr.Len() {
		if v := valueIndex(arr, values, i); v >= 0 {
			total += offsets[v+1] - offsets[v]
		}
	}
	if total > math.MaxInt32 {
		return nil, errTextSize(arr.DataType())
	}
	if err := unfold(mem, total); err != nil {
		return nil, err
	}
	b := array.NewStringBuilder(mem)
	defer b.Release()
	b.Reserve(arr.Len())
	b.ReserveData(int(total))
	for i := range arr.Len() {
		if v := valueIndex(arr, values, i); v >= 0 {
			b.BinaryBuilder.Append(bytes[offsets[v]:offsets[v+1]])
		} else {
			b.AppendNull()
		}
	}
	return b.NewArray(), nil
}

// valueIndex returns the index of row i's value, -1 for a null, which may
// stand in the row or in the dictionary.
func valueIndex(arr *array.Dictionary, values arrow.Array, i int) int {
	if arr.IsNull(i) {
		return -1
	}
	if v := arr.GetValueIndex(i); values.IsValid(v) {
		return v
	}
	return -1
}

// encodeDictionary gives plain strings the declared dictionary type. The
// dictionary holds the values of this array in the order of their first rows.
func encodeDictionary(mem memory.Allocator, arr *array.String, to *arrow.DictionaryType) (arrow.Array, error) {
	codes := make([]int64, arr.Len())
	seen := map[string]int64{}
	distinct := array.NewStringBuilder(mem)
	defer distinct.Release()
	for i := range codes {
		if arr.IsNull(i) {
			continue
		}
		code, ok := seen[arr.Value(i)]
		if !ok {
			code = int64(len(seen))
			seen[arr.Value(i)] = code
			distinct.Append(arr.Value(i))
		}
		codes[i] = code
	}
	if uint64(len(seen)) > indexLimit(to.IndexType) {
		return nil, tooManyValues(len(seen), to)
	}
	plainDict := distinct.NewArray()
	defer plainDict.Release()
	dict, err := toText(mem, plainDict, to.ValueType)
	if err != nil {
		return nil, err
	}
	defer dict.Release()
	indices := fixed(mem, arr, to.IndexType, func(dst []byte) { putIndices(dst, codes, to.IndexType) })
	defer indices.Release()
	return array.NewDictionaryArray(to, indices, dict), nil
}

// indexLimit returns how many values an index type can name.
func indexLimit(t arrow.DataType) uint64 {
	bits := 8 * t.(arrow.FixedWidthDataType).Bytes()
	if arrow.IsSignedInteger(t.ID()) {
		bits--
	}
	return 1 << min(bits, 62)
}

func putIndices(dst []byte, codes []int64, t arrow.DataType) {
	switch t.(arrow.FixedWidthDataType).Bytes() {
	case 1:
		cast(view[uint8](dst), codes)
	case 2:
		cast(view[uint16](dst), codes)
	case 4:
		cast(view[uint32](dst), codes)
	default:
		cast(view[uint64](dst), codes)
	}
}
