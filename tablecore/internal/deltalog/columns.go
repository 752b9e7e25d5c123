package deltalog

import (
	"encoding/binary"
	"maps"
	"slices"
)

// columnWriter appends values and columns of values for a columnReader. Its
// numbers are varints, as package encoding/binary has them.
type columnWriter struct {
	out []byte
}

func (w *columnWriter) uint(v uint64) { w.out = binary.AppendUvarint(w.out, v) }

func (w *columnWriter) int(v int64) { w.out = binary.AppendVarint(w.out, v) }

func (w *columnWriter) bool(v bool) {
	if v {
		w.uint(1)
	} else {
		w.uint(0)
	}
}

// optional writes a number that may be absent.
func (w *columnWriter) optional(v *int64) {
	w.bool(v != nil)
	if v != nil {
		w.int(*v)
	}
}

func (w *columnWriter) text(v string) {
	w.uint(uint64(len(v)))
	w.out = append(w.out, v...)
}

// list writes texts, nil being something else than none.
func (w *columnWriter) list(v []string) {
	w.bool(v != nil)
	if v != nil {
		w.uint(uint64(len(v)))
		w.texts(slices.Values(v))
	}
}

// texts writes a column of texts, whose number the reader knows: all lengths,
// then all bytes.
func (w *columnWriter) texts(values func(yield func(string) bool)) {
	for v := range values {
		w.uint(uint64(len(v)))
	}
	for v := range values {
		w.out = append(w.out, v...)
	}
}

// ints writes a column of numbers as the distances between them, modulo 2^64.
func (w *columnWriter) ints(values func(yield func(int64) bool)) {
	last := int64(0)
	for v := range values {
		w.int(v - last)
		last = v
	}
}

// mapping writes one map.
func (w *columnWriter) mapping(m map[string]string) {
	w.maps(func(yield func(map[string]string) bool) { yield(m) })
}

// maps writes a column of maps: the sets of keys that occur, for each map the
// number of its set, counted from 1 and 0 for nil, and the column of all
// values, map by map in the order of the keys.
func (w *columnWriter) maps(values func(yield func(map[string]string) bool)) {
	var sets keySets
	var numbers []uint64
	var texts []string
	for m := range values {
		number := sets.number(m)
		numbers = append(numbers, number)
		if number > 0 {
			for _, k := range sets.all[number-1] {
				texts = append(texts, m[k])
			}
		}
	}
	w.uint(uint64(len(sets.all)))
	for _, keys := range sets.all {
		w.list(keys)
	}
	for _, number := range numbers {
		w.uint(number)
	}
	w.texts(slices.Values(texts))
}

// keySets numbers the sets of keys of maps, each in ascending order.
type keySets struct {
	all   [][]string
	known map[string]uint64
	last  uint64
}

// number returns the number of a map's set, counted from 1; 0 for nil.
func (s *keySets) number(m map[string]string) uint64 {
	if m == nil {
		return 0
	}
	if s.last > 0 && hasKeys(m, s.all[s.last-1]) {
		return s.last // as nearly always
	}
	keys := slices.Sorted(maps.Keys(m))
	var name []byte
	for _, k := range keys {
		name = append(binary.AppendUvarint(name, uint64(len(k))), k...)
	}
	number, found := s.known[string(name)]
	if !found {
		if s.known == nil {
			s.known = map[string]uint64{}
		}
		s.all = append(s.all, keys)
		number = uint64(len(s.all))
		s.known[string(name)] = number
	}
	s.last = number
	return number
}

// hasKeys tells whether a map's keys are these.
func hasKeys(m map[string]string, keys []string) bool {
	if len(m) != len(keys) {
		return false
	}
	for _, k := range keys {
		if _, ok := m[k]; !ok {
			return false
		}
	}
	return true
}

// columnReader reads what a columnWriter wrote. After damage it gives zero
// values and bad is set; it never reads or allocates more than the input allows.
// Texts share the memory of the input.
type columnReader struct {
	rest string
	bad  bool
}

func (r *columnReader) fail() {
	r.rest, r.bad = "", true
}

func (r *columnReader) uint() uint64 {
	var v uint64
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen64; i++ {
		b := r.rest[i]
		if b < 0x80 {
			if i == binary.MaxVarintLen64-1 && b > 1 {
				break
			}
			r.rest = r.rest[i+1:]
			return v | uint64(b)<<(7*i)
		}
		v |= uint64(b&0x7f) << (7 * i)
	}
	r.fail()
	return 0
}

func (r *columnReader) int() int64 {
	v := r.uint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *columnReader) bool() bool {
	v := r.uint()
	if v > 1 {
		r.fail()
	}
	return v == 1
}

func (r *columnReader) optional() *int64 {
	if !r.bool() {
		return nil
	}
	v := r.int()
	return &v
}

// count reads the number of things that take at least one byte each.
func (r *columnReader) count() int {
	n := r.uint()
	if n > uint64(len(r.rest)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *columnReader) take(n uint64) string {
	if n > uint64(len(r.rest)) {
		r.fail()
		return ""
	}
	v := r.rest[:n]
	r.rest = r.rest[n:]
	return v
}

func (r *columnReader) text() string { return r.take(r.uint()) }

func (r *columnReader) list() []string {
	if !r.bool() {
		return nil
	}
	return r.texts(r.count())
}

// texts reads a column of n texts; n was checked against the input.
func (r *columnReader) texts(n int) []string {
	lengths := make([]uint64, n)
	for i := range lengths {
		lengths[i] = r.uint()
	}
	values := make([]string, n)
	for i, length := range lengths {
		values[i] = r.take(length)
	}
	return values
}

// ints reads a column of n numbers.
func (r *columnReader) ints(n int) []int64 {
	values := make([]int64, n)
	last := int64(0)
	for i := range values {
		last += r.int()
		values[i] = last
	}
	return values
}

func (r *columnReader) mapping() map[string]string { return r.maps(1)[0] }

// maps reads a column of n maps. Empty ones are shared.
func (r *columnReader) maps(n int) []map[string]string {
	values := make([]map[string]string, n)
	sets := make([][]string, r.count())
	for i := range sets {
		sets[i] = r.list()
	}
	numbers, total := make([]uint64, n), 0
	for i := range numbers {
		numbers[i] = r.uint()
		if numbers[i] > uint64(len(sets)) {
			r.fail()
			return values
		}
		if numbers[i] > 0 {
			total += len(sets[numbers[i]-1])
		}
	}
	if total > len(r.rest) {
		r.fail()
		return values
	}
	texts, empty := r.texts(total), map[string]string{}
	for i, number := range numbers {
		if number == 0 {
			continue
		}
		keys := sets[number-1]
		if values[i] = empty; len(keys) == 0 {
			continue
		}
		values[i] = make(map[string]string, len(keys))
		for k, key := range keys {
			values[i][key] = texts[k]
		}
		texts = texts[len(keys):]
	}
	return values
}
