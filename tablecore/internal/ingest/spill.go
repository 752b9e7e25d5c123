package ingest

import (
	"context"
	"io"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/scratch"
)

const (
	// spillBatch is the most rows of a batch in a run. Small ones waste little
	// where a file begins or ends in the middle of one.
	spillBatch = 8 << 10
	// spillBuffer is how much is written to the scratch file at once.
	spillBuffer = 1 << 20
	// sortBytes is what bringing a row of a store into the order of the index
	// takes: key and row number, twice.
	sortBytes = 24
)

// runs are what an append has put on disk: runs of rows, one after another in
// one scratch file, each in the order of the index. Reading may be done by
// several goroutines at once.
type runs struct {
	file  scratch.File
	pool  recycler // of what is written and read
	size  int64    // bytes in file
	list  []*indexRun
	rows  int64 // of the stream; the runs may hold fewer
	bytes int64 // what the rows took in memory
}

// indexRun is one run: an Arrow file of its rows, then the ordinals of their
// index values, then their numbers in the run as they came, all in the order
// of (ordinal, arrival). Ordinals and numbers have one width, so that any of
// them can be read alone.
type indexRun struct {
	first    int64 // stream row that came first
	rows     int64
	ordinals int64 // where they begin in the scratch file
	numbers  int64
	batches  *ipc.FileReader
	starts   []int64 // first row of each batch, and the number of rows
}

func newRuns(space scratch.Space, mem memory.Allocator) (*runs, error) {
	file, err := space.Create()
	if err != nil {
		return nil, storeError(err)
	}
	return &runs{file: file, pool: recycler{mem: mem}}, nil
}

// close gives everything back. Nothing of the runs is left.
func (r *runs) close() {
	for _, run := range r.list {
		if run.batches != nil {
			_ = run.batches.Close() // closes nothing but its own memory
		}
	}
	_ = r.file.Close() // nobody needs what is in it
	r.pool.close()
}

// spill writes the rows of a store as the next run. The store keeps them.
func (r *runs) spill(ctx context.Context, s *store, check *runChecker) error {
	used := s.heap.used.Load()
	ordinals, rows := s.byIndex()
	defer give(s.heap, ordinals)
	defer give(s.heap, rows)
	kept, err := check.run(s, r.rows, ordinals, rows)
	if err != nil {
		return err
	}
	run := &indexRun{first: r.rows, rows: int64(kept)}
	r.list = append(r.list, run)
	if err := r.writeBatches(ctx, s, run, rows[:kept]); err != nil {
		return storeError(err)
	}
	run.ordinals = r.size
	err = r.write(raw(ordinals[:kept:kept]))
	run.numbers = r.size
	if err == nil {
		err = r.write(raw(rows[:kept:kept]))
	}
	r.rows += s.rows
	r.bytes += used
	return storeError(err)
}

// write appends bytes to the scratch file.
func (r *runs) write(p []byte) error {
	for part := range slices.Chunk(p, spillBuffer) {
		if _, err := r.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// Write implements io.Writer.
func (r *runs) Write(p []byte) (int, error) {
	n, err := r.file.Write(p)
	r.size += int64(n)
	return n, err
}

// writeBatches writes the rows of a run as an Arrow file.
func (r *runs) writeBatches(ctx context.Context, s *store, run *indexRun, rows []uint32) error {
	begin := r.size
	source := newRunSource(s, &r.pool)
	out := &gathering{to: r, buffer: make([]byte, 0, spillBuffer)}
	var writer *ipc.FileWriter
	for from := 0; from < len(rows); {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := source.fit(rows[from:])
		batch, err := source.batch(rows[from : from+n])
		if err != nil {
			return err
		}
		if writer == nil {
			// The writer relies on cleared memory, so it cannot use the pool.
			writer, err = ipc.NewFileWriter(out, ipc.WithSchema(batch.Schema()), ipc.WithAllocator(r.pool.mem))
		}
		if err == nil {
			err = writer.Write(batch)
		}
		batch.Release()
		if err != nil {
			return err
		}
		run.starts = append(run.starts, int64(from))
		from += n
	}
	run.starts = append(run.starts, run.rows)
	if err := writer.Close(); err != nil {
		return err
	}
	if err := out.flush(); err != nil {
		return err
	}
	var err error
	run.batches, err = ipc.NewFileReader(io.NewSectionReader(r.file, begin, r.size-begin), ipc.WithAllocator(&r.pool))
	return err
}

// gathering joins small writes.
type gathering struct {
	to     io.Writer
	buffer []byte
}

// Write implements io.Writer.
func (g *gathering) Write(p []byte) (int, error) {
	if len(g.buffer)+len(p) > cap(g.buffer) {
		if err := g.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) >= cap(g.buffer) {
		return g.to.Write(p)
	}
	g.buffer = append(g.buffer, p...)
	return len(p), nil
}

func (g *gathering) flush() error {
	_, err := g.to.Write(g.buffer)
	g.buffer = g.buffer[:0]
	return err
}

// byIndex returns the store's rows in the order of (index, arrival), with their
// ordinals, in memory of the heap.
func (s *store) byIndex() (ordinals []uint64, rows []uint32) {
	n := int(s.rows)
	ordinals, rows = take[uint64](s.heap, n), take[uint32](s.heap, n)
	for i := range s.chunks {
		at := i << chunkShift
		for k, v := range s.index.values.chunks[i][:s.chunkLen(i)] {
			ordinals[at+k] = v ^ s.flip
		}
	}
	for i := range rows {
		rows[i] = uint32(i)
	}
	if !slices.IsSorted(ordinals) {
		keys, numbers := take[uint64](s.heap, n), take[uint32](s.heap, n)
		radixSort(ordinals, rows, keys, numbers)
		give(s.heap, keys)
		give(s.heap, numbers)
	}
	return ordinals, rows
}

// runSource gathers rows of a store in forms that the columns of another store
// take.
type runSource struct {
	s       *store
	mem     memory.Allocator
	schema  *arrow.Schema // of the columns that have rows of their own
	most    int           // rows of a batch, whatever they hold
	numbers [][]uint64    // by entity column: the values by code, nil for strings
	sizes   groupGatherer // measures rows
	codes   []uint32
}

func newRunSource(s *store, mem memory.Allocator) *runSource {
	src := &runSource{s: s, mem: mem, most: spillBatch, numbers: make([][]uint64, len(s.keys))}
	longest := 1
	for k := range s.keys {
		for _, text := range s.entities.StringParts(k) {
			longest = max(longest, len(text))
		}
		if s.entities.StringParts(k) == nil {
			src.numbers[k] = s.keyNumbers(k)
		}
	}
	for _, c := range s.columns {
		switch c := c.(type) {
		case *textColumn:
			if c.plain.chunks != nil || len(c.coder.arena)*spillBatch > batchTexts {
				src.sizes.plain = append(src.sizes.plain, c)
			}
		case *plainColumn:
			src.sizes.binary = append(src.sizes.binary, c)
		case *arrayColumn:
			src.sizes.arrays = append(src.sizes.arrays, c)
		}
	}
	src.most = max(1, min(spillBatch, batchTexts/longest))
	return src
}

// keyNumbers returns an integer entity column's values by code.
func (s *store) keyNumbers(column int) []uint64 {
	values := make([]uint64, s.entities.Len())
	for code := range values {
		switch v := s.entities.IntegerPart(column, s.entities.Part(column, uint32(code))).(type) {
		case int32:
			values[code] = uint64(uint32(v))
		case int64:
			values[code] = uint64(v)
		case uint64:
			values[code] = v
		}
	}
	return values
}

// fit returns how many of the rows one batch takes.
func (src *runSource) fit(rows []uint32) int {
	src.sizes.rows = rows[:min(len(rows), src.most)]
	return src.sizes.fit(0)
}

// batch gathers rows.
func (src *runSource) batch(rows []uint32) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, 0, len(src.s.columns))
	defer func() { release(columns) }()
	src.codes = slices.Grow(src.codes[:0], len(rows))[:len(rows)]
	if len(src.s.keys) > 0 {
		src.s.codes.gather(src.codes, rows)
	}
	for i, c := range src.s.columns {
		switch {
		case c == nil:
			columns = append(columns, src.key(slices.Index(src.s.keys, i)))
		case hasRows(c):
			gathered, err := c.gather(src.mem, rows)
			if err != nil {
				return nil, err
			}
			columns = append(columns, gathered)
		}
	}
	if src.schema == nil {
		fields := make([]arrow.Field, len(columns))
		for i, arr := range columns {
			fields[i] = arrow.Field{Type: arr.DataType(), Nullable: true}
		}
		src.schema = arrow.NewSchema(fields, nil)
	}
	return array.NewRecordBatch(src.schema, columns, int64(len(rows))), nil
}

// hasRows is false for a column that is the same in every row.
func hasRows(c column) bool {
	switch c.(type) {
	case stampColumn, absentColumn:
		return false
	}
	return true
}

// key gathers an entity column of the rows whose codes are at hand.
func (src *runSource) key(column int) arrow.Array {
	values := src.numbers[column]
	if values == nil {
		texts := src.s.entities.StringParts(column)
		return gatherText(src.mem, arrow.BinaryTypes.String, src.codes, func(code uint32) ([]byte, bool) {
			text := texts[src.s.entities.Part(column, code)]
			return unsafe.Slice(unsafe.StringData(text), len(text)), true
		})
	}
	t := src.s.keyTypes[column]
	if t.ID() == arrow.INT32 {
		buf := newBuffer(src.mem, 4*len(src.codes))
		for i, code := range src.codes {
			view[uint32](buf.Bytes())[i] = uint32(values[code])
		}
		return newArray(t, len(src.codes), 0, nil, buf)
	}
	buf := newBuffer(src.mem, 8*len(src.codes))
	dst := view[uint64](buf.Bytes())
	for i, code := range src.codes {
		dst[i] = values[code]
	}
	return newArray(t, len(src.codes), 0, nil, buf)
}
