package ingest

import "github.com/apache/arrow-go/v18/arrow/bitutil"

// Rows lie in chunks of a fixed power of two of rows, so that a row's number
// says where it is: chunk row>>chunkShift, position row&chunkMask. Only the
// first chunk may be smaller, to keep small appends small.
const (
	chunkShift = 16
	chunkRows  = 1 << chunkShift
	chunkMask  = chunkRows - 1
	firstRows  = 64
)

// place says where rows are put: at position pos of a chunk that must have
// room for capacity rows.
type place struct{ chunk, pos, capacity int }

// words is a column of fixed-width values.
type words[T word] struct{ chunks [][]T }

// room makes sure that the chunk of a place exists and is large enough.
func (w *words[T]) room(h *heap, at place) []T {
	if at.chunk == len(w.chunks) {
		w.chunks = append(w.chunks, take[T](h, at.capacity))
	}
	w.chunks[at.chunk] = extend(h, w.chunks[at.chunk], at.capacity)
	return w.chunks[at.chunk][at.pos:]
}

func (w *words[T]) put(h *heap, src []T, at place) { copy(w.room(h, at), src) }

// at returns the value of one row.
func (w *words[T]) at(row uint32) T { return w.chunks[row>>chunkShift][row&chunkMask] }

func (w *words[T]) free(h *heap) {
	for _, c := range w.chunks {
		give(h, c)
	}
	w.chunks = nil
}

// gather copies the values of rows to dst.
func (w *words[T]) gather(dst []T, rows []uint32) {
	dst = dst[:len(rows)]
	if len(w.chunks) == 1 {
		only := w.chunks[0]
		for i, row := range rows {
			dst[i] = only[row]
		}
		return
	}
	chunks := w.chunks
	for i, row := range rows {
		dst[i] = chunks[row>>chunkShift][row&chunkMask]
	}
}

// bitmap is a column of bits. A chunk that is nil has only ones; a column of
// validity bits has none of them allocated until the first null arrives.
type bitmap struct{ chunks [][]byte }

// ones stands for a chunk of ones.
var ones = func() []byte {
	b := make([]byte, chunkRows/8)
	for i := range b {
		b[i] = 0xFF
	}
	return b
}()

// put copies n bits of src from position from on.
func (m *bitmap) put(h *heap, src []byte, from, n int, at place) {
	m.room(at)
	if m.chunks[at.chunk] == nil {
		fresh := take[uint8](h, int(bitutil.BytesForBits(int64(at.capacity))))
		copy(fresh, ones)
		m.chunks[at.chunk] = fresh
	}
	m.extend(h, at)
	bitutil.CopyBitmap(src, from, n, m.chunks[at.chunk], at.pos)
}

// putOnes sets n bits.
func (m *bitmap) putOnes(h *heap, n int, at place) {
	m.room(at)
	if m.chunks[at.chunk] != nil {
		m.extend(h, at)
		bitutil.SetBitsTo(m.chunks[at.chunk], int64(at.pos), int64(n), true)
	}
}

// room makes sure that the chunk of a place is in the list.
func (m *bitmap) room(at place) {
	for at.chunk >= len(m.chunks) {
		m.chunks = append(m.chunks, nil)
	}
}

func (m *bitmap) extend(h *heap, at place) {
	m.chunks[at.chunk] = extend(h, m.chunks[at.chunk], int(bitutil.BytesForBits(int64(at.capacity))))
}

// full says whether every bit of every chunk is one.
func (m *bitmap) full() bool {
	for _, c := range m.chunks {
		if c != nil {
			return false
		}
	}
	return true
}

func (m *bitmap) free(h *heap) {
	for _, c := range m.chunks {
		give(h, c)
	}
	m.chunks = nil
}

// at returns the bit of one row.
func (m *bitmap) at(row uint32) bool {
	c := m.chunks[row>>chunkShift]
	return c == nil || bitutil.BitIsSet(c, int(row&chunkMask))
}

// gather writes the bits of rows to dst from its first bit on and returns how
// many are one. Bits behind the last row are zero.
func (m *bitmap) gather(dst []byte, rows []uint32) int {
	chunks := make([][]byte, len(m.chunks))
	for i, c := range m.chunks {
		if c == nil {
			c = ones
		}
		chunks[i] = c
	}
	set := 0
	for at := 0; at < len(rows); at += 8 {
		b := byte(0)
		for i, row := range rows[at:min(at+8, len(rows))] {
			pos := row & chunkMask
			b |= chunks[row>>chunkShift][pos>>3] >> (pos & 7) & 1 << i
		}
		dst[at>>3] = b
		set += bitCount[b]
	}
	return set
}

// bitCount is the number of ones in a byte.
var bitCount = func() (t [256]int) {
	for i := range t {
		t[i] = t[i>>1] + i&1
	}
	return t
}()

// drop gives back the last chunk.
func (w *words[T]) drop(h *heap) {
	last := len(w.chunks) - 1
	give(h, w.chunks[last])
	w.chunks = w.chunks[:last]
}
