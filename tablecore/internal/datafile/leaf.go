package datafile

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// leafReader reads rows of one leaf. What read appends gathers in its buffers
// until it is taken.
type leafReader struct {
	file   *File
	index  int
	info   *leafInfo
	minDef int // entries of a lower definition level take no slot
	values valueDecoder
	cursor pageCursor

	group      int // open row group, -1 for none
	pages      []pageLocation
	pageNo     int   // of the page last loaded
	row        int64 // next row, counted in the row group
	dictLoaded bool
	page       page
	left       int // entries left in the page

	valid []byte // bitmap of the slots read
	nulls int

	nested *nestedLevels // levels of what was read, where assembly needs them
}

func newLeafReader(f *File, index, minDef int, nested bool, limit int64, mem memory.Allocator) (*leafReader, error) {
	info := &f.footer.leaves[index]
	values, err := newValueDecoder(info, mem, limit)
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", info.path, err)
	}
	l := &leafReader{file: f, index: index, info: info, minDef: minDef, values: values, group: -1}
	l.cursor = pageCursor{src: exactSource{f.src}, leaf: info}
	if nested {
		l.nested = &nestedLevels{}
	}
	return l, nil
}

func (l *leafReader) release() {
	l.cursor.release()
	l.values.release()
}

// reset drops what was read and not taken.
func (l *leafReader) reset() {
	if l.values.slots() > 0 {
		releaseAll(l.values.take()...)
	}
	clear(l.valid)
	l.valid, l.nulls = l.valid[:0], 0
	if l.nested != nil {
		l.nested.drop()
	}
}

// takeValid returns the validity bitmap of the slots read, nil where all are
// valid.
func (l *leafReader) takeValid(mem memory.Allocator) (bitmap *memory.Buffer, nulls int) {
	nulls = l.nulls
	if nulls > 0 {
		bitmap = memory.NewResizableBuffer(mem)
		bitmap.Resize(len(l.valid))
		copy(bitmap.Bytes(), l.valid)
	}
	return bitmap, nulls
}

// seek moves to a row of a row group. Rows from end on will not be read before
// the next seek.
func (l *leafReader) seek(group int, row, end int64) error {
	if group != l.group || row < l.row {
		if err := l.open(group); err != nil {
			return err
		}
	}
	l.cursor.limit = l.cursor.chunk.end
	if len(l.pages) > 0 && end > 0 {
		l.cursor.limit = l.pages[pageOf(l.pages, end-1)].end()
	}
	if target := pageOf(l.pages, row); target > l.pageNo && row > l.row {
		if err := l.jump(target); err != nil {
			return err
		}
	}
	for l.row < row {
		if err := l.skip(row - l.row); err != nil {
			return err
		}
	}
	return nil
}

func (l *leafReader) open(group int) error {
	pages, err := l.file.footer.pageLocations(l.cursor.src, group)
	if err != nil {
		return err
	}
	l.group, l.pages, l.pageNo, l.row, l.left, l.dictLoaded = group, pages[l.index], -1, 0, 0, false
	l.cursor.open(l.file.footer.chunk(group, l.index))
	if l.nested != nil {
		l.nested.closePage()
	}
	return nil
}

// jump moves to the start of a page, loading the dictionary on the way.
func (l *leafReader) jump(target int) error {
	if !l.dictLoaded && l.cursor.chunk.dictionary {
		limit := l.cursor.limit
		l.cursor.pos, l.cursor.limit = l.cursor.chunk.start, l.pages[0].start
		h, err := l.cursor.header()
		if err != nil {
			return err
		}
		if h.kind != pageDictionary {
			return fmt.Errorf("a page of type %d stands where a dictionary belongs", h.kind)
		}
		if err := l.loadDictionary(&h); err != nil {
			return err
		}
		l.cursor.limit = limit
	}
	l.cursor.pos = l.pages[target].start
	l.pageNo, l.row, l.left = target-1, l.pages[target].firstRow, 0
	if l.nested != nil {
		l.nested.closePage()
	}
	return nil
}

func (l *leafReader) loadDictionary(h *pageHeader) error {
	raw, err := l.cursor.body(h)
	if err != nil {
		return err
	}
	body, err := l.cursor.unpack(raw, h.uncompressed)
	if err != nil {
		return err
	}
	return l.setDictionary(h, body)
}

func (l *leafReader) setDictionary(h *pageHeader, body []byte) error {
	if l.dictLoaded {
		return fmt.Errorf("a column chunk has two dictionaries")
	}
	if h.encoding != encPlain && h.encoding != encPlainDict {
		return errEncoding(h.encoding, "a dictionary")
	}
	l.dictLoaded = true
	return l.values.setDictionary(h.values, body)
}

// load reads the next page that may hold a row at least ahead rows away.
func (l *leafReader) load(ahead int64) error {
	p, passed, err := l.cursor.next(ahead, l.setDictionary)
	if err == io.EOF {
		return fmt.Errorf("its pages end %d rows early", l.file.footer.rowGroups[l.group].Rows-l.row)
	}
	if err != nil {
		return err
	}
	l.row += passed
	l.page, l.left = p, p.entries
	if passed == 0 {
		l.pageNo++
	} else {
		l.pageNo = pageOf(l.pages, l.row)
	}
	if err := l.checkPage(); err != nil {
		return err
	}
	if err := l.values.setPage(p.encoding, p.body, p.entries); err != nil {
		return err
	}
	if l.nested != nil {
		return l.nested.openPage(&l.page, l.info)
	}
	return nil
}

// checkPage compares the page just loaded with the offset index, which must
// agree about its rows.
func (l *leafReader) checkPage() error {
	if l.info.maxRep > 0 || len(l.pages) == 0 {
		return nil
	}
	if l.pageNo >= len(l.pages) {
		return fmt.Errorf("it has more pages than its offset index")
	}
	end := l.file.footer.rowGroups[l.group].Rows
	if l.pageNo+1 < len(l.pages) {
		end = l.pages[l.pageNo+1].firstRow
	}
	if first := l.pages[l.pageNo].firstRow; first != l.row || end-first != int64(l.left) {
		return fmt.Errorf("page %d has %d rows from %d, its offset index says [%d, %d)", l.pageNo, l.left, l.row, first, end)
	}
	return nil
}

// skip makes progress towards the row n rows ahead, never beyond it.
func (l *leafReader) skip(n int64) error {
	if l.nested != nil {
		return l.skipNested(n)
	}
	if l.left == 0 {
		return l.load(n)
	}
	k := int(min(n, int64(l.left)))
	present := k
	if l.info.maxDef > 0 {
		var err error
		if present, err = l.page.defs.skipBits(k); err != nil {
			return err
		}
	}
	l.left -= k
	l.row += int64(k)
	return l.values.skip(present)
}

// read appends the next n rows.
func (l *leafReader) read(n int) error {
	if l.nested != nil {
		return l.readNested(n)
	}
	for n > 0 {
		if l.left == 0 {
			if err := l.load(0); err != nil {
				return err
			}
			continue
		}
		k := min(n, l.left)
		at := l.values.slots()
		present := k
		if l.info.maxDef > 0 {
			var err error
			l.valid = bitRoom(l.valid, at+k)
			if present, err = l.page.defs.readBits(l.valid, at, k); err != nil {
				return err
			}
		}
		if err := l.values.read(k, present, l.valid, at); err != nil {
			return err
		}
		l.nulls += k - present
		l.left -= k
		l.row += int64(k)
		n -= k
	}
	return nil
}

// bitRoom returns bitmap with room for n bits, new ones clear.
func bitRoom(bitmap []byte, n int) []byte {
	if more := (n+7)/8 - len(bitmap); more > 0 {
		bitmap = append(bitmap, make([]byte, more)...)
	}
	return bitmap
}
