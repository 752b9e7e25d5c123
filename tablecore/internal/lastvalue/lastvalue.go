// Package lastvalue keeps the newest row of each entity of a table: where it
// lies, and its values.
//
// An Index is a large block and a small one that goes before it, so that a
// version that changes a few entities costs what it changes. Both are
// immutable; indexes of several versions share them.
//
// Which of two rows is newer is decided by the index value, then by the
// insertion time, then by the commit, then by the place in the file
// (table-semantics.md, "Scan"). The package is pure: it reads nothing.
package lastvalue

import (
	"iter"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
)

// Row says where the newest row of an entity lies.
type Row struct {
	Key     string // of the entity
	Path    string // of the data file
	At      int64  // the row's number in it
	Ordinal uint64 // of the row's index value
	// Stamp is the insertion time in its column's ticks, NoStamp where there is
	// none. It counts only in tables that may hold equal index values.
	Stamp int64
}

// NoStamp is the Stamp of a row without an insertion time, which is older than
// any other.
const NoStamp = -1 << 63

// Newer says whether a is newer than b, a row of the same entity. later says
// whether the first of two data files was committed after the second.
func (a *Row) Newer(b *Row, later func(a, b string) bool) bool {
	switch {
	case a.Ordinal != b.Ordinal:
		return a.Ordinal > b.Ordinal
	case a.Stamp != b.Stamp:
		return a.Stamp > b.Stamp
	case a.Path != b.Path:
		return later(a.Path, b.Path)
	}
	return a.At > b.At
}

// Block is a list of newest rows.
type Block struct {
	Rows []Row // by key, no two with the same
	// Values holds the rows' values in the same order, with their storage
	// types; nil where they are not kept. A column that the table got since is
	// missing and null in all rows.
	Values arrow.RecordBatch
}

// Find returns the place of an entity's row.
func (b *Block) Find(key string) (int, bool) {
	i := sort.Search(len(b.Rows), func(i int) bool { return b.Rows[i].Key >= key })
	return i, i < len(b.Rows) && b.Rows[i].Key == key
}

// bytes returns about how much memory the block holds.
func (b *Block) bytes() int64 {
	const rowBytes = 64
	n := int64(rowBytes * cap(b.Rows))
	for i := range b.Rows {
		n += int64(len(b.Rows[i].Key))
	}
	if b.Values != nil {
		n += ValueBytes(b.Values)
	}
	return n
}

// ValueBytes returns how much memory the buffers of a batch hold.
func ValueBytes(batch arrow.RecordBatch) int64 {
	n := int64(0)
	for _, c := range batch.Columns() {
		n += int64(c.Data().SizeInBytes())
	}
	return n
}

// Index holds the newest row of every entity of one version.
type Index struct {
	base, over     *Block // over goes first
	baseSize, size int64  // in bytes, of base and of both
}

// NewIndex returns an index of one block.
func NewIndex(base *Block) *Index {
	x := &Index{base: base, over: &Block{}, baseSize: base.bytes()}
	x.size = x.baseSize
	return x
}

// under returns the index with another small block.
func (x *Index) under(over *Block) *Index {
	return &Index{base: x.base, over: over, baseSize: x.baseSize, size: x.baseSize + over.bytes()}
}

// Bytes returns about how much memory the index holds.
func (x *Index) Bytes() int64 { return x.size }

// Bare says that the rows' values are not kept.
func (x *Index) Bare() bool { return x.base.Values == nil }

// Blocks returns the index's two blocks, the one that goes first last.
func (x *Index) Blocks() [2]*Block { return [2]*Block{x.base, x.over} }

// Ref is a row of an index: Place in one of its Blocks.
type Ref struct {
	*Row
	Block, Place int
}

// Find returns the newest row of an entity.
func (x *Index) Find(key string) (Ref, bool) {
	if i, ok := x.over.Find(key); ok {
		return Ref{&x.over.Rows[i], 1, i}, true
	}
	if i, ok := x.base.Find(key); ok {
		return Ref{&x.base.Rows[i], 0, i}, true
	}
	return Ref{}, false
}

// All yields the rows of all entities by key.
func (x *Index) All() iter.Seq[Ref] {
	return func(yield func(Ref) bool) {
		base, over := x.base.Rows, x.over.Rows
		for i, k := 0, 0; i < len(base) || k < len(over); {
			var r Ref
			switch {
			case k == len(over) || i < len(base) && base[i].Key < over[k].Key:
				r = Ref{&base[i], 0, i}
				i++
			default:
				if i < len(base) && base[i].Key == over[k].Key {
					i++
				}
				r = Ref{&over[k], 1, k}
				k++
			}
			if !yield(r) {
				return
			}
		}
	}
}

// minOver is how many rows the small block may have whatever the size of the
// large one, and overShare which part of the large one.
const (
	minOver   = 1024
	overShare = 8
)

// Advance returns the index after a change: changed rows, with values unless
// the index is bare, go before its own, and the entities in gone have no rows
// any more.
func (x *Index) Advance(changed *Block, gone map[string]struct{}) (*Index, error) {
	if len(changed.Rows) == 0 && len(gone) == 0 {
		return x, nil
	}
	over, err := merge(x.over, changed, gone, x.Bare())
	if err != nil {
		return nil, err
	}
	if len(gone) == 0 && len(over.Rows) <= max(minOver, len(x.base.Rows)/overShare) {
		return x.under(over), nil
	}
	base, err := merge(x.base, over, gone, x.Bare())
	if err != nil {
		return nil, err
	}
	return NewIndex(base), nil
}

// WithoutValues returns a bare index of the same rows.
func (x *Index) WithoutValues() *Index {
	return NewIndex(&Block{Rows: x.base.Rows}).under(&Block{Rows: x.over.Rows})
}
