package datafile

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

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
