package datafile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// Written describes a finished file.
type Written struct {
	Rows      int64
	RowGroups int
	Bytes     int64         // size of the file
	Columns   []ColumnStats // of every field, in order
}

// Writer writes one file. It belongs to one goroutine. After an error it only
// returns that error; what was written until then is no file.
type Writer struct {
	sink      countingWriter
	schema    *arrow.Schema
	opts      WriteOptions
	columns   []column
	scratches *scratches // nil once the file is closed
	meta      *metadata.FileMetaDataBuilder
	indexes   [][]pageIndexes // per row group and leaf
	keyValues map[string]string
	copied    []bool // columns of which a chunk was copied from another file
	copying   []byte // of what is being copied

	pending      []arrow.RecordBatch // the open row group
	pendingRows  int64
	pendingBytes int64
	rows         int64
	nulls        []int64
	err          error
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// Tell returns the number of bytes written.
func (c *countingWriter) Tell() int64 { return c.n }

// Close does nothing; the writer below belongs to the caller.
func (c *countingWriter) Close() error { return nil }

// NewWriter starts a file of the given storage types. It writes to w, from the
// calling goroutine only, and never closes it. The names, types and
// nullability of schema's fields are taken, its metadata is not.
func NewWriter(w io.Writer, schema *arrow.Schema, opts WriteOptions) (*Writer, error) {
	opts = opts.withDefaults()
	fields := make([]arrow.Field, schema.NumFields())
	for i, f := range schema.Fields() {
		fields[i] = plainField(f)
	}
	writer := &Writer{
		sink: countingWriter{w: w}, opts: opts, schema: arrow.NewSchema(fields, nil),
		scratches: takeScratches(), keyValues: map[string]string{}, nulls: make([]int64, len(fields)), copied: make([]bool, len(fields)),
	}
	if err := writer.plan(); err != nil {
		return nil, fmt.Errorf("starting a data file: %w", err)
	}
	if _, err := writer.sink.Write([]byte(magic)); err != nil {
		return nil, fmt.Errorf("starting a data file: %w", err)
	}
	return writer, nil
}

// plan derives the Parquet schema and the way each column is written.
func (w *Writer) plan() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the schema cannot be stored: %v", p)
		}
	}()
	arrowProps := pqarrow.NewArrowWriterProperties()
	pq, err := pqarrow.ToParquet(w.schema, writerProperties(), arrowProps)
	if err != nil {
		return err
	}
	leaf := 0
	for _, f := range w.schema.Fields() {
		n := len(leafTypes(f.Type, nil))
		var descrs []*schema.Column
		for ; n > 0 && leaf < pq.NumColumns(); n-- {
			descrs = append(descrs, pq.Column(leaf))
			leaf++
		}
		column, err := newColumn(f, descrs, w.opts.Compression)
		if err != nil {
			return err
		}
		w.columns = append(w.columns, column)
	}
	w.meta = metadata.NewFileMetadataBuilder(pq, writerProperties(), nil)
	return nil
}

// createdBy names the writer in every file, in the form Parquet asks for.
const createdBy = "contrail version 0.1.0 (build sealed)"

// writerProperties are what arrow-go needs to know to write a footer.
func writerProperties() *parquet.WriterProperties {
	return parquet.NewWriterProperties(parquet.WithCreatedBy(createdBy), parquet.WithVersion(parquet.V2_LATEST))
}

// Write appends the rows of batch, whose columns must be those of the schema
// by position. A string column may come as dictionary<int32, string>. The batch
// is retained until its row group is written.
func (w *Writer) Write(batch arrow.RecordBatch) error {
	if w.err != nil {
		return w.err
	}
	if err := w.check(batch); err != nil {
		return w.fail(err)
	}
	rowBytes := int64(1)
	for _, column := range batch.Columns() {
		rowBytes += rowsBytes(column.Data()) / max(1, batch.NumRows())
	}
	for from := int64(0); from < batch.NumRows(); {
		room := min(w.opts.MaxRowsPerRowGroup-w.pendingRows, max(1, (w.opts.MaxBytesPerRowGroup-w.pendingBytes)/rowBytes))
		n := min(room, batch.NumRows()-from)
		w.pending = append(w.pending, batch.NewSlice(from, from+n))
		w.pendingRows += n
		w.pendingBytes += n * rowBytes
		from += n
		if w.pendingRows >= w.opts.MaxRowsPerRowGroup || w.pendingBytes >= w.opts.MaxBytesPerRowGroup {
			if err := w.EndRowGroup(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Writer) check(batch arrow.RecordBatch) error {
	if int(batch.NumCols()) != w.schema.NumFields() {
		return fmt.Errorf("a batch of %d columns cannot be written to a file of %d", batch.NumCols(), w.schema.NumFields())
	}
	for i := range w.columns {
		if err := w.columns[i].check(batch.Column(i)); err != nil {
			return err
		}
	}
	return nil
}

// EndRowGroup closes the open row group; without rows in it, it does nothing.
func (w *Writer) EndRowGroup() error {
	if w.err != nil || w.pendingRows == 0 {
		return w.err
	}
	defer w.dropPending()
	if len(w.indexes) == math.MaxInt16 {
		return w.fail(errors.New("a file cannot have more than 32767 row groups"))
	}
	columns := make([]*column, len(w.columns))
	for i := range columns {
		columns[i] = &w.columns[i]
	}
	if err := encodeColumns(columns, w.pending, int(w.pendingRows), w.opts.Mem, w.scratches[:]); err != nil {
		return w.fail(err)
	}
	if err := w.writeRowGroup(); err != nil {
		return w.fail(err)
	}
	w.rows += w.pendingRows
	return nil
}

// writeRowGroup writes the encoded chunks one after another.
func (w *Writer) writeRowGroup() error {
	group := w.meta.AppendRowGroup()
	var indexes []pageIndexes
	for i := range w.columns {
		more, err := w.writeColumn(group, i, w.pendingRows)
		if err != nil {
			return err
		}
		indexes = append(indexes, more...)
	}
	return w.endGroup(group, w.pendingRows, indexes)
}

// writeColumn writes the encoded chunks of a column.
func (w *Writer) writeColumn(group *metadata.RowGroupMetaDataBuilder, i int, rows int64) ([]pageIndexes, error) {
	var indexes []pageIndexes
	for k := range w.columns[i].leaves {
		leaf := &w.columns[i].leaves[k]
		if leaf.chunk.rows != rows {
			return nil, fmt.Errorf("column %q: %d rows were encoded of %d", w.columns[i].field.Name, leaf.chunk.rows, rows)
		}
		index, err := leaf.describe(group.NextColumnChunk(), w.sink.n)
		if err != nil {
			return nil, err
		}
		indexes = append(indexes, index)
		if _, err := w.sink.Write(leaf.chunk.out); err != nil {
			return nil, err
		}
	}
	if !isNested(w.columns[i].field.Type) {
		w.nulls[i] += w.columns[i].leaves[0].chunk.nulls
	}
	return indexes, nil
}

// endGroup enters a row group that was written into the file's metadata.
func (w *Writer) endGroup(group *metadata.RowGroupMetaDataBuilder, rows int64, indexes []pageIndexes) error {
	group.SetNumRows(int(rows))
	if err := group.Finish(0, int16(len(w.indexes))); err != nil {
		return err
	}
	w.indexes = append(w.indexes, indexes)
	return nil
}

func (w *Writer) dropPending() {
	for _, batch := range w.pending {
		batch.Release()
	}
	clear(w.pending)
	w.pending, w.pendingRows, w.pendingBytes = w.pending[:0], 0, 0
}

func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = fmt.Errorf("writing a data file: %w", err)
		w.dropPending()
	}
	return w.err
}

// SetMeta sets a key of the file's key-value metadata; both must be valid
// UTF-8. It may be called until Close; an error is returned there.
func (w *Writer) SetMeta(key, value string) {
	if !utf8.ValidString(key) || !utf8.ValidString(value) {
		_ = w.fail(fmt.Errorf("the metadata %q is no valid UTF-8", key))
		return
	}
	w.keyValues[key] = value
}

// Rows returns the number of rows given to Write.
func (w *Writer) Rows() int64 { return w.rows + w.pendingRows }

// RowGroups returns the number of row groups closed so far.
func (w *Writer) RowGroups() int { return len(w.indexes) }

var errClosed = errors.New("the data file is closed")

// Close ends the open row group and writes the footer. A Writer must be closed
// even after an error, to free what it holds.
func (w *Writer) Close() (Written, error) {
	defer w.free()
	if err := w.EndRowGroup(); err != nil {
		return Written{}, err
	}
	if err := w.writeFooter(); err != nil {
		return Written{}, w.fail(err)
	}
	written := Written{Rows: w.rows, RowGroups: len(w.indexes), Bytes: w.sink.n}
	for i := range w.columns {
		stats := ColumnStats{Name: w.columns[i].field.Name, NullCount: w.nulls[i], Copied: w.copied[i]}
		if !stats.Copied && !isNested(w.columns[i].field.Type) {
			w.columns[i].leaves[0].encoder.finish(&stats)
		}
		written.Columns = append(written.Columns, stats)
	}
	w.err = errClosed
	return written, nil
}

// free gives back the memory that the file was encoded in.
func (w *Writer) free() {
	if w.scratches == nil {
		return
	}
	giveScratches(w.scratches)
	w.scratches = nil
	for i := range w.columns {
		for k := range w.columns[i].leaves {
			chunk := &w.columns[i].leaves[k].chunk
			giveScratch(chunk.out)
			chunk.out = nil
		}
	}
}

// writeFooter writes page index and footer, then reads the footer back as a
// reader would, before anyone relies on the file.
func (w *Writer) writeFooter() error {
	if err := w.writePageIndex(); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(w.keyValues)) {
		if err := w.meta.AppendKeyValueMetadata(key, w.keyValues[key]); err != nil {
			return err
		}
	}
	meta, err := w.meta.Snapshot()
	if err != nil {
		return err
	}
	var footer bytes.Buffer
	if _, err := meta.WriteTo(&footer, nil); err != nil {
		return err
	}
	raw := sealed(footer.Bytes(), 0)
	read, err := parseFooter(raw, w.sink.n+int64(len(raw))+tailBytes, "")
	if err != nil {
		return err
	}
	if read.rows != w.rows || len(read.rowGroups) != len(w.indexes) {
		return fmt.Errorf("%d rows were written in %d row groups, the footer says %d in %d", w.rows, len(w.indexes), read.rows, len(read.rowGroups))
	}
	tail := binary.LittleEndian.AppendUint32(raw, uint32(len(raw)))
	_, err = w.sink.Write(append(tail, magic...))
	return err
}

// writePageIndex writes all column indexes, then all offset indexes.
func (w *Writer) writePageIndex() error {
	at := metadata.PageIndexLocation{ColIndexLocation: map[uint64][]*metadata.IndexLocation{}, OffsetIndexLocation: map[uint64][]*metadata.IndexLocation{}}
	kinds := []struct {
		write func(pageIndexes, *bytes.Buffer) error
		to    map[uint64][]*metadata.IndexLocation
	}{
		{pageIndexes.columnTo, at.ColIndexLocation},
		{pageIndexes.offsetTo, at.OffsetIndexLocation},
	}
	var index bytes.Buffer
	for _, kind := range kinds {
		for g, leaves := range w.indexes {
			locations := make([]*metadata.IndexLocation, len(leaves))
			for i, x := range leaves {
				index.Reset()
				if err := kind.write(x, &index); err != nil {
					return err
				}
				raw := index.Bytes()
				if len(raw) == 0 {
					continue
				}
				locations[i] = &metadata.IndexLocation{Offset: w.sink.n, Length: int32(len(raw))}
				if _, err := w.sink.Write(raw); err != nil {
					return err
				}
			}
			kind.to[uint64(g)] = locations
		}
	}
	return w.meta.SetPageIndexLocation(at)
}
