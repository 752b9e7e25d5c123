package ingest

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// store buffers the rows of an append in the order of their arrival, column by
// column. A row's number in the store is its number in the stream.
type store struct {
	heap     *heap
	columns  []column // one a stored column; nil for entity columns
	index    *fixedColumn[uint64]
	flip     uint64 // raw index value XOR flip = ordinal
	keys     []int  // stored columns that are entity columns, in declared order
	keyTypes []arrow.DataType
	entities *entitykey.Coder
	codes    words[uint32] // entity of each row; unused without entity columns
	chunks   []chunkRange
	rows     int64
	counted  int64    // bytes of the coder that the heap knows of
	scratch  []uint32 // codes of the current batch
	keyArrs  []arrow.Array
}

// chunkRange bounds the index ordinals of one chunk.
type chunkRange struct{ min, max uint64 }

// newStore returns an empty store for a table's columns. Columns that the
// stream leaves out are stamped (the insertion time) or null.
func newStore(h *heap, def *tabledef.Definition, aligner *convert.Aligner, stamp int64) (*store, error) {
	layout, err := entitykey.LayoutOf(def)
	if err != nil {
		return nil, err
	}
	s := &store{heap: h, entities: entitykey.NewCoder(layout)}
	if def.IndexType != tabledef.IndexUint64 {
		s.flip = 1 << 63
	}
	for _, name := range def.EntityColumns {
		key := def.Stored.FieldIndices(name)[0]
		s.keys = append(s.keys, key)
		s.keyTypes = append(s.keyTypes, def.Stored.Field(key).Type)
	}
	s.keyArrs = make([]arrow.Array, len(s.keys))
	for i, f := range def.Stored.Fields() {
		switch {
		case f.Name == def.IndexColumn:
			s.index = &fixedColumn[uint64]{typ: f.Type}
			s.columns = append(s.columns, s.index)
		case def.IsKey(f.Name):
			s.columns = append(s.columns, nil)
		case f.Name == def.IngestTimeColumn && aligner.Has(i):
			s.columns = append(s.columns, &stampedColumn{fixedColumn[uint64]{typ: f.Type}, stamp})
		case f.Name == def.IngestTimeColumn:
			s.columns = append(s.columns, stampColumn{typ: f.Type, stamp: stamp})
		case !aligner.Has(i):
			s.columns = append(s.columns, absentColumn{typ: tabledef.StorageType(f.Type)})
		default:
			s.columns = append(s.columns, newColumn(f.Type))
		}
	}
	return s, nil
}

// add copies the rows of an aligned batch, which it borrows. It refuses what
// does not fit the memory budget; the rows counted by then are whole, and what
// the store holds of others must not be added to.
func (s *store) add(b *convert.Batch) error {
	if s.rows+int64(b.Rows) > math.MaxUint32 {
		return &tableerr.MessageTooLarge{LimitBytes: s.heap.limit, Msg: fmt.Sprintf("an append holds at most %d rows; send several", uint32(math.MaxUint32))}
	}
	if err := s.heap.check(max(batchBytes(b), s.growth(b.Rows)) + sortBytes*(s.rows+int64(b.Rows))); err != nil {
		return err
	}
	if err := s.code(b); err != nil {
		return err
	}
	for from := 0; from < b.Rows; {
		pos := int(s.rows & chunkMask)
		n := min(b.Rows-from, chunkRows-pos)
		if err := s.put(b, from, n, place{int(s.rows >> chunkShift), pos, s.capacity(pos + n)}); err != nil {
			return err
		}
		s.rows += int64(n)
		from += n
	}
	return s.heap.check(sortBytes * s.rows)
}

// growth estimates what the chunks take that n more rows begin.
func (s *store) growth(n int) int64 {
	end := s.rows + int64(n)
	if s.rows == 0 || end <= int64(len(s.chunks))<<chunkShift {
		return 0
	}
	more := (end + chunkMask) >> chunkShift << chunkShift
	return s.rowBytes() * (more - s.rows)
}

// code numbers the entities of a batch.
func (s *store) code(b *convert.Batch) error {
	if len(s.keys) == 0 {
		return nil
	}
	for i, key := range s.keys {
		s.keyArrs[i] = b.Columns[key]
	}
	var err error
	s.scratch, err = s.entities.AppendCodes(s.scratch[:0], s.keyArrs, b.Rows)
	s.heap.count(s.entities.Bytes() - s.counted)
	s.counted = s.entities.Bytes()
	return err
}

// capacity returns how many rows the current chunk makes room for.
func (s *store) capacity(rows int) int {
	if s.rows >= chunkRows {
		return chunkRows
	}
	return max(firstRows, 1<<bits.Len(uint(rows-1)))
}

// put copies n rows that lie in one chunk.
func (s *store) put(b *convert.Batch, from, n int, at place) error {
	for i, c := range s.columns {
		if c == nil {
			continue
		}
		if err := c.put(s.heap, b.Columns[i], from, n, at); err != nil {
			return err
		}
	}
	if len(s.keys) > 0 {
		s.codes.put(s.heap, s.scratch[from:from+n], at)
	}
	if at.chunk == len(s.chunks) {
		s.chunks = append(s.chunks, chunkRange{min: math.MaxUint64})
	}
	r := &s.chunks[at.chunk]
	for _, v := range s.index.values.chunks[at.chunk][at.pos : at.pos+n] {
		v ^= s.flip
		r.min, r.max = min(r.min, v), max(r.max, v)
	}
	return nil
}

// batchBytes estimates what a batch takes in the store.
func batchBytes(b *convert.Batch) int64 {
	total := int64(0)
	for _, arr := range b.Columns {
		if arr == nil {
			continue
		}
		switch arr.DataType().ID() {
		case arrow.STRING, arrow.BINARY:
			total += textBytes[int32](arr)
		case arrow.LARGE_STRING, arrow.LARGE_BINARY:
			total += textBytes[int64](arr)
		case arrow.BOOL:
			total += int64(b.Rows) / 8
		case arrow.DICTIONARY:
			total += int64(b.Rows)
		case arrow.LIST, arrow.STRUCT, arrow.MAP:
			total += arrayBytes(arr)
		default:
			total += int64(b.Rows) * int64(arr.DataType().(arrow.FixedWidthDataType).Bytes())
		}
	}
	return total
}

func textBytes[O int32 | int64](arr arrow.Array) int64 {
	offsets, _ := textParts[O](arr)
	if len(offsets) == 0 {
		return 0
	}
	return int64(offsets[len(offsets)-1] - offsets[0])
}

// chunkLen returns the number of rows in a chunk.
func (s *store) chunkLen(chunk int) int {
	return int(min(chunkRows, s.rows-int64(chunk)<<chunkShift))
}

// rowBytes returns the mean size of a buffered row.
func (s *store) rowBytes() int64 { return s.heap.used.Load() / max(1, s.rows) }

// ordinal returns the index ordinal of a row.
func (s *store) ordinal(row uint32) uint64 { return s.index.values.at(row) ^ s.flip }

// free returns all memory.
func (s *store) free() {
	for _, c := range s.columns {
		if c != nil {
			c.free(s.heap)
		}
	}
	s.codes.free(s.heap)
	s.heap.count(-s.counted)
	s.counted = 0
}
