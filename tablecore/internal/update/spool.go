package update

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/tableerr"
)

const (
	// blockRows and blockBytes bound a block in a scratch file.
	blockRows  = 8 << 10
	blockBytes = 4 << 20
	// smallRows is up to how many rows a batch is small, and smallBatches how
	// many of those become one: a batch costs memory even without rows.
	smallRows    = 4 << 10
	smallBatches = 256
	// batchBytes is about what a batch costs beside its rows.
	batchBytes = 2 << 10
)

// block is a number of rows of the source that follow each other.
type block struct {
	first int64 // number of the first row
	rows  int64
	bytes int64
	batch arrow.RecordBatch // nil where it lies in a scratch file
	run   *ipc.FileReader
	place int // in run
}

// load returns a block's rows, which the caller releases.
func (b *block) load() (arrow.RecordBatch, error) {
	if b.batch != nil {
		b.batch.Retain()
		return b.batch, nil
	}
	batch, err := b.run.RecordBatchAt(b.place)
	if err != nil {
		return nil, &tableerr.StoreUnavailable{Cause: fmt.Errorf("scratch space: %w", err)}
	}
	if batch.NumRows() != b.rows {
		batch.Release()
		return nil, &tableerr.StoreUnavailable{Cause: fmt.Errorf("scratch space: a block of %d rows was read as %d", b.rows, batch.NumRows())}
	}
	return batch, nil
}

// spool holds the values of a source's rows: in memory up to a limit, beyond it
// as runs in a scratch file, each in the order of (entity, index), in which data
// files will ask for them. Rows are numbered as they lie in it.
type spool struct {
	mem    memory.Allocator
	schema *arrow.Schema
	space  scratch.Space // nil keeps all rows in memory
	limit  int64

	rows    int64   // in blocks
	blocks  []block // by number
	file    scratch.File
	size    int64 // bytes in file
	readers []*ipc.FileReader

	pending      []arrow.RecordBatch // not in blocks yet
	pendingRows  int64
	pendingBytes int64
	small        int // of pending's last ones
	ordinals     []uint64
	codes        []uint32
}

// close frees everything.
func (s *spool) close() {
	s.drop()
	for i := range s.blocks {
		if s.blocks[i].batch != nil {
			s.blocks[i].batch.Release()
		}
	}
	for _, r := range s.readers {
		_ = r.Close() // closes nothing but its own memory
	}
	if s.file != nil {
		_ = s.file.Close() // nobody needs what is in it
	}
}

// drop forgets the pending rows.
func (s *spool) drop() {
	for _, b := range s.pending {
		b.Release()
	}
	s.pending, s.pendingRows, s.pendingBytes, s.small = nil, 0, 0, 0
	s.ordinals, s.codes = s.ordinals[:0], s.codes[:0]
}

// add takes rows, whose batch it keeps; codes and ordinals are their keys.
func (s *spool) add(batch arrow.RecordBatch, codes []uint32, ordinals []uint64) error {
	batch.Retain()
	s.pending = append(s.pending, batch)
	s.pendingRows += batch.NumRows()
	s.pendingBytes += bytesOf(batch) + batchBytes + 12*batch.NumRows()
	s.codes, s.ordinals = append(s.codes, codes...), append(s.ordinals, ordinals...)
	if batch.NumRows() > smallRows {
		s.small = 0
		return nil
	}
	if s.small++; s.small < smallBatches {
		return nil
	}
	return s.join()
}

// average returns about how many bytes a row takes.
func (s *spool) average() int64 {
	bytes := int64(0)
	for i := range s.blocks {
		bytes += s.blocks[i].bytes
	}
	return bytes / max(1, s.rows)
}

// full says whether the pending rows have to go to the scratch file.
func (s *spool) full() bool { return s.space != nil && s.pendingBytes >= s.limit }

// join makes one batch of the small ones that came last.
func (s *spool) join() error {
	at := len(s.pending) - s.small
	var runs []assemble.Run
	for i, b := range s.pending[at:] {
		runs = append(runs, assemble.Run{Source: i, Len: int(b.NumRows())})
		s.pendingBytes -= bytesOf(b) + batchBytes
	}
	joined, err := s.assemble(s.pending[at:], runs)
	if err != nil {
		return err
	}
	for _, b := range s.pending[at:] {
		b.Release()
	}
	s.pending = append(s.pending[:at], joined)
	s.pendingBytes += bytesOf(joined) + batchBytes
	s.small = 0
	return nil
}

// assemble makes a batch of rows of others, which shares no memory with them.
func (s *spool) assemble(from []arrow.RecordBatch, runs []assemble.Run) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, 0, s.schema.NumFields())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	sources := make([]arrow.Array, len(from))
	for i := range s.schema.NumFields() {
		for k, b := range from {
			sources[k] = b.Column(i)
		}
		var column arrow.Array
		var err error
		if len(runs) == 1 {
			column, err = assemble.Copy(s.mem, sources[runs[0].Source], runs[0].Start, runs[0].Len)
		} else {
			column, err = assemble.Array(s.mem, sources, runs)
		}
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	return array.NewRecordBatch(s.schema, columns, int64(assemble.Rows(runs))), nil
}

// bytesOf returns what a batch's buffers take.
func bytesOf(b arrow.RecordBatch) int64 {
	n := int64(0)
	for _, c := range b.Columns() {
		n += int64(c.Data().SizeInBytes())
	}
	return n
}

// keep makes blocks of the pending rows as they are and gives their keys to to.
func (s *spool) keep(to *keySorter) error {
	for i, code := range s.codes {
		if err := to.add(code, key{s.ordinals[i], uint32(s.rows + int64(i))}); err != nil {
			return err
		}
	}
	for _, b := range s.pending {
		b.Retain()
		s.blocks = append(s.blocks, block{first: s.rows, rows: b.NumRows(), bytes: bytesOf(b), batch: b})
		s.rows += b.NumRows()
	}
	s.drop()
	return nil
}

// spill writes the pending rows to the scratch file as a run, and gives their
// keys to to. ranks are the places of the entities in the order of their keys.
func (s *spool) spill(to *keySorter, ranks []uint32) (err error) {
	if s.file == nil {
		if s.file, err = s.space.Create(); err != nil {
			return err
		}
	}
	order := s.order(ranks)
	for i, at := range order {
		if err := to.add(s.codes[at], key{s.ordinals[at], uint32(s.rows + int64(i))}); err != nil {
			return err
		}
	}
	begin, places := s.size, len(s.blocks)
	buffered := bufio.NewWriterSize(s, 1<<20)
	w, err := ipc.NewFileWriter(buffered, ipc.WithSchema(s.schema), ipc.WithAllocator(s.mem))
	if err != nil {
		return err
	}
	if err := s.writeBlocks(w, order); err != nil {
		_ = w.Close() // its error is not news
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	reader, err := ipc.NewFileReader(io.NewSectionReader(s.file, begin, s.size-begin), ipc.WithAllocator(s.mem))
	if err != nil {
		return err
	}
	s.readers = append(s.readers, reader)
	for i := range s.blocks[places:] {
		s.blocks[places+i].run, s.blocks[places+i].place = reader, i
	}
	s.drop()
	return nil
}

// Write implements io.Writer: it appends to the scratch file.
func (s *spool) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	s.size += int64(n)
	return n, err
}

// order returns the places of the pending rows in the order of (entity, index).
func (s *spool) order(ranks []uint32) []uint32 {
	of, list := make([]uint32, len(s.codes)), make([]key, len(s.codes))
	for i, code := range s.codes {
		of[i], list[i] = ranks[code], key{s.ordinals[i], uint32(i)}
	}
	_, list = arrange(of, list, len(ranks))
	order := make([]uint32, len(list))
	for i, k := range list {
		order[i] = k.row
	}
	return order
}

// writeBlocks writes the pending rows in an order.
func (s *spool) writeBlocks(w *ipc.FileWriter, order []uint32) error {
	starts := make([]int64, len(s.pending)+1)
	for i, b := range s.pending {
		starts[i+1] = starts[i] + b.NumRows()
	}
	average := max(1, s.pendingBytes/max(1, s.pendingRows))
	for part := range slices.Chunk(order, int(max(1, min(blockRows, blockBytes/average)))) {
		batch, err := s.assemble(s.pending, runsOf(part, starts))
		if err != nil {
			return err
		}
		err = w.Write(batch)
		s.blocks = append(s.blocks, block{first: s.rows, rows: batch.NumRows(), bytes: average * batch.NumRows()})
		s.rows += batch.NumRows()
		batch.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// runsOf turns places among all rows into runs of rows of the batches that
// begin at starts.
func runsOf(places []uint32, starts []int64) []assemble.Run {
	var runs []assemble.Run
	source := 0
	for _, at := range places {
		row := int64(at)
		if row < starts[source] || row >= starts[source+1] {
			found, exact := slices.BinarySearch(starts, row)
			if source = found; !exact {
				source--
			}
			for starts[source] == starts[source+1] { // a batch without rows
				source++
			}
		}
		start := int(row - starts[source])
		if n := len(runs); n > 0 && runs[n-1].Source == source && runs[n-1].Start+runs[n-1].Len == start {
			runs[n-1].Len++
			continue
		}
		runs = append(runs, assemble.Run{Source: source, Start: start, Len: 1})
	}
	return runs
}
