package datafile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// fixedDecoder decodes numbers of 4 or 8 bytes; floats pass through as bits.
type fixedDecoder[T uint32 | uint64] struct {
	typ  arrow.DataType
	mem  memory.Allocator
	size int // bytes of a T
	buf  *memory.Buffer
	n    int

	dict    []T
	scratch [1024]uint32

	encoding int
	body     []byte // PLAIN: what is left
	indices  hybrid
	delta    deltaDecoder
	stride   int // BYTE_STREAM_SPLIT: values in the page
	next     int // of which so many are read
}

func newFixedDecoder[T uint32 | uint64](typ arrow.DataType, mem memory.Allocator) *fixedDecoder[T] {
	return &fixedDecoder[T]{typ: typ, mem: mem, size: typ.(arrow.FixedWidthDataType).Bytes(), buf: memory.NewResizableBuffer(mem)}
}

func (d *fixedDecoder[T]) arrowType() arrow.DataType { return d.typ }
func (d *fixedDecoder[T]) slots() int                { return d.n }
func (d *fixedDecoder[T]) release()                  { d.buf.Release() }

func (d *fixedDecoder[T]) take() []*memory.Buffer {
	taken := []*memory.Buffer{d.buf}
	d.buf.ResizeNoShrink(d.n * d.size)
	d.buf, d.n = memory.NewResizableBuffer(d.mem), 0
	return taken
}

func (d *fixedDecoder[T]) reserve(slots int) { growBuffer(d.buf, (d.n+slots)*d.size) }

// room returns the next slots elements of the buffer.
func (d *fixedDecoder[T]) room(slots int) []T {
	if need := (d.n + slots) * d.size; need > d.buf.Len() {
		growBuffer(d.buf, need)
	}
	return arrow.GetData[T](d.buf.Bytes())[d.n : d.n+slots]
}

func (d *fixedDecoder[T]) setDictionary(values int, body []byte) error {
	if values > len(body)/d.size {
		return fmt.Errorf("a dictionary claims %d values in %d bytes", values, len(body))
	}
	d.dict = make([]T, values)
	copy(arrow.GetBytes(d.dict), body)
	return nil
}

func (d *fixedDecoder[T]) setPage(encoding int, body []byte, most int) (err error) {
	d.encoding, d.body = encoding, body
	switch encoding {
	case encPlain:
	case encRLEDict, encPlainDict:
		d.indices, err = dictionaryIndices(body)
	case encDeltaBinary:
		d.delta = deltaDecoder{}
		if len(body) > 0 {
			err = d.delta.reset(body, most)
		}
	case encByteStreamSpl:
		d.stride, d.next = len(body)/d.size, 0
	default:
		err = errEncoding(encoding, d.typ.String())
	}
	return err
}

func (d *fixedDecoder[T]) read(slots, present int, valid []byte, at int) error {
	dst := d.room(slots)
	if err := d.decode(dst[:present]); err != nil {
		return err
	}
	if present < slots {
		spread(dst, valid, at, present)
	}
	d.n += slots
	return nil
}

func (d *fixedDecoder[T]) decode(dst []T) error {
	switch d.encoding {
	case encPlain:
		if len(d.body) < len(dst)*d.size {
			return errTooFew(d.typ.String() + " values")
		}
		d.body = d.body[copy(arrow.GetBytes(dst), d.body):]
		return nil
	case encRLEDict, encPlainDict:
		return d.gather(dst)
	case encDeltaBinary:
		return decodeDelta(&d.delta, dst)
	}
	if d.stride-d.next < len(dst) {
		return errTooFew(d.typ.String() + " values")
	}
	for i := range dst {
		var v T
		for k := range d.size {
			v |= T(d.body[k*d.stride+d.next]) << (8 * k)
		}
		dst[i] = v
		d.next++
	}
	return nil
}

// gather looks values up in the dictionary.
func (d *fixedDecoder[T]) gather(dst []T) error {
	for len(dst) > 0 {
		k, repeated, err := d.indices.run(len(dst))
		if err != nil {
			return err
		}
		if repeated {
			if uint64(d.indices.value) >= uint64(len(d.dict)) {
				return errIndex(d.indices.value, len(d.dict))
			}
			v := d.dict[d.indices.value]
			for i := range dst[:k] {
				dst[i] = v
			}
			d.indices.repeat -= k
			dst = dst[k:]
			continue
		}
		k = min(k, len(d.scratch))
		part := d.scratch[:k]
		d.indices.unpack(part)
		for i, index := range part {
			if uint64(index) >= uint64(len(d.dict)) {
				return errIndex(index, len(d.dict))
			}
			dst[i] = d.dict[index]
		}
		dst = dst[k:]
	}
	return nil
}

func (d *fixedDecoder[T]) skip(present int) error {
	switch d.encoding {
	case encPlain:
		if len(d.body) < present*d.size {
			return errTooFew(d.typ.String() + " values")
		}
		d.body = d.body[present*d.size:]
		return nil
	case encRLEDict, encPlainDict:
		return d.indices.skip(present)
	case encDeltaBinary:
		return skipDelta(&d.delta, present)
	}
	if d.stride-d.next < present {
		return errTooFew(d.typ.String() + " values")
	}
	d.next += present
	return nil
}
