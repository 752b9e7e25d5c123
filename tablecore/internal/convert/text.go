package convert

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// errTextSize reports more text in one array than 32-bit offsets can address.
func errTextSize(t arrow.DataType) error {
	return &BatchTooLargeError{tableerr.Invalid{Type: tabledef.TypeName(t), Msg: "one batch holds more than 2 GiB of text, or 2^31 elements of lists, in a column; use smaller batches"}}
}

// toText converts between the layouts of strings, or of binaries: to names the
// layout wanted. The array's own buffers must be sound (see soundText).
func toText(mem memory.Allocator, arr arrow.Array, to arrow.DataType) (arrow.Array, error) {
	if arrow.TypeEqual(arr.DataType(), to) {
		arr.Retain()
		return arr, nil
	}
	switch arr.DataType().ID() {
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return fromViews(mem, arr.(array.ViewLike), to)
	case arrow.STRING, arrow.BINARY:
		return fromOffsets[int32](mem, arr, to)
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return fromOffsets[int64](mem, arr, to)
	}
	return nil, misfit(arr, to)
}

// fromOffsets converts an array with offsets of type O.
func fromOffsets[O int32 | int64](mem memory.Allocator, arr arrow.Array, to arrow.DataType) (arrow.Array, error) {
	offsets, values := TextParts[O](arr)
	switch to.ID() {
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return toViews(mem, arr, offsets, values, to)
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return reoffset[O, int64](mem, arr, offsets, to)
	}
	if len(offsets) > 0 && int64(offsets[len(offsets)-1]) > math.MaxInt32 {
		return rebase(mem, arr, offsets, to)
	}
	return reoffset[O, int32](mem, arr, offsets, to)
}

// rebase gives text that begins far behind the start of its bytes 32-bit
// offsets from 0 on.
func rebase[O int32 | int64](mem memory.Allocator, arr arrow.Array, offsets []O, to arrow.DataType) (arrow.Array, error) {
	first, last := int64(offsets[0]), int64(offsets[len(offsets)-1])
	if last-first > math.MaxInt32 {
		return nil, errTextSize(to)
	}
	near := make([]O, len(offsets))
	for i, o := range offsets {
		near[i] = o - O(first)
	}
	bytes := memory.SliceBuffer(arr.Data().Buffers()[2], int(first), int(last-first))
	defer bytes.Release()
	return reoffsetInto[O, int32](mem, arr, near, to, bytes)
}

// TextParts returns the offsets (one more than rows; none for no rows) and the
// bytes they point into.
func TextParts[O int32 | int64](arr arrow.Array) ([]O, []byte) {
	data := arr.Data()
	if data.Len() == 0 {
		return nil, nil
	}
	offsets := view[O](data.Buffers()[1].Bytes())[data.Offset() : data.Offset()+data.Len()+1]
	if data.Buffers()[2] == nil {
		return offsets, nil
	}
	return offsets, data.Buffers()[2].Bytes()
}

// reoffset keeps the bytes and converts the offsets.
func reoffset[S, D int32 | int64](mem memory.Allocator, arr arrow.Array, offsets []S, to arrow.DataType) (arrow.Array, error) {
	return reoffsetInto[S, D](mem, arr, offsets, to, arr.Data().Buffers()[2])
}

func reoffsetInto[S, D int32 | int64](mem memory.Allocator, arr arrow.Array, offsets []S, to arrow.DataType, bytes *memory.Buffer) (arrow.Array, error) {
	buf := memory.NewResizableBuffer(mem)
	defer buf.Release()
	var d D
	buf.Resize((arr.Len() + 1) * sizeOf(d))
	out := view[D](buf.Bytes())
	out[0] = 0
	cast(out, offsets)
	return withValidity(mem, arr, to, buf, bytes), nil
}

func sizeOf(v any) int {
	if _, ok := v.(int32); ok {
		return arrow.Int32SizeBytes
	}
	return arrow.Int64SizeBytes
}

// toViews points views into the bytes that are already there.
func toViews[O int32 | int64](mem memory.Allocator, arr arrow.Array, offsets []O, values []byte, to arrow.DataType) (arrow.Array, error) {
	if len(offsets) > 0 && int64(offsets[len(offsets)-1]) > math.MaxInt32 {
		return nil, errTextSize(to)
	}
	buf := memory.NewResizableBuffer(mem)
	defer buf.Release()
	buf.Resize(arr.Len() * arrow.ViewHeaderSizeBytes)
	clear(buf.Bytes())
	headers := arrow.ViewHeaderTraits.CastFromBytes(buf.Bytes())
	for i := range headers {
		if arr.IsNull(i) {
			continue
		}
		headers[i].SetBytes(values[offsets[i]:offsets[i+1]])
		if !headers[i].IsInline() {
			headers[i].SetIndexOffset(0, int32(offsets[i]))
		}
	}
	if values == nil {
		return withValidity(mem, arr, to, buf), nil
	}
	return withValidity(mem, arr, to, buf, arr.Data().Buffers()[2]), nil
}

// fromViews copies the values of a view array into one run of bytes. Views
// that point outside their buffers are a *tableerr.Invalid.
func fromViews(mem memory.Allocator, arr array.ViewLike, to arrow.DataType) (arrow.Array, error) {
	total, err := viewBytes(arr)
	if err != nil {
		return nil, err
	}
	switch to.ID() {
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return copyViews[int64](mem, arr, total, to)
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return nil, misfit(arr, to)
	}
	if total > math.MaxInt32 {
		return nil, errTextSize(to)
	}
	return copyViews[int32](mem, arr, total, to)
}

// viewBytes checks every view of arr and sums their lengths.
func viewBytes(arr array.ViewLike) (int64, error) {
	buffers := arr.Data().Buffers()[2:]
	total := int64(0)
	for i := range arr.Len() {
		if arr.IsNull(i) {
			continue
		}
		h := arr.ValueHeader(i)
		if !h.IsInline() || h.Len() < 0 {
			b, at, n := int(h.BufferIndex()), int(h.BufferOffset()), h.Len()
			if n < 0 || b < 0 || b >= len(buffers) || buffers[b] == nil || at < 0 || at > buffers[b].Len()-n {
				return 0, unsound(arr)
			}
		}
		total += int64(h.Len())
	}
	return total, nil
}

// copyViews writes the checked views of arr one after another.
func copyViews[O int32 | int64](mem memory.Allocator, arr array.ViewLike, total int64, to arrow.DataType) (arrow.Array, error) {
	var o O
	offsetBuf, valueBuf := memory.NewResizableBuffer(mem), memory.NewResizableBuffer(mem)
	defer offsetBuf.Release()
	defer valueBuf.Release()
	offsetBuf.Resize((arr.Len() + 1) * sizeOf(o))
	valueBuf.Resize(int(total))
	offsets, values := view[O](offsetBuf.Bytes()), valueBuf.Bytes()
	buffers := arr.Data().Buffers()[2:]
	offsets[0] = 0
	at := 0
	for i := range arr.Len() {
		if arr.IsValid(i) {
			if h := arr.ValueHeader(i); h.IsInline() {
				at += copy(values[at:], h.InlineBytes())
			} else {
				from := int(h.BufferOffset())
				at += copy(values[at:], buffers[h.BufferIndex()].Bytes()[from:from+h.Len()])
			}
		}
		offsets[i+1] = O(at)
	}
	return withValidity(mem, arr, to, offsetBuf, valueBuf), nil
}
