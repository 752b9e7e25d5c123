package ingest

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// interner maps texts to dense codes in the order of their first appearance.
// It is an open-addressing table whose slots hold texts of up to eight bytes
// themselves and the hash of longer ones, so that looking up a short text
// touches one cache line and nothing else.
type interner struct {
	slots []internSlot
	shift uint // 64 − log2(len(slots))
	seed  maphash.Seed
	mult  uint64 // odd and random: nobody can aim texts at one slot
	arena []byte // all texts one after another
	ends  []uint64
}

type internSlot struct {
	key    uint64 // the text itself up to 8 bytes, else its hash
	length uint32
	code   uint32 // code + 1; 0 = free
}

const slotBytes = 16

func newInterner() *interner {
	seed := maphash.MakeSeed()
	return &interner{slots: make([]internSlot, 64), shift: 64 - 6, seed: seed, mult: maphash.Bytes(seed, nil) | 1}
}

// len returns the number of distinct texts.
func (t *interner) len() int { return len(t.ends) }

// text returns the text of a code; it stays valid and must not be changed.
func (t *interner) text(code uint32) []byte {
	start := uint64(0)
	if code > 0 {
		start = t.ends[code-1]
	}
	return t.arena[start:t.ends[code]:t.ends[code]]
}

// bytes returns the memory in use.
func (t *interner) bytes() int64 {
	return int64(len(t.slots))*slotBytes + int64(cap(t.arena)) + int64(cap(t.ends))*8
}

// key reduces a text to 64 bits.
func (t *interner) key(text []byte) uint64 {
	switch n := len(text); {
	case n > 8:
		return maphash.Bytes(t.seed, text)
	case n == 8:
		return binary.LittleEndian.Uint64(text)
	default:
		k := uint64(0)
		for i, c := range text {
			k |= uint64(c) << (8 * i)
		}
		return k
	}
}

// shortKey is key for a text data[from:to] of at most eight bytes, read with
// one load where the data reaches far enough.
func (t *interner) shortKey(data []byte, from, to int) uint64 {
	if from+8 > len(data) {
		return t.key(data[from:to])
	}
	return binary.LittleEndian.Uint64(data[from:]) & (1<<(8*uint(to-from)) - 1)
}

func (t *interner) slot(key uint64, length uint32) uint64 {
	hi, lo := bits.Mul64(key^uint64(length)<<56, t.mult)
	return (hi ^ lo) * 0x9E3779B97F4A7C15 >> t.shift
}

// code returns the code of data[from:to], a new one for a new text.
func (t *interner) code(data []byte, from, to int) uint32 {
	length := uint32(to - from)
	var key uint64
	if length <= 8 {
		key = t.shortKey(data, from, to)
	} else {
		key = t.key(data[from:to])
	}
	mask := uint64(len(t.slots) - 1)
	for at := t.slot(key, length); ; at = (at + 1) & mask {
		s := &t.slots[at]
		if s.key == key && s.length == length && s.code != 0 &&
			(length <= 8 || string(t.text(s.code-1)) == string(data[from:to])) {
			return s.code - 1
		}
		if s.code == 0 {
			code := uint32(len(t.ends))
			*s = internSlot{key, length, code + 1}
			t.arena = append(t.arena, data[from:to]...)
			t.ends = append(t.ends, uint64(len(t.arena)))
			if len(t.ends)*2 > len(t.slots) {
				t.grow()
			}
			return code
		}
	}
}

// grow doubles the table.
func (t *interner) grow() {
	old := t.slots
	t.slots = make([]internSlot, 2*len(old))
	t.shift--
	mask := uint64(len(t.slots) - 1)
	for _, s := range old {
		if s.code == 0 {
			continue
		}
		at := t.slot(s.key, s.length)
		for t.slots[at].code != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = s
	}
}
