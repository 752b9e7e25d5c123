package convert

import "math"

// halfToSingle widens an IEEE 754 half bit by bit: exact for every value,
// subnormals and NaN payloads included (arrow-go's own conversion flushes
// subnormals).
func halfToSingle(h uint16) uint32 {
	sign := uint32(h&0x8000) << 16
	exponent := uint32(h>>10) & 0x1F
	fraction := uint32(h & 0x3FF)
	switch {
	case exponent == 0x1F:
		return sign | 0x7F800000 | fraction<<13
	case exponent != 0:
		return sign | (exponent+112)<<23 | fraction<<13
	case fraction == 0:
		return sign
	}
	// A subnormal half is fraction · 2^-24, a normal single.
	return sign | math.Float32bits(float32(fraction)*0x1p-24)
}

// singleToHalf is the inverse of halfToSingle. It reports false for a single
// that no half widens to.
func singleToHalf(s uint32) (uint16, bool) {
	sign := uint16(s>>16) & 0x8000
	exponent := int(s>>23) & 0xFF
	fraction := s & 0x7FFFFF
	half := sign
	switch {
	case exponent == 0xFF:
		half |= 0x7C00 | uint16(fraction>>13)
	case exponent > 112 && exponent < 143:
		half |= uint16(exponent-112)<<10 | uint16(fraction>>13)
	case exponent > 102 && exponent <= 112:
		half |= uint16((fraction | 0x800000) >> (126 - exponent))
	}
	return half, halfToSingle(half) == s
}
