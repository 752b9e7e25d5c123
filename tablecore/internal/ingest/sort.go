package ingest

import (
	"math/bits"
	"slices"
)

// sortedPart is a part in the order of its file: by entity, index, arrival.
type sortedPart struct {
	rows []uint32 // stream rows in file order
	runs []run    // entities in the order of their keys
}

// run is the rows of one entity in a sortedPart.
type run struct {
	entity     uint32 // code
	start, end int
}

// sorter brings parts into order. One sorter serves any number of goroutines.
type sorter struct {
	s     *store
	pool  *recycler
	order []uint32 // codes by key; nil without entity columns
}

// arrange sorts a part, whose rows become memory of the heap, and fills in its
// index ordinals in file order.
func (o *sorter) arrange(p part, ordinals []uint64) sortedPart {
	sorted := sortedPart{rows: take[uint32](o.s.heap, p.rows)}
	if o.order == nil {
		at := 0
		for _, seg := range p.segments {
			at += o.list(sorted.rows[at:], seg)
		}
		sorted.runs = []run{{0, 0, p.rows}}
	} else {
		sorted.runs = o.group(sorted.rows, p)
	}
	o.s.index.values.gather(ordinals, sorted.rows)
	flip := o.s.flip
	for i := range ordinals {
		ordinals[i] ^= flip
	}
	var space sortSpace
	for _, r := range sorted.runs {
		keys := ordinals[r.start:r.end]
		if !slices.IsSorted(keys) {
			space.sort(keys, sorted.rows[r.start:r.end])
		}
	}
	return sorted
}

// list writes the stream rows of a segment and returns how many there are.
func (o *sorter) list(dst []uint32, seg segment) int {
	base := uint32(seg.chunk) << chunkShift
	if seg.all {
		n := o.s.chunkLen(seg.chunk)
		for i := range dst[:n] {
			dst[i] = base + uint32(i)
		}
		return n
	}
	for i, pos := range seg.rows {
		dst[i] = base + uint32(pos)
	}
	return len(seg.rows)
}

// group is a stable counting sort by the rank of the entity.
func (o *sorter) group(rows []uint32, p part) []run {
	next := make([]uint32, len(o.order)+1) // by code at first, then by rank
	for _, seg := range p.segments {
		codes := o.s.codes.chunks[seg.chunk]
		if seg.all {
			for _, code := range codes[:o.s.chunkLen(seg.chunk)] {
				next[code]++
			}
			continue
		}
		for _, pos := range seg.rows {
			next[codes[pos]]++
		}
	}
	var runs []run
	at := uint32(0)
	for _, code := range o.order {
		if n := next[code]; n > 0 {
			runs = append(runs, run{code, int(at), int(at + n)})
			next[code] = at
			at += n
		}
	}
	for _, seg := range p.segments {
		base := uint32(seg.chunk) << chunkShift
		codes := o.s.codes.chunks[seg.chunk]
		if seg.all {
			for i, code := range codes[:o.s.chunkLen(seg.chunk)] {
				rows[next[code]] = base + uint32(i)
				next[code]++
			}
			continue
		}
		for _, pos := range seg.rows {
			code := codes[pos]
			rows[next[code]] = base + uint32(pos)
			next[code]++
		}
	}
	return runs
}

// sortSpace is the working space of sorting runs.
type sortSpace struct {
	keys []uint64
	rows []uint32
}

// Runs below shortRun are sorted by insertion.
const shortRun = 48

// sort sorts rows by their keys, stably, and keys with them.
func (w *sortSpace) sort(keys []uint64, rows []uint32) {
	if len(keys) < shortRun {
		insertionSort(keys, rows)
		return
	}
	w.keys = slices.Grow(w.keys[:0], len(keys))[:len(keys)]
	w.rows = slices.Grow(w.rows[:0], len(rows))[:len(rows)]
	radixSort(keys, rows, w.keys, w.rows)
}

func insertionSort(keys []uint64, rows []uint32) {
	for i := 1; i < len(keys); i++ {
		k, r := keys[i], rows[i]
		j := i
		for ; j > 0 && keys[j-1] > k; j-- {
			keys[j], rows[j] = keys[j-1], rows[j-1]
		}
		keys[j], rows[j] = k, r
	}
}

// radixSort is a least-significant-digit radix sort over the bits in which the
// keys differ: a few passes over memory that fits a cache, whatever the order.
func radixSort(keys []uint64, rows []uint32, otherKeys []uint64, otherRows []uint32) {
	low, high := slices.Min(keys), slices.Max(keys)
	digit := 8
	if len(keys) >= 4096 {
		digit = 11
	}
	mask := uint64(1)<<digit - 1
	passes := (bits.Len64(high-low) + digit - 1) / digit
	counts := make([]uint32, passes<<digit)
	for _, k := range keys {
		k -= low
		for p := range passes {
			counts[p<<digit|int(k&mask)]++
			k >>= digit
		}
	}
	from, to := keys, otherKeys
	fromRows, toRows := rows, otherRows
	for p := range passes {
		next := counts[p<<digit : (p+1)<<digit]
		sum := uint32(0)
		for i, n := range next {
			next[i] = sum
			sum += n
		}
		shift := p * digit
		for i, k := range from {
			d := (k - low) >> shift & mask
			at := next[d]
			next[d]++
			to[at], toRows[at] = k, fromRows[i]
		}
		from, to = to, from
		fromRows, toRows = toRows, fromRows
	}
	if passes%2 == 1 {
		copy(keys, from)
		copy(rows, fromRows)
	}
}
