package datafile

import (
	"encoding/binary"
	"math/bits"
)

// minRepeat is the shortest run worth a repeated run of its own: a bit-packed
// run comes in groups of 8.
const minRepeat = 8

// appendRuns appends values of the given width in Parquet's RLE and
// bit-packing hybrid.
func appendRuns(dst []byte, values []uint32, width int) []byte {
	packed := 0 // start of the values that no run has taken yet
	for i := 0; i < len(values); {
		end := i + 1
		for end < len(values) && values[end] == values[i] {
			end++
		}
		// A packed run holds whole groups, so it takes what it lacks from here.
		taken := i + (8-(i-packed)&7)&7
		if end-taken < minRepeat {
			i = end
			continue
		}
		dst = appendPackedRun(dst, values[packed:taken], width)
		dst = appendRepeat(dst, values[i], end-taken, width)
		packed, i = end, end
	}
	return appendPackedRun(dst, values[packed:], width)
}

func appendRepeat(dst []byte, value uint32, n, width int) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	for b := 0; b < width; b += 8 {
		dst = append(dst, byte(value>>b))
	}
	return dst
}

// appendPackedRun appends values bit-packed; the last group is filled up with
// zeros.
func appendPackedRun(dst []byte, values []uint32, width int) []byte {
	if len(values) == 0 {
		return dst
	}
	groups := (len(values) + 7) / 8
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	whole := len(values) &^ 7
	dst = appendPacked(dst, values[:whole], width)
	if whole < len(values) {
		var last [8]uint32
		copy(last[:], values[whole:])
		dst = appendPacked(dst, last[:], width)
	}
	return dst
}

// appendBitRuns appends n bits from the start of bitmap as a hybrid of width 1.
// Bits of the bitmap beyond n must be clear.
func appendBitRuns(dst, bitmap []byte, n int) []byte {
	whole := n / 8 // bytes that can be part of a repeated run
	packed := 0    // start of the bytes that no run has taken yet
	for i := 0; i < whole; {
		if bitmap[i] != 0 && bitmap[i] != 0xFF {
			i++
			continue
		}
		end := i + 1
		for end < whole && bitmap[end] == bitmap[i] {
			end++
		}
		// Two run heads cost about as much as a few packed bytes.
		if end-i >= 4 {
			dst = appendPackedBits(dst, bitmap[packed:i])
			dst = appendRepeat(dst, uint32(bitmap[i]&1), (end-i)*8, 1)
			packed = end
		}
		i = end
	}
	return appendPackedBits(dst, bitmap[packed:(n+7)/8])
}

func appendPackedBits(dst, bitmap []byte) []byte {
	if len(bitmap) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(bitmap))<<1|1)
	return append(dst, bitmap...)
}

// popcount returns how many bits of bitmap are set.
func popcount(bitmap []byte) int {
	n := 0
	for len(bitmap) >= 8 {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(bitmap))
		bitmap = bitmap[8:]
	}
	for _, b := range bitmap {
		n += bits.OnesCount8(b)
	}
	return n
}
