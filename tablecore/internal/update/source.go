package update

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// RowReader is a stream of batches.
type RowReader interface {
	// Schema returns the schema of all batches.
	Schema() *arrow.Schema
	// Next returns the next batch, or io.EOF. The batch is valid until the next
	// call.
	Next(ctx context.Context) (arrow.RecordBatch, error)
}

// source is the stream of an update: the keys of its rows, and their new values.
type source struct {
	snap    *snapshot.Snapshot
	aligner *convert.Aligner
	// Places of the columns in the aligned batches.
	entities []int
	index    int
	chosen   []int

	coder  *entitykey.Coder
	spool  spool
	sorter keySorter
	keys   *keys // once the stream has ended

	rows      int64
	low, high uint64 // ordinals of the smallest and largest index value
	ordinals  []uint64
	codes     []uint32
}

// newSource returns an empty source of the columns of an update.
func newSource(u *Update) *source {
	s := &source{snap: u.base, aligner: u.aligner, coder: entitykey.NewCoder(u.base.Layout), low: math.MaxUint64}
	place := map[string]int{}
	stored := tabledef.StorageSchema(u.def.Stored)
	var fields []arrow.Field
	for i, f := range u.def.Stored.Fields() {
		place[f.Name] = i
		if !u.def.IsKey(f.Name) {
			s.chosen = append(s.chosen, i)
			fields = append(fields, stored.Field(i))
		}
	}
	for _, name := range u.def.EntityColumns {
		s.entities = append(s.entities, place[name])
	}
	s.index = place[u.def.IndexColumn]
	s.spool = spool{mem: u.cfg.Rows, schema: arrow.NewSchema(fields, nil), space: u.cfg.Scratch, limit: u.limits.rowBytes}
	s.sorter = keySorter{limit: u.limits.keys, space: u.cfg.Scratch}
	return s
}

// close gives memory and scratch space back.
func (s *source) close() {
	s.spool.close()
	s.sorter.close()
}

// receive reads a stream to its end.
func (s *source) receive(ctx context.Context, rows RowReader, u *Update) error {
	for {
		batch, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return s.finish(ctx)
		}
		if err != nil {
			return err
		}
		aligned, err := u.aligner.Align(u.cfg.Mem, batch)
		if err != nil {
			return err
		}
		hashed := u.digest.Begin(aligned)
		err = s.add(aligned)
		hashed()
		aligned.Release()
		if err == nil && s.spool.full() {
			err = s.spool.spill(&s.sorter, s.coder.Ranks())
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// add takes in an aligned batch.
func (s *source) add(b *convert.Batch) error {
	if b.Rows == 0 {
		return nil
	}
	if s.rows += int64(b.Rows); s.rows > maxRows {
		return tableerr.InvalidField("rows", "an update has at most %d rows; send it as several", maxRows)
	}
	entities := make([]arrow.Array, len(s.entities))
	for i, at := range s.entities {
		entities[i] = b.Columns[at]
	}
	var err error
	if s.codes, err = s.coder.AppendCodes(s.codes[:0], entities, b.Rows); err != nil {
		return err
	}
	if s.ordinals, err = s.snap.Domain.AppendOrdinals(s.ordinals[:0], b.Columns[s.index]); err != nil {
		return err
	}
	for _, ordinal := range s.ordinals {
		s.low, s.high = min(s.low, ordinal), max(s.high, ordinal)
	}
	values, err := s.values(b)
	if err != nil {
		return err
	}
	defer values.Release()
	return s.spool.add(values, s.codes, s.ordinals)
}

// values returns the chosen columns of a batch in their storage types.
func (s *source) values(b *convert.Batch) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, 0, len(s.chosen))
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for _, at := range s.chosen {
		column, err := s.aligner.Stored(s.spool.mem, b, at)
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	return array.NewRecordBatch(s.spool.schema, columns, int64(b.Rows)), nil
}

// finish brings the rows into their final places and the keys into order.
func (s *source) finish(ctx context.Context) error {
	var err error
	if s.spool.file != nil && s.spool.pendingRows > 0 {
		err = s.spool.spill(&s.sorter, s.coder.Ranks())
	} else {
		err = s.spool.keep(&s.sorter)
	}
	if err != nil {
		return err
	}
	s.keys, err = s.sorter.finish(ctx, s.coder.Len())
	return err
}

// checkDuplicates refuses a source that has a key more than once.
func (s *source) checkDuplicates(ctx context.Context) error {
	v := violation{source: s}
	for _, code := range s.coder.Order() {
		if err := ctx.Err(); err != nil {
			return err
		}
		var last key
		seen, counted := false, false
		err := s.keys.pieces(code, func(list []key, _ int64) error {
			for _, k := range list {
				repeats := seen && k.ordinal == last.ordinal
				if repeats && !counted {
					v.note(code, k.ordinal)
				}
				last, seen, counted = k, true, repeats
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if v.count == 0 {
		return nil
	}
	return &tableerr.DuplicateSourceKey{KeyViolation: v.report()}
}

// violation counts the keys that are wrong in one way, given in the order of
// (entity, index).
type violation struct {
	source  *source
	count   int64
	code    uint32 // of the first one
	ordinal uint64
}

func (v *violation) note(code uint32, ordinal uint64) {
	if v.count == 0 {
		v.code, v.ordinal = code, ordinal
	}
	v.count++
}

// report is what an error says of the keys.
func (v *violation) report() tableerr.KeyViolation {
	s := v.source.snap
	example := append(s.Layout.Values(v.source.coder.Key(v.code)), tableerr.NamedValue{Name: s.Def.IndexColumn, Value: s.IndexValue(v.ordinal)})
	return tableerr.KeyViolation{RowsSeen: v.source.rows, Violations: v.count, ExampleKey: example}
}
