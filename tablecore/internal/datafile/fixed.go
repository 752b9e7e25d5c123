package datafile

import (
	"encoding/binary"
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

// blobDecoder decodes values of any other fixed length: FIXED_LEN_BYTE_ARRAY
// and INT96.
type blobDecoder struct {
	width int
	mem   memory.Allocator
	buf   []byte
	n     int

	dict    []byte
	scratch [1024]uint32

	encoding int
	body     []byte
	indices  hybrid
	prefixed prefixDecoder
	stride   int
	next     int
}

func (d *blobDecoder) arrowType() arrow.DataType {
	return &arrow.FixedSizeBinaryType{ByteWidth: d.width}
}
func (d *blobDecoder) slots() int        { return d.n }
func (d *blobDecoder) release()          { d.buf = nil }
func (d *blobDecoder) reserve(slots int) { d.buf = grow(d.buf, slots*d.width) }

func (d *blobDecoder) take() []*memory.Buffer {
	out := memory.NewResizableBuffer(d.mem)
	out.Resize(len(d.buf))
	copy(out.Bytes(), d.buf)
	d.buf, d.n = d.buf[:0], 0
	return []*memory.Buffer{out}
}

func (d *blobDecoder) setDictionary(values int, body []byte) error {
	if values > len(body)/max(1, d.width) {
		return fmt.Errorf("a dictionary claims %d values in %d bytes", values, len(body))
	}
	d.dict = append([]byte(nil), body[:values*d.width]...)
	return nil
}

func (d *blobDecoder) setPage(encoding int, body []byte, most int) (err error) {
	d.encoding, d.body = encoding, body
	switch encoding {
	case encPlain:
	case encRLEDict, encPlainDict:
		d.indices, err = dictionaryIndices(body)
	case encDeltaByteArr:
		err = d.prefixed.reset(body, most)
	case encByteStreamSpl:
		d.stride, d.next = len(body)/max(1, d.width), 0
	default:
		err = errEncoding(encoding, fmt.Sprintf("values of %d bytes", d.width))
	}
	return err
}

func (d *blobDecoder) read(slots, present int, valid []byte, at int) error {
	if present == slots {
		return d.append(slots)
	}
	for i := range slots {
		if bitAt(valid, at+i) {
			if err := d.append(1); err != nil {
				return err
			}
			continue
		}
		d.buf = append(d.buf, make([]byte, d.width)...)
		d.n++
	}
	return nil
}

// append decodes values and appends them.
func (d *blobDecoder) append(values int) error {
	switch d.encoding {
	case encPlain:
		if len(d.body) < values*d.width {
			return errTooFew("values")
		}
		d.buf = append(d.buf, d.body[:values*d.width]...)
		d.body = d.body[values*d.width:]
	case encRLEDict, encPlainDict:
		if err := d.gather(values); err != nil {
			return err
		}
	case encDeltaByteArr:
		for range values {
			v, err := d.prefixed.next()
			if err != nil {
				return err
			}
			if len(v) != d.width {
				return fmt.Errorf("a value of %d bytes stands where %d belong", len(v), d.width)
			}
			d.buf = append(d.buf, v...)
		}
	default:
		if d.stride-d.next < values {
			return errTooFew("values")
		}
		for range values {
			for k := range d.width {
				d.buf = append(d.buf, d.body[k*d.stride+d.next])
			}
			d.next++
		}
	}
	d.n += values
	return nil
}

func (d *blobDecoder) gather(values int) error {
	known := len(d.dict) / max(1, d.width)
	for values > 0 {
		part := d.scratch[:min(values, len(d.scratch))]
		if err := d.indices.read(part); err != nil {
			return err
		}
		for _, index := range part {
			if int64(index) >= int64(known) {
				return errIndex(index, known)
			}
			d.buf = append(d.buf, d.dict[int(index)*d.width:(int(index)+1)*d.width]...)
		}
		values -= len(part)
	}
	return nil
}

func (d *blobDecoder) skip(present int) error {
	switch d.encoding {
	case encPlain:
		if len(d.body) < present*d.width {
			return errTooFew("values")
		}
		d.body = d.body[present*d.width:]
	case encRLEDict, encPlainDict:
		return d.indices.skip(present)
	case encDeltaByteArr:
		for range present {
			if _, err := d.prefixed.next(); err != nil {
				return err
			}
		}
	default:
		if d.stride-d.next < present {
			return errTooFew("values")
		}
		d.next += present
	}
	return nil
}

// boolDecoder decodes booleans, PLAIN or RLE.
type boolDecoder struct {
	mem memory.Allocator
	buf []byte // bitmap
	n   int

	encoding int
	body     []byte
	pos      int // PLAIN: next bit
	runs     hybrid
}

func (d *boolDecoder) arrowType() arrow.DataType { return arrow.FixedWidthTypes.Boolean }
func (d *boolDecoder) slots() int                { return d.n }
func (d *boolDecoder) release()                  { d.buf = nil }

func (d *boolDecoder) reserve(slots int) {
	if more := (d.n+slots+7)/8 - len(d.buf); more > 0 {
		d.buf = append(d.buf, make([]byte, more)...)
	}
}

func (d *boolDecoder) take() []*memory.Buffer {
	out := memory.NewResizableBuffer(d.mem)
	out.Resize((d.n + 7) / 8)
	copy(out.Bytes(), d.buf)
	d.buf, d.n = d.buf[:0], 0
	return []*memory.Buffer{out}
}

func (d *boolDecoder) setDictionary(int, []byte) error {
	return fmt.Errorf("booleans have a dictionary")
}

func (d *boolDecoder) setPage(encoding int, body []byte, _ int) error {
	d.encoding, d.body, d.pos = encoding, body, 0
	switch encoding {
	case encPlain:
		return nil
	case encRLE:
		if len(body) == 0 {
			d.runs = hybrid{}
			return nil
		}
		if len(body) < 4 || int64(binary.LittleEndian.Uint32(body)) > int64(len(body)-4) {
			return errTooFew("booleans")
		}
		d.runs = newHybrid(body[4:4+binary.LittleEndian.Uint32(body)], 1)
		return nil
	}
	return errEncoding(encoding, "booleans")
}

func (d *boolDecoder) read(slots, present int, valid []byte, at int) error {
	d.reserve(slots)
	if present == slots {
		if err := d.bits(d.buf, d.n, slots); err != nil {
			return err
		}
		d.n += slots
		return nil
	}
	packed := make([]byte, (present+7)/8)
	if err := d.bits(packed, 0, present); err != nil {
		return err
	}
	from := 0
	for i := range slots {
		if !bitAt(valid, at+i) {
			continue
		}
		if bitAt(packed, from) {
			d.buf[(d.n+i)>>3] |= 1 << ((d.n + i) & 7)
		}
		from++
	}
	d.n += slots
	return nil
}

// bits decodes n booleans into a bitmap whose bits are clear.
func (d *boolDecoder) bits(dst []byte, to, n int) error {
	if d.encoding == encRLE {
		_, err := d.runs.readBits(dst, to, n)
		return err
	}
	if len(d.body)*8-d.pos < n {
		return errTooFew("booleans")
	}
	copyBits(dst, to, d.body, d.pos, n)
	d.pos += n
	return nil
}

func (d *boolDecoder) skip(present int) error {
	if d.encoding == encRLE {
		_, err := d.runs.skipBits(present)
		return err
	}
	if len(d.body)*8-d.pos < present {
		return errTooFew("booleans")
	}
	d.pos += present
	return nil
}
