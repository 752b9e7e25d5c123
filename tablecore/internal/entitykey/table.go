package entitykey

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// The tables number distinct values in the order of their first appearance.
// They are open-addressed with linear probing, at most half full, those of short strings a third. Hashes are
// seeded at random, so nobody can choose values that collide; no result
// depends on them.

// firstSlots is a table's size before it grows; a power of two.
const firstSlots = 64

// slot is a place for a string of more than maxShort bytes: the upper half of
// the hash, to skip most comparisons, and the number plus one, 0 when free.
type slot struct {
	tag, next uint32
}

// maxShort is the length up to which a string is compared as two integers.
const maxShort = 15

// short is a string of at most maxShort bytes: the bytes, little-endian and
// filled up with zeros, and the length in the last byte.
type short struct {
	lo, hi uint64
}

// shortSlot is a place for a short string and its number plus one.
type shortSlot struct {
	short
	next uint32
}

// stringTable numbers strings. Most identities are short, and looking them up
// without following a pointer to their bytes is what makes it fast.
type stringTable struct {
	seed      maphash.Seed
	mix, odd  uint64
	slots     []slot
	shorts    []shortSlot
	numShorts int
	values    []string
	bytes     int64
}

func newStringTable() *stringTable {
	seed := maphash.MakeSeed()
	return &stringTable{seed: seed, mix: maphash.String(seed, "mix"), odd: maphash.String(seed, "odd") | 1,
		slots: make([]slot, firstSlots), shorts: make([]shortSlot, firstSlots)}
}

// number returns the number of s, a new one if s is new; s is copied then.
func (t *stringTable) number(s string) uint32 {
	if len(s) <= maxShort {
		var b [16]byte
		copy(b[:], s)
		b[maxShort] = byte(len(s))
		key := short{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
		if next := t.findShort(key); next != 0 {
			return next - 1
		}
		return t.addShort(key, s)
	}
	h := maphash.String(t.seed, s)
	tag, mask := uint32(h>>32), uint64(len(t.slots)-1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch at := t.slots[i]; {
		case at.next == 0:
			t.slots[i] = slot{tag: tag, next: t.add(s) + 1}
			if 2*(len(t.values)-t.numShorts) > len(t.slots) {
				t.growLong()
			}
			return uint32(len(t.values) - 1)
		case at.tag == tag && t.values[at.next-1] == s:
			return at.next - 1
		}
	}
}

func (t *stringTable) hashShort(s short) uint64 {
	hi, lo := bits.Mul64(s.lo^t.mix, s.hi^t.odd)
	return hi ^ lo
}

// findShort returns the number of a short string plus one, or 0.
func (t *stringTable) findShort(key short) uint32 {
	shorts := t.shorts
	mask := uint64(len(shorts) - 1)
	for i := t.hashShort(key); ; i++ {
		at := &shorts[i&mask]
		if at.short == key || at.next == 0 {
			return at.next
		}
	}
}

// addShort gives a short string that the table lacks the next number.
func (t *stringTable) addShort(key short, s string) uint32 {
	n := t.add(s)
	t.place(shortSlot{key, n + 1})
	if t.numShorts++; 3*t.numShorts > len(t.shorts) {
		t.growShort()
	}
	return n
}

func (t *stringTable) place(s shortSlot) {
	mask := uint64(len(t.shorts) - 1)
	i := t.hashShort(s.short) & mask
	for t.shorts[i].next != 0 {
		i = (i + 1) & mask
	}
	t.shorts[i] = s
}

// add gives s the next number.
func (t *stringTable) add(s string) uint32 {
	own := strings.Clone(s) // s may be a part of a batch's buffer
	t.values = append(t.values, own)
	t.bytes += int64(len(own))
	return uint32(len(t.values) - 1)
}

func (t *stringTable) growLong() {
	t.slots = make([]slot, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n, s := range t.values {
		if len(s) <= maxShort {
			continue
		}
		h := maphash.String(t.seed, s)
		i := h & mask
		for t.slots[i].next != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = slot{tag: uint32(h >> 32), next: uint32(n + 1)}
	}
}

func (t *stringTable) growShort() {
	old := t.shorts
	t.shorts = make([]shortSlot, 2*len(old))
	for _, s := range old {
		if s.next != 0 {
			t.place(s)
		}
	}
}

// shortMasks keep the first n bytes of two words.
var shortMasks = func() (m [maxShort + 1]short) {
	for n := range m {
		m[n].lo = math.MaxUint64 >> (64 - 8*min(n, 8))
		m[n].hi = math.MaxUint64 >> (64 - 8*max(n-8, 0))
	}
	return m
}()

// numbers is number over the strings of a batch. Consecutive rows are mostly
// of one entity, so the last answer is looked at first.
func (t *stringTable) numbers(dst []uint32, a *array.String) {
	if len(dst) == 0 {
		return
	}
	offsets, data := a.ValueOffsets()[:len(dst)+1], a.ValueBytes()
	base := offsets[0]
	var lastShort short
	var number uint32
	known := false // number belongs to lastShort
	for row := range dst {
		start, end := int(offsets[row]-base), int(offsets[row+1]-base)
		n := end - start
		if n > maxShort || start+16 > len(data) {
			number, known = t.number(a.Value(row)), false
			dst[row] = number
			continue
		}
		mask := &shortMasks[n]
		word := data[start : start+16]
		key := short{binary.LittleEndian.Uint64(word) & mask.lo, binary.LittleEndian.Uint64(word[8:])&mask.hi | uint64(n)<<56}
		if !known || key != lastShort {
			if next := t.findShort(key); next != 0 {
				number = next - 1
			} else {
				number = t.addShort(key, a.Value(row))
			}
			lastShort, known = key, true
		}
		dst[row] = number
	}
}

// numbersOf is numbers for the other arrays of strings, value by value.
func (t *stringTable) numbersOf(dst []uint32, a stringArray) {
	var last string
	var number uint32
	for row := range dst {
		if s := a.Value(row); row == 0 || s != last {
			last, number = s, t.number(s)
		}
		dst[row] = number
	}
}

// intSlot is a place in a table of integers.
type intSlot struct {
	value uint64
	next  uint32
}

// intTable numbers integers.
type intTable struct {
	seed, odd uint64
	slots     []intSlot
	values    []uint64
}

func newIntTable() *intTable {
	seed := maphash.MakeSeed()
	return &intTable{seed: maphash.String(seed, "seed"), odd: maphash.String(seed, "odd") | 1, slots: make([]intSlot, firstSlots)}
}

func (t *intTable) hash(v uint64) uint64 {
	hi, lo := bits.Mul64(v^t.seed, t.odd)
	return hi ^ lo
}

// number returns the number of v, a new one if v is new.
func (t *intTable) number(v uint64) uint32 {
	mask := uint64(len(t.slots) - 1)
	for i := t.hash(v) & mask; ; i = (i + 1) & mask {
		switch at := t.slots[i]; {
		case at.next == 0:
			t.values = append(t.values, v)
			t.slots[i] = intSlot{value: v, next: uint32(len(t.values))}
			n := uint32(len(t.values) - 1)
			if 2*len(t.values) > len(t.slots) {
				t.grow()
			}
			return n
		case at.value == v:
			return at.next - 1
		}
	}
}

func (t *intTable) grow() {
	t.slots = make([]intSlot, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n, v := range t.values {
		i := t.hash(v) & mask
		for t.slots[i].next != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = intSlot{value: v, next: uint32(n + 1)}
	}
}

// numbers is number over many values.
func (t *intTable) numbers(dst []uint32, values []uint64) {
	values = values[:len(dst)]
	var last uint64
	var number uint32
	for row, v := range values {
		if row == 0 || v != last {
			last, number = v, t.number(v)
		}
		dst[row] = number
	}
}

// combine replaces each prefix by the number of the pair it forms with a part.
func (t *intTable) combine(prefix, part []uint32) {
	part = part[:len(prefix)]
	var last uint64
	var number uint32
	for row, p := range part {
		pair := uint64(prefix[row])<<32 | uint64(p)
		if row == 0 || pair != last {
			last, number = pair, t.number(pair)
		}
		prefix[row] = number
	}
}
