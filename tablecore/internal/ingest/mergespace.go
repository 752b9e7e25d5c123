package ingest

// mergeSpace puts ascending runs of keys, each with the places of its rows, into
// one order.
type mergeSpace struct {
	keys, otherKeys     []uint64
	places, otherPlaces []uint32
	ends                []int // of the runs
}

func (m *mergeSpace) reset() { m.keys, m.places, m.ends = m.keys[:0], m.places[:0], m.ends[:0] }

// add appends a run. Its rows have places from first on.
func (m *mergeSpace) add(keys []uint64, first uint32) {
	if len(keys) == 0 {
		return
	}
	m.keys = append(m.keys, keys...)
	for i := range keys {
		m.places = append(m.places, first+uint32(i))
	}
	m.ends = append(m.ends, len(m.keys))
}

// sorted merges the runs, two neighbours at a time; of equal keys that of the
// earlier run comes first. The result is valid until the next call of add.
func (m *mergeSpace) sorted() (keys []uint64, places []uint32) {
	for len(m.ends) > 1 {
		m.otherKeys, m.otherPlaces = sized(m.otherKeys, len(m.keys)), sized(m.otherPlaces, len(m.keys))
		joined, start := m.ends[:0], 0
		for i := 0; i < len(m.ends); i += 2 {
			middle, end := m.ends[i], m.ends[min(i+1, len(m.ends)-1)]
			mergeTwo(m.otherKeys[start:end], m.otherPlaces[start:end], m.keys[start:end], m.places[start:end], middle-start)
			joined, start = append(joined, end), end
		}
		m.ends = joined
		m.keys, m.otherKeys = m.otherKeys, m.keys
		m.places, m.otherPlaces = m.otherPlaces, m.places
	}
	return m.keys, m.places
}

// sized returns a slice of n elements of any content, s itself where it is large
// enough.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// mergeTwo merges keys[:middle] and keys[middle:] and what belongs to them. Which
// of two keys is the smaller one nobody can guess, so it is no branch.
func mergeTwo(toKeys []uint64, toPlaces []uint32, keys []uint64, places []uint32, middle int) {
	if middle == len(keys) || keys[middle-1] <= keys[middle] { // one behind the other
		copy(toKeys, keys)
		copy(toPlaces, places)
		return
	}
	i, j, n := 0, middle, 0
	for ; i < middle && j < len(keys); n++ {
		key, place, right := keys[i], places[i], 0
		if keys[j] < key {
			right = 1
		}
		if right == 1 {
			key, place = keys[j], places[j]
		}
		toKeys[n], toPlaces[n] = key, place
		i, j = i+1-right, j+right
	}
	copy(toPlaces[n+copy(toKeys[n:], keys[i:middle]):], places[j:])
	copy(toPlaces[n:], places[i:middle])
	copy(toKeys[n+middle-i:], keys[j:])
}
