package coverage

import (
	"encoding/binary"
	"math"
	"strings"

	"contrail/tablecore/internal/entitykey"
)

// The encoding is
//
//	number of entities                        uvarint
//	for each entity, by key:
//	  key                                     as in a list of package entitykey
//	  first interval, distance to the first
//	  one of the last entity                  varint, modulo 2^64, from 2^63
//	  length of the first run less one        uvarint
//	  length of the other runs                uvarint
//	  the other runs                          tokens, see stream.go
//
// The caller adds version and checksum.

// minEntityBytes is the size of the smallest entity.
const minEntityBytes = 5

// AppendEncoded appends the set's encoding to dst.
func (s *Set) AppendEncoded(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(s.Entities()))
	lastKey, lastFirst, from := "", uint64(1<<63), uint32(0)
	for i, sp := range s.spans {
		key := s.Key(i)
		dst = entitykey.AppendAfter(dst, lastKey, key)
		dst = binary.AppendVarint(dst, int64(sp.first-lastFirst))
		dst = binary.AppendUvarint(dst, sp.firstEnd-sp.first)
		dst = binary.AppendUvarint(dst, uint64(s.ends[i]-from))
		dst = append(dst, s.data[from:s.ends[i]]...)
		lastKey, lastFirst, from = key, sp.first, s.ends[i]
	}
	return dst
}

// Decode reads an encoding, which may be hostile: the memory is bounded by its
// size (and for keys with long common beginnings by a constant), and anything
// but an encoding, whole and alone, is an error. data is not kept.
func Decode(data []byte) (*Set, error) {
	if len(data) > math.MaxUint32 {
		return nil, errTooLarge
	}
	d := decoder{rest: data}
	n, ok := d.uvarint()
	if !ok || n > uint64(len(d.rest)/minEntityBytes) {
		return nil, errDamaged
	}
	s := &Set{keyEnds: make([]uint32, 0, n), spans: make([]span, 0, n), ends: make([]uint32, 0, n), skipped: make([]uint32, 0, n)}
	d.set = s
	d.lastFirst = 1 << 63
	for range n {
		if !d.entity() {
			return nil, errDamaged
		}
	}
	if len(d.rest) > 0 {
		return nil, errDamaged
	}
	s.keys = d.keys.String()
	return s, nil
}

// decoder reads an encoding into set; its methods return false for damage.
type decoder struct {
	rest      []byte
	set       *Set
	keys      strings.Builder
	list      entitykey.ListReader
	lastFirst uint64
}

func (d *decoder) uvarint() (uint64, bool) {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		return 0, false
	}
	d.rest = d.rest[n:]
	return v, true
}

func (d *decoder) bytes() ([]byte, bool) {
	n, ok := d.uvarint()
	if !ok || n > uint64(len(d.rest)) {
		return nil, false
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b, true
}

func (d *decoder) entity() bool {
	if !d.key() {
		return false
	}
	distance, n := binary.Varint(d.rest)
	if n <= 0 {
		return false
	}
	d.rest = d.rest[n:]
	first := d.lastFirst + uint64(distance)
	more, ok := d.uvarint()
	if !ok || first > math.MaxUint64-more {
		return false
	}
	runs, ok := d.bytes()
	if !ok {
		return false
	}
	d.lastFirst = first
	return d.runs(span{first: first, firstEnd: first + more, last: first + more, count: runLength(first, first+more)}, runs)
}

// key reads an entity's key.
func (d *decoder) key() bool {
	key, rest, ok := d.list.Next(d.rest)
	if !ok {
		return false
	}
	d.rest = rest
	d.keys.Write(key)
	d.set.keyEnds = append(d.set.keyEnds, uint32(d.keys.Len()))
	return true
}

// runs checks an entity's stream of runs and adds it to the set.
func (d *decoder) runs(sp span, data []byte) bool {
	s := d.set
	base := len(s.data)
	for at, n := 0, 1; at < len(data); n++ {
		start, end, size := readRun(data[at:], sp.last)
		if size == 0 {
			return false
		}
		at += size
		sp.last = end
		sp.count = addSaturating(sp.count, runLength(start, end))
		if n%skipEvery == 0 {
			s.skips = append(s.skips, skip{start, end, uint32(base + at)})
		}
	}
	s.spans = append(s.spans, sp)
	s.data = append(s.data, data...)
	s.ends = append(s.ends, uint32(len(s.data)))
	s.skipped = append(s.skipped, uint32(len(s.skips)))
	return true
}
