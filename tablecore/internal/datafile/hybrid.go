package datafile

import (
	"encoding/binary"
	"errors"
)

var errRunsShort = errors.New("a page holds fewer runs than values")

// hybrid decodes Parquet's RLE and bit-packing hybrid (Encodings.md, "Run
// Length Encoding / Bit-Packing Hybrid"), in which levels and dictionary
// indices are written.
type hybrid struct {
	b     []byte // runs not begun yet
	width int    // bits per value

	repeat int    // values left in a repeated run
	value  uint32 // of the repeated run

	packed    int    // values left in a bit-packed run
	packedBuf []byte // its bytes
	packedPos int    // bit position of the next value
}

func newHybrid(b []byte, width int) hybrid { return hybrid{b: b, width: width} }

// next begins a run. A run claims nothing that its own bytes do not hold.
func (h *hybrid) next() error {
	for {
		head, n := binary.Uvarint(h.b)
		if n <= 0 {
			return errRunsShort
		}
		h.b = h.b[n:]
		if head&1 == 0 {
			bytes := (h.width + 7) / 8
			if len(h.b) < bytes {
				return errRunsShort
			}
			h.value = 0
			for i := range bytes {
				h.value |= uint32(h.b[i]) << (8 * i)
			}
			h.b = h.b[bytes:]
			h.repeat = int(min(head>>1, 1<<31))
			if h.repeat > 0 {
				return nil
			}
			continue
		}
		groups := min(head>>1, 1<<28)
		bytes := int(groups) * h.width
		h.packed = int(groups) * 8
		if bytes > len(h.b) {
			// Some writers cut the padding of the last run.
			bytes = len(h.b)
			if h.width > 0 {
				h.packed = bytes * 8 / h.width
			}
		}
		h.packedBuf, h.packedPos = h.b[:bytes], 0
		h.b = h.b[bytes:]
		if h.packed > 0 {
			return nil
		}
	}
}

// run makes sure that a run is open and returns how many of at most n values
// it gives, and whether it is a repeated one.
func (h *hybrid) run(n int) (k int, repeated bool, err error) {
	if h.repeat == 0 && h.packed == 0 {
		if err := h.next(); err != nil {
			return 0, false, err
		}
	}
	if h.repeat > 0 {
		return min(n, h.repeat), true, nil
	}
	return min(n, h.packed), false, nil
}

// unpack decodes len(dst) values of the open bit-packed run.
func (h *hybrid) unpack(dst []uint32) {
	mask := uint64(1)<<h.width - 1
	pos, buf, width := h.packedPos, h.packedBuf, h.width
	i := 0
	if width <= 8 && pos%(8*max(width, 1)) == 0 {
		i = unpackGroups(dst, buf[pos>>3:], width)
		pos += i * width
	}
	if width <= 32 {
		for ; i < len(dst) && pos>>3+8 <= len(buf); i++ {
			dst[i] = uint32(binary.LittleEndian.Uint64(buf[pos>>3:]) >> (pos & 7) & mask)
			pos += width
		}
	}
	for ; i < len(dst); i++ {
		dst[i] = uint32(load64(buf, pos>>3) >> (pos & 7) & mask)
		pos += width
	}
	h.packedPos = pos
	h.packed -= len(dst)
}

// unpackGroups decodes whole groups of 8 values of at most 8 bits, with one load
// for each, and returns how many values that are.
func unpackGroups(dst []uint32, buf []byte, width int) int {
	mask := uint64(1)<<width - 1
	n := 0
	for at := 0; n+8 <= len(dst) && at+8 <= len(buf); at += width {
		word := binary.LittleEndian.Uint64(buf[at:])
		group := (*[8]uint32)(dst[n:])
		for i := range group {
			group[i] = uint32(word & mask)
			word >>= width
		}
		n += 8
	}
	return n
}

// read decodes len(dst) values.
func (h *hybrid) read(dst []uint32) error {
	for len(dst) > 0 {
		k, repeated, err := h.run(len(dst))
		if err != nil {
			return err
		}
		if repeated {
			for i := range dst[:k] {
				dst[i] = h.value
			}
			h.repeat -= k
		} else {
			h.unpack(dst[:k])
		}
		dst = dst[k:]
	}
	return nil
}

// skip passes over n values.
func (h *hybrid) skip(n int) error {
	for n > 0 {
		k, repeated, err := h.run(n)
		if err != nil {
			return err
		}
		if repeated {
			h.repeat -= k
		} else {
			h.packed -= k
			h.packedPos += k * h.width
		}
		n -= k
	}
	return nil
}

// readBits decodes n values of width 1 into bitmap at position pos and returns
// how many are 1. The bits must be clear before.
func (h *hybrid) readBits(bitmap []byte, pos, n int) (int, error) {
	set := 0
	for n > 0 {
		k, repeated, err := h.run(n)
		if err != nil {
			return 0, err
		}
		switch {
		case !repeated:
			set += copyBits(bitmap, pos, h.packedBuf, h.packedPos, k)
			h.packed -= k
			h.packedPos += k
		case h.value != 0:
			setBits(bitmap, pos, k)
			set += k
			fallthrough
		default:
			h.repeat -= k
		}
		pos += k
		n -= k
	}
	return set, nil
}

// skipBits passes over n values of width 1 and returns how many are 1.
func (h *hybrid) skipBits(n int) (int, error) {
	set := 0
	for n > 0 {
		k, repeated, err := h.run(n)
		if err != nil {
			return 0, err
		}
		if repeated {
			if h.value != 0 {
				set += k
			}
			h.repeat -= k
		} else {
			set += countBits(h.packedBuf, h.packedPos, k)
			h.packed -= k
			h.packedPos += k
		}
		n -= k
	}
	return set, nil
}
