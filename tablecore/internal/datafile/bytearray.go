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
	scratch [1024]uint32

	encoding int
	body     []byte       // PLAIN and DELTA_LENGTH: what is left
	lengths  deltaDecoder // DELTA_LENGTH: of the values left
	indices  hybrid
	prefixed prefixDecoder
}

// bytesDictionary holds the values of a dictionary page. Those of at most 8
// bytes lie in short too, so that they can be copied with one store.
type bytesDictionary struct {
	offsets  []uint32
	data     []byte
	short    []uint64
	allShort bool
	longest  int
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

func (d *bytesDecoder) setDictionary(values int, body []byte) error {
	if values > len(body)/4 {
		return fmt.Errorf("a dictionary claims %d values in %d bytes", values, len(body))
	}
	dict := bytesDictionary{
		offsets:  make([]uint32, 1, values+1),
		data:     make([]byte, 0, len(body)-4*values),
		short:    make([]uint64, values),
		allShort: true,
	}
	for i := range values {
		v, rest, err := plainBytes(body)
		if err != nil {
			return err
		}
		body = rest
		if len(dict.data)+len(v) > cap(dict.data) {
			return fmt.Errorf("a dictionary of %d values ends early", values)
		}
		dict.data = append(dict.data, v...)
		dict.offsets = append(dict.offsets, uint32(len(dict.data)))
		dict.short[i] = load64(v, 0)
		dict.allShort = dict.allShort && len(v) <= 8
		dict.longest = max(dict.longest, len(v))
	}
	d.dict = dict
	return nil
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

// gather looks values up in the dictionary. A run of one value, as a sorted
// column has, becomes one arithmetic series of offsets.
func (d *bytesDecoder) gather(slots int) error {
	for slots > 0 {
		k, repeated, err := d.indices.run(slots)
		if err != nil {
			return err
		}
		if repeated {
			if err := d.repeat(d.indices.value, k); err != nil {
				return err
			}
			d.indices.repeat -= k
		} else {
			k = min(k, len(d.scratch))
			part := d.scratch[:k]
			d.indices.unpack(part)
			if err := d.lookUp(part); err != nil {
				return err
			}
		}
		slots -= k
	}
	return nil
}

func (d *bytesDecoder) value(index uint32) ([]byte, error) {
	if int64(index) >= int64(len(d.dict.short)) {
		return nil, errIndex(index, len(d.dict.short))
	}
	return d.dict.data[d.dict.offsets[index]:d.dict.offsets[index+1]], nil
}

func (d *bytesDecoder) repeat(index uint32, slots int) error {
	v, err := d.value(index)
	if err != nil {
		return err
	}
	total := int64(len(v)) * int64(slots)
	data, err := d.room(total, slots)
	if err != nil {
		return err
	}
	end := int32(d.end)
	for i, to := 0, d.ends(slots); i < len(to); i++ {
		end += int32(len(v))
		to[i] = end
	}
	if dst := data[d.end : d.end+int(total)]; len(dst) > 0 {
		for n := copy(dst, v); n < len(dst); {
			n += copy(dst[n:], dst[:n])
		}
	}
	d.end = int(end)
	d.n += slots
	return nil
}

// lookUp appends the values of a few indices.
func (d *bytesDecoder) lookUp(indices []uint32) error {
	dict := &d.dict
	if dict.allShort {
		return d.lookUpShort(indices)
	}
	total := int64(0)
	for _, index := range indices {
		if int64(index) >= int64(len(dict.short)) {
			return errIndex(index, len(dict.short))
		}
		total += int64(dict.offsets[index+1] - dict.offsets[index])
	}
	data, err := d.room(total, len(indices))
	if err != nil {
		return err
	}
	ends, end := d.ends(len(indices)), d.end
	for i, index := range indices {
		end += copy(data[end:], dict.data[dict.offsets[index]:dict.offsets[index+1]])
		ends[i] = int32(end)
	}
	d.end = end
	d.n += len(indices)
	return nil
}

// lookUpShort appends values of at most 8 bytes, each stored as one word.
func (d *bytesDecoder) lookUpShort(indices []uint32) error {
	data, err := d.room(8*int64(len(indices)), len(indices))
	if err != nil {
		return err
	}
	ends, end := d.ends(len(indices)), d.end
	short, offsets := d.dict.short, d.dict.offsets
	for i, index := range indices {
		if int64(index) >= int64(len(short)) {
			return errIndex(index, len(short))
		}
		binary.LittleEndian.PutUint64(data[end:], short[index])
		end += int(offsets[index+1] - offsets[index])
		ends[i] = int32(end)
	}
	d.end = end
	d.n += len(indices)
	return nil
}

// gatherSparse looks values up where valid says so.
func (d *bytesDecoder) gatherSparse(slots int, valid []byte, at int) error {
	for slots > 0 {
		k := min(slots, len(d.scratch))
		present := countBits(valid, at, k)
		part := d.scratch[:present]
		if err := d.indices.read(part); err != nil {
			return err
		}
		before, ends := d.n, d.ends(k)
		if err := d.lookUp(part); err != nil {
			return err
		}
		d.n = before + k
		d.spreadEnds(ends, valid, at, present)
		slots -= k
		at += k
	}
	return nil
}

// spreadEnds moves the ends of present values apart, so that each lies where
// its bit is set; a null ends where the value before it does.
func (d *bytesDecoder) spreadEnds(ends []int32, valid []byte, at, present int) {
	from := present - 1
	start := arrow.Int32Traits.CastFromBytes(d.offsets.Bytes())[d.n-len(ends)]
	for to := len(ends) - 1; to > from; to-- {
		if from >= 0 {
			ends[to] = ends[from]
		} else {
			ends[to] = start
		}
		if from >= 0 && bitAt(valid, at+to) {
			from--
		}
	}
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
