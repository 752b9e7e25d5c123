package convert

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

// maxUnfolded is how many bytes the views and dictionaries of one batch may
// unfold to where nobody sets a limit.
const maxUnfolded = 1 << 30

// meter is the allocator that one batch is aligned with. It counts what views
// and dictionaries unfold to before memory is taken for it: many rows may share
// one value, so that a few bytes of a message stand for any number.
type meter struct {
	memory.Allocator
	limit, left int64
}

// unfold asks for n bytes. Every allocator but a meter gives any number.
func unfold(mem memory.Allocator, n int64) error {
	m, ok := mem.(*meter)
	if !ok {
		return nil
	}
	if n > m.left {
		return &tableerr.MessageTooLarge{LimitBytes: m.limit, Bytes: m.limit - m.left + n,
			Msg: "the dictionaries and views of one batch unfold to more memory than it may take; send smaller batches, or plain columns"}
	}
	m.left -= n
	return nil
}

// unfoldedBytes returns what the rows of a sound dictionary take as values.
func unfoldedBytes(arr *array.Dictionary, values arrow.Array) int64 {
	sizes := RowBytes(values)
	total := int64(0)
	for i := range arr.Len() {
		if at := valueIndex(arr, values, i); at >= 0 {
			total += sizes[at]
		}
	}
	return total
}

// RowBytes returns about how many bytes each row of a sound array takes.
func RowBytes(arr arrow.Array) []int64 {
	sizes := make([]int64, arr.Len())
	switch a := arr.(type) {
	case *array.Struct:
		for i := range a.NumField() {
			for k, n := range RowBytes(a.Field(i)) {
				sizes[k] += n
			}
		}
	case array.ListLike:
		if len(sizes) == 0 {
			break
		}
		first, _ := a.ValueOffsets(0)
		_, last := a.ValueOffsets(len(sizes) - 1)
		values := array.NewSlice(a.ListValues(), first, last)
		defer values.Release()
		inner := RowBytes(values)
		for i := range sizes {
			start, end := a.ValueOffsets(i)
			sizes[i] = 8
			for _, n := range inner[start-first : end-first] {
				sizes[i] += n
			}
		}
	case *array.String, *array.Binary:
		addLengths[int32](sizes, arr)
	case *array.LargeString, *array.LargeBinary:
		addLengths[int64](sizes, arr)
	default:
		width := int64(1)
		if t, ok := arr.DataType().(arrow.FixedWidthDataType); ok {
			width = int64(t.BitWidth()+7) / 8
		}
		for i := range sizes {
			sizes[i] = width
		}
	}
	return sizes
}

func addLengths[O int32 | int64](sizes []int64, arr arrow.Array) {
	offsets, _ := TextParts[O](arr)
	for i := range sizes {
		sizes[i] = 8 + int64(offsets[i+1]-offsets[i])
	}
}
