package datafile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// copyBuffer is how much of a copied column is written at once.
const copyBuffer = 1 << 20

// Original is a file whose column chunks can be copied into others, page by
// page, without decoding a value.
type Original struct {
	file *File
	meta *metadata.FileMetaData
}

// Original returns what copying from a file takes, nil for a file that this
// package has not written: its pages would lack seals in the copy.
func (f *File) Original(ctx context.Context) (o *Original, err error) {
	defer recovered(f.path, &err)
	if !f.footer.zones.own {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	raw, err := readFooter(exactSource{f.src}, f.Size())
	if err == nil {
		_, err = checkFooter(raw)
	}
	if err != nil {
		return nil, damaged(f.path, err)
	}
	meta, err := metadata.NewFileMetaData(raw, nil)
	if err != nil {
		return nil, damaged(f.path, err)
	}
	if len(meta.RowGroups) != len(f.footer.rowGroups) {
		return nil, corrupt(f.path, "its footer has changed while it was open")
	}
	return &Original{f, meta}, nil
}

// leaf returns the first leaf of a column of the original, −1 when it has none
// of that name.
func (o *Original) leaf(name string) int {
	found := o.file.footer.schema.FieldIndices(name)
	if len(found) != 1 {
		return -1
	}
	leaf := 0
	for i := range found[0] {
		leaf += len(leafTypes(o.file.footer.schema.Field(i).Type, nil))
	}
	return leaf
}

// CanCopy says whether the writer's i-th column lies in the original in the same
// form.
func (w *Writer) CanCopy(o *Original, i int) bool {
	first := o.leaf(w.columns[i].field.Name)
	leaves := w.columns[i].leaves
	if first < 0 || first+len(leaves) > len(o.file.footer.leaves) {
		return false
	}
	for k := range leaves {
		mine, theirs := leaves[k].descr, &o.file.footer.leaves[first+k]
		if mine.Path() != theirs.path || mine.PhysicalType() != theirs.physical || physicalWidth(mine) != theirs.width ||
			int(mine.MaxDefinitionLevel()) != theirs.maxDef || int(mine.MaxRepetitionLevel()) != theirs.maxRep || !mine.LogicalType().Equals(theirs.logical) {
			return false
		}
	}
	return true
}

// Origin says where the values of a column of a row group come from.
type Origin uint8

const (
	// Given values are handed over.
	Given Origin = iota
	// Copied ones lie in the original; all that the file gets for the column are
	// those of the original.
	Copied
	// Mixed ones are copied, too, but other row groups may be given other values.
	Mixed
)

// CopyGroup writes a row group of the original anew, behind the rows given to
// Write: each column as from says, the given ones from rest, whose batches have
// these columns in their order and together all rows of the group. The page
// checksums of what is copied are checked. The writer's limits do not hold for
// the group, and Written tells of Copied columns only that they were.
func (w *Writer) CopyGroup(ctx context.Context, o *Original, group int, from []Origin, rest []arrow.RecordBatch) error {
	if err := w.EndRowGroup(); err != nil {
		return err
	}
	if len(w.indexes) == math.MaxInt16 {
		return w.fail(errors.New("a file cannot have more than 32767 row groups"))
	}
	rows := o.file.footer.rowGroups[group].Rows
	if err := w.encodeRest(from, rest, rows); err != nil {
		return w.fail(err)
	}
	out := w.meta.AppendRowGroup()
	var indexes []pageIndexes
	for i := range w.columns {
		var more []pageIndexes
		var err error
		switch from[i] {
		case Given:
			more, err = w.writeColumn(out, i, rows)
		case Mixed:
			if err = w.know(o, group, i); err == nil {
				more, err = w.copyColumn(ctx, out, o, group, i)
			}
		default:
			w.copied[i] = true
			more, err = w.copyColumn(ctx, out, o, group, i)
		}
		if err != nil {
			return w.fail(err)
		}
		indexes = append(indexes, more...)
	}
	if err := w.endGroup(out, rows, indexes); err != nil {
		return w.fail(err)
	}
	w.rows += rows
	return nil
}

// encodeRest encodes the columns of a group that are not copied.
func (w *Writer) encodeRest(from []Origin, rest []arrow.RecordBatch, rows int64) error {
	var columns []*column
	for i := range w.columns {
		if from[i] == Given {
			columns = append(columns, &w.columns[i])
		}
	}
	if len(columns) == 0 {
		return nil
	}
	given := int64(0)
	for _, b := range rest {
		given += b.NumRows()
		if int(b.NumCols()) != len(columns) {
			return fmt.Errorf("a batch has %d columns beside the copied ones, not %d", b.NumCols(), len(columns))
		}
		for k, c := range columns {
			if err := c.check(b.Column(k)); err != nil {
				return err
			}
		}
	}
	if given != rows {
		return fmt.Errorf("%d rows go beside the %d of a copied row group", given, rows)
	}
	return encodeColumns(columns, rest, int(rows), w.opts.Mem, w.scratches[:])
}

// copyColumn copies the chunks of a column.
func (w *Writer) copyColumn(ctx context.Context, to *metadata.RowGroupMetaDataBuilder, o *Original, group, i int) ([]pageIndexes, error) {
	var indexes []pageIndexes
	first := o.leaf(w.columns[i].field.Name)
	for k := range w.columns[i].leaves {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at := w.sink.n
		err := w.copyPages(o, group, first+k)
		var index pageIndexes
		if err == nil {
			index, err = o.describe(to.NextColumnChunk(), group, first+k, at)
		}
		if err != nil {
			return nil, damaged(o.file.path, fmt.Errorf("column %q: %w", o.file.footer.leaves[first+k].path, err))
		}
		indexes = append(indexes, index)
	}
	return indexes, nil
}

// copyPages copies the pages of a leaf's chunk.
func (w *Writer) copyPages(o *Original, group, leaf int) error {
	cursor := pageCursor{src: exactSource{o.file.src}, leaf: &o.file.footer.leaves[leaf]}
	defer cursor.release()
	cursor.open(o.file.footer.chunk(group, leaf))
	buffer := w.copying[:0]
	defer func() { w.copying = buffer[:0] }()
	for {
		start := cursor.pos
		h, err := cursor.header()
		if errors.Is(err, io.EOF) {
			return w.writeCopied(buffer)
		}
		if err != nil {
			return err
		}
		before := len(buffer)
		buffer = h.append(buffer)
		if int64(len(buffer)-before) != cursor.pos-start {
			return errors.New("a page header is not as this software writes it")
		}
		body, err := cursor.body(&h)
		if err != nil {
			return err
		}
		buffer = append(buffer, body...)
		if len(buffer) >= copyBuffer {
			if err := w.writeCopied(buffer); err != nil {
				return err
			}
			buffer = buffer[:0]
		}
	}
}

// writeCopied writes to the sink. Its errors are no signs of a damaged original.
func (w *Writer) writeCopied(b []byte) error {
	if _, err := w.sink.Write(b); err != nil {
		return &sourceError{err}
	}
	return nil
}

// describe enters a copied chunk, whose first byte lies at offset at, into the
// metadata of its new file, and returns its page index.
func (o *Original) describe(to *metadata.ColumnChunkMetaDataBuilder, group, leaf int, at int64) (pageIndexes, error) {
	footer := o.file.footer
	chunk := footer.chunk(group, leaf)
	moved := at - chunk.start
	info := metadata.ChunkMetaInfo{IndexPageOffset: -1, DataPageOffset: at}
	if err := to.Finish(info, false, false, metadata.EncodingStats{}); err != nil {
		return pageIndexes{}, err
	}
	md := to.Contents().MetaData
	*md = *o.meta.RowGroups[group].Columns[leaf].MetaData
	md.DataPageOffset += moved
	if md.DictionaryPageOffset != nil {
		dictionary := *md.DictionaryPageOffset + moved
		md.DictionaryPageOffset = &dictionary
	}
	src := exactSource{o.file.src}
	pages, err := footer.pageLocations(src, group)
	if err != nil {
		return pageIndexes{}, err
	}
	x := pageIndexes{offset: &metadata.OffsetIndexBuilder{}}
	for _, p := range pages[leaf] {
		if err := x.offset.AddPage(p.start+moved, p.firstRow, p.length); err != nil {
			return x, err
		}
	}
	if err := x.offset.Finish(0); err != nil {
		return x, err
	}
	if s := footer.zones.stats[group*len(footer.leaves)+leaf]; s.indexLength > 0 {
		x.copied = make([]byte, s.indexLength)
		if _, err := src.ReadAt(x.copied, s.indexStart); err != nil {
			return x, err
		}
		if _, err := parseColumnIndex(x.copied, true); err != nil {
			return x, err
		}
	}
	return x, nil
}
