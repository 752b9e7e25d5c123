package datafile

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

const (
	// encoders is the number of goroutines that encode the columns of a row
	// group; a row group of fewer values is encoded by the caller alone.
	encoders          = 2
	parallelFromValue = 64 << 10
)

// column is one field of a file being written.
type column struct {
	field  arrow.Field
	leaves []leafColumn
}

// leafColumn is one leaf of a column.
type leafColumn struct {
	descr    *schema.Column
	encoder  leafEncoder
	codec    compress.Compression
	adaptive bool
	cold     bool
	chunk    chunkWriter
	stats    metadata.EncodedStatistics
}

// newColumn plans how a field is written; descrs are its leaves in order.
func newColumn(field arrow.Field, descrs []*schema.Column, c Compression) (column, error) {
	col := column{field: field}
	types := leafTypes(field.Type, nil)
	if len(types) != len(descrs) {
		return col, fmt.Errorf("column %q of type %s has %d leaves, not %d", field.Name, field.Type, len(descrs), len(types))
	}
	for i, typ := range types {
		encoder, err := newLeafEncoder(typ)
		if err != nil {
			return col, fmt.Errorf("column %q: %w", field.Name, err)
		}
		small := compact(typ)
		col.leaves = append(col.leaves, leafColumn{
			descr: descrs[i], encoder: encoder, codec: c.codec(small), adaptive: c.adaptive(small), cold: c == Cold,
		})
	}
	return col, nil
}

// check refuses an array that is not of the column's type.
func (c *column) check(arr arrow.Array) error {
	f, typ := c.field, arr.DataType()
	if d, ok := typ.(*arrow.DictionaryType); ok && f.Type.ID() == arrow.STRING && d.IndexType.ID() == arrow.INT32 {
		typ = d.ValueType
	}
	if !arrow.TypeEqual(plainType(typ), f.Type) {
		return fmt.Errorf("column %q is stored as %s, not as %s", f.Name, f.Type, arr.DataType())
	}
	if !f.Nullable && arr.NullN() > 0 {
		return fmt.Errorf("column %q may not be null", f.Name)
	}
	return nil
}

// encode encodes the column's arrays of one row group.
func (c *column) encode(arrays []arrow.Array, rows int, mem memory.Allocator, s *scratch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("encoding failed: %v", p)
		}
		if err != nil {
			err = fmt.Errorf("column %q: %w", c.field.Name, err)
		}
	}()
	if !isNested(c.field.Type) {
		in := leafInput{arrays: arrays, rows: rows, nullable: c.field.Nullable}
		return c.leaves[0].encode(&in, s)
	}
	inputs, release, err := shred(c.field, arrays, rows, mem)
	defer release()
	if err != nil {
		return err
	}
	for i := range c.leaves {
		leaf := &c.leaves[i]
		inputs[i].maxDef, inputs[i].maxRep = int(leaf.descr.MaxDefinitionLevel()), int(leaf.descr.MaxRepetitionLevel())
		if err := leaf.encode(&inputs[i], s); err != nil {
			return err
		}
	}
	return nil
}

func (l *leafColumn) encode(in *leafInput, s *scratch) (err error) {
	if l.chunk.out == nil {
		l.chunk.out = takeScratch()
	}
	l.chunk.reset(l.codec, l.adaptive, l.cold)
	l.stats, err = l.encoder.encode(&l.chunk, in, s)
	return err
}

// encodeColumns encodes all columns of a row group, on several goroutines
// where it is large.
func encodeColumns(columns []*column, batches []arrow.RecordBatch, rows int, mem memory.Allocator, scratches []scratch) error {
	work := func(i int, s *scratch) error {
		arrays := make([]arrow.Array, 0, len(batches))
		for _, b := range batches {
			arrays = append(arrays, b.Column(i))
		}
		return columns[i].encode(arrays, rows, mem, s)
	}
	if len(columns) == 1 || rows*len(columns) < parallelFromValue {
		for i := range columns {
			if err := work(i, &scratches[0]); err != nil {
				return err
			}
		}
		return nil
	}
	next := make(chan int, len(columns))
	for i := range columns {
		next <- i
	}
	close(next)
	errs := make([]error, len(scratches))
	var wg sync.WaitGroup
	for w := range scratches {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				if errs[w] = work(i, &scratches[w]); errs[w] != nil {
					return
				}
			}
		}()
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// pageIndexes are the page index of one leaf in one row group.
type pageIndexes struct {
	column metadata.ColumnIndexBuilder // nil where it was copied
	copied []byte                      // a column index with its seal, nil for none
	offset *metadata.OffsetIndexBuilder
}

// columnTo and offsetTo write the indexes with their seals, or nothing where
// there is none.
func (x pageIndexes) columnTo(to *bytes.Buffer) error {
	if x.column == nil {
		to.Write(x.copied)
		return nil
	}
	return sealTo(to, func() (int, error) { return x.column.WriteTo(to, nil) })
}

func (x pageIndexes) offsetTo(to *bytes.Buffer) error {
	return sealTo(to, func() (int, error) { return x.offset.WriteTo(to, nil) })
}

// sealTo puts a seal into the structure, if any, that is written to an empty
// buffer.
func sealTo(to *bytes.Buffer, write func() (int, error)) error {
	n, err := write()
	if err != nil || n == 0 {
		return err
	}
	raw := sealed(bytes.Clone(to.Bytes()), 0)
	to.Reset()
	to.Write(raw)
	return nil
}

// describe enters a written chunk, whose first byte lies at offset at, into
// the file's metadata, and returns its page index.
func (l *leafColumn) describe(meta *metadata.ColumnChunkMetaDataBuilder, at int64) (pageIndexes, error) {
	c := &l.chunk
	info := metadata.ChunkMetaInfo{
		NumValues: c.entries, IndexPageOffset: -1,
		DataPageOffset: at + int64(c.dictionary),
		CompressedSize: int64(len(c.out)), UncompressedSize: c.uncompressed,
	}
	encodings := metadata.EncodingStats{DataEncodingStats: map[parquet.Encoding]int32{parquet.Encoding(c.encoding): int32(len(c.pages))}}
	if c.dictionary > 0 {
		info.DictPageOffset = at
		encodings.DictEncodingStats = map[parquet.Encoding]int32{parquet.Encodings.Plain: 1}
	}
	if err := meta.Finish(info, c.dictionary > 0, false, encodings); err != nil {
		return pageIndexes{}, err
	}
	// arrow-go knows codecs and encodings by the columns' dotted paths, which a
	// column "a.b" shares with a child b of a struct a, and before the first
	// page has chosen: the chunk says what it really has.
	md := meta.Contents().MetaData
	setNumber(&md.Codec, int(c.codec))
	setNumbers(&md.Encodings, c.encodings()...)
	l.stats.SetNullCount(c.nulls)
	meta.SetStats(l.stats)
	return l.pageIndexes(at)
}

// setNumber and setNumbers set fields whose types arrow-go does not export.
func setNumber[T ~int64](field *T, v int) { *field = T(v) }

func setNumbers[T ~int64](field *[]T, values ...int) {
	*field = make([]T, len(values))
	for i, v := range values {
		(*field)[i] = T(v)
	}
}

func (l *leafColumn) pageIndexes(at int64) (pageIndexes, error) {
	x := pageIndexes{column: metadata.NewColumnIndexBuilder(l.descr), offset: &metadata.OffsetIndexBuilder{}}
	for i := range l.chunk.pages {
		p := &l.chunk.pages[i]
		if err := x.column.AddPage(&p.stats); err != nil {
			return x, err
		}
		if err := x.offset.AddPage(at+int64(p.start), p.firstRow, int32(p.length)); err != nil {
			return x, err
		}
	}
	if err := x.column.Finish(); err != nil {
		return x, err
	}
	return x, x.offset.Finish(0)
}
