package wire

import (
	"encoding/binary"
	"errors"
)

// errFlatbuffer reports bytes that are no flatbuffer of the expected shape. It
// is one value: hostile input is not worth a precise diagnosis.
var errFlatbuffer = errors.New("its header is not a well-formed flatbuffer")

// fbTable is a table of a flatbuffer whose bytes are not trusted. Its methods
// return errFlatbuffer where an offset leads outside the buffer, while
// flatbuffers' own accessors panic and trust the lengths of vectors.
// Layout: https://flatbuffers.dev/internals/
type fbTable struct {
	buf    []byte
	pos    int // of the table
	vtable int // of its vtable
	vtLen  int // bytes of the vtable, including its two leading sizes
}

// fbRoot returns the root table of buf.
func fbRoot(buf []byte) (fbTable, error) {
	if len(buf) < 4 {
		return fbTable{}, errFlatbuffer
	}
	return fbTableAt(buf, int(binary.LittleEndian.Uint32(buf)))
}

func fbTableAt(buf []byte, pos int) (fbTable, error) {
	if pos < 0 || pos > len(buf)-4 {
		return fbTable{}, errFlatbuffer
	}
	vtable := pos - int(int32(binary.LittleEndian.Uint32(buf[pos:])))
	if vtable < 0 || vtable > len(buf)-4 {
		return fbTable{}, errFlatbuffer
	}
	vtLen := int(binary.LittleEndian.Uint16(buf[vtable:]))
	if vtLen < 4 || vtLen%2 != 0 || vtLen > len(buf)-vtable {
		return fbTable{}, errFlatbuffer
	}
	return fbTable{buf: buf, pos: pos, vtable: vtable, vtLen: vtLen}, nil
}

// slot returns where the value of a field lies, or 0 where the field is left
// out; size is the number of bytes that must be there.
func (t fbTable) slot(i, size int) (int, error) {
	entry := 4 + 2*i
	if entry+2 > t.vtLen {
		return 0, nil
	}
	offset := int(binary.LittleEndian.Uint16(t.buf[t.vtable+entry:]))
	if offset == 0 {
		return 0, nil
	}
	pos := t.pos + offset
	if pos > len(t.buf)-size {
		return 0, errFlatbuffer
	}
	return pos, nil
}

// uint8 returns a one-byte field, 0 where it is left out.
func (t fbTable) uint8(i int) (uint8, error) {
	pos, err := t.slot(i, 1)
	if pos == 0 || err != nil {
		return 0, err
	}
	return t.buf[pos], nil
}

// int64 returns an eight-byte field, 0 where it is left out.
func (t fbTable) int64(i int) (int64, error) {
	pos, err := t.slot(i, 8)
	if pos == 0 || err != nil {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint64(t.buf[pos:])), nil
}

// table returns a field that is a table; ok is false where it is left out.
func (t fbTable) table(i int) (sub fbTable, ok bool, err error) {
	pos, err := t.slot(i, 4)
	if pos == 0 || err != nil {
		return fbTable{}, false, err
	}
	sub, err = t.follow(pos)
	return sub, err == nil, err
}

// follow returns the table that the offset at pos leads to.
func (t fbTable) follow(pos int) (fbTable, error) {
	return fbTableAt(t.buf, pos+int(binary.LittleEndian.Uint32(t.buf[pos:])))
}

// vector returns where the elements of a vector field start and how many there
// are, all of them inside the buffer; none where the field is left out.
func (t fbTable) vector(i, elemSize int) (start, n int, err error) {
	pos, err := t.slot(i, 4)
	if pos == 0 || err != nil {
		return 0, 0, err
	}
	pos += int(binary.LittleEndian.Uint32(t.buf[pos:]))
	if pos > len(t.buf)-4 {
		return 0, 0, errFlatbuffer
	}
	start, n = pos+4, int(binary.LittleEndian.Uint32(t.buf[pos:]))
	if n > (len(t.buf)-start)/elemSize {
		return 0, 0, errFlatbuffer
	}
	return start, n, nil
}

// int64At reads eight bytes inside a vector that was found by vector.
func (t fbTable) int64At(pos int) int64 {
	return int64(binary.LittleEndian.Uint64(t.buf[pos:]))
}
