package datafile

import (
	"fmt"
	"sort"
)

// pageLocation says where one data page lies.
type pageLocation struct {
	start    int64
	firstRow int64 // counted in the row group
	length   int32 // with its header
}

func (p pageLocation) end() int64 { return p.start + int64(p.length) }

// pageOf returns the index of the page that holds a row.
func pageOf(pages []pageLocation, row int64) int {
	return sort.Search(len(pages), func(i int) bool { return pages[i].firstRow > row }) - 1
}

// pageLocations returns the data pages of every leaf of a row group; a leaf
// without an offset index has none. They are read once and kept.
func (f *Footer) pageLocations(src exactSource, group int) ([][]pageLocation, error) {
	if known := f.pages[group].Load(); known != nil {
		return *known, nil
	}
	start, end := int64(0), int64(0)
	for leaf := range f.leaves {
		chunk := f.chunk(group, leaf)
		if chunk.indexLength == 0 {
			continue
		}
		if start == end || chunk.indexStart < start {
			start = chunk.indexStart
		}
		end = max(end, chunk.indexStart+int64(chunk.indexLength))
	}
	all := make([][]pageLocation, len(f.leaves))
	if start < end {
		// The indices of a row group lie side by side in every file we know; if
		// not, what lies between them is bounded here.
		if end-start > 64<<10+2*f.indexBytes(group) {
			return nil, fmt.Errorf("the offset indices of row group %d are scattered", group)
		}
		raw := make([]byte, end-start)
		if _, err := src.ReadAt(raw, start); err != nil {
			return nil, err
		}
		for leaf := range f.leaves {
			chunk := f.chunk(group, leaf)
			if chunk.indexLength == 0 || f.rowGroups[group].Rows == 0 {
				continue
			}
			at := chunk.indexStart - start
			pages, err := parseOffsetIndex(raw[at:at+int64(chunk.indexLength)], chunk, f.rowGroups[group].Rows, f.leaves[leaf].sealed)
			if err != nil {
				return nil, fmt.Errorf("column %q: %w", f.leaves[leaf].path, err)
			}
			all[leaf] = pages
		}
	}
	f.pages[group].Store(&all)
	return all, nil
}

func (f *Footer) indexBytes(group int) int64 {
	total := int64(0)
	for leaf := range f.leaves {
		total += int64(f.chunk(group, leaf).indexLength)
	}
	return total
}

// parseOffsetIndex reads an OffsetIndex structure and checks that its pages
// follow each other inside the chunk and cover its rows. sealed says that it
// must have a seal.
func parseOffsetIndex(raw []byte, chunk *chunkInfo, rows int64, sealed bool) ([]pageLocation, error) {
	r := thriftReader{b: raw}
	var pages []pageLocation
	r.structure(0, func(id int, typ byte) bool {
		if id != 1 || typ != thriftList {
			return r.seal(id, typ)
		}
		n, elem := r.list()
		if elem != thriftStruct {
			r.skipElements(n, elem, 1)
			return true
		}
		pages = make([]pageLocation, 0, min(n, len(raw)/minStructBytes+1))
		for range n {
			pages = append(pages, parsePageLocation(&r))
			if r.err != nil {
				break
			}
		}
		return true
	})
	if r.err == nil && sealed && !r.sealed {
		r.err = errUnsealed
	}
	if r.err != nil {
		return nil, fmt.Errorf("its offset index cannot be parsed: %w", r.err)
	}
	at, row := chunk.start, int64(-1)
	for i, p := range pages {
		if p.start < at || p.length <= 0 || p.start > chunk.end || p.end() > chunk.end || p.firstRow <= row || p.firstRow >= rows || (i == 0 && p.firstRow != 0) {
			return nil, fmt.Errorf("its offset index places page %d at %d with first row %d", i, p.start, p.firstRow)
		}
		at, row = p.end(), p.firstRow
	}
	return pages, nil
}

func parsePageLocation(r *thriftReader) pageLocation {
	p := pageLocation{start: -1}
	r.structure(1, func(id int, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI64:
			p.start = r.int()
		case id == 2 && typ == thriftI32:
			p.length = int32(r.int())
		case id == 3 && typ == thriftI64:
			p.firstRow = r.int()
		default:
			return false
		}
		return true
	})
	return p
}
