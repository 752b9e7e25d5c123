package convert

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// restore converts an array of a storage type to a declared type that has this
// storage type.
func restore(mem memory.Allocator, arr arrow.Array, declared arrow.DataType) (arrow.Array, error) {
	switch t := declared.(type) {
	case arrow.ExtensionType:
		plain, err := restore(mem, arr, t.StorageType())
		if err != nil {
			return nil, err
		}
		defer plain.Release()
		return array.NewExtensionArrayWithStorage(t, plain), nil
	case *arrow.StructType:
		return restoreStruct(mem, arr.(*array.Struct), t)
	case *arrow.FixedSizeListType:
		return restoreFixedList(mem, arr.(array.ListLike), t)
	case arrow.ListLikeType:
		return restoreList(mem, arr.(array.ListLike), t)
	}
	if arrow.TypeEqual(arr.DataType(), declared) {
		arr.Retain()
		return arr, nil
	}
	return restoreFlat(mem, arr, declared)
}

func restoreFlat(mem memory.Allocator, arr arrow.Array, declared arrow.DataType) (arrow.Array, error) {
	switch t := declared.(type) {
	case *arrow.Uint8Type:
		return narrow[int16, uint8](mem, arr, declared)
	case *arrow.Uint16Type:
		return narrow[int32, uint16](mem, arr, declared)
	case *arrow.Uint32Type:
		return narrow[int64, uint32](mem, arr, declared)
	case *arrow.Uint64Type:
		return decimalsToUint64(mem, arr)
	case *arrow.Float16Type:
		return singlesToHalves(mem, arr)
	case *arrow.TimestampType:
		return timesFromStorage(mem, arr, t)
	case *arrow.Time32Type, *arrow.Time64Type, *arrow.DurationType:
		return retyped(arr, declared), nil
	case *arrow.Date64Type:
		return fixed(mem, arr, declared, func(dst []byte) {
			times := view[int64](dst)
			for i, day := range words[int32](arr) {
				times[i] = int64(day) * millisPerDay
			}
		}), nil
	case arrow.DecimalType:
		return decimalsFromStorage(mem, arr, t)
	case *arrow.FixedSizeBinaryType:
		return binaryToBlobs(mem, arr.(*array.Binary), t)
	case *arrow.DictionaryType:
		if text, ok := arr.(*array.String); ok && isText(t.ValueType) {
			return encodeDictionary(mem, text, t)
		}
		return encodeValues(mem, arr, t)
	default:
		return toText(mem, arr, declared)
	}
}

// binaryToBlobs takes the offsets off values that have one width.
func binaryToBlobs(mem memory.Allocator, arr *array.Binary, to *arrow.FixedSizeBinaryType) (arrow.Array, error) {
	if arr.Len() > 1 && int64(arr.Len())*int64(to.ByteWidth) > maxRestored {
		return nil, errTextSize(to)
	}
	bad := -1
	out := fixed(mem, arr, to, func(dst []byte) {
		clear(dst)
		for i := range arr.Len() {
			if arr.IsNull(i) {
				continue
			}
			if v := arr.Value(i); len(v) == to.ByteWidth {
				copy(dst[i*to.ByteWidth:], v)
			} else if bad < 0 {
				bad = i
			}
		}
	})
	if bad >= 0 {
		out.Release()
		return nil, damagedValue(fmt.Sprintf("of %d bytes", len(arr.Value(bad))), to)
	}
	return out, nil
}

func restoreStruct(mem memory.Allocator, arr *array.Struct, to *arrow.StructType) (arrow.Array, error) {
	children := make([]arrow.Array, 0, arr.NumField())
	defer func() { releaseArrays(children) }()
	for i := range arr.NumField() {
		child, err := restore(mem, arr.Field(i), to.Field(i).Type)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return joined(mem, arr, to, nil, children...), nil
}

// restoreList makes a list, large list or map.
func restoreList(mem memory.Allocator, arr array.ListLike, to arrow.ListLikeType) (arrow.Array, error) {
	first, last := elementRange(arr)
	values := array.NewSlice(arr.ListValues(), first, last)
	defer values.Release()
	child, err := restore(mem, values, to.Elem())
	if err != nil {
		return nil, err
	}
	defer child.Release()
	if to.ID() == arrow.LARGE_LIST {
		offsets := offsetsFrom[int64](mem, arr, first)
		defer offsets.Release()
		return joined(mem, arr, to, offsets, child), nil
	}
	offsets := offsetsFrom[int32](mem, arr, first)
	defer offsets.Release()
	return joined(mem, arr, to, offsets, child), nil
}

// maxRestored is from how many elements, or bytes, on values whose nulls have
// their full size are given in smaller batches.
const maxRestored = 64 << 20

// restoreFixedList makes a list of fixed size: a null has as many elements as
// any other row, which are null.
func restoreFixedList(mem memory.Allocator, arr array.ListLike, to *arrow.FixedSizeListType) (arrow.Array, error) {
	n := int(to.Len())
	if arr.Len() > 1 && int64(arr.Len())*int64(n) > maxRestored {
		return nil, errTextSize(to)
	}
	sources := []arrow.Array{arr.ListValues()}
	var runs []assemble.Run
	for i := range arr.Len() {
		start, end := arr.ValueOffsets(i)
		switch {
		case arr.IsNull(i) && len(sources) == 1:
			nulls := array.MakeArrayOfNull(mem, sources[0].DataType(), n)
			defer nulls.Release()
			sources = append(sources, nulls)
			fallthrough
		case arr.IsNull(i):
			runs = append(runs, assemble.Run{Source: 1, Len: n})
		case int(end-start) != n:
			return nil, damagedValue(fmt.Sprintf("of %d elements", end-start), to)
		default:
			runs = append(runs, assemble.Run{Start: int(start), Len: n})
		}
	}
	values, err := assemble.Array(mem, sources, runs)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	child, err := restore(mem, values, to.Elem())
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return joined(mem, arr, to, nil, child), nil
}

// BatchTooLargeError says that one array cannot hold as many rows: their text
// is too long for its offsets, or its dictionary cannot name as many values.
// Fewer rows may fit.
type BatchTooLargeError struct{ tableerr.Invalid }

// Unwrap returns the refusal as it goes to a client.
func (e *BatchTooLargeError) Unwrap() error { return &e.Invalid }

func tooManyValues(n int, to *arrow.DictionaryType) error {
	return &BatchTooLargeError{tableerr.Invalid{Type: tabledef.TypeName(to), Msg: fmt.Sprintf(
		"%d different values in one row are more than the indices of %s can name; read with profile compat", n, tabledef.TypeName(to))}}
}

// encodeValues gives stored values a declared dictionary type. The dictionary
// holds the values in the order of their first rows; equal ones of a nested
// type are not recognised.
func encodeValues(mem memory.Allocator, arr arrow.Array, to *arrow.DictionaryType) (arrow.Array, error) {
	codes := make([]int64, arr.Len())
	key := keyOf(arr)
	seen := map[string]int64{}
	var firsts []int
	for i := range codes {
		if arr.IsNull(i) {
			continue
		}
		if key != nil {
			code, known := seen[string(key(i))]
			if known {
				codes[i] = code
				continue
			}
			seen[string(key(i))] = int64(len(firsts))
		}
		codes[i] = int64(len(firsts))
		firsts = append(firsts, i)
	}
	if uint64(len(firsts)) > indexLimit(to.IndexType) {
		return nil, tooManyValues(len(firsts), to)
	}
	picked, err := assemble.Pick(mem, arr, firsts)
	if err != nil {
		return nil, err
	}
	defer picked.Release()
	dict, err := restore(mem, picked, to.ValueType)
	if err != nil {
		return nil, err
	}
	defer dict.Release()
	indices := fixed(mem, arr, to.IndexType, func(dst []byte) { putIndices(dst, codes, to.IndexType) })
	defer indices.Release()
	return array.NewDictionaryArray(to, indices, dict), nil
}

// keyOf returns the bytes by which two values of a flat storage type are the
// same, nil for a nested one.
func keyOf(arr arrow.Array) func(i int) []byte {
	switch a := arr.(type) {
	case *array.Boolean:
		return func(i int) []byte {
			if a.Value(i) {
				return []byte{1}
			}
			return []byte{0}
		}
	case *array.String:
		return func(i int) []byte { return []byte(a.Value(i)) }
	case *array.Binary:
		return a.Value
	}
	t, ok := arr.DataType().(arrow.FixedWidthDataType)
	if !ok || arrow.IsNested(arr.DataType().ID()) {
		return nil
	}
	width := t.Bytes()
	bytes := arr.Data().Buffers()[1]
	return func(i int) []byte {
		at := (arr.Data().Offset() + i) * width
		return bytes.Bytes()[at : at+width]
	}
}
