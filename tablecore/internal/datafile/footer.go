package datafile

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

const (
	magic       = "PAR1"
	tailBytes   = 8
	maxFooter   = 256 << 20
	footerGuess = 64 << 10
	checkGuess  = 32 << 10 // most of the files that are only checked are small ones
)

// maxValueWidth bounds the declared length of FIXED_LEN_BYTE_ARRAY values, of
// which even a null takes as much in an Arrow array.
const maxValueWidth = 1 << 24

// RowGroup describes one row group of a file.
type RowGroup struct {
	FirstRow int64 // number of rows before it in the file
	Rows     int64
	Bytes    int64 // encoded and compressed
}

// Footer is the parsed description of a file. It is immutable but for page
// locations it remembers once they were read, and may be shared and cached.
type Footer struct {
	schema    *arrow.Schema
	fields    []pqarrow.SchemaField // one for each field of schema
	leaves    []leafInfo
	rowGroups []RowGroup
	chunks    []chunkInfo // of all row groups, len(leaves) each
	pages     []atomic.Pointer[[][]pageLocation]
	zones     zoneInfo
	rows      int64
	keyValues map[string]string
	bytes     int64
}

// leafInfo describes a column of values, of which a nested field has several.
type leafInfo struct {
	path           string
	physical       parquet.Type
	width          int // bytes of a value of fixed length
	logical        schema.LogicalType
	maxDef, maxRep int
	sealed         bool // the file's page headers and indices have seals
}

// chunkInfo says where the values of one leaf in one row group lie. Its ranges
// lie inside the file.
type chunkInfo struct {
	start, end  int64 // with the dictionary page
	dictionary  bool  // whether start is that of a dictionary page
	values      int64
	codec       compress.Compression
	indexStart  int64 // of the offset index
	indexLength int32 // 0 where there is none
}

// ParseFooter reads and checks the footer of the file behind r. path only
// names the file in errors. It returns a *tableerr.Corrupt for anything that
// is no sound Parquet file and the store's own error where reading fails.
func ParseFooter(ctx context.Context, r Source, path string) (*Footer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	raw, err := readFooter(exactSource{r}, r.Size())
	if err != nil {
		return nil, damaged(path, err)
	}
	footer, err := parseFooter(raw, r.Size(), path)
	if err != nil {
		return nil, damaged(path, err)
	}
	return footer, nil
}

// CheckFooter finds out whether ParseFooter takes a file, in a fraction of the
// time where the footer matches its seal: then it is what this software has
// written. Whether all that lies before it is there is not asked then.
func CheckFooter(ctx context.Context, r Source, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	tail := tails.Get().(*[checkGuess]byte)
	defer tails.Put(tail)
	raw, err := readFooterInto(exactSource{r}, r.Size(), tail[:])
	if err != nil {
		return damaged(path, err)
	}
	sealed, err := checkFooter(raw)
	if err == nil && !sealed {
		_, err = parseFooter(raw, r.Size(), path)
	}
	if err != nil {
		return damaged(path, err)
	}
	return nil
}

// tails has what CheckFooter reads into: a vacuum calls it for thousands of
// files, which would otherwise keep the garbage collector busy.
var tails = sync.Pool{New: func() any { return new([checkGuess]byte) }}

// readFooter returns the serialized file metadata. One read suffices for most
// files.
func readFooter(src exactSource, size int64) ([]byte, error) {
	return readFooterInto(src, size, make([]byte, max(0, min(size, footerGuess))))
}

// readFooterInto is readFooter with the buffer for the first read. The result may
// lie in it.
func readFooterInto(src exactSource, size int64, tail []byte) ([]byte, error) {
	if size < int64(len(magic))+tailBytes {
		return nil, fmt.Errorf("%d bytes are too few for a Parquet file", size)
	}
	tail = tail[:min(size, int64(len(tail)))]
	if _, err := src.ReadAt(tail, size-int64(len(tail))); err != nil {
		return nil, err
	}
	end := tail[len(tail)-tailBytes:]
	if string(end[4:]) != magic {
		return nil, fmt.Errorf("it does not end in %s", magic)
	}
	length := int64(binary.LittleEndian.Uint32(end))
	if length > size-tailBytes-int64(len(magic)) || length > maxFooter {
		return nil, fmt.Errorf("its footer claims %d of %d bytes", length, size)
	}
	if length <= int64(len(tail))-tailBytes {
		return tail[int64(len(tail))-tailBytes-length : len(tail)-tailBytes], nil
	}
	raw := make([]byte, length)
	if _, err := src.ReadAt(raw, size-tailBytes-length); err != nil {
		return nil, err
	}
	return raw, nil
}

func parseFooter(raw []byte, size int64, path string) (footer *Footer, err error) {
	defer recovered(path, &err)
	sealed, err := checkFooter(raw)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewFileMetaData(raw, nil)
	if err != nil {
		return nil, err
	}
	own := meta.GetCreatedBy() == createdBy
	if own && !sealed {
		return nil, errUnsealed
	}
	if meta.IsSetEncryptionAlgorithm() {
		return nil, fmt.Errorf("it is encrypted")
	}
	footer = &Footer{keyValues: map[string]string{}, bytes: 4096 + int64(len(raw))}
	if err := footer.setSchema(meta.Schema, own); err != nil {
		return nil, err
	}
	for _, kv := range meta.KeyValueMetadata() {
		footer.keyValues[kv.GetKey()] = kv.GetValue()
	}
	for i := range meta.RowGroups {
		if err := footer.addRowGroup(meta.RowGroup(i), size); err != nil {
			return nil, fmt.Errorf("row group %d: %w", i, err)
		}
	}
	if footer.rows != meta.GetNumRows() {
		return nil, fmt.Errorf("its row groups hold %d rows, the file claims %d", footer.rows, meta.GetNumRows())
	}
	footer.addZones(meta, size)
	footer.pages = make([]atomic.Pointer[[][]pageLocation], len(footer.rowGroups))
	return footer, nil
}

func (f *Footer) setSchema(pq *schema.Schema, own bool) error {
	props := pqarrow.ArrowReadProperties{}
	manifest, err := pqarrow.NewSchemaManifest(pq, nil, &props)
	if err != nil {
		return err
	}
	f.fields = manifest.Fields
	fields := make([]arrow.Field, len(manifest.Fields))
	for i := range manifest.Fields {
		found := manifest.Fields[i].Field
		fields[i] = arrow.Field{Name: found.Name, Type: plainType(found.Type), Nullable: found.Nullable}
	}
	f.schema = arrow.NewSchema(fields, nil)
	for i := range pq.NumColumns() {
		column := pq.Column(i)
		leaf := leafInfo{
			path:     column.Path(),
			physical: column.PhysicalType(),
			width:    physicalWidth(column),
			logical:  column.LogicalType(),
			maxDef:   int(column.MaxDefinitionLevel()),
			maxRep:   int(column.MaxRepetitionLevel()),
			sealed:   own,
		}
		if leaf.width < 0 || leaf.width > maxValueWidth || leaf.maxDef > math.MaxUint8 {
			return fmt.Errorf("column %q has values of %d bytes, nested %d deep", leaf.path, leaf.width, leaf.maxDef)
		}
		f.leaves = append(f.leaves, leaf)
		f.bytes += 256 + int64(len(leaf.path))
	}
	return nil
}

// physicalWidth returns the bytes of a value, 0 for those of varying length
// and booleans.
func physicalWidth(column *schema.Column) int {
	switch column.PhysicalType() {
	case parquet.Types.Int32, parquet.Types.Float:
		return 4
	case parquet.Types.Int64, parquet.Types.Double:
		return 8
	case parquet.Types.Int96:
		return 12
	case parquet.Types.FixedLenByteArray:
		return column.TypeLength()
	}
	return 0
}

func (f *Footer) addRowGroup(rg *metadata.RowGroupMetaData, size int64) error {
	group := RowGroup{FirstRow: f.rows, Rows: rg.NumRows()}
	if group.Rows < 0 || group.Rows>>maxRowsPerByte > size || rg.NumColumns() != len(f.leaves) {
		return fmt.Errorf("it claims %d rows of %d columns", group.Rows, rg.NumColumns())
	}
	for c := range f.leaves {
		meta, err := rg.ColumnChunk(c)
		if err != nil {
			return err
		}
		chunk, err := describeChunk(meta, size)
		if err != nil {
			return fmt.Errorf("column %q: %w", f.leaves[c].path, err)
		}
		if chunk.values < group.Rows || (f.leaves[c].maxRep == 0 && chunk.values != group.Rows) {
			return fmt.Errorf("column %q has %d values in %d rows", f.leaves[c].path, chunk.values, group.Rows)
		}
		f.chunks = append(f.chunks, chunk)
		group.Bytes += chunk.end - chunk.start
		f.bytes += 96 + 4*int64(chunk.indexLength)
	}
	f.rowGroups = append(f.rowGroups, group)
	f.rows += group.Rows
	return nil
}

// maxRowsPerByte bounds, as a power of 2, what a file may claim: a page of 2^31
// equal values takes about 40 bytes.
const maxRowsPerByte = 26

func describeChunk(meta *metadata.ColumnChunkMetaData, size int64) (chunkInfo, error) {
	chunk := chunkInfo{start: meta.DataPageOffset(), values: meta.NumValues(), codec: meta.Compression()}
	if meta.FilePath() != "" {
		return chunk, fmt.Errorf("its values lie in another file")
	}
	if meta.CryptoMetadata() != nil {
		return chunk, fmt.Errorf("it is encrypted")
	}
	if at := meta.DictionaryPageOffset(); meta.HasDictionaryPage() && at > 0 && at < chunk.start {
		chunk.start, chunk.dictionary = at, true
	}
	length := meta.TotalCompressedSize()
	if chunk.values == 0 { // arrow-cpp writes such row groups, with no place for their pages
		chunk.start, chunk.dictionary = 0, false
		return chunk, nil
	}
	if chunk.start < int64(len(magic)) || length < 0 || chunk.start > size || length > size-chunk.start || meta.DataPageOffset() > chunk.start+length {
		return chunk, fmt.Errorf("its %d bytes from %d lie outside the file", length, chunk.start)
	}
	chunk.end = chunk.start + length
	if at := meta.GetOffsetIndexLocation(); at != nil && at.Length > 0 {
		if at.Offset < 0 || at.Offset > size || int64(at.Length) > size-at.Offset {
			return chunk, fmt.Errorf("its offset index lies outside the file")
		}
		chunk.indexStart, chunk.indexLength = at.Offset, at.Length
	}
	return chunk, nil
}

// chunk returns the description of a leaf in a row group.
func (f *Footer) chunk(group, leaf int) *chunkInfo { return &f.chunks[group*len(f.leaves)+leaf] }

// Bytes estimates the memory the footer holds, for caches.
func (f *Footer) Bytes() int64 { return f.bytes }

// Rows returns the number of rows in the file.
func (f *Footer) Rows() int64 { return f.rows }

// RowGroups describes the row groups in order. The slice is shared; do not
// change it.
func (f *Footer) RowGroups() []RowGroup { return f.rowGroups }

// Meta returns the value of a key in the file's key-value metadata.
func (f *Footer) Meta(key string) (string, bool) {
	value, ok := f.keyValues[key]
	return value, ok
}

// StorageSchema returns the file's columns with the Arrow types they have in
// Parquet. It carries no metadata.
func (f *Footer) StorageSchema() *arrow.Schema { return f.schema }
