package datafile

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// bytesDictionary holds the values of a dictionary page. Those of at most 8
// bytes lie in short too, so that they can be copied with one store.
type bytesDictionary struct {
	offsets  []uint32
	data     []byte
	short    []shortValue
	allShort bool
}

// shortValue is a value of at most 8 bytes.
type shortValue struct {
	word uint64 // in the order of memory, zeros behind it
	n    int    // its length, of a longer one too
}

func (d *bytesDecoder) setDictionary(values int, body []byte) error {
	if values > len(body)/4 {
		return fmt.Errorf("a dictionary claims %d values in %d bytes", values, len(body))
	}
	dict := bytesDictionary{
		offsets:  make([]uint32, 1, values+1),
		data:     make([]byte, 0, len(body)-4*values),
		short:    make([]shortValue, values),
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
		dict.short[i] = shortValue{load64(v, 0), len(v)}
		dict.allShort = dict.allShort && len(v) <= 8
	}
	d.dict = dict
	return nil
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
	short := d.dict.short
	for i, index := range indices {
		if int64(index) >= int64(len(short)) {
			return errIndex(index, len(short))
		}
		v := &short[index]
		binary.LittleEndian.PutUint64(data[end:], v.word)
		end += v.n
		ends[i] = int32(end)
	}
	d.end = end
	d.n += len(indices)
	return nil
}

// gatherSparse looks values up where valid says so.
func (d *bytesDecoder) gatherSparse(slots int, valid []byte, at int) error {
	for slots > 0 {
		k := min(slots, len(d.scratch)-1)
		present := countBits(valid, at, k)
		part := d.scratch[:present]
		if err := d.indices.read(part); err != nil {
			return err
		}
		if err := d.lookUpSparse(part, k, valid, at); err != nil {
			return err
		}
		slots -= k
		at += k
	}
	return nil
}

// lookUpSparse appends k slots, of which those that are valid have the values
// of the indices. indices has room for one more.
func (d *bytesDecoder) lookUpSparse(indices []uint32, k int, valid []byte, at int) error {
	if d.dict.allShort && len(indices) > 0 {
		return d.spreadShort(indices, k, valid, at)
	}
	before, ends := d.n, d.ends(k)
	if err := d.lookUp(indices); err != nil {
		return err
	}
	d.n = before + k
	d.spreadEnds(ends, valid, at, len(indices))
	return nil
}

// spreadShort is lookUpSparse for values of at most 8 bytes. It stores one for
// each slot, of a null the next one's, and then moves on or does not: a branch
// that the processor cannot guess would cost more.
func (d *bytesDecoder) spreadShort(indices []uint32, k int, valid []byte, at int) error {
	short := d.dict.short
	if most := slices.Max(indices); int64(most) >= int64(len(short)) {
		return errIndex(most, len(short))
	}
	data, err := d.room(8*int64(len(indices)), k)
	if err != nil {
		return err
	}
	ends, end, next := d.ends(k), d.end, 0
	indices = append(indices, 0) // nulls behind the last value
	for i := range ends {
		bit := int(valid[at>>3]) >> (at & 7) & 1
		v := &short[indices[next]]
		binary.LittleEndian.PutUint64(data[end:], v.word)
		end += v.n & -bit
		ends[i] = int32(end)
		next += bit
		at++
	}
	d.end = end
	d.n += k
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
