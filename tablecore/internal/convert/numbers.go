package convert

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// plain are the Go types behind the fixed-width arrays of this package.
// Halves are handled as their bits.
type plain interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// words views the values of a fixed-width array, its offset applied. The
// element type must have the array's width.
func words[T plain](arr arrow.Array) []T {
	data := arr.Data()
	buf := data.Buffers()[1]
	if buf == nil || data.Len() == 0 {
		return nil
	}
	return view[T](buf.Bytes())[data.Offset() : data.Offset()+data.Len()]
}

// view reinterprets bytes as elements of T.
func view[T plain](b []byte) []T {
	var t T
	n := len(b) / int(unsafe.Sizeof(t))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// nullCount counts arr's nulls in its bitmap: a stream's own count is only a
// claim.
func nullCount(arr arrow.Array) int {
	data := arr.Data()
	bits := data.Buffers()[0]
	if bits == nil || bits.Len() == 0 {
		return 0
	}
	return data.Len() - bitutil.CountSetBits(bits.Bytes(), data.Offset(), data.Len())
}

// validity returns arr's validity bitmap for use with offset 0, as a buffer the
// caller releases; nil when nothing is null.
func validity(mem memory.Allocator, arr arrow.Array) *memory.Buffer {
	data := arr.Data()
	bits := data.Buffers()[0]
	if nullCount(arr) == 0 {
		return nil
	}
	if data.Offset() == 0 {
		bits.Retain()
		return bits
	}
	out := memory.NewResizableBuffer(mem)
	out.Resize(int(bitutil.BytesForBits(int64(data.Len()))))
	bitutil.CopyBitmap(bits.Bytes(), data.Offset(), data.Len(), out.Bytes(), 0)
	return out
}

// fixed makes an array of type to with arr's length and validity, and lets fill
// write its values, given as bytes of the right size.
func fixed(mem memory.Allocator, arr arrow.Array, to arrow.DataType, fill func(dst []byte)) arrow.Array {
	values := memory.NewResizableBuffer(mem)
	defer values.Release()
	values.Resize(arr.Len() * to.(arrow.FixedWidthDataType).Bytes())
	fill(values.Bytes())
	return withValidity(mem, arr, to, values)
}

// withValidity joins arr's validity with new value buffers.
func withValidity(mem memory.Allocator, arr arrow.Array, to arrow.DataType, values ...*memory.Buffer) arrow.Array {
	bits := validity(mem, arr)
	if bits != nil {
		defer bits.Release()
	}
	data := array.NewData(to, arr.Len(), append([]*memory.Buffer{bits}, values...), nil, nullCount(arr), 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// retyped gives arr's buffers another type of the same layout.
func retyped(arr arrow.Array, to arrow.DataType) arrow.Array {
	old := arr.Data()
	data := array.NewData(to, old.Len(), old.Buffers(), nil, nullCount(arr), old.Offset())
	defer data.Release()
	return array.MakeFromData(data)
}

func cast[S, D plain](dst []D, src []S) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = D(v)
	}
}

// castInto converts every value of arr; the caller knows that all fit.
func castInto[S, D plain](mem memory.Allocator, arr arrow.Array, to arrow.DataType) arrow.Array {
	return fixed(mem, arr, to, func(dst []byte) { cast(view[D](dst), words[S](arr)) })
}

// widen converts a number array to a wider type of its family. The caller has
// checked with accepts.
func widen(mem memory.Allocator, arr arrow.Array, to arrow.DataType) arrow.Array {
	switch arr.DataType().ID() {
	case arrow.INT8:
		return widenFrom[int8, int16, int32, int64](mem, arr, to)
	case arrow.INT16:
		return widenFrom[int16, int16, int32, int64](mem, arr, to)
	case arrow.INT32:
		return widenFrom[int32, int16, int32, int64](mem, arr, to)
	case arrow.UINT8:
		return widenFrom[uint8, uint16, uint32, uint64](mem, arr, to)
	case arrow.UINT16:
		return widenFrom[uint16, uint16, uint32, uint64](mem, arr, to)
	case arrow.UINT32:
		return widenFrom[uint32, uint16, uint32, uint64](mem, arr, to)
	case arrow.FLOAT32:
		return castInto[float32, float64](mem, arr, to)
	default: // FLOAT16
		if to.ID() == arrow.FLOAT32 {
			return fixed(mem, arr, to, func(dst []byte) { halvesToSingles(view[uint32](dst), words[uint16](arr)) })
		}
		return fixed(mem, arr, to, func(dst []byte) {
			out := view[float64](dst)
			for i, h := range words[uint16](arr) {
				out[i] = float64(math.Float32frombits(halfToSingle(h)))
			}
		})
	}
}

// widenFrom widens integers of one signedness by the width of the result.
func widenFrom[S, D2, D4, D8 plain](mem memory.Allocator, arr arrow.Array, to arrow.DataType) arrow.Array {
	switch to.(arrow.FixedWidthDataType).Bytes() {
	case 2:
		return castInto[S, D2](mem, arr, to)
	case 4:
		return castInto[S, D4](mem, arr, to)
	default:
		return castInto[S, D8](mem, arr, to)
	}
}

func halvesToSingles(dst []uint32, src []uint16) {
	dst = dst[:len(src)]
	for i, h := range src {
		dst[i] = halfToSingle(h)
	}
}
