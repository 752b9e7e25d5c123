package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Types of Thrift's compact protocol, in which Parquet writes its headers
// (thrift-compact-protocol.md of Apache Thrift).
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12

	thriftMaxDepth = 16 // Parquet's own structures nest 6 deep
)

var errThriftShort = errors.New("a header ends early")

// thriftReader reads structures of the compact protocol from bytes that may
// hold anything. The first error sticks, and every read after it returns zero;
// nothing is allocated, and no loop outlives the bytes.
type thriftReader struct {
	b       []byte
	pos     int
	structs int // structures begun so far
	sealed  bool
	err     error
}

func (r *thriftReader) fail(err error) {
	if r.err == nil {
		r.err = err
		r.pos = len(r.b)
	}
}

func (r *thriftReader) byte() byte {
	if r.pos >= len(r.b) {
		r.fail(errThriftShort)
		return 0
	}
	v := r.b[r.pos]
	r.pos++
	return v
}

func (r *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b[r.pos:])
	if n <= 0 {
		r.fail(errThriftShort)
		return 0
	}
	r.pos += n
	return v
}

// int reads a zigzag number of any width.
func (r *thriftReader) int() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *thriftReader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)-r.pos) {
		r.fail(errThriftShort)
		return nil
	}
	v := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return v
}

// list reads a list's head. Every element takes at least one byte, so a size
// beyond the bytes left is an error.
func (r *thriftReader) list() (size int, typ byte) {
	head := r.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = r.uvarint()
	}
	if n > uint64(len(r.b)-r.pos) {
		r.fail(errThriftShort)
		return 0, 0
	}
	return int(n), head & 15
}

// structure calls field for each field of a structure. A field that the
// function does not read, and says so by returning false, is skipped.
func (r *thriftReader) structure(depth int, field func(id int, typ byte) bool) {
	if depth > thriftMaxDepth {
		r.fail(fmt.Errorf("a header nests deeper than %d", thriftMaxDepth))
		return
	}
	r.structs++
	id := 0
	for r.err == nil {
		head := r.byte()
		typ := head & 15
		if typ == 0 {
			return
		}
		if delta := int(head >> 4); delta != 0 {
			id += delta
		} else {
			id = int(int16(r.int()))
		}
		if !field(id, typ) {
			r.skip(typ, depth+1)
		}
	}
}

func skipField(int, byte) bool { return false }

// skip passes over a value of the given type.
func (r *thriftReader) skip(typ byte, depth int) {
	switch typ {
	case thriftTrue, thriftFalse: // the value is in the field's head
	case thriftByte:
		r.byte()
	case thriftI16, thriftI32, thriftI64:
		r.uvarint()
	case thriftDouble:
		if len(r.b)-r.pos < 8 {
			r.fail(errThriftShort)
			return
		}
		r.pos += 8
	case thriftBinary:
		r.bytes()
	case thriftList, thriftSet:
		n, elem := r.list()
		r.skipElements(n, elem, depth)
	case thriftMap:
		n := r.uvarint()
		if n == 0 {
			return
		}
		types := r.byte()
		if n > uint64(len(r.b)-r.pos) {
			r.fail(errThriftShort)
			return
		}
		for ; n > 0 && r.err == nil; n-- {
			r.skipElements(1, types>>4, depth)
			r.skipElements(1, types&15, depth)
		}
	case thriftStruct:
		r.structure(depth, skipField)
	default:
		r.fail(fmt.Errorf("a header has a field of type %d", typ))
	}
}

func (r *thriftReader) skipElements(n int, typ byte, depth int) {
	if depth > thriftMaxDepth {
		r.fail(fmt.Errorf("a header nests deeper than %d", thriftMaxDepth))
		return
	}
	for ; n > 0 && r.err == nil; n-- {
		if typ == thriftTrue || typ == thriftFalse {
			r.byte() // inside containers a bool takes a byte
			continue
		}
		r.skip(typ, depth+1)
	}
}

// thriftWriter appends structures of the compact protocol.
type thriftWriter struct {
	b    []byte
	last int // id of the last field of the open structure
}

func (w *thriftWriter) field(id int, typ byte) {
	w.b = append(w.b, byte(id-w.last)<<4|typ)
	w.last = id
}

// i32 writes a number field; ids must ascend by at most 15.
func (w *thriftWriter) i32(id int, v int32) {
	w.field(id, thriftI32)
	w.b = binary.AppendVarint(w.b, int64(v))
}

// structure writes a structure field.
func (w *thriftWriter) structure(id int, body func()) {
	w.field(id, thriftStruct)
	outer := w.last
	w.last = 0
	body()
	w.b = append(w.b, 0)
	w.last = outer
}
