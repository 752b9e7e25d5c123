package convert

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

// unsound reports buffers that do not hold what the array's type demands.
func unsound(arr arrow.Array) error {
	return &tableerr.Invalid{Msg: "the Arrow data is damaged: offsets, indices or buffers of a " + arr.DataType().Name() + " array do not fit together"}
}

// sound makes sure that reading any valid row of arr stays inside its buffers,
// at any depth, and returns arr in a layout with offsets: views come back as
// plain strings or binaries, lists of fixed size as lists, extensions as their
// storage, dictionaries inside other arrays as their values, everything else as
// it is. The result is a new reference.
func sound(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	if err := array.Validate(arr); err != nil {
		return nil, unsound(arr)
	}
	return soundArray(mem, arr)
}

func soundArray(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	switch a := arr.(type) {
	case array.ExtensionArray:
		return soundArray(mem, a.Storage())
	case *array.Struct:
		return soundStruct(mem, a)
	case array.ListLike:
		return soundList(mem, a)
	}
	ok := true
	switch arr.DataType().ID() {
	case arrow.STRING_VIEW:
		return plainViews(mem, arr, arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString)
	case arrow.BINARY_VIEW:
		return plainViews(mem, arr, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary)
	case arrow.STRING, arrow.BINARY:
		ok = soundOffsets[int32](arr)
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		ok = soundOffsets[int64](arr)
	case arrow.DICTIONARY:
		return soundDictionary(mem, arr.(*array.Dictionary))
	case arrow.FIXED_SIZE_BINARY:
		ok = soundBlobs(arr.(*array.FixedSizeBinary))
	}
	if !ok {
		return nil, unsound(arr)
	}
	return honest(arr), nil
}

// honest returns arr with its true null count: a stream's own is only a claim,
// and arrow-go panics on an unknown one without a bitmap.
func honest(arr arrow.Array) arrow.Array {
	nulls := nullCount(arr)
	if arr.Data().NullN() == nulls {
		arr.Retain()
		return arr
	}
	old := arr.Data()
	var data *array.Data
	if dict := old.Dictionary(); dict != nil {
		data = array.NewDataWithDictionary(arr.DataType(), old.Len(), old.Buffers(), nulls, old.Offset(), dict.(*array.Data))
	} else {
		data = array.NewData(arr.DataType(), old.Len(), old.Buffers(), nil, nulls, old.Offset())
	}
	defer data.Release()
	return array.MakeFromData(data)
}

// plainViews copies a view array into the small layout, or into the large one
// where it holds more than 32-bit offsets can address.
func plainViews(mem memory.Allocator, arr arrow.Array, small, large arrow.DataType) (arrow.Array, error) {
	total, err := viewBytes(arr.(array.ViewLike))
	if err != nil {
		return nil, err
	}
	if err := unfold(mem, total); err != nil {
		return nil, err
	}
	if total > maxSmallText {
		small = large
	}
	return fromViews(mem, arr.(array.ViewLike), small)
}

// soundOffsets checks that offsets ascend within the bytes.
func soundOffsets[O int32 | int64](arr arrow.Array) bool {
	offsets, values := TextParts[O](arr)
	if len(offsets) == 0 {
		return true
	}
	last := offsets[0]
	if last < 0 || int64(offsets[len(offsets)-1]) > int64(len(values)) {
		return false
	}
	falls := false
	for _, o := range offsets {
		falls = falls || o < last
		last = o
	}
	return !falls
}

// soundDictionary checks the dictionary's values and the indices of all valid
// rows. Where the dictionary holds nulls these become nulls of the rows, so that
// a row's own validity says all.
func soundDictionary(mem memory.Allocator, arr *array.Dictionary) (arrow.Array, error) {
	if arr.Len() == 0 {
		arr.Retain()
		return arr, nil
	}
	old := arr.Dictionary()
	values, err := soundChild(mem, old)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	if !soundIndices(arr, int64(values.Len())) {
		return nil, unsound(arr)
	}
	if nullCount(values) > 0 {
		return maskedByValues(mem, arr, values), nil
	}
	if values == old {
		return honest(arr), nil
	}
	t := arr.DataType().(*arrow.DictionaryType)
	indices := honest(arr.Indices())
	defer indices.Release()
	return array.NewDictionaryArray(&arrow.DictionaryType{IndexType: t.IndexType, ValueType: values.DataType(), Ordered: t.Ordered}, indices, values), nil
}

// soundIndices says whether every valid row of arr names one of n values.
func soundIndices(arr *array.Dictionary, n int64) bool {
	indices := arr.Indices()
	switch indices.DataType().ID() {
	case arrow.INT8:
		return indicesBelow(indices, words[int8](indices), n)
	case arrow.INT16:
		return indicesBelow(indices, words[int16](indices), n)
	case arrow.INT32:
		return indicesBelow(indices, words[int32](indices), n)
	case arrow.INT64:
		return indicesBelow(indices, words[int64](indices), n)
	case arrow.UINT8:
		return indicesBelow(indices, words[uint8](indices), n)
	case arrow.UINT16:
		return indicesBelow(indices, words[uint16](indices), n)
	case arrow.UINT32:
		return indicesBelow(indices, words[uint32](indices), n)
	default:
		return indicesBelow(indices, words[uint64](indices), n)
	}
}

func indicesBelow[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](arr arrow.Array, indices []T, n int64) bool {
	greatest := uint64(0)
	for _, v := range indices {
		greatest = max(greatest, uint64(v)) // a negative index becomes a huge one
	}
	if greatest < uint64(n) {
		return true
	}
	for i, v := range indices {
		if uint64(v) >= uint64(n) && arr.IsValid(i) {
			return false
		}
	}
	return true
}
