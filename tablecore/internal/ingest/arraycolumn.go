package ingest

import (
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/internal/convert"
)

// maxPiece is the most bytes that pieces of a chunk are joined up to: far from
// what 32-bit offsets can address.
const maxPiece = 256 << 20

// arrayColumn buffers values of a storage type for which there is no column of
// words or texts: nested ones and decimals. Rows lie in arrays of their own
// memory, which are joined as they gather, so that a chunk of many small
// batches has few of them.
type arrayColumn struct {
	typ    arrow.DataType
	pieces []arrayPiece // by their first row
}

// arrayPiece is a run of rows.
type arrayPiece struct {
	first int // row
	rows  arrow.Array
	sizes []uint32 // bytes of each row, of heap memory
	bytes int64
}

func (c *arrayColumn) put(h *heap, arr arrow.Array, from, n int, at place) error {
	part := array.NewSlice(arr, int64(from), int64(from+n))
	defer part.Release()
	sizes := take[uint32](h, n)
	total := int64(0)
	for i, size := range convert.RowBytes(part) {
		sizes[i] = uint32(size)
		total += size
	}
	if err := h.check(total); err != nil {
		give(h, sizes)
		return err
	}
	own, err := assemble.Copy(h.mem, part, 0, n)
	if err != nil {
		give(h, sizes)
		return err
	}
	h.count(total)
	c.pieces = append(c.pieces, arrayPiece{at.chunk<<chunkShift + at.pos, own, sizes, total})
	return c.join(h, at)
}

// join merges the last two pieces of a chunk while the later one is not much
// smaller, or when the chunk is full: each row is moved a few times only.
func (c *arrayColumn) join(h *heap, at place) error {
	for n := len(c.pieces); n > 1; n = len(c.pieces) {
		a, b := &c.pieces[n-2], &c.pieces[n-1]
		end := b.first + b.rows.Len()
		if a.first>>chunkShift != at.chunk || a.bytes+b.bytes > maxPiece ||
			a.rows.Len() > 2*b.rows.Len() && end&chunkMask != 0 {
			return nil
		}
		runs := []assemble.Run{{Source: 0, Len: a.rows.Len()}, {Source: 1, Len: b.rows.Len()}}
		rows, err := assemble.Array(h.mem, []arrow.Array{a.rows, b.rows}, runs)
		if err != nil {
			return err
		}
		sizes := take[uint32](h, rows.Len())
		copy(sizes[copy(sizes, a.sizes):], b.sizes)
		joined := arrayPiece{a.first, rows, sizes, a.bytes + b.bytes}
		h.count(joined.bytes)
		a.free(h)
		b.free(h)
		c.pieces = append(c.pieces[:n-2], joined)
	}
	return nil
}

func (p *arrayPiece) free(h *heap) {
	p.rows.Release()
	give(h, p.sizes)
	h.count(-p.bytes)
}

func (c *arrayColumn) free(h *heap) {
	for i := range c.pieces {
		c.pieces[i].free(h)
	}
	c.pieces = nil
}

// find returns the piece of a row.
func (c *arrayColumn) find(row uint32) int {
	return sort.Search(len(c.pieces), func(i int) bool { return c.pieces[i].first > int(row) }) - 1
}

// size returns the bytes of a row.
func (c *arrayColumn) size(row uint32) int {
	p := &c.pieces[c.find(row)]
	return int(p.sizes[int(row)-p.first])
}

// gather returns the given rows; rows that are too large for one array, which
// groupGatherer.fit prevents, are an error.
func (c *arrayColumn) gather(mem memory.Allocator, rows []uint32) (arrow.Array, error) {
	sources := make([]arrow.Array, len(c.pieces))
	for i := range c.pieces {
		sources[i] = c.pieces[i].rows
	}
	var runs []assemble.Run
	at := 0
	for _, row := range rows {
		if p := &c.pieces[at]; int(row) < p.first || int(row) >= p.first+p.rows.Len() {
			at = c.find(row)
		}
		start := int(row) - c.pieces[at].first
		if n := len(runs); n > 0 && runs[n-1].Source == at && runs[n-1].Start+runs[n-1].Len == start {
			runs[n-1].Len++
			continue
		}
		runs = append(runs, assemble.Run{Source: at, Start: start, Len: 1})
	}
	return assemble.Array(mem, sources, runs)
}

// arrayBytes returns about how many bytes an array of a storage type takes.
func arrayBytes(arr arrow.Array) int64 {
	total := int64(0)
	for _, size := range convert.RowBytes(arr) {
		total += size
	}
	return total
}
