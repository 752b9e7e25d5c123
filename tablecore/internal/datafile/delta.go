package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

var errDeltaShort = errors.New("a DELTA_BINARY_PACKED page ends early")

// deltaDecoder decodes DELTA_BINARY_PACKED (Encodings.md, "Delta Encoding").
// Numbers of 32 bits are decoded as 64 and cut, which is the same modulo 2^32.
// Places in b are numbers, not slices: moving them costs no write barrier.
type deltaDecoder struct {
	b        []byte
	at       int // what no miniblock has taken yet
	left     int // values not yet given
	last     uint64
	first    bool
	minDelta uint64
	perMini  int
	minis    int

	widthsAt, widths int // widths of the miniblocks not begun yet
	inMini           int // values left in the open miniblock
	width            int
	pos, miniEnd     int // bit position in b, end of the miniblock in bytes
}

// reset reads the head of an encoded sequence. most is the number of values it
// may have; more is an error, so that a hostile head cannot claim memory.
func (d *deltaDecoder) reset(b []byte, most int) error {
	*d = deltaDecoder{b: b}
	var head [4]uint64
	for i := range head {
		v, ok := d.uvarint()
		if !ok {
			return errDeltaShort
		}
		head[i] = v
	}
	block, minis, total, first := head[0], head[1], head[2], head[3]
	if block == 0 || block > 1<<20 || minis == 0 || minis > block || block%minis != 0 || block/minis%8 != 0 {
		return fmt.Errorf("a DELTA_BINARY_PACKED page has blocks of %d values in %d parts", block, minis)
	}
	if total > uint64(most) {
		return fmt.Errorf("a DELTA_BINARY_PACKED sequence claims %d values of at most %d", total, most)
	}
	d.left, d.perMini, d.minis = int(total), int(block/minis), int(minis)
	d.last, d.first = first>>1^-(first&1), true
	return nil
}

func (d *deltaDecoder) uvarint() (uint64, bool) {
	v, n := binary.Uvarint(d.b[d.at:])
	if n <= 0 {
		return 0, false
	}
	d.at += n
	return v, true
}

// openMini begins the next miniblock.
func (d *deltaDecoder) openMini() error {
	if d.widths == 0 {
		v, ok := d.uvarint()
		if !ok || len(d.b)-d.at < d.minis {
			return errDeltaShort
		}
		d.minDelta = v>>1 ^ -(v & 1)
		d.widthsAt, d.widths = d.at, d.minis
		d.at += d.minis
	}
	d.width = int(d.b[d.widthsAt])
	d.widthsAt++
	d.widths--
	if d.width > 64 {
		return fmt.Errorf("a DELTA_BINARY_PACKED page packs numbers in %d bits", d.width)
	}
	size := d.width * d.perMini / 8
	if rest := len(d.b) - d.at; size > rest {
		// The padding of the last miniblock may be cut.
		if (min(d.left, d.perMini)*d.width+7)/8 > rest {
			return errDeltaShort
		}
		size = rest
	}
	d.pos, d.miniEnd = d.at*8, d.at+size
	d.at = d.miniEnd
	d.inMini = d.perMini
	return nil
}

// decodeDelta decodes len(dst) values.
func decodeDelta[T uint32 | uint64](d *deltaDecoder, dst []T) error {
	if len(dst) > d.left {
		return errDeltaShort
	}
	if d.first && len(dst) > 0 {
		dst[0] = T(d.last)
		dst, d.first = dst[1:], false
		d.left--
	}
	for len(dst) > 0 {
		if d.inMini == 0 {
			if err := d.openMini(); err != nil {
				return err
			}
		}
		k := min(len(dst), d.inMini)
		if d.width <= 56 {
			unpackDeltas(d, dst[:k])
		} else {
			unpackWideDeltas(d, dst[:k])
		}
		d.inMini -= k
		d.left -= k
		dst = dst[k:]
	}
	return nil
}

func unpackDeltas[T uint32 | uint64](d *deltaDecoder, dst []T) {
	last, step, pos, width, b := d.last, d.minDelta, d.pos, d.width, d.b
	if width == 0 { // steps of one length, as times of a regular series have
		for i := range dst {
			last += step
			dst[i] = T(last)
		}
		d.last = last
		return
	}
	mask := uint64(1)<<width - 1
	// A load may reach beyond the miniblock, where the mask cuts it off, but
	// not beyond the page.
	fast := len(dst)
	if room := (len(b)-8)*8 - pos; room < 0 {
		fast = 0
	} else {
		fast = min(fast, room/width+1)
	}
	for i := range dst[:fast] {
		last += step + binary.LittleEndian.Uint64(b[pos>>3:])>>(pos&7)&mask
		dst[i] = T(last)
		pos += width
	}
	for i := fast; i < len(dst); i++ {
		last += step + load64(b, pos>>3)>>(pos&7)&mask
		dst[i] = T(last)
		pos += width
	}
	d.last, d.pos = last, pos
}

func unpackWideDeltas[T uint32 | uint64](d *deltaDecoder, dst []T) {
	mask := ^uint64(0) >> (64 - d.width)
	for i := range dst {
		at, shift := d.pos>>3, d.pos&7
		v := load64(d.b, at) >> shift
		if shift > 0 {
			v |= load64(d.b, at+8) << (64 - shift)
		}
		d.last += d.minDelta + v&mask
		dst[i] = T(d.last)
		d.pos += d.width
	}
}

// skipDelta passes over n values.
func skipDelta(d *deltaDecoder, n int) error {
	var scratch [256]uint64
	for n > 0 {
		k := min(n, len(scratch))
		if err := decodeDelta(d, scratch[:k]); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// rest returns the bytes after the sequence, whose values must all have been
// decoded. Miniblocks without a value have no bytes.
func (d *deltaDecoder) rest() []byte { return d.b[d.at:] }

const (
	deltaBlock = 128
	deltaMini  = 32
)

// appendDelta appends values in DELTA_BINARY_PACKED. Differences wrap around
// in the width of T, as the format demands.
func appendDelta[T int32 | int64](dst []byte, values []T) []byte {
	dst = binary.AppendUvarint(dst, deltaBlock)
	dst = binary.AppendUvarint(dst, deltaBlock/deltaMini)
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	if len(values) == 0 {
		return append(dst, 0)
	}
	dst = binary.AppendVarint(dst, int64(values[0]))
	var deltas [deltaBlock]T
	previous := values[0]
	mask := ^uint64(0) >> (64 - 8*binary.Size(previous)) // cuts a negative int32 to its 32 bits
	for rest := values[1:]; len(rest) > 0; {
		n := min(deltaBlock, len(rest))
		least := rest[0] - previous
		for i, v := range rest[:n] {
			d := v - previous
			previous = v
			deltas[i] = d
			least = min(least, d)
		}
		dst = binary.AppendVarint(dst, int64(least))
		dst = appendMinis(dst, deltas[:n], least, mask)
		rest = rest[n:]
	}
	return dst
}

// appendMinis appends the miniblocks of one block; every miniblock that has a
// value is padded to its full length.
func appendMinis[T int32 | int64](dst []byte, deltas []T, least T, mask uint64) []byte {
	widths := len(dst)
	dst = append(dst, make([]byte, deltaBlock/deltaMini)...)
	var packed [deltaMini]uint64
	for m := 0; m*deltaMini < len(deltas); m++ {
		part := deltas[m*deltaMini : min(len(deltas), (m+1)*deltaMini)]
		var all uint64
		for i, d := range part {
			v := uint64(d-least) & mask
			packed[i] = v
			all |= v
		}
		clear(packed[len(part):])
		width := bits.Len64(all)
		dst[widths+m] = byte(width)
		dst = appendPacked(dst, packed[:], width)
	}
	return dst
}

// appendPacked appends values bit-packed from the least significant bit; their
// number is a multiple of 8.
func appendPacked[T uint32 | uint64](dst []byte, values []T, width int) []byte {
	dst = grow(dst, len(values)*width/8+16)
	at := len(dst)
	out := dst[:cap(dst)]
	var word uint64
	filled := 0
	for _, v := range values {
		word |= uint64(v) << filled
		filled += width
		if filled >= 64 {
			binary.LittleEndian.PutUint64(out[at:], word)
			at += 8
			filled -= 64
			word = uint64(v) >> (width - filled) // 0 where all of v was written
		}
	}
	binary.LittleEndian.PutUint64(out[at:], word)
	return dst[:at+(filled+7)/8]
}
