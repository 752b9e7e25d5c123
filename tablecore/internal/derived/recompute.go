package derived

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// maxPairs is how many pairs of unsorted rows are gathered before they are
// sorted and packed, maxParts how many packed sets before they become one.
const (
	maxPairs = 1 << 20
	maxParts = 16
)

// recompute builds a file's index from its key and index columns.
func recompute(ctx context.Context, file *datafile.File, path string, def *tabledef.Definition, layout *entitykey.Layout, domain interval.Domain) (FileIndex, error) {
	fields, err := keyFields(def)
	if err != nil {
		return FileIndex{}, err
	}
	rows, err := file.Read(ctx, datafile.ReadRequest{Fields: fields})
	if err != nil {
		return FileIndex{}, err
	}
	defer rows.Release()
	ix := newIndexer(layout, domain)
	for !ix.settled() {
		batch, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return FileIndex{}, err
		}
		if err := ix.Add(batch); err != nil {
			return FileIndex{}, &tableerr.Corrupt{Path: path, Msg: fmt.Sprintf("its key columns, from row %d on: %v", rows.FirstRow(), err), Cause: err}
		}
	}
	x, err := ix.Finish()
	x.Rows = file.Rows()
	return x, err
}

// keyFields returns the entity columns and then the index column with their
// storage types. They hold no nulls in any table.
func keyFields(def *tabledef.Definition) ([]arrow.Field, error) {
	var fields []arrow.Field
	for _, name := range slices.Concat(def.EntityColumns, []string{def.IndexColumn}) {
		found := def.Stored.FieldIndices(name)
		if len(found) == 0 {
			return nil, fmt.Errorf("key column %q is not in the schema", name)
		}
		fields = append(fields, arrow.Field{Name: name, Type: tabledef.StorageType(def.Stored.Field(found[0]).Type)})
	}
	return fields, nil
}

// pair is a row of a file that is not sorted.
type pair struct {
	code uint32 // of the entity
	id   uint64 // of the interval
}

// Indexer builds an index from rows in file order. As long as they are sorted
// by (entity, index) it keeps runs; then it gives the directory up and gathers
// pairs, a bounded number at a time. It is for one goroutine.
type Indexer struct {
	domain interval.Domain
	coder  *entitykey.Coder

	rows      int64
	min, max  uint64    // ordinals
	directory Directory // nil once the rows were found unsorted
	unsorted  bool
	builder   *coverage.Builder
	pairs     []pair
	parts     []*coverage.Set

	twice *coverage.Overlap // pairs that several rows have, nil where nobody asks

	codes         []uint32
	ordinals, ids []uint64

	maxPairs, maxParts int
}

// NewIndexer returns an indexer of no rows yet of a table, which must have a
// schema and an index column.
func NewIndexer(def *tabledef.Definition) (*Indexer, error) {
	layout, err := entitykey.LayoutOf(def)
	if err != nil {
		return nil, err
	}
	domain, err := interval.New(def.IndexType, def.IndexUnit(), def.Granularity)
	if err != nil {
		return nil, err
	}
	return newIndexer(layout, domain), nil
}

func newIndexer(layout *entitykey.Layout, domain interval.Domain) *Indexer {
	return &Indexer{domain: domain, coder: entitykey.NewCoder(layout), min: math.MaxUint64, directory: Directory{}, builder: coverage.NewBuilder(),
		maxPairs: maxPairs, maxParts: maxParts}
}

// settled says that further rows change nothing.
func (x *Indexer) settled() bool { return x.unsorted && !x.domain.HasIntervals() }

// Add takes the next rows of the file: their entity columns in declared order,
// then the index column, with declared or storage types. The batch is borrowed.
// A null is an error.
func (x *Indexer) Add(batch arrow.RecordBatch) error {
	columns, rows := batch.Columns(), int(batch.NumRows())
	entities, index := columns[:len(columns)-1], columns[len(columns)-1]
	var err error
	if x.codes, err = x.coder.AppendCodes(x.codes[:0], entities, rows); err != nil {
		return err
	}
	if x.ordinals, err = x.domain.AppendOrdinals(x.ordinals[:0], index); err != nil {
		return err
	}
	for _, ordinal := range x.ordinals {
		x.min, x.max = min(x.min, ordinal), max(x.max, ordinal)
	}
	x.ids = slices.Grow(x.ids[:0], rows)[:rows]
	x.domain.IDs(x.ids, x.ordinals)
	for from := 0; from < rows && !x.settled(); {
		to := from + 1
		for to < rows && x.codes[to] == x.codes[from] {
			to++
		}
		if err := x.addRun(x.codes[from], x.ordinals[from:to], x.ids[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// addRun takes consecutive rows of one entity.
func (x *Indexer) addRun(code uint32, ordinals, ids []uint64) error {
	if !x.unsorted && !x.addSorted(x.coder.Key(code), ordinals, ids) {
		if err := x.giveUp(); err != nil {
			return err
		}
	}
	x.rows += int64(len(ids))
	if !x.unsorted || !x.domain.HasIntervals() {
		return nil
	}
	x.noteEqual(x.coder.Key(code), ids)
	for i, id := range ids {
		if i > 0 && id == ids[i-1] {
			continue
		}
		x.pairs = append(x.pairs, pair{code, id})
		if len(x.pairs) >= x.maxPairs {
			if err := x.packPairs(); err != nil {
				return err
			}
		}
	}
	return nil
}

// addSorted takes rows that go on in order, and refuses others untouched.
func (x *Indexer) addSorted(key string, ordinals, ids []uint64) bool {
	if !slices.IsSorted(ordinals) {
		return false
	}
	first, last := ordinals[0], ordinals[len(ordinals)-1]
	end := x.rows + int64(len(ordinals))
	if n := len(x.directory); n > 0 && x.directory[n-1].Key >= key {
		run := &x.directory[n-1]
		if run.Key > key || run.Last > first {
			return false
		}
		if id := x.domain.ID(run.Last); x.domain.HasIntervals() && id == ids[0] {
			x.note(key, id)
		}
		run.End, run.Last = end, last
	} else {
		x.directory = append(x.directory, Run{Key: key, Start: x.rows, End: end, First: first, Last: last})
		x.builder.Entity(key)
	}
	if x.domain.HasIntervals() {
		x.noteEqual(key, ids)
		x.builder.AddIDs(ids)
	}
	return true
}

// NoteDuplicates makes the indexer look for pairs of entity and interval that
// several rows have. It is called before the first Add.
func (x *Indexer) NoteDuplicates() { x.twice = &coverage.Overlap{} }

// Duplicate returns the smallest such pair once the rows were taken, by entity
// key and interval; found is false where there is none.
func (x *Indexer) Duplicate() (key string, id uint64, found bool) {
	if x.twice == nil || x.twice.Count == 0 {
		return "", 0, false
	}
	return x.twice.Key, x.twice.ID, true
}

func (x *Indexer) note(key string, id uint64) {
	if x.twice != nil {
		*x.twice = x.twice.Plus(coverage.Overlap{Count: 1, Key: key, ID: id})
	}
}

// noteEqual notes equal intervals that follow each other.
func (x *Indexer) noteEqual(key string, ids []uint64) {
	if x.twice == nil {
		return
	}
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			x.note(key, ids[i])
		}
	}
}

// addPart keeps a packed set.
func (x *Indexer) addPart(set *coverage.Set) {
	if x.twice != nil {
		for _, part := range x.parts {
			*x.twice = x.twice.Plus(coverage.Intersect(part, set))
		}
	}
	x.parts = append(x.parts, set)
}

// giveUp goes over to unsorted rows.
func (x *Indexer) giveUp() error {
	x.unsorted, x.directory = true, nil
	set, err := x.builder.Finish()
	if err != nil {
		return err
	}
	x.addPart(set)
	return nil
}

// packPairs makes a set of the pairs gathered so far.
func (x *Indexer) packPairs() error {
	ranks := x.coder.Ranks()
	slices.SortFunc(x.pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(ranks[a.code], ranks[b.code]), cmp.Compare(a.id, b.id))
	})
	b := coverage.NewBuilder()
	for i, p := range x.pairs {
		if i == 0 || p.code != x.pairs[i-1].code {
			b.Entity(x.coder.Key(p.code))
		} else if p.id == x.pairs[i-1].id {
			x.note(x.coder.Key(p.code), p.id)
			continue
		}
		b.Add(p.id)
	}
	set, err := b.Finish()
	if err != nil {
		return err
	}
	x.addPart(set)
	x.pairs = x.pairs[:0]
	if len(x.parts) < x.maxParts {
		return nil
	}
	if set, err = coverage.Union(x.parts...); err != nil {
		return err
	}
	clear(x.parts)
	x.parts = append(x.parts[:0], set)
	return nil
}

// Bounds returns the ordinals of the smallest and the largest index value of the
// rows taken.
func (x *Indexer) Bounds() (low, high uint64) { return x.min, x.max }

// Finish returns the index of the rows taken.
func (x *Indexer) Finish() (FileIndex, error) {
	out := FileIndex{Rows: x.rows, Directory: x.directory}
	if !x.domain.HasIntervals() {
		return out, nil
	}
	var err error
	if !x.unsorted {
		out.Coverage, err = x.builder.Finish()
		return out, err
	}
	if err := x.packPairs(); err != nil {
		return FileIndex{}, err
	}
	out.Coverage, err = coverage.Union(x.parts...)
	return out, err
}
