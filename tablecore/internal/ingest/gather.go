package ingest

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
)

// A batch handed to the writer has at most batchRows rows and about batchBytes
// bytes of text, so that what is gathered stays in a cache.
const (
	batchRows  = 64 << 10
	batchTexts = 32 << 20
)

// groupGatherer gathers the rows of one row group, a batch at a time. Text
// columns and entity columns are gathered for the whole group at once, so that
// each has one dictionary in it.
type groupGatherer struct {
	s      *store
	mem    memory.Allocator
	schema *arrow.Schema // of the batches: storage types, dictionaries for text in whole
	rows   []uint32
	whole  []arrow.Array // by column; nil where a column is gathered by batch
	plain  []*textColumn // text columns that are gathered as plain text
	binary []*plainColumn
	arrays []*arrayColumn

	constants []arrow.Array // by column; nil where rows differ
}

// constants makes the columns that hold the same in every row.
func (s *store) constants(mem memory.Allocator) []arrow.Array {
	all := make([]arrow.Array, len(s.columns))
	n := int(min(batchRows, s.rows))
	for i, c := range s.columns {
		switch c := c.(type) {
		case stampColumn:
			all[i] = c.array(mem, n)
		case absentColumn:
			all[i] = array.MakeArrayOfNull(mem, c.typ, n)
		}
	}
	return all
}

func release(arrays []arrow.Array) {
	for _, arr := range arrays {
		if arr != nil {
			arr.Release()
		}
	}
}

// newGroup starts a row group: rows are its stream rows in file order, runs
// their entities, with positions counted from the first row of the file, where
// the group begins at first. constants are the columns that are the same in
// each batch, batchRows long. mem need not clear its memory.
func newGroup(s *store, mem memory.Allocator, schema *arrow.Schema, constants []arrow.Array, rows []uint32, runs []run, first int) *groupGatherer {
	g := &groupGatherer{s: s, mem: mem, rows: rows, constants: constants, whole: make([]arrow.Array, len(s.columns))}
	for i, key := range s.keys {
		g.whole[key] = s.gatherEntity(mem, i, schema.Field(key).Type, runs, first, len(rows))
	}
	for i, c := range s.columns {
		switch c := c.(type) {
		case *textColumn:
			if g.whole[i] = c.gatherGroup(mem, rows); g.whole[i] == nil {
				g.plain = append(g.plain, c)
			}
		case *plainColumn:
			g.binary = append(g.binary, c)
		case *arrayColumn:
			g.arrays = append(g.arrays, c)
		}
	}
	fields := slices.Clone(schema.Fields())
	for i, arr := range g.whole {
		if arr != nil {
			fields[i].Type = arr.DataType()
		}
	}
	g.schema = arrow.NewSchema(fields, nil)
	return g
}

func (g *groupGatherer) release() { release(g.whole) }

// fit returns how many of the rows from start on one batch takes.
func (g *groupGatherer) fit(start int) int {
	rows := g.rows[start:min(start+batchRows, len(g.rows))]
	if len(g.plain) == 0 && len(g.binary) == 0 && len(g.arrays) == 0 {
		return len(rows)
	}
	bytes := 0
	for i, row := range rows {
		for _, c := range g.plain {
			text, _ := c.value(row)
			bytes += len(text)
		}
		for _, c := range g.binary {
			text, _ := c.value(row)
			bytes += len(text)
		}
		for _, c := range g.arrays {
			bytes += c.size(row)
		}
		if bytes > batchTexts {
			return max(i, 1)
		}
	}
	return len(rows)
}

// batch gathers rows [start, end) of the group in storage types; strings may be
// dictionaries.
func (g *groupGatherer) batch(start, end int) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, len(g.whole))
	defer func() { release(columns) }()
	for i := range columns {
		if g.whole[i] != nil {
			columns[i] = array.NewSlice(g.whole[i], int64(start), int64(end))
			continue
		}
		if g.constants[i] != nil {
			columns[i] = array.NewSlice(g.constants[i], 0, int64(end-start))
			continue
		}
		declared, err := g.s.columns[i].gather(g.mem, g.rows[start:end])
		if err != nil {
			return nil, err
		}
		if arrow.TypeEqual(declared.DataType(), g.schema.Field(i).Type) { // as every column that did not stay as declared
			columns[i] = declared
			continue
		}
		stored, err := convert.ToStorage(g.mem, declared)
		declared.Release()
		if err != nil {
			return nil, err
		}
		columns[i] = stored
	}
	return array.NewRecordBatch(g.schema, columns, int64(end-start)), nil
}

// gatherEntity makes an entity column of a row group from the runs of
// entities, without looking at a row. first is the file position at which the
// group begins, n its rows.
func (s *store) gatherEntity(mem memory.Allocator, column int, t arrow.DataType, runs []run, first, n int) arrow.Array {
	texts := s.entities.StringParts(column)
	if texts == nil {
		return s.gatherNumbers(mem, column, t, runs, first, n)
	}
	indices := newBuffer(mem, 4*n)
	dst := view[uint32](indices.Bytes())
	places := map[uint32]uint32{}
	alone := len(s.keys) == 1 // then no two runs share a value
	var used []uint32
	for _, r := range runs {
		part := s.entities.Part(column, r.entity)
		place, seen := uint32(len(used)), false
		if !alone {
			if place, seen = places[part]; !seen {
				place = uint32(len(used))
				places[part] = place
			}
		}
		if !seen {
			used = append(used, part)
		}
		fill(dst[max(r.start-first, 0):min(r.end-first, n)], place)
	}
	return newDictionary(mem, n, 0, nil, indices, used, func(part uint32) []byte { return []byte(texts[part]) })
}

func fill[T word](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// gatherNumbers makes an integer entity column in its storage type.
func (s *store) gatherNumbers(mem memory.Allocator, column int, t arrow.DataType, runs []run, first, n int) arrow.Array {
	var buf *memory.Buffer
	switch t.ID() {
	case arrow.INT32:
		buf = newBuffer(mem, 4*n)
	case arrow.INT64:
		buf = newBuffer(mem, 8*n)
	default: // a uint64 is stored as decimal: low half, then a high half of zeros
		buf = newBuffer(mem, 16*n)
		clear(buf.Bytes())
	}
	for _, r := range runs {
		from, to := max(r.start-first, 0), min(r.end-first, n)
		switch v := s.entities.IntegerPart(column, s.entities.Part(column, r.entity)).(type) {
		case int32:
			fill(view[uint32](buf.Bytes())[from:to], uint32(v))
		case int64:
			fill(view[uint64](buf.Bytes())[from:to], uint64(v))
		case uint64:
			halves := view[uint64](buf.Bytes())
			for i := from; i < to; i++ {
				halves[2*i] = v
			}
		}
	}
	return newArray(t, n, 0, nil, buf)
}
