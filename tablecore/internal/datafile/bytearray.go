package datafile

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// bytesDecoder decodes strings and binary values to offsets and data.
type bytesDecoder struct {
	mem     memory.Allocator
	limit   int64 // bytes of data one array may have
	offsets *memory.Buffer
	data    *memory.Buffer
	n       int // slots
	end     int // bytes of data used
	perSlot int // bytes of a slot in the array taken last, rounded up

	dict    bytesDictionary
	scratch [1025]uint32 // one more than is read at once

	encoding int
	body     []byte       // PLAIN and DELTA_LENGTH: what is left
	lengths  deltaDecoder // DELTA_LENGTH: of the values left
	indices  hybrid
	prefixed prefixDecoder
}

func (d *bytesDecoder) arrowType() arrow.DataType { return arrow.BinaryTypes.Binary }
func (d *bytesDecoder) slots() int                { return d.n }

func (d *bytesDecoder) release() {
	if d.offsets != nil {
		d.offsets.Release()
		d.data.Release()
		d.offsets, d.data = nil, nil
	}
}

func (d *bytesDecoder) take() []*memory.Buffer {
	d.reserve(0)
	d.offsets.ResizeNoShrink((d.n + 1) * 4)
	d.data.ResizeNoShrink(d.end)
	taken := []*memory.Buffer{d.offsets, d.data}
	if d.n > 0 {
		d.perSlot = d.end/d.n + 1
	}
	d.offsets, d.data, d.n, d.end = nil, nil, 0, 0
	return taken
}

func (d *bytesDecoder) reserve(slots int) {
	if d.offsets == nil {
		d.offsets, d.data = memory.NewResizableBuffer(d.mem), memory.NewResizableBuffer(d.mem)
		growBuffer(d.offsets, (slots+1)*4)
		growBuffer(d.data, min(slots*max(8, d.perSlot), int(d.limit))+8)
		arrow.Int32Traits.CastFromBytes(d.offsets.Bytes())[0] = 0
		return
	}
	growBuffer(d.offsets, max(d.offsets.Len(), (d.n+slots+1)*4))
}

// ends returns the end offsets of the next slots slots, to be filled in.
func (d *bytesDecoder) ends(slots int) []int32 {
	d.reserve(slots)
	return arrow.Int32Traits.CastFromBytes(d.offsets.Bytes())[d.n+1 : d.n+1+slots]
}

// room makes the data buffer hold n more bytes, those of the next slots slots,
// and returns all of it. A single value may be longer than the limit.
func (d *bytesDecoder) room(n int64, slots int) ([]byte, error) {
	need := int64(d.end) + n
	if need > math.MaxInt32-8 || (need > d.limit && d.n+slots > 1) {
		return nil, errBatchFull
	}
	if d.offsets == nil {
		d.reserve(slots)
	}
	// 8 bytes more, so that a short value may be stored as a whole word.
	if need+8 > int64(d.data.Len()) {
		growBuffer(d.data, int(need)+8)
	}
	return d.data.Bytes(), nil
}

// plainBytes takes a PLAIN value off the front of b.
func plainBytes(b []byte) (v, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errTooFew("strings")
	}
	n := binary.LittleEndian.Uint32(b)
	if int64(n) > int64(len(b)-4) {
		return nil, nil, fmt.Errorf("a string claims %d bytes of %d", n, len(b)-4)
	}
	return b[4 : 4+n], b[4+n:], nil
}

func (d *bytesDecoder) setPage(encoding int, body []byte, most int) (err error) {
	d.encoding, d.body = encoding, body
	switch encoding {
	case encPlain:
	case encRLEDict, encPlainDict:
		d.indices, err = dictionaryIndices(body)
	case encDeltaLength:
		d.lengths, d.body, err = deltaLengths(body, most)
	case encDeltaByteArr:
		err = d.prefixed.reset(body, most)
	default:
		err = errEncoding(encoding, "strings")
	}
	return err
}

// deltaLengths returns a decoder for the lengths at the front of a page, and
// what follows them. The lengths are passed over once to find their end rather
// than kept, since few bytes can hold any number of them.
func deltaLengths(body []byte, most int) (lengths deltaDecoder, rest []byte, err error) {
	if len(body) == 0 {
		return lengths, nil, nil
	}
	if err := lengths.reset(body, most); err != nil {
		return lengths, nil, err
	}
	end := lengths
	if err := skipDelta(&end, end.left); err != nil {
		return lengths, nil, err
	}
	return lengths, end.rest(), nil
}

func (d *bytesDecoder) read(slots, present int, valid []byte, at int) error {
	if present == slots {
		return d.dense(slots)
	}
	if d.encoding == encRLEDict || d.encoding == encPlainDict {
		return d.gatherSparse(slots, valid, at)
	}
	for i := 0; i < slots; {
		run := 1
		isNull := !bitAt(valid, at+i)
		for i+run < slots && bitAt(valid, at+i+run) != isNull {
			run++
		}
		if isNull {
			d.nulls(run)
		} else if err := d.dense(run); err != nil {
			return err
		}
		i += run
	}
	return nil
}

func (d *bytesDecoder) nulls(slots int) {
	ends := d.ends(slots)
	for i := range ends {
		ends[i] = int32(d.end)
	}
	d.n += slots
}

// dense appends slots values without a null among them.
func (d *bytesDecoder) dense(slots int) error {
	switch d.encoding {
	case encPlain:
		return d.plain(slots)
	case encRLEDict, encPlainDict:
		return d.gather(slots)
	case encDeltaLength:
		return d.sized(slots)
	}
	for range slots {
		v, err := d.prefixed.next()
		if err != nil {
			return err
		}
		if err := d.one(v); err != nil {
			return err
		}
	}
	return nil
}

func (d *bytesDecoder) one(v []byte) error {
	data, err := d.room(int64(len(v)), 1)
	if err != nil {
		return err
	}
	d.end += copy(data[d.end:], v)
	d.ends(1)[0] = int32(d.end)
	d.n++
	return nil
}

func (d *bytesDecoder) plain(slots int) error {
	for range slots {
		v, rest, err := plainBytes(d.body)
		if err != nil {
			return err
		}
		if err := d.one(v); err != nil {
			return err
		}
		d.body = rest
	}
	return nil
}

// sized appends values whose bytes lie one after another in the page.
func (d *bytesDecoder) sized(slots int) error {
	for slots > 0 {
		part := d.scratch[:min(slots, len(d.scratch))]
		total, err := d.nextLengths(part)
		if err != nil {
			return err
		}
		data, err := d.room(total, len(part))
		if err != nil {
			return err
		}
		end := d.end
		for i, to := 0, d.ends(len(part)); i < len(to); i++ {
			end += int(part[i])
			to[i] = int32(end)
		}
		d.body = d.body[copy(data[d.end:end], d.body):]
		d.end = end
		d.n += len(part)
		slots -= len(part)
	}
	return nil
}

// nextLengths decodes lengths and returns their sum, which the page holds.
func (d *bytesDecoder) nextLengths(part []uint32) (total int64, err error) {
	if err := decodeDelta(&d.lengths, part); err != nil {
		return 0, err
	}
	for _, n := range part {
		total += int64(n)
	}
	if total > int64(len(d.body)) {
		return 0, fmt.Errorf("strings claim %d bytes of %d", total, len(d.body))
	}
	return total, nil
}

func (d *bytesDecoder) skip(present int) error {
	switch d.encoding {
	case encRLEDict, encPlainDict:
		return d.indices.skip(present)
	case encDeltaLength:
		for present > 0 {
			part := d.scratch[:min(present, len(d.scratch))]
			total, err := d.nextLengths(part)
			if err != nil {
				return err
			}
			d.body = d.body[total:]
			present -= len(part)
		}
		return nil
	}
	for range present {
		if d.encoding == encPlain {
			_, rest, err := plainBytes(d.body)
			if err != nil {
				return err
			}
			d.body = rest
		} else if _, err := d.prefixed.next(); err != nil {
			return err
		}
	}
	return nil
}
