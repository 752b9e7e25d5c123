package datafile

import (
	"encoding/binary"
	"math/bits"
)

// load64 reads 8 bytes at off; bytes beyond the end count as zero.
func load64(b []byte, off int) uint64 {
	if off+8 <= len(b) {
		return binary.LittleEndian.Uint64(b[off:])
	}
	var v uint64
	for k := 0; k < 8 && off+k < len(b); k++ {
		v |= uint64(b[off+k]) << (8 * k)
	}
	return v
}

// setBits sets n bits of bitmap from position pos.
func setBits(bitmap []byte, pos, n int) {
	for n > 0 && (pos&7 != 0 || n < 8) {
		k := min(n, 8-pos&7)
		bitmap[pos>>3] |= byte(1<<k-1) << (pos & 7)
		pos += k
		n -= k
	}
	whole := bitmap[pos>>3 : pos>>3+n>>3]
	for i := range whole {
		whole[i] = 0xFF
	}
	if rest := n & 7; rest > 0 {
		bitmap[(pos+n)>>3] |= byte(1<<rest - 1)
	}
}

// copyBits ORs n bits of src from position from into dst at position to and
// returns how many of them are set. The bits of dst must be clear before.
func copyBits(dst []byte, to int, src []byte, from, n int) int {
	set := 0
	for n > 0 && to&7 != 0 {
		k := min(n, 8-to&7)
		v := byte(load64(src, from>>3)>>(from&7)) & byte(1<<k-1)
		dst[to>>3] |= v << (to & 7)
		set += bits.OnesCount8(v)
		to, from, n = to+k, from+k, n-k
	}
	// 56 bits are what one load gives whatever the position inside the byte.
	for ; n >= 56; to, from, n = to+56, from+56, n-56 {
		v := load64(src, from>>3) >> (from & 7) & (1<<56 - 1)
		set += bits.OnesCount64(v)
		out := dst[to>>3 : to>>3+7]
		out[0], out[1], out[2], out[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
		out[4], out[5], out[6] = byte(v>>32), byte(v>>40), byte(v>>48)
	}
	for ; n > 0; to, from, n = to+8, from+8, n-8 {
		v := byte(load64(src, from>>3) >> (from & 7))
		if n < 8 {
			v &= byte(1<<n - 1)
		}
		set += bits.OnesCount8(v)
		dst[to>>3] |= v
	}
	return set
}

// countBits returns how many of n bits of src from position from are set.
func countBits(src []byte, from, n int) int {
	set := 0
	for ; n > 0; from, n = from+56, n-56 {
		v := load64(src, from>>3) >> (from & 7)
		v &= 1<<min(n, 56) - 1
		set += bits.OnesCount64(v)
	}
	return set
}

func bitAt(bitmap []byte, i int) bool { return bitmap[i>>3]>>(i&7)&1 != 0 }

// bitsFor returns the number of bits that numbers up to most take.
func bitsFor(most int) int { return bits.Len64(uint64(most)) }
