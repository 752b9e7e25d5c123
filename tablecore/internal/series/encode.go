package series

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/lastvalue"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// maxStored bounds the encodings and, once more, the memory that the values of
// an encoding of newest rows unfold into.
const maxStored = 256 << 20

var errDamaged = errors.New("series: the encoding is damaged")

// EncodeCoverage returns the encoding of a merged coverage. The caller adds
// checksum, table and version.
func EncodeCoverage(m *coverage.Merged) ([]byte, error) {
	set, err := m.Set()
	if err != nil {
		return nil, err
	}
	return set.AppendEncoded(nil), nil
}

// DecodeCoverage reads what EncodeCoverage made of the table of a snapshot. The
// bytes may be hostile: the memory is bounded by their size, and anything but
// an encoding, whole and alone, of this table's keys and intervals is an error.
func DecodeCoverage(s *snapshot.Snapshot, data []byte) (*coverage.Merged, error) {
	set, err := coverage.Decode(data)
	if err != nil {
		return nil, err
	}
	for i := range set.Entities() {
		if !s.Layout.Valid(set.Key(i)) || set.First(i) < s.Domain.MinID() || set.Last(i) > s.Domain.MaxID() {
			return nil, errDamaged
		}
	}
	return coverage.NewMerged(set, nil), nil
}

// EncodeNewest returns the encoding of the newest rows of a snapshot, nil where
// the index does not keep their values or they are too many. It is
//
//	number of rows                            uvarint
//	number of data files                      uvarint
//	for each: its path                        uvarint length, bytes
//	for each row, by entity:
//	  its file, by place in that list         uvarint
//	  its number there                        uvarint
//	the rows' values, a Parquet file without what other readers need of it
//
// Keys, index values and insertion times are those of the values. The caller
// adds checksum, table and version.
func EncodeNewest(s *snapshot.Snapshot, x *lastvalue.Index) ([]byte, error) {
	if x.Bare() || x.Bytes() > maxStored {
		return nil, nil
	}
	files := map[string]uint64{}
	var paths, places []byte
	var runs []assemble.Run
	rows := 0
	for r := range x.All() {
		file, known := files[r.Path]
		if !known {
			file = uint64(len(files))
			files[r.Path] = file
			paths = append(binary.AppendUvarint(paths, uint64(len(r.Path))), r.Path...)
		}
		places = binary.AppendUvarint(binary.AppendUvarint(places, file), uint64(r.At))
		runs = lastvalue.AppendRun(runs, r.Block, r.Place)
		rows++
	}
	blocks := x.Blocks()
	values, err := lastvalue.Gather([]arrow.RecordBatch{blocks[0].Values, blocks[1].Values}, runs)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(rows)), uint64(len(files))))
	b.Write(paths)
	b.Write(places)
	w, err := datafile.NewWriter(&b, values.Schema(), datafile.WriteOptions{})
	if err != nil {
		return nil, err
	}
	if err := w.Write(values); err != nil {
		return nil, err
	}
	if _, err = w.Close(); err != nil || b.Len() > maxStored {
		return nil, err
	}
	return b.Bytes(), nil
}

// DecodeNewest reads what EncodeNewest made of the table of a snapshot, or of
// an older version of it. The bytes may be hostile: the memory is bounded, and
// what cannot be the newest rows of such a table is an error. Whether the files
// exist is not looked at.
func DecodeNewest(ctx context.Context, s *snapshot.Snapshot, data []byte) (*lastvalue.Index, error) {
	if len(data) > maxStored {
		return nil, errDamaged
	}
	d := placeReader{rest: data}
	rows, ok := d.places()
	if !ok {
		return nil, errDamaged
	}
	values, err := decodeValues(ctx, s, d.rest)
	if err != nil {
		return nil, err
	}
	if values == nil || values.NumRows() != int64(len(rows)) {
		return nil, errDamaged
	}
	if err := setKeys(s, rows, values); err != nil {
		return nil, err
	}
	return lastvalue.NewIndex(&lastvalue.Block{Rows: rows, Values: values}), nil
}

// placeReader reads the first part of an encoding.
type placeReader struct{ rest []byte }

func (d *placeReader) uvarint() (uint64, bool) {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		return 0, false
	}
	d.rest = d.rest[n:]
	return v, true
}

// places reads where the rows lie; ok is false for damage.
func (d *placeReader) places() (rows []lastvalue.Row, ok bool) {
	count, ok := d.uvarint()
	files, ok2 := d.uvarint()
	if !ok || !ok2 || count == 0 || count > uint64(len(d.rest))/2 || files > count {
		return nil, false
	}
	paths := make([]string, files)
	for i := range paths {
		n, ok := d.uvarint()
		if !ok || n > uint64(len(d.rest)) {
			return nil, false
		}
		paths[i] = string(d.rest[:n])
		d.rest = d.rest[n:]
	}
	rows = make([]lastvalue.Row, count)
	for i := range rows {
		file, ok := d.uvarint()
		at, ok2 := d.uvarint()
		if !ok || !ok2 || file >= files || at > 1<<62 {
			return nil, false
		}
		rows[i].Path, rows[i].At = paths[file], int64(at)
	}
	return rows, true
}

// decodeValues reads the values with the columns that the table has, nil where
// there is no row.
func decodeValues(ctx context.Context, s *snapshot.Snapshot, data []byte) (arrow.RecordBatch, error) {
	const name = "newest rows"
	src := bytes.NewReader(data)
	footer, err := datafile.ParseFooter(ctx, src, name)
	if err != nil {
		return nil, err
	}
	file := datafile.Open(src, footer, name, nil)
	reader, err := file.Read(ctx, datafile.ReadRequest{Fields: tabledef.StorageSchema(s.Def.Stored).Fields()})
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	var batches []arrow.RecordBatch
	var runs []assemble.Run
	size := int64(0)
	for file.Rows() > 0 && !finished(runs, file.Rows()) {
		batch, err := reader.Next(ctx)
		if err != nil {
			return nil, err
		}
		batch.Retain()
		runs = append(runs, assemble.Run{Source: len(batches), Len: int(batch.NumRows())})
		batches = append(batches, batch)
		if size += lastvalue.ValueBytes(batch); size > maxStored {
			return nil, errTooWide
		}
	}
	return lastvalue.Gather(batches, runs)
}

func finished(runs []assemble.Run, rows int64) bool { return int64(assemble.Rows(runs)) >= rows }

// setKeys fills in what the values say of their rows, and checks that these
// ascend by entity.
func setKeys(s *snapshot.Snapshot, rows []lastvalue.Row, values arrow.RecordBatch) error {
	column := func(name string) arrow.Array { return values.Column(values.Schema().FieldIndices(name)[0]) }
	entities := make([]arrow.Array, len(s.Def.EntityColumns))
	for i, name := range s.Def.EntityColumns {
		entities[i] = column(name)
	}
	keys, err := entitykey.NewEncoder(s.Layout).Encode(entities, len(rows))
	if err != nil {
		return err
	}
	ordinals, err := s.Domain.AppendOrdinals(nil, column(s.Def.IndexColumn))
	if err != nil {
		return err
	}
	var times arrow.Array // nil where they do not count or are not kept
	if name := s.Def.IngestTimeColumn; ties(s.Def) && name != "" && s.Def.Stored.HasField(name) {
		times = column(name)
	}
	for i := range rows {
		rows[i].Key, rows[i].Ordinal = string(keys.Key(i)), ordinals[i]
		if ties(s.Def) {
			rows[i].Stamp = stampOf(times, i)
		}
		if i > 0 && rows[i].Key <= rows[i-1].Key {
			return fmt.Errorf("%w: its entities do not ascend", errDamaged)
		}
	}
	return nil
}
