// Package rewrite writes a live data file anew: with other values in some of
// its columns, or without some of its rows.
//
// The rows that stay keep their order, and the values that nobody chose to
// change keep their bits: NaN payloads, negative zeros and all. A replacement
// has the table's current columns; those that the old file lacks are null. Its
// statistics, sort state, coverage and entity directory are right for the rows
// that it holds. Memory is bounded by a row group, whatever the file.
package rewrite

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Config is what the rewriting of a table's files works with.
type Config struct {
	// Snapshot is the version whose files are rewritten, and Files reads them.
	Snapshot *snapshot.Snapshot
	Files    *filecache.Files
	// Out writes the replacements, with the schema of Snapshot.
	Out *newfile.Writer
}

// Change is what becomes of the rows of a file.
type Change struct {
	// Keep are the rows that stay: ascending and disjoint. Nil means all.
	Keep []datafile.RowRange
	// Columns are the columns whose values Replace gives; none leaves all
	// values as they are.
	Columns []string
	// Replaced counts the rows, of some that follow each other in the old file,
	// to which Replace gives other values. Nil means that nobody knows.
	Replaced func(rows datafile.RowRange) int64
	// Replace returns the arrays of Columns, in storage types, for rows that
	// stay and follow each other in the old file, or for at least one of the
	// first of them; then it is asked for the others. old has the present values
	// of Columns and is borrowed; it is nil where Replaced counts all the rows.
	// The result belongs to the rewriter.
	Replace func(rows datafile.RowRange, old []arrow.Array) ([]arrow.Array, error)
}

// File is a replacement that was written.
type File struct {
	newfile.File
	// Remove is the action that takes the old file out of the table.
	Remove *deltalog.Remove
	// SourceBytes is the size of the old file.
	SourceBytes int64
}

// Write writes a file of the snapshot anew. At least one row must stay. A
// damaged or missing file is *tableerr.Corrupt or *tableerr.FileMissing; errors
// of Replace come back as they are. After an error there may be a file left for
// Out.Discard to remove.
func Write(ctx context.Context, cfg Config, f *snapshot.File, change Change) (File, error) {
	path, err := cfg.Out.NewPath()
	if err != nil {
		return File{}, err
	}
	source, err := cfg.Files.Open(ctx, cfg.Snapshot, f)
	if err != nil {
		return File{}, err
	}
	defer source.Close()
	r := &rewriter{cfg: cfg, old: f, source: source, change: change}
	written, err := cfg.Out.Write(ctx, path, func(to *datafile.Writer) (newfile.Contents, error) { return r.fill(ctx, to) })
	if err != nil {
		return File{}, err
	}
	if cfg.Snapshot.Def.Uniqueness == tabledef.UniqueNone {
		// Rows with equal index values stay in the order of their appends.
		written.Add.Tags[tabledef.TagOrder] = strconv.FormatInt(max(0, f.Order), 10)
	}
	return File{File: written, Remove: Remove(f), SourceBytes: source.Size()}, nil
}

// Remove returns the action that takes a file out of the table.
func Remove(f *snapshot.File) *deltalog.Remove {
	size := f.Add.Size
	return &deltalog.Remove{Path: f.Add.Path, DataChange: true, ExtendedFileMetadata: true, PartitionValues: f.Add.PartitionValues,
		Size: &size, DeletionVector: f.Add.DeletionVector}
}

// rewriter writes one file anew.
type rewriter struct {
	cfg    Config
	old    *snapshot.File
	source *filecache.File
	change Change
	places []int // of Columns in the schema
	keys   *keys // nil where the old file's index is the new one's, too
	copies *copies
}

// fill writes the rows, row group by row group as they lie in the old file.
func (r *rewriter) fill(ctx context.Context, to *datafile.Writer) (newfile.Contents, error) {
	schema := r.cfg.Out.Schema()
	for _, name := range r.change.Columns {
		found := schema.FieldIndices(name)
		if len(found) != 1 {
			return newfile.Contents{}, fmt.Errorf("there is no column %q to rewrite", name)
		}
		r.places = append(r.places, found[0])
	}
	var err error
	if r.change.Keep != nil || !r.old.Bounded {
		r.keys, err = newKeys(r.cfg.Snapshot.Def, schema)
	} else {
		r.copies, err = r.newCopies(ctx, to)
	}
	if err != nil {
		return newfile.Contents{}, err
	}
	for i, group := range r.source.RowGroups() {
		rows := datafile.RowRange{Start: group.FirstRow, End: group.FirstRow + group.Rows}
		done := false
		if r.copies != nil {
			done, err = r.copies.group(ctx, to, i, rows)
		}
		if err == nil && !done {
			err = r.copyRows(ctx, to, within(r.change.Keep, rows))
		}
		if err != nil {
			return newfile.Contents{}, err
		}
	}
	return r.contents(ctx, to.Rows())
}

// within returns the parts of ranges that lie inside rows; nil stands for all
// rows.
func within(ranges []datafile.RowRange, rows datafile.RowRange) []datafile.RowRange {
	if ranges == nil {
		return []datafile.RowRange{rows}
	}
	at, _ := slices.BinarySearchFunc(ranges, rows.Start, func(r datafile.RowRange, start int64) int {
		if r.End <= start {
			return -1
		}
		return 1
	})
	inside := []datafile.RowRange{}
	for _, r := range ranges[at:] {
		if r.Start >= rows.End {
			break
		}
		inside = append(inside, datafile.RowRange{Start: max(r.Start, rows.Start), End: min(r.End, rows.End)})
	}
	return inside
}

// copyRows writes rows of one row group by decoding and encoding them.
func (r *rewriter) copyRows(ctx context.Context, to *datafile.Writer, ranges []datafile.RowRange) error {
	err := r.read(ctx, r.cfg.Out.Schema().Fields(), ranges, func(first int64, batch arrow.RecordBatch) error {
		return r.copyBatch(to, first, batch)
	})
	if err != nil {
		return err
	}
	return to.EndRowGroup()
}

// read yields rows of the old file, with the number of the first; where no
// values are to be replaced, those of a batch need not follow each other.
func (r *rewriter) read(ctx context.Context, fields []arrow.Field, ranges []datafile.RowRange, each func(first int64, batch arrow.RecordBatch) error) error {
	return r.source.Each(ctx, datafile.ReadRequest{Fields: fields, Ranges: ranges, Join: len(r.places) == 0}, each)
}

// copyBatch writes rows that follow each other in the old file from first on.
func (r *rewriter) copyBatch(to *datafile.Writer, first int64, batch arrow.RecordBatch) error {
	if r.keys != nil {
		if err := r.keys.add(batch); err != nil {
			return &tableerr.Corrupt{Path: r.old.Path, Msg: fmt.Sprintf("its key columns, from row %d on: %v", first, err), Cause: err}
		}
	}
	if len(r.places) == 0 {
		return to.Write(batch)
	}
	return r.replace(first, batch, r.places, to.Write)
}

// replace gives the chosen columns of a batch, which lie in places, other values
// and yields the result in one batch or more.
func (r *rewriter) replace(first int64, batch arrow.RecordBatch, places []int, each func(arrow.RecordBatch) error) error {
	for from := int64(0); from < batch.NumRows(); {
		rest := batch.NewSlice(from, batch.NumRows())
		n, err := r.replaceSome(first+from, rest, places, each)
		rest.Release()
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}

// replaceSome is replace for at least one of the first rows, and returns of how
// many.
func (r *rewriter) replaceSome(first int64, batch arrow.RecordBatch, places []int, each func(arrow.RecordBatch) error) (int64, error) {
	old := make([]arrow.Array, len(places))
	for i, at := range places {
		old[i] = batch.Column(at)
	}
	fresh, err := r.change.Replace(datafile.RowRange{Start: first, End: first + batch.NumRows()}, old)
	if err != nil {
		return 0, err
	}
	n := int64(fresh[0].Len())
	part := batch.NewSlice(0, n)
	defer part.Release()
	columns := slices.Clone(part.Columns())
	for i, at := range places {
		columns[at] = fresh[i]
	}
	changed := array.NewRecordBatch(batch.Schema(), columns, n)
	defer changed.Release()
	for _, arr := range fresh {
		arr.Release()
	}
	return n, each(changed)
}

// contents tells of the rows that were written.
func (r *rewriter) contents(ctx context.Context, rows int64) (newfile.Contents, error) {
	if r.keys != nil {
		return r.keys.contents(rows)
	}
	index, err := r.cfg.Files.Index(ctx, r.cfg.Snapshot, r.old)
	if err != nil {
		return newfile.Contents{}, err
	}
	c := newfile.Contents{Min: r.old.Min, Max: r.old.Max, Index: *index}
	if r.copies != nil {
		c.Original = r.old.Add
	}
	return c, nil
}

// keys computes what the key columns of the written rows say of a file.
type keys struct {
	index  *derived.Indexer
	fields *arrow.Schema
	places []int // of the key columns in the schema
}

func newKeys(def *tabledef.Definition, schema *arrow.Schema) (*keys, error) {
	index, err := derived.NewIndexer(def)
	if err != nil {
		return nil, err
	}
	k := &keys{index: index}
	var fields []arrow.Field
	for _, name := range append(slices.Clone(def.EntityColumns), def.IndexColumn) {
		at := schema.FieldIndices(name)[0]
		k.places = append(k.places, at)
		fields = append(fields, schema.Field(at))
	}
	k.fields = arrow.NewSchema(fields, nil)
	return k, nil
}

// add takes the next rows that are written.
func (k *keys) add(batch arrow.RecordBatch) error {
	columns := make([]arrow.Array, len(k.places))
	for i, at := range k.places {
		columns[i] = batch.Column(at)
	}
	own := array.NewRecordBatch(k.fields, columns, batch.NumRows())
	defer own.Release()
	return k.index.Add(own)
}

func (k *keys) contents(rows int64) (newfile.Contents, error) {
	index, err := k.index.Finish()
	if err != nil {
		return newfile.Contents{}, err
	}
	index.Rows = rows
	c := newfile.Contents{Index: index}
	c.Min, c.Max = k.index.Bounds()
	return c, nil
}
