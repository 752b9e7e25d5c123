package datafile

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// Zone is what the file says about the values of one column in some rows.
type Zone struct {
	Rows  RowRange
	Nulls int64 // −1 where the file does not say
	// Min and Max enclose the values that are not null: int64 for integers,
	// times and dates, float64, []byte, decimal128.Num; nil where the file does
	// not say. Zeros may have either sign, and there is no NaN where a float's
	// Max is given.
	Min, Max any
}

// zoneInfo is what a footer knows for zones.
type zoneInfo struct {
	own   bool         // the file is this package's, whose statistics are known to be right
	stats []chunkStats // of all row groups, one a leaf each
	pages sync.Map     // zoneKey → []pageBounds, of the column indices that were read
}

// chunkStats are the statistics of one leaf in one row group, as they stand in
// the footer.
type chunkStats struct {
	min, max    []byte // encoded; nil for none
	nulls       int64  // −1 for unknown
	indexStart  int64  // of the column index
	indexLength int32  // 0 where there is none
}

// maxKeptBound is the longest bound that is kept; longer ones are not needed to
// be fast.
const maxKeptBound = 1 << 10

// addZones takes the statistics out of a file's metadata. Odd ones are no
// reason to refuse the file: arrow-go decodes statistics before it hands them
// out and panics on some, so they are read as they lie.
func (f *Footer) addZones(meta *metadata.FileMetaData, size int64) {
	f.zones.own = meta.GetCreatedBy() == createdBy
	f.zones.stats = make([]chunkStats, 0, len(f.chunks))
	for _, group := range meta.RowGroups {
		for _, chunk := range group.Columns {
			s := chunkStats{nulls: -1}
			if at, n := chunk.GetColumnIndexOffset(), chunk.GetColumnIndexLength(); n > 0 && at >= 0 && at <= size && int64(n) <= size-at {
				s.indexStart, s.indexLength = at, n
			}
			if m := chunk.MetaData; m != nil && m.Statistics != nil {
				if low, high := m.Statistics.MinValue, m.Statistics.MaxValue; len(low) <= maxKeptBound && len(high) <= maxKeptBound {
					s.min, s.max = low, high
				}
				if n := m.Statistics.NullCount; n != nil && *n >= 0 {
					s.nulls = *n
				}
			}
			f.zones.stats = append(f.zones.stats, s)
			f.bytes += 96 + int64(len(s.min)+len(s.max)) + 2*int64(s.indexLength)
		}
	}
}

// zoneLeaf returns the leaf of a flat column whose statistics can be trusted
// and mean the type want, −1 when there is none.
func (f *Footer) zoneLeaf(column string, want arrow.DataType) int {
	found := f.schema.FieldIndices(column)
	if len(found) != 1 {
		return -1
	}
	have, leaf := f.schema.Field(found[0]).Type, f.fields[found[0]].ColIndex
	if !f.fields[found[0]].IsLeaf() || leaf < 0 || leaf >= len(f.leaves) || f.leaves[leaf].maxRep > 0 {
		return -1
	}
	if !arrow.TypeEqual(have, want) {
		return -1 // the values are converted, and so would be the bounds
	}
	// Of other writers only what none is known to get wrong: not the bounds of
	// texts, nor of floats, which may leave a NaN out.
	if !f.zones.own && f.leaves[leaf].physical != parquet.Types.Int32 && f.leaves[leaf].physical != parquet.Types.Int64 {
		return -1
	}
	return leaf
}

// GroupZone says what is known of a column in a row group without reading
// anything; want is the column's storage type. It is false where nothing is. A
// column that the file lacks, because it was added later, is null in each row.
func (f *File) GroupZone(group int, column string, want arrow.DataType) (Zone, bool) {
	if !f.footer.schema.HasField(column) {
		g := f.footer.rowGroups[group]
		return Zone{Rows: RowRange{g.FirstRow, g.FirstRow + g.Rows}, Nulls: g.Rows}, true
	}
	leaf := f.footer.zoneLeaf(column, want)
	if leaf < 0 {
		return Zone{}, false
	}
	g, s := f.footer.rowGroups[group], f.footer.zones.stats[group*len(f.footer.leaves)+leaf]
	return f.footer.zone(RowRange{g.FirstRow, g.FirstRow + g.Rows}, leaf, want, s.min, s.max, s.nulls), true
}

// PageZones says what is known of a column in each page of a row group, in
// order; nil where there is no page index. It reads the column's index once.
func (f *File) PageZones(ctx context.Context, group int, column string, want arrow.DataType) (zones []Zone, err error) {
	defer recovered(f.path, &err)
	leaf := f.footer.zoneLeaf(column, want)
	if leaf < 0 {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	bounds, err := f.pageBounds(group, leaf)
	if err != nil {
		return nil, damaged(f.path, err)
	}
	if bounds == nil {
		return nil, nil
	}
	all, err := f.footer.pageLocations(exactSource{f.src}, group)
	if err != nil {
		return nil, damaged(f.path, err)
	}
	pages := all[leaf]
	if len(pages) != len(bounds) {
		return nil, nil
	}
	g := f.footer.rowGroups[group]
	zones = make([]Zone, len(pages))
	for i, p := range pages {
		rows := RowRange{g.FirstRow + p.firstRow, g.FirstRow + g.Rows}
		if i+1 < len(pages) {
			rows.End = g.FirstRow + pages[i+1].firstRow
		}
		b := bounds[i]
		if b.allNull {
			zones[i] = Zone{Rows: rows, Nulls: rows.End - rows.Start}
			continue
		}
		zones[i] = f.footer.zone(rows, leaf, want, b.min, b.max, b.nulls)
	}
	return zones, nil
}

// zone decodes bounds and leaves out what cannot be true.
func (f *Footer) zone(rows RowRange, leaf int, want arrow.DataType, low, high []byte, nulls int64) Zone {
	z := Zone{Rows: rows, Nulls: nulls}
	if n := rows.End - rows.Start; nulls > n {
		z.Nulls = -1
	}
	info := &f.leaves[leaf]
	z.Min, z.Max = decodeBound(info, want, low), decodeBound(info, want, high)
	return z
}

// decodeBound reads a bound in PLAIN encoding.
func decodeBound(info *leafInfo, want arrow.DataType, b []byte) any {
	if b == nil {
		return nil
	}
	decimals := want.ID() == arrow.DECIMAL128
	switch info.physical {
	case parquet.Types.Int32:
		if len(b) == 4 {
			return wholeBound(int64(int32(binary.LittleEndian.Uint32(b))), decimals)
		}
	case parquet.Types.Int64:
		if len(b) == 8 {
			return wholeBound(int64(binary.LittleEndian.Uint64(b)), decimals)
		}
	case parquet.Types.Float:
		if len(b) == 4 {
			return finiteBound(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}
	case parquet.Types.Double:
		if len(b) == 8 {
			return finiteBound(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	case parquet.Types.ByteArray:
		if !decimals {
			return b
		}
	case parquet.Types.FixedLenByteArray:
		if decimals && len(b) > 0 && len(b) <= 16 {
			return bigEndianDecimal(b)
		}
	}
	return nil
}

func wholeBound(v int64, decimals bool) any {
	if decimals {
		return decimal128.FromI64(v)
	}
	return v
}

func finiteBound(v float64) any {
	if math.IsNaN(v) {
		return nil
	}
	return v
}

// bigEndianDecimal reads a two's complement of at most 16 bytes.
func bigEndianDecimal(b []byte) decimal128.Num {
	var wide [16]byte
	if b[0]&0x80 != 0 {
		for i := range wide {
			wide[i] = 0xFF
		}
	}
	copy(wide[16-len(b):], b)
	return decimal128.New(int64(binary.BigEndian.Uint64(wide[:8])), binary.BigEndian.Uint64(wide[8:]))
}

// pageBounds are the statistics of one page.
type pageBounds struct {
	min, max []byte
	nulls    int64
	allNull  bool
}

type zoneKey struct{ group, leaf int }

// pageBounds reads the column index of a leaf in a row group; nil where there
// is none.
func (f *File) pageBounds(group, leaf int) ([]pageBounds, error) {
	key := zoneKey{group, leaf}
	if known, ok := f.footer.zones.pages.Load(key); ok {
		return known.([]pageBounds), nil
	}
	s := f.footer.zones.stats[group*len(f.footer.leaves)+leaf]
	if s.indexLength == 0 {
		return nil, nil
	}
	raw := make([]byte, s.indexLength)
	if _, err := (exactSource{f.src}).ReadAt(raw, s.indexStart); err != nil {
		return nil, err
	}
	bounds, err := parseColumnIndex(raw, f.footer.leaves[leaf].sealed)
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", f.footer.leaves[leaf].path, err)
	}
	f.footer.zones.pages.Store(key, bounds)
	return bounds, nil
}

// columnIndex gathers the lists of a ColumnIndex structure of parquet.thrift.
type columnIndex struct {
	nullPages []bool
	low, high [][]byte
	nulls     []int64
}

// parseColumnIndex reads a ColumnIndex structure; nil when its lists do not go
// together. sealed says that it must have a seal.
func parseColumnIndex(raw []byte, sealed bool) ([]pageBounds, error) {
	r := thriftReader{b: raw}
	var x columnIndex
	r.structure(0, func(id int, typ byte) bool {
		if typ != thriftList {
			return r.seal(id, typ)
		}
		return x.readList(&r, id)
	})
	if r.err == nil && sealed && !r.sealed {
		r.err = errUnsealed
	}
	if r.err != nil {
		return nil, fmt.Errorf("its column index cannot be parsed: %w", r.err)
	}
	n := len(x.nullPages)
	if len(x.low) != n || len(x.high) != n || len(x.nulls) != n && x.nulls != nil {
		return nil, nil
	}
	bounds := make([]pageBounds, n)
	for i := range bounds {
		bounds[i] = pageBounds{min: x.low[i], max: x.high[i], nulls: -1, allNull: x.nullPages[i]}
		if x.nulls != nil {
			bounds[i].nulls = x.nulls[i]
		}
	}
	return bounds, nil
}

// readList reads a field that is a list; false leaves it to be skipped.
func (x *columnIndex) readList(r *thriftReader, id int) bool {
	var read func()
	want := byte(thriftBinary)
	switch id {
	case 1:
		want = thriftTrue
		read = func() { x.nullPages = append(x.nullPages, r.byte() == thriftTrue) }
	case 2:
		read = func() { x.low = append(x.low, r.bytes()) }
	case 3:
		read = func() { x.high = append(x.high, r.bytes()) }
	case 5:
		want = thriftI64
		read = func() { x.nulls = append(x.nulls, r.int()) }
	default:
		return false
	}
	n, elem := r.list()
	if elem == thriftFalse {
		elem = thriftTrue // either names a list of booleans
	}
	if elem != want {
		r.skipElements(n, elem, 1)
		return true
	}
	for i := 0; i < n && r.err == nil; i++ {
		read()
	}
	return true
}
