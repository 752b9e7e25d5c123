package datafile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// blobDecoder decodes values of any other fixed length: FIXED_LEN_BYTE_ARRAY
// and INT96.
type blobDecoder struct {
	width int
	mem   memory.Allocator
	limit int64 // bytes one array may have
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
func (d *blobDecoder) slots() int { return d.n }
func (d *blobDecoder) release()   { d.buf = nil }

// reserve does nothing: the width is the file's own claim, and the buffer grows
// with what is really there.
func (d *blobDecoder) reserve(int) {}

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
	if int64(d.n+slots)*int64(d.width) > d.limit && d.n+slots > 1 {
		return errBatchFull
	}
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
