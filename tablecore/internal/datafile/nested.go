package datafile

import (
	"fmt"
	"slices"
)

const (
	// maxPageEntries bounds the entries of a page of a nested leaf, whose levels
	// are kept: a run of levels can claim any number in few bytes.
	maxPageEntries = 1 << 24
	// maxBatchEntries bounds the entries of one leaf in a batch of several rows.
	maxBatchEntries = 1 << 22
)

// nestedLevels holds the levels of a leaf inside lists or structs: those of the
// open page, and those of the entries read so far.
type nestedLevels struct {
	pageDefs, pageReps []uint8
	next               int // entry of the page

	defs, reps []uint8
	scratch    []uint32
}

func (v *nestedLevels) drop() { v.defs, v.reps = v.defs[:0], v.reps[:0] }

func (v *nestedLevels) closePage() {
	v.pageDefs, v.pageReps, v.next = v.pageDefs[:0], v.pageReps[:0], 0
}

// openPage decodes all levels of a page.
func (v *nestedLevels) openPage(p *page, leaf *leafInfo) error {
	if p.entries > maxPageEntries {
		return fmt.Errorf("a page of %d values is too large", p.entries)
	}
	v.next = 0
	var err error
	if v.pageDefs, err = v.decode(v.pageDefs, &p.defs, p.entries, leaf.maxDef); err != nil {
		return err
	}
	v.pageReps, err = v.decode(v.pageReps, &p.reps, p.entries, leaf.maxRep)
	return err
}

// decode reads all levels of one kind of a page.
func (v *nestedLevels) decode(dst []uint8, src *hybrid, entries, most int) ([]uint8, error) {
	dst = dst[:0]
	if v.scratch == nil {
		v.scratch = make([]uint32, 4096)
	}
	for entries > 0 {
		part := v.scratch[:min(entries, len(v.scratch))]
		if most == 0 {
			clear(part)
		} else if err := src.read(part); err != nil {
			return dst, err
		}
		for _, level := range part {
			if level > uint32(most) {
				return dst, fmt.Errorf("a level is %d, the highest can be %d", level, most)
			}
			dst = append(dst, uint8(level))
		}
		entries -= len(part)
	}
	return dst, nil
}

// entriesOf returns the end of the entries of at most rows rows from entry
// from on, and how many rows begin among them. A row begins where the
// repetition level is 0.
func (v *nestedLevels) entriesOf(from int, rows int64) (end int, begun int64) {
	for end = from; end < len(v.pageReps); end++ {
		if v.pageReps[end] != 0 {
			continue
		}
		if begun == rows {
			break
		}
		begun++
	}
	return end, begun
}

// nestedRows walks the entries of the next rows rows; they may go on in the
// next page. Each run of entries goes to visit.
func (l *leafReader) nestedRows(rows int64, visit func(from, end int) error) error {
	v := l.nested
	last := l.row + rows
	for {
		if v.next == len(v.pageReps) {
			if l.row == last && l.rowEndsHere() {
				return nil
			}
			if err := l.load(0); err != nil {
				return err
			}
			continue
		}
		end, begun := v.entriesOf(v.next, last-l.row)
		if end == v.next {
			return nil
		}
		if v.pageReps[v.next] != 0 && l.row == 0 {
			return fmt.Errorf("its first row has no beginning")
		}
		from := v.next
		v.next = end
		l.row += begun
		l.left = len(v.pageReps) - end
		if err := visit(from, end); err != nil {
			return err
		}
	}
}

// rowEndsHere says, at the end of a page, whether the next page cannot hold
// more of the same row: pages that an offset index names begin with a row.
func (l *leafReader) rowEndsHere() bool {
	return l.info.maxRep == 0 || len(l.pages) > 0 || l.cursor.pos >= l.cursor.chunk.end
}

func (l *leafReader) skipNested(rows int64) error {
	return l.nestedRows(rows, func(from, end int) error {
		present := 0
		for _, def := range l.nested.pageDefs[from:end] {
			if int(def) == l.info.maxDef {
				present++
			}
		}
		return l.values.skip(present)
	})
}

func (l *leafReader) readNested(rows int) error {
	return l.nestedRows(int64(rows), func(from, end int) error {
		v := l.nested
		defs := v.pageDefs[from:end]
		if entries := len(v.defs) + len(defs); entries > maxBatchEntries && (rows > 1 || entries > maxPageEntries) {
			return errBatchFull
		}
		v.defs = append(v.defs, defs...)
		v.reps = append(v.reps, v.pageReps[from:end]...)
		at := l.values.slots()
		l.valid = bitRoom(l.valid, at+len(defs))
		slots, present := 0, 0
		for _, def := range defs {
			if int(def) < l.minDef {
				continue
			}
			if int(def) == l.info.maxDef {
				setBits(l.valid, at+slots, 1)
				present++
			}
			slots++
		}
		l.nulls += slots - present
		return l.values.read(slots, present, l.valid, at)
	})
}

// listShape computes the offsets and validity of a list from the levels of a
// leaf in it. def and rep are the levels at which an element is there and
// another one follows, minDef that at which the list has a slot at all.
func listShape(v *nestedLevels, def, rep, minDef int) (offsets []int32, valid []bool) {
	offsets = append(offsets, 0)
	for i, d := range v.defs {
		r := int(v.reps[i])
		switch {
		case r > rep || int(d) < minDef:
		case r == rep:
			offsets[len(offsets)-1]++
		default:
			n := offsets[len(offsets)-1]
			if int(d) >= def {
				n++
			}
			offsets = append(offsets, n)
			valid = append(valid, int(d) >= def-1)
		}
	}
	return offsets, valid
}

// structShape computes the validity of a struct's slots likewise.
func structShape(v *nestedLevels, def, rep, minDef int) (valid []bool) {
	for i, d := range v.defs {
		if int(v.reps[i]) <= rep && int(d) >= minDef {
			valid = append(valid, int(d) >= def)
		}
	}
	return slices.Clip(valid)
}
