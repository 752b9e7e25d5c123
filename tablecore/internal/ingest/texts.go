package ingest

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// textCoder turns text arrays into numbers: 0 for a null, else one more than
// the text's code in the interner.
type textCoder struct {
	*interner
	dict      arrow.ArrayData // the dictionary that dictCodes belongs to, retained
	dictCodes []uint32        // number of each dictionary value, 0 = not met yet
}

func newTextCoder() *textCoder { return &textCoder{interner: newInterner()} }

// free drops the reference to the last dictionary.
func (t *textCoder) free() {
	if t.dict != nil {
		t.dict.Release()
		t.dict = nil
	}
}

func (t *textCoder) bytes() int64 { return t.interner.bytes() + int64(cap(t.dictCodes))*4 }

// codes writes the numbers of rows [from, from+len(dst)) of arr, a string array
// with offsets or a dictionary of one.
func (t *textCoder) codes(dst []uint32, arr arrow.Array, from int) {
	switch a := arr.(type) {
	case *array.String:
		offsets, values := textParts[int32](a)
		codeTexts(t.interner, dst, a, offsets, values, from)
	case *array.LargeString:
		offsets, values := textParts[int64](a)
		codeTexts(t.interner, dst, a, offsets, values, from)
	case *array.Dictionary:
		t.useDictionary(a)
		values := dictText(a)
		for i := range dst {
			dst[i] = 0
			if a.IsValid(from + i) {
				dst[i] = t.dictNumber(values, a.GetValueIndex(from+i))
			}
		}
	}
}

// textParts returns the offsets (one more than rows, none for no rows) and the
// bytes they point into.
func textParts[O int32 | int64](arr arrow.Array) ([]O, []byte) {
	data := arr.Data()
	if data.Len() == 0 {
		return nil, nil
	}
	offsets := arrow.GetOffsets[O](data, 1)
	if data.Buffers()[2] == nil {
		return offsets, nil
	}
	return offsets, data.Buffers()[2].Bytes()
}

// codeTexts is the loop over plain texts: runs of equal texts and short texts
// that are known cost no call.
func codeTexts[O int32 | int64](t *interner, dst []uint32, arr arrow.Array, offsets []O, values []byte, from int) {
	offsets = offsets[from : from+len(dst)+1]
	var valid []byte // nil without nulls
	if arr.NullN() > 0 {
		valid = arr.NullBitmapBytes()
	}
	bit := arr.Data().Offset() + from
	lastKey, lastLength, last := uint64(0), -1, uint32(0)
	for i := range dst {
		if valid != nil && valid[(bit+i)>>3]>>((bit+i)&7)&1 == 0 {
			dst[i] = 0
			continue
		}
		start, end := int(offsets[i]), int(offsets[i+1])
		length := end - start
		if length > 8 || start+8 > len(values) {
			dst[i] = t.code(values, start, end) + 1
			continue
		}
		key := binary.LittleEndian.Uint64(values[start:]) & (1<<(8*uint(length)) - 1)
		if key == lastKey && length == lastLength {
			dst[i] = last
			continue
		}
		s := &t.slots[t.slot(key, uint32(length))]
		if s.key == key && s.length == uint32(length) && s.code != 0 {
			last = s.code
		} else {
			last = t.code(values, start, end) + 1
		}
		dst[i], lastKey, lastLength = last, key, length
	}
}

// useDictionary makes dictCodes fit the array's dictionary. A dictionary that
// many batches share is coded once; it is retained, so that another one cannot
// take its place in memory unnoticed.
func (t *textCoder) useDictionary(a *array.Dictionary) {
	dict := a.Data().Dictionary()
	if t.dict == dict {
		return
	}
	t.free()
	dict.Retain()
	t.dict = dict
	t.dictCodes = append(t.dictCodes[:0], make([]uint32, dict.Len())...)
}

func (t *textCoder) dictNumber(values func(int) string, index int) uint32 {
	if t.dictCodes[index] == 0 {
		text := []byte(values(index))
		t.dictCodes[index] = t.code(text, 0, len(text)) + 1
	}
	return t.dictCodes[index]
}

// dictText returns the reader of a dictionary's values.
func dictText(a *array.Dictionary) func(int) string {
	switch d := a.Dictionary().(type) {
	case *array.String:
		return d.Value
	case *array.LargeString:
		return d.Value
	}
	return func(int) string { return "" }
}
