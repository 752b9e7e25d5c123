package ingest

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

// A text column keeps codes while its values are few. It goes over to plain
// text for good when it holds more than maxTexts values or maxTextBytes of
// them, or when after probeRows rows most rows brought a new one.
const (
	maxTexts     = 1<<16 - 1
	maxTextBytes = 4 << 20
	probeRows    = 8 << 10
)

// textColumn buffers strings: the chunks before plain.from as the numbers of a
// textCoder, one byte wide as long as these suffice, the others as plain text.
type textColumn struct {
	coder   *textCoder
	narrow  words[uint8] // while there are at most 255 texts
	wide    words[uint16]
	isWide  bool
	plain   plainColumn
	scratch []uint32
	counted int64 // bytes of the coder that the heap knows of
}

func newTextColumn() *textColumn {
	return &textColumn{coder: newTextCoder(), plain: plainColumn{typ: arrow.BinaryTypes.String, from: math.MaxInt}}
}

func (c *textColumn) put(h *heap, arr arrow.Array, from, n int, at place) error {
	if at.chunk >= c.plain.from {
		return c.plain.put(h, arr, from, n, at)
	}
	if cap(c.scratch) < n {
		c.scratch = make([]uint32, n)
	}
	codes := c.scratch[:n]
	c.coder.codes(codes, arr, from)
	if c.tooMany(at.chunk<<chunkShift + at.pos + n) {
		if err := c.goPlain(h, at); err != nil {
			return err
		}
		return c.plain.put(h, arr, from, n, at)
	}
	c.putCodes(h, codes, at)
	h.count(c.coder.bytes() - c.counted)
	c.counted = c.coder.bytes()
	return nil
}

// tooMany says whether codes no longer pay.
func (c *textColumn) tooMany(rows int) bool {
	n := c.coder.len()
	return n > maxTexts || len(c.coder.arena) > maxTextBytes || rows >= probeRows && n > rows/2
}

func (c *textColumn) putCodes(h *heap, codes []uint32, at place) {
	if !c.isWide && c.coder.len() >= 1<<8 {
		c.widen(h)
	}
	if c.isWide {
		narrowTo(c.wide.room(h, at), codes)
	} else {
		narrowTo(c.narrow.room(h, at), codes)
	}
}

func narrowTo[T word](dst []T, src []uint32) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = T(v)
	}
}

// widen turns one-byte numbers into two-byte ones.
func (c *textColumn) widen(h *heap) {
	for _, chunk := range c.narrow.chunks {
		w := take[uint16](h, len(chunk))
		for i, v := range chunk {
			w[i] = uint16(v)
		}
		c.wide.chunks = append(c.wide.chunks, w)
	}
	c.narrow.free(h)
	c.isWide = true
}

// goPlain makes the chunk of a place the first plain one. After an error
// everything is as it was.
func (c *textColumn) goPlain(h *heap, at place) error {
	c.plain.from = at.chunk
	if err := c.writeOut(h, at); err != nil {
		c.plain.free(h)
		c.plain.from = math.MaxInt
		return err
	}
	switch {
	case at.pos == 0:
	case c.isWide:
		c.wide.drop(h)
	default:
		c.narrow.drop(h)
	}
	return nil
}

// writeOut writes what the chunk of a place holds so far as plain text.
func (c *textColumn) writeOut(h *heap, at place) error {
	for i := range at.pos {
		to := place{at.chunk, i, at.capacity}
		text, valid := c.coded(uint32(at.chunk<<chunkShift + i))
		if !valid {
			c.plain.valid.put(h, []byte{0}, 0, 1, to)
		}
		if err := appendText(&c.plain, h, text, to); err != nil {
			return err
		}
	}
	return nil
}

// coded returns the text of a row in a coded chunk, false for a null.
func (c *textColumn) coded(row uint32) ([]byte, bool) {
	var code uint32
	if c.isWide {
		code = uint32(c.wide.at(row))
	} else {
		code = uint32(c.narrow.at(row))
	}
	if code == 0 {
		return nil, false
	}
	return c.coder.text(code - 1), true
}

// value returns the text of a row, false for a null.
func (c *textColumn) value(row uint32) ([]byte, bool) {
	if int(row>>chunkShift) >= c.plain.from {
		return c.plain.value(row)
	}
	return c.coded(row)
}

func (c *textColumn) free(h *heap) {
	c.narrow.free(h)
	c.wide.free(h)
	c.plain.free(h)
	c.coder.free()
	h.count(-c.counted)
	c.counted = 0
}

func (c *textColumn) gather(mem memory.Allocator, rows []uint32) (arrow.Array, error) {
	return gatherText(mem, arrow.BinaryTypes.String, rows, c.value), nil
}

// gatherGroup returns the rows of a whole row group as a dictionary array, so
// that nobody has to hash its values again, or nil where that does not pay.
func (c *textColumn) gatherGroup(mem memory.Allocator, rows []uint32) arrow.Array {
	if slices.Max(rows)>>chunkShift >= uint32(min(c.plain.from, math.MaxUint32)) {
		return nil
	}
	indices := newBuffer(mem, 4*len(rows))
	dst := view[uint32](indices.Bytes())
	for from := 0; from < len(rows); from += chunkRows {
		to := min(from+chunkRows, len(rows))
		if c.isWide {
			gatherWide(&c.wide, dst[from:to], rows[from:to])
		} else {
			gatherWide(&c.narrow, dst[from:to], rows[from:to])
		}
	}
	used := c.localize(dst)
	if len(used) > 1 && len(used) > len(rows)/2 {
		indices.Release()
		return nil
	}
	valid, nulls := nullsFirst(mem, dst)
	return newDictionary(mem, len(rows), nulls, valid, indices, used, c.coder.text)
}

// gatherWide copies the values of rows to a wider type.
func gatherWide[T uint8 | uint16](w *words[T], dst []uint32, rows []uint32) {
	chunks := w.chunks
	dst = dst[:len(rows)]
	for i, row := range rows {
		dst[i] = uint32(chunks[row>>chunkShift][row&chunkMask])
	}
}

// localize renumbers the texts of a group without gaps, in the order of their
// codes, and returns the codes in use. A null stays 0, text i becomes i+1.
func (c *textColumn) localize(numbers []uint32) []uint32 {
	local := make([]uint32, c.coder.len()+1)
	for _, n := range numbers {
		local[n] = 1
	}
	local[0] = 0
	var used []uint32
	for n, seen := range local {
		if seen != 0 {
			used = append(used, uint32(n-1))
			local[n] = uint32(len(used))
		}
	}
	for i, n := range numbers {
		numbers[i] = local[n]
	}
	return used
}

// nullsFirst turns numbers with 0 for null into indices and a validity bitmap,
// nil without nulls.
func nullsFirst(mem memory.Allocator, numbers []uint32) (*memory.Buffer, int) {
	valid := newBuffer(mem, (len(numbers)+7)/8)
	bits := valid.Bytes()
	set := 0
	for at := 0; at < len(numbers); at += 8 {
		b := byte(0)
		part := numbers[at:min(at+8, len(numbers))]
		for i, n := range part {
			// n != 0 as a bit; a null's index is 0 like that of the first text.
			bit := (n | -n) >> 31
			b |= byte(bit) << i
			part[i] = n - bit
		}
		bits[at>>3] = b
		set += bitCount[b]
	}
	if set == len(numbers) {
		valid.Release()
		return nil, 0
	}
	return valid, len(numbers) - set
}

// dictionaryType is how text goes to the writer of data files.
var dictionaryType = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}

// newDictionary makes a dictionary array of indices into the texts of codes,
// and takes over the buffers' references.
func newDictionary(mem memory.Allocator, n, nulls int, valid, indices *memory.Buffer, codes []uint32, text func(uint32) []byte) arrow.Array {
	dict := gatherText(mem, arrow.BinaryTypes.String, codes, func(code uint32) ([]byte, bool) { return text(code), true })
	defer dict.Release()
	data := array.NewDataWithDictionary(dictionaryType, n, []*memory.Buffer{valid, indices}, nulls, 0, dict.Data().(*array.Data))
	defer data.Release()
	if valid != nil {
		valid.Release()
	}
	indices.Release()
	return array.NewDictionaryData(data)
}

// gatherText copies the texts of rows behind one another. value returns the
// text of a row, false for a null.
func gatherText(mem memory.Allocator, t arrow.DataType, rows []uint32, value func(uint32) ([]byte, bool)) arrow.Array {
	valid := newBuffer(mem, (len(rows)+7)/8)
	offsets := newBuffer(mem, 4*(len(rows)+1))
	bits, ends := valid.Bytes(), view[uint32](offsets.Bytes())
	clear(bits)
	total, nulls := 0, 0
	ends[0] = 0
	for i, row := range rows {
		if text, ok := value(row); ok {
			bits[i>>3] |= 1 << (i & 7)
			total += len(text)
		} else {
			nulls++
		}
		ends[i+1] = uint32(total)
	}
	values := newBuffer(mem, total)
	out := values.Bytes()
	for i, row := range rows {
		if ends[i] != ends[i+1] {
			text, _ := value(row)
			copy(out[ends[i]:], text)
		}
	}
	if nulls == 0 {
		valid.Release()
		valid = nil
	}
	return newArray(t, len(rows), nulls, valid, offsets, values)
}

// plainColumn buffers strings or binaries as they are. Chunks below from are
// not its own.
type plainColumn struct {
	typ    arrow.DataType
	valid  bitmap
	chunks []textChunk
	from   int
}

// textChunk holds texts behind one another; row i ends at ends[i].
type textChunk struct {
	ends []uint32
	data []byte
	used int
}

func (c *plainColumn) put(h *heap, arr arrow.Array, from, n int, at place) error {
	putValidity(&c.valid, h, arr, from, n, at)
	switch a := arr.(type) {
	case *array.String, *array.Binary:
		return putTexts[int32](c, h, arr, from, n, at)
	case *array.LargeString, *array.LargeBinary:
		return putTexts[int64](c, h, arr, from, n, at)
	case *array.Dictionary:
		text := dictText(a)
		for i := range n {
			value := ""
			if a.IsValid(from + i) {
				value = text(a.GetValueIndex(from + i))
			}
			if err := appendText(c, h, value, place{at.chunk, at.pos + i, at.capacity}); err != nil {
				return err
			}
		}
	}
	return nil
}

func putTexts[O int32 | int64](c *plainColumn, h *heap, arr arrow.Array, from, n int, at place) error {
	offsets, values := textParts[O](arr)
	offsets = offsets[from : from+n+1]
	chunk, err := c.room(h, int(offsets[n]-offsets[0]), at)
	if err != nil {
		return err
	}
	shift := O(chunk.used) - offsets[0]
	ends := chunk.ends[at.pos : at.pos+n]
	for i, o := range offsets[1:] {
		ends[i] = uint32(o + shift)
	}
	chunk.used += copy(chunk.data[chunk.used:], values[offsets[0]:offsets[n]])
	return nil
}

// appendText adds the text of one row.
func appendText[T string | []byte](c *plainColumn, h *heap, text T, at place) error {
	chunk, err := c.room(h, len(text), at)
	if err != nil {
		return err
	}
	chunk.used += copy(chunk.data[chunk.used:], text)
	chunk.ends[at.pos] = uint32(chunk.used)
	return nil
}

// maxChunkText is how much text the offsets of a chunk can address.
const maxChunkText = math.MaxUint32

// room returns the chunk of a place with room for more bytes.
func (c *plainColumn) room(h *heap, more int, at place) (*textChunk, error) {
	i := at.chunk - c.from
	if i == len(c.chunks) {
		if i > 0 {
			c.chunks[i-1].trim(h)
		}
		c.chunks = append(c.chunks, textChunk{})
	}
	chunk := &c.chunks[i]
	chunk.ends = extend(h, chunk.ends, at.capacity)
	need := chunk.used + more
	if need > maxChunkText {
		return nil, &tableerr.MessageTooLarge{LimitBytes: maxChunkText, Bytes: int64(need),
			Msg: fmt.Sprintf("%d rows hold more than 4 GiB in one column; send them as several appends", chunkRows)}
	}
	if need > len(chunk.data) {
		if err := h.check(int64(more)); err != nil {
			return nil, err
		}
		chunk.data = extend(h, chunk.data, max(need, 2*len(chunk.data)))
	}
	return chunk, nil
}

// trim gives back what a full chunk does not need.
func (t *textChunk) trim(h *heap) {
	if t.used == len(t.data) {
		return
	}
	exact := take[uint8](h, t.used)
	copy(exact, t.data[:t.used])
	give(h, t.data)
	t.data = exact
}

// value returns the text of a row, false for a null.
func (c *plainColumn) value(row uint32) ([]byte, bool) {
	if !c.valid.at(row) {
		return nil, false
	}
	chunk := &c.chunks[int(row>>chunkShift)-c.from]
	pos := row & chunkMask
	start := uint32(0)
	if pos > 0 {
		start = chunk.ends[pos-1]
	}
	return chunk.data[start:chunk.ends[pos]], true
}

func (c *plainColumn) gather(mem memory.Allocator, rows []uint32) (arrow.Array, error) {
	return gatherText(mem, c.typ, rows, c.value), nil
}

func (c *plainColumn) free(h *heap) {
	c.valid.free(h)
	for i := range c.chunks {
		give(h, c.chunks[i].ends)
		give(h, c.chunks[i].data)
	}
	c.chunks = nil
}
