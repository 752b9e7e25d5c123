// Package assemble builds Arrow arrays out of runs of rows of other arrays.
//
// A sorted scan interleaves pieces of several data files: long runs where the
// files are disjoint in time, single rows where they overlap. Copying runs is
// what both need, without an array per run.
package assemble

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/bufpool"
)

// ErrTooLarge says that the rows are more than one array can hold.
var ErrTooLarge = errors.New("assemble: too much for one array")

// Run is a run of rows of one source array.
type Run struct {
	Source     int // index into the sources
	Start, Len int
}

// Rows returns the total length of runs.
func Rows(runs []Run) int {
	n := 0
	for _, r := range runs {
		n += r.Len
	}
	return n
}

// Array returns a new array made of the runs of sources in their order. All
// sources have the same type. The result belongs to the caller; a single run
// shares its source's memory. Strings or binaries of more than 2 GiB in total,
// or as many elements of lists, are ErrTooLarge, because their offsets have 32
// bits. What mem hands out need not be cleared.
func Array(mem memory.Allocator, sources []arrow.Array, runs []Run) (arrow.Array, error) {
	if len(sources) == 0 {
		return nil, fmt.Errorf("assemble: no source array")
	}
	if len(runs) == 1 { // nothing to copy
		r := runs[0]
		return array.NewSlice(sources[r.Source], int64(r.Start), int64(r.Start+r.Len)), nil
	}
	return build(mem, sources, runs)
}

// build copies runs of sources by the way that their type needs.
func build(mem memory.Allocator, sources []arrow.Array, runs []Run) (arrow.Array, error) {
	typ := sources[0].DataType()
	switch t := typ.(type) {
	case *arrow.StructType:
		return structs(mem, t, sources, runs)
	case *arrow.ListType, *arrow.MapType:
		return lists(mem, typ, sources, runs)
	case *arrow.BooleanType:
		return bits(mem, sources, runs)
	case *arrow.StringType, *arrow.BinaryType:
		return text(mem, typ, sources, runs)
	case *arrow.DictionaryType, arrow.ExtensionType, *arrow.NullType:
		return concatenated(mem, sources, runs)
	case arrow.FixedWidthDataType:
		if t.BitWidth()%8 == 0 && len(t.Layout().Buffers) == 2 {
			return fixed(mem, typ, t.BitWidth()/8, sources, runs)
		}
	}
	return concatenated(mem, sources, runs)
}

// concatenated serves the types that have no faster way here.
func concatenated(mem memory.Allocator, sources []arrow.Array, runs []Run) (arrow.Array, error) {
	slices := make([]arrow.Array, len(runs))
	for i, r := range runs {
		slices[i] = array.NewSlice(sources[r.Source], int64(r.Start), int64(r.Start+r.Len))
	}
	defer func() {
		for _, s := range slices {
			s.Release()
		}
	}()
	if len(slices) == 0 {
		return array.NewSlice(sources[0], 0, 0), nil
	}
	return array.Concatenate(slices, bufpool.Zeroed(mem))
}

// fixed copies values of width bytes.
func fixed(mem memory.Allocator, typ arrow.DataType, width int, sources []arrow.Array, runs []Run) (arrow.Array, error) {
	values := make([][]byte, len(sources))
	for i, s := range sources {
		d := s.Data()
		if b := d.Buffers()[1]; b != nil {
			values[i] = b.Bytes()[d.Offset()*width : (d.Offset()+d.Len())*width]
		}
	}
	n := Rows(runs)
	out := memory.NewResizableBuffer(mem)
	out.Resize(n * width)
	defer out.Release()
	copyValues(out.Bytes(), values, runs, width)
	return finish(mem, typ, n, sources, runs, nil, out)
}

// copyValues copies runs of values. Single rows of the common widths go
// without a call of copy, which costs more than the move itself.
func copyValues(dst []byte, values [][]byte, runs []Run, width int) {
	pos := 0
	for _, r := range runs {
		src := values[r.Source][r.Start*width : (r.Start+r.Len)*width]
		if r.Len == 1 && width == 8 {
			*(*[8]byte)(dst[pos:]) = [8]byte(src)
			pos += 8
			continue
		}
		if r.Len == 1 && width == 16 {
			*(*[16]byte)(dst[pos:]) = [16]byte(src)
			pos += 16
			continue
		}
		pos += copy(dst[pos:], src)
	}
}

// bits copies boolean values.
func bits(mem memory.Allocator, sources []arrow.Array, runs []Run) (arrow.Array, error) {
	n := Rows(runs)
	out := memory.NewResizableBuffer(mem)
	out.Resize(int(bitutil.BytesForBits(int64(n))))
	defer out.Release()
	clear(out.Bytes())
	pos := 0
	for _, r := range runs {
		d := sources[r.Source].Data()
		copyBits(out.Bytes(), pos, d.Buffers()[1].Bytes(), d.Offset()+r.Start, r.Len)
		pos += r.Len
	}
	return finish(mem, arrow.FixedWidthTypes.Boolean, n, sources, runs, nil, out)
}

// fewBits is up to how many bits are moved one by one.
const fewBits = 16

// copyBits copies n bits of src to dst, whose bits must be clear.
func copyBits(dst []byte, to int, src []byte, from, n int) {
	if n > fewBits {
		bitutil.CopyBitmap(src, from, n, dst, to)
		return
	}
	for i := range n {
		bit := src[(from+i)>>3] >> ((from + i) & 7) & 1
		dst[(to+i)>>3] |= bit << ((to + i) & 7)
	}
}

// text copies strings or binaries with 32-bit offsets.
func text(mem memory.Allocator, typ arrow.DataType, sources []arrow.Array, runs []Run) (arrow.Array, error) {
	offsets := make([][]int32, len(sources))
	data := make([][]byte, len(sources))
	for i, s := range sources {
		if s.Len() > 0 {
			offsets[i], data[i] = textOf(s)
		}
	}
	total := int64(0)
	for _, r := range runs {
		if r.Len > 0 {
			o := offsets[r.Source]
			total += int64(o[r.Start+r.Len] - o[r.Start])
		}
	}
	if total > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d bytes of text", ErrTooLarge, total)
	}
	n := Rows(runs)
	ob, vb := memory.NewResizableBuffer(mem), memory.NewResizableBuffer(mem)
	defer ob.Release()
	defer vb.Release()
	ob.Resize((n + 1) * arrow.Int32SizeBytes)
	vb.Resize(int(total))
	copyText(arrow.Int32Traits.CastFromBytes(ob.Bytes()), vb.Bytes(), offsets, data, runs)
	return finish(mem, typ, n, sources, runs, ob, vb)
}

// textOf returns the offsets, relative to the returned bytes, and the bytes of
// a string or binary array that is not empty.
func textOf(a arrow.Array) ([]int32, []byte) {
	d := a.Data()
	all := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())
	var bytes []byte
	if b := d.Buffers()[2]; b != nil {
		bytes = b.Bytes()
	}
	return all[d.Offset() : d.Offset()+d.Len()+1], bytes
}

func copyText(dst []int32, out []byte, offsets [][]int32, data [][]byte, runs []Run) {
	pos, row := int32(0), 0
	dst[0] = 0
	for _, r := range runs {
		if r.Len == 0 {
			continue
		}
		o := offsets[r.Source][r.Start : r.Start+r.Len+1]
		shift := pos - o[0]
		for _, end := range o[1:] {
			row++
			dst[row] = end + shift
		}
		pos += int32(copy(out[pos:], data[r.Source][o[0]:o[len(o)-1]]))
	}
}

// finish adds the validity and makes the array. offsets is nil for types that
// have none.
func finish(mem memory.Allocator, typ arrow.DataType, n int, sources []arrow.Array, runs []Run, offsets, values *memory.Buffer) (arrow.Array, error) {
	valid, nulls := validity(mem, n, sources, runs)
	buffers := []*memory.Buffer{valid, values}
	if offsets != nil {
		buffers = []*memory.Buffer{valid, offsets, values}
	}
	d := array.NewData(typ, n, buffers, nil, nulls, 0)
	defer d.Release()
	if valid != nil {
		valid.Release()
	}
	return array.MakeFromData(d), nil
}

// validity copies the validity bits; nil when no source has a null.
func validity(mem memory.Allocator, n int, sources []arrow.Array, runs []Run) (*memory.Buffer, int) {
	any := false
	for _, s := range sources {
		any = any || s.NullN() > 0
	}
	if !any {
		return nil, 0
	}
	out := memory.NewResizableBuffer(mem)
	out.Resize(int(bitutil.BytesForBits(int64(n))))
	clear(out.Bytes())
	pos := 0
	for _, r := range runs {
		d := sources[r.Source].Data()
		if b := d.Buffers()[0]; b != nil && d.NullN() != 0 {
			copyBits(out.Bytes(), pos, b.Bytes(), d.Offset()+r.Start, r.Len)
		} else {
			bitutil.SetBitsTo(out.Bytes(), int64(pos), int64(r.Len), true)
		}
		pos += r.Len
	}
	return out, n - bitutil.CountSetBits(out.Bytes(), 0, n)
}
