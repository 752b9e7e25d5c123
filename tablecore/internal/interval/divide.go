package interval

import "math/bits"

// divisor divides by a number that is fixed beforehand with a multiplication
// and shifts, the round-up method of Granlund and Montgomery as libdivide has
// it. A hardware division per value would be what IDs spends its time on.
type divisor struct {
	magic uint64 // 0 for a power of two
	shift uint8
	add   bool // the magic number has a 65th bit
}

// newDivisor prepares the division by w, which is not 0.
func newDivisor(w uint64) divisor {
	log := uint8(63 - bits.LeadingZeros64(w))
	if w&(w-1) == 0 {
		return divisor{shift: log}
	}
	m, rem := bits.Div64(1<<log, 0, w)
	if w-rem < 1<<log {
		return divisor{magic: m + 1, shift: log}
	}
	m += m
	if twice := rem + rem; twice >= w || twice < rem {
		m++
	}
	return divisor{magic: m + 1, shift: log, add: true}
}

func (d divisor) divide(u uint64) uint64 {
	if d.magic == 0 {
		return u >> d.shift
	}
	q, _ := bits.Mul64(d.magic, u)
	if d.add {
		q = (u-q)>>1 + q
	}
	return q >> d.shift
}

// signedIDs is Domain.ID over many signed ordinals.
func (d divisor) signedIDs(dst, ordinals []uint64) {
	dst = dst[:len(ordinals)]
	for i, o := range ordinals {
		v := int64(o ^ signBit)
		s := uint64(v >> 63)
		dst[i] = d.divide(uint64(v)^s) ^ s ^ signBit
	}
}

// unsignedIDs is Domain.ID over many unsigned ordinals.
func (d divisor) unsignedIDs(dst, ordinals []uint64) {
	dst = dst[:len(ordinals)]
	for i, o := range ordinals {
		dst[i] = d.divide(o)
	}
}
