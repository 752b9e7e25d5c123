package coverage

import (
	"encoding/binary"
	"errors"
	"math"
	"sort"
)

// A run after an entity's first is written as one token: how many intervals
// are missing before it, less the one that must be, and whether it is longer
// than one; then, if so, its length less two as a uvarint. The token's first
// byte has the flag in bit 0, the low six bits of the number in bits 1 to 6
// and in bit 7 whether a uvarint with the other bits follows.
const (
	tokenLong = 1 << 0
	tokenMore = 1 << 7
	tokenBits = 6
	tokenMask = 1<<tokenBits - 1
)

var errDamaged = errors.New("the coverage is damaged")

// skipEvery is how many runs lie between two places that a search can jump to.
const skipEvery = 128

// skip is a place in an entity's stream: a run and where the token after it
// stands, counted from the start of the set's data.
type skip struct {
	start, end uint64
	next       uint32
}

func appendRun(dst []byte, missing, length uint64) []byte {
	gap := missing - 1
	b := byte(gap&tokenMask) << 1
	if length > 1 {
		b |= tokenLong
	}
	if gap > tokenMask {
		dst = binary.AppendUvarint(append(dst, b|tokenMore), gap>>tokenBits)
	} else {
		dst = append(dst, b)
	}
	if length > 1 {
		dst = binary.AppendUvarint(dst, length-2)
	}
	return dst
}

// readRun reads the token at the front of data and returns the run that it
// makes after one that ends at end, and the token's size; a size of 0 is
// damage.
func readRun(data []byte, end uint64) (start, last uint64, size int) {
	if len(data) == 0 {
		return 0, 0, 0
	}
	b := data[0]
	gap, size := uint64(b>>1)&tokenMask, 1
	if b&tokenMore != 0 {
		rest, n := shortestUvarint(data[1:])
		if n <= 0 || rest == 0 || rest > math.MaxUint64>>tokenBits {
			return 0, 0, 0
		}
		gap |= rest << tokenBits
		size += n
	}
	if gap > math.MaxUint64-2 || end > math.MaxUint64-2-gap {
		return 0, 0, 0
	}
	start = end + gap + 2
	last = start
	if b&tokenLong != 0 {
		more, n := shortestUvarint(data[size:])
		if n <= 0 || more == math.MaxUint64 || start > math.MaxUint64-more-1 {
			return 0, 0, 0
		}
		last = start + more + 1
		size += n
	}
	return start, last, size
}

// shortestUvarint is binary.Uvarint that takes a number's shortest form only,
// so that equal sets have equal streams.
func shortestUvarint(data []byte) (v uint64, n int) {
	v, n = binary.Uvarint(data)
	if n > 1 && data[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

// cursor walks over the runs of one entity.
type cursor struct {
	start, end uint64 // the run it stands on
	data       []byte
	at, limit  uint32
	skips      []skip
}

// cursor stands on the entity's first run.
func (s *Set) cursor(i int) cursor {
	c := cursor{start: s.spans[i].first, end: s.spans[i].firstEnd, data: s.data, limit: s.ends[i]}
	from := uint32(0)
	if i > 0 {
		c.at = s.ends[i-1]
		from = s.skipped[i-1]
	}
	c.skips = s.skips[from:s.skipped[i]]
	return c
}

// next goes to the next run and says whether there is one.
func (c *cursor) next() bool {
	if c.at >= c.limit {
		return false
	}
	start, end, size := readRun(c.data[c.at:c.limit], c.end)
	if size == 0 {
		c.at = c.limit // not reached: a set is checked when it is decoded
		return false
	}
	c.start, c.end = start, end
	c.at += uint32(size)
	return true
}

// linear is how many runs a seek looks at before it searches.
const linear = 8

// seek goes on to the first run that ends at or after id and says whether
// there is one.
func (c *cursor) seek(id uint64) bool {
	for range linear {
		if c.end >= id {
			return true
		}
		if !c.next() {
			return false
		}
	}
	c.jump(id)
	for c.end < id {
		if !c.next() {
			return false
		}
	}
	return true
}

// jump goes to the last skip ahead whose run does not begin after id.
func (c *cursor) jump(id uint64) {
	n := sort.Search(len(c.skips), func(i int) bool { return c.skips[i].start > id })
	if n == 0 {
		return
	}
	if s := c.skips[n-1]; s.next > c.at {
		c.start, c.end, c.at = s.start, s.end, s.next
	}
	c.skips = c.skips[n-1:]
}
