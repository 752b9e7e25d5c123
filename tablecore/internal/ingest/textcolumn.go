package ingest

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

// A text column keeps codes while its values are few. It goes over to plain
// text for good when it holds more than maxTexts values or maxTextBytes of
// them, or when after probeRows rows most rows brought a new one.
const (
	maxTexts     = 1 << 16
	maxTextBytes = 4 << 20
	probeRows    = 8 << 10
)

// textColumn buffers strings: the chunks before plainFrom as codes, one byte
// wide as long as these suffice, the others as plain text.
type textColumn struct {
	coder     *textCoder
	narrow    words[uint8] // codes while there are at most 256
	wide      words[uint16]
	isWide    bool
	valid     bitmap
	plain     plainColumn
	plainFrom int // chunks below it are coded
	scratch   []uint32
	counted   int64 // bytes of the coder that the heap knows of
}

func newTextColumn() *textColumn {
	return &textColumn{coder: newTextCoder(), plainFrom: math.MaxInt, plain: plainColumn{typ: arrow.BinaryTypes.String}}
}

func (c *textColumn) put(h *heap, arr arrow.Array, from, n int, at place) error {
	putValidity(&c.valid, h, arr, from, n, at)
	if at.chunk >= c.plainFrom {
		return c.plain.putValues(h, arr, from, n, at)
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
		return c.plain.putValues(h, arr, from, n, at)
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
	if !c.isWide && c.coder.len() > 1<<8 {
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

// widen turns one-byte codes into two-byte ones.
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

// goPlain makes the chunk of a place the first plain one: what it holds so far
// is written out as text.
func (c *textColumn) goPlain(h *heap, at place) error {
	c.plainFrom, c.plain.from = at.chunk, at.chunk
	if at.pos == 0 {
		return nil
	}
	for i := range at.pos {
		row := uint32(at.chunk<<chunkShift + i)
		text := []byte(nil)
		if c.valid.at(row) {
			text = c.coder.text(c.code(row))
		}
		if err := appendText(&c.plain, h, text, place{at.chunk, i, at.capacity}); err != nil {
			return err
		}
	}
	if c.isWide {
		c.wide.drop(h)
	} else {
		c.narrow.drop(h)
	}
	return nil
}

// code returns the code of a row in a coded chunk.
func (c *textColumn) code(row uint32) uint32 {
	if c.isWide {
		return uint32(c.wide.at(row))
	}
	return uint32(c.narrow.at(row))
}

// value returns the text of a row that is not null.
func (c *textColumn) value(row uint32) []byte {
	if int(row>>chunkShift) >= c.plainFrom {
		return c.plain.value(row)
	}
	return c.coder.text(c.code(row))
}

func (c *textColumn) free(h *heap) {
	c.narrow.free(h)
	c.wide.free(h)
	c.valid.free(h)
	c.plain.free(h)
	c.coder.free()
	h.count(-c.counted)
	c.counted = 0
}

func (c *textColumn) gather(mem memory.Allocator, rows []uint32) arrow.Array {
	return gatherText(mem, arrow.BinaryTypes.String, &c.valid, rows, c.value)
}

// gatherGroup returns the rows of a whole row group as a dictionary array, so
// that nobody has to hash its values again, or nil where that does not pay.
func (c *textColumn) gatherGroup(mem memory.Allocator, rows []uint32) arrow.Array {
	last := uint32(0)
	for _, row := range rows {
		last = max(last, row)
	}
	if int(last>>chunkShift) >= c.plainFrom {
		return nil
	}
	local := make([]int32, c.coder.len()) // code → position in the group's dictionary + 1
	indices := newBuffer(mem, 4*len(rows))
	var used []uint32
	if c.isWide {
		used = localCodes(&c.wide, &c.valid, rows, view[uint32](indices.Bytes()), local)
	} else {
		used = localCodes(&c.narrow, &c.valid, rows, view[uint32](indices.Bytes()), local)
	}
	if len(used) > 1 && len(used) > len(rows)/2 {
		indices.Release()
		return nil
	}
	valid, nulls := gatherValidity(&c.valid, mem, rows)
	return newDictionary(mem, len(rows), nulls, valid, indices, used, c.coder.text)
}

// localCodes writes for each row the position of its code among those used, in
// the order of their first rows, and returns these.
func localCodes[T uint8 | uint16](codes *words[T], valid *bitmap, rows, dst []uint32, local []int32) []uint32 {
	var used []uint32
	noNulls := valid.full()
	dst = dst[:len(rows)]
	for i, row := range rows {
		if !noNulls && !valid.at(row) {
			dst[i] = 0
			continue
		}
		code := codes.at(row)
		if local[code] == 0 {
			used = append(used, uint32(code))
			local[code] = int32(len(used))
		}
		dst[i] = uint32(local[code] - 1)
	}
	return used
}

// dictionaryType is how text goes to the writer of data files.
var dictionaryType = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}

// newDictionary makes a dictionary array of indices into the texts of codes,
// and takes over the buffers' references.
func newDictionary(mem memory.Allocator, n, nulls int, valid, indices *memory.Buffer, codes []uint32, text func(uint32) []byte) arrow.Array {
	b := array.NewStringBuilder(mem)
	defer b.Release()
	b.Reserve(len(codes))
	for _, code := range codes {
		b.BinaryBuilder.Append(text(code))
	}
	dict := b.NewArray()
	defer dict.Release()
	data := array.NewDataWithDictionary(dictionaryType, n, []*memory.Buffer{valid, indices}, nulls, 0, dict.Data().(*array.Data))
	defer data.Release()
	if valid != nil {
		valid.Release()
	}
	indices.Release()
	return array.NewDictionaryData(data)
}

// gatherText copies the texts of rows behind one another.
func gatherText(mem memory.Allocator, t arrow.DataType, valid *bitmap, rows []uint32, value func(uint32) []byte) arrow.Array {
	bits, nulls := gatherValidity(valid, mem, rows)
	offsets := newBuffer(mem, 4*(len(rows)+1))
	ends := view[uint32](offsets.Bytes())
	total := 0
	ends[0] = 0
	for i, row := range rows {
		if nulls == 0 || valid.at(row) {
			total += len(value(row))
		}
		ends[i+1] = uint32(total)
	}
	values := newBuffer(mem, total)
	out := values.Bytes()
	for i, row := range rows {
		if ends[i] != ends[i+1] {
			copy(out[ends[i]:], value(row))
		}
	}
	return newArray(t, len(rows), nulls, bits, offsets, values)
}

// plainColumn buffers strings or binaries as they are. Chunks below from are
// not its own.
type plainColumn struct {
	typ    arrow.DataType
	valid  bitmap
	from   int
	chunks []textChunk
}

// textChunk holds texts behind one another; row i ends at ends[i].
type textChunk struct {
	ends []uint32
	data []byte
	used int
}

func (c *plainColumn) put(h *heap, arr arrow.Array, from, n int, at place) error {
	putValidity(&c.valid, h, arr, from, n, at)
	return c.putValues(h, arr, from, n, at)
}

// putValues copies the texts of rows [from, from+n) of arr.
func (c *plainColumn) putValues(h *heap, arr arrow.Array, from, n int, at place) error {
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
	if need > math.MaxUint32 {
		return nil, &tableerr.MessageTooLarge{LimitBytes: math.MaxUint32, Bytes: int64(need),
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

// value returns the text of a row.
func (c *plainColumn) value(row uint32) []byte {
	chunk := &c.chunks[int(row>>chunkShift)-c.from]
	pos := row & chunkMask
	start := uint32(0)
	if pos > 0 {
		start = chunk.ends[pos-1]
	}
	return chunk.data[start:chunk.ends[pos]]
}

func (c *plainColumn) gather(mem memory.Allocator, rows []uint32) arrow.Array {
	return gatherText(mem, c.typ, &c.valid, rows, c.value)
}

func (c *plainColumn) free(h *heap) {
	c.valid.free(h)
	for i := range c.chunks {
		give(h, c.chunks[i].ends)
		give(h, c.chunks[i].data)
	}
	c.chunks = nil
}
