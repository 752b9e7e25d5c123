package ingest

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/internal/newfile"
)

// A place of a row is the number of its batch in a block, then that of the row in
// the batch, placeBits wide. The last number is no row's, so that two rows whose
// places follow each other do, too.
const (
	placeBits  = 16
	mostPlaces = 1 << placeBits
)

// mergeBlock holds the batches whose rows have been put into order.
type mergeBlock struct {
	sources []arrow.RecordBatch // held
	rows    int64               // that were taken
	bytes   int64               // of sources
}

// take returns the place of an input's next row and counts n rows.
func (b *mergeBlock) take(in *sortedInput, n int) uint32 {
	if in.block != b {
		in.block, in.source = b, len(b.sources)
		in.batch.Retain()
		b.sources = append(b.sources, in.batch)
		b.bytes += in.bytes
	}
	b.rows += int64(n)
	return uint32(in.source<<placeBits | in.at)
}

// full says that a block has the rows that are wanted, or takes much memory, or
// might not have the places for another batch of each input.
func (b *mergeBlock) full(rows int64) bool {
	return b.rows >= rows || b.bytes >= 2*blockBytes || len(b.sources) > mostPlaces-mostInputs
}

func (b *mergeBlock) release() {
	for _, s := range b.sources {
		s.Release()
	}
}

// mergedFile is one of the files that sorted files are merged to. The merge adds
// rows to it; a goroutine of its own gathers and writes them, a block behind.
type mergedFile struct {
	path     string
	domain   interval.Domain
	coverage *coverage.Builder // nil without intervals
	mem      memory.Allocator
	fields   []arrow.Field
	texts    []bool // fields that are entity columns of text
	most     int    // rows of a row group

	parts chan mergedPart
	next  mergedPart
	group int // rows of the row group that is open

	rows     int64
	min, max uint64
	index    derived.FileIndex
	ids      []uint64
	file     newfile.File
}

// mergedPart is the rows of one block that belong to one file.
type mergedPart struct {
	sources []arrow.RecordBatch // held
	places  []uint32
	ends    []int // of places: where a row group ends
	starts  []int // of places: where another entity begins
}

func (p *mergedPart) release() { (&mergeBlock{sources: p.sources}).release() }

func newMergedFile(m *fileMerger, path string) *mergedFile {
	f := &mergedFile{path: path, domain: m.cfg.Domain, mem: m.in.Cache.Allocator(), fields: m.fields, most: datafile.DefaultRowsPerRowGroup,
		texts: make([]bool, len(m.fields)), parts: make(chan mergedPart, 1), min: math.MaxUint64}
	if n := m.cfg.Write.MaxRowsPerRowGroup; n > 0 {
		f.most = int(n)
	}
	if m.cfg.Domain.HasIntervals() {
		f.coverage = coverage.NewBuilder()
	}
	for i, field := range m.fields {
		f.texts[i] = field.Type.ID() == arrow.STRING && slices.Contains(m.cfg.Def.EntityColumns, field.Name)
	}
	return f
}

// add adds rows of an entity, with their ordinals, behind all others.
func (f *mergedFile) add(key string, ordinals []uint64, places []uint32) {
	n := len(ordinals)
	if n == 0 {
		return
	}
	last := len(f.index.Directory) - 1
	if another := last < 0 || f.index.Directory[last].Key != key; another {
		// As cutRowGroups does it, as far as it is known how many rows there are.
		if f.group+n > f.most && f.group >= f.most/8 {
			f.next.ends = append(f.next.ends, len(f.next.places))
			f.group = 0
		}
		f.index.Directory = append(f.index.Directory, derived.Run{Key: key, Start: f.rows, First: ordinals[0]})
		last++
		if f.coverage != nil {
			f.coverage.Entity(key)
		}
		f.next.starts = append(f.next.starts, len(f.next.places))
	} else if len(f.next.places) == 0 {
		f.next.starts = append(f.next.starts, 0)
	}
	f.group = (f.group + n) % f.most
	f.next.places = append(f.next.places, places...)
	f.rows += int64(n)
	f.index.Directory[last].End, f.index.Directory[last].Last = f.rows, ordinals[n-1]
	f.min, f.max = min(f.min, ordinals[0]), max(f.max, ordinals[n-1])
	if f.coverage != nil {
		f.ids = sized(f.ids, n)
		f.domain.IDs(f.ids, ordinals)
		f.coverage.AddIDs(f.ids)
	}
}

// pass hands the rows of a block to be written.
func (f *mergedFile) pass(ctx context.Context, b *mergeBlock) error {
	if len(f.next.places) == 0 {
		return nil
	}
	part := f.next
	part.sources = slices.Clone(b.sources)
	for _, s := range part.sources {
		s.Retain()
	}
	f.next = mergedPart{}
	select {
	case f.parts <- part:
		return nil
	case <-ctx.Done():
		part.release()
		return ctx.Err()
	}
}

// finish says that there are no more rows.
func (f *mergedFile) finish() (err error) {
	f.index.Rows = f.rows
	if f.coverage != nil {
		if f.index.Coverage, err = f.coverage.Finish(); err != nil {
			return err
		}
	}
	close(f.parts)
	return nil
}

// drop frees what was not written. Nobody may be adding or writing.
func (f *mergedFile) drop() {
	for {
		select {
		case part, more := <-f.parts:
			if !more {
				return
			}
			part.release()
		default:
			return
		}
	}
}

// write writes the file as its rows come; none makes no file.
func (f *mergedFile) write(ctx context.Context, out *newfile.Writer) (err error) {
	part, more, err := f.receive(ctx)
	if err != nil || !more {
		return err
	}
	f.file, err = out.Write(ctx, f.path, func(to *datafile.Writer) (newfile.Contents, error) {
		for err == nil && more {
			err = f.writePart(to, part)
			part.release()
			part = mergedPart{}
			if err == nil {
				part, more, err = f.receive(ctx)
			}
		}
		return newfile.Contents{Min: f.min, Max: f.max, Index: f.index}, err
	})
	part.release()
	return err
}

// receive waits for the next rows; false after the last.
func (f *mergedFile) receive(ctx context.Context) (part mergedPart, more bool, err error) {
	select {
	case part, more = <-f.parts:
		return part, more, nil
	case <-ctx.Done():
		return part, false, ctx.Err()
	}
}

// writePart gathers rows and writes them.
func (f *mergedFile) writePart(to *datafile.Writer, p mergedPart) error {
	from := 0
	for _, end := range p.ends {
		if err := f.writeRows(to, p, from, end); err != nil {
			return err
		}
		if err := to.EndRowGroup(); err != nil {
			return err
		}
		from = end
	}
	return f.writeRows(to, p, from, len(p.places))
}

// writeRows writes the rows at places [from, end).
func (f *mergedFile) writeRows(to *datafile.Writer, p mergedPart, from, end int) error {
	if from == end {
		return nil
	}
	batch, err := f.gather(p, from, end)
	if err != nil {
		return fmt.Errorf("merging files: %w", err)
	}
	defer batch.Release()
	return to.Write(batch)
}

// gather makes a batch of the rows at places [from, end).
func (f *mergedFile) gather(p mergedPart, from, end int) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, 0, len(f.fields))
	defer func() { release(columns) }()
	fields := slices.Clone(f.fields)
	runs := runsAt(p.places[from:end])
	parts := make([]arrow.Array, len(p.sources))
	for i := range f.fields {
		for k, s := range p.sources {
			parts[k] = s.Column(i)
		}
		var column arrow.Array
		var err error
		if f.texts[i] {
			column, err = f.gatherEntity(parts, p, from, end)
		} else {
			column, err = assemble.Array(f.mem, parts, runs)
		}
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
		fields[i].Type = column.DataType()
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(end-from)), nil
}

// runsAt makes runs of rows of places.
func runsAt(places []uint32) []assemble.Run {
	runs := make([]assemble.Run, 0, len(places))
	for i := 0; i < len(places); {
		n := 1
		for i+n < len(places) && places[i+n] == places[i]+uint32(n) {
			n++
		}
		runs = append(runs, assemble.Run{Source: int(places[i] >> placeBits), Start: int(places[i] & (mostPlaces - 1)), Len: n})
		i += n
	}
	return runs
}

// gatherEntity makes an entity column of text: each entity has it once.
func (f *mergedFile) gatherEntity(parts []arrow.Array, p mergedPart, from, end int) (arrow.Array, error) {
	indices := newBuffer(f.mem, 4*(end-from))
	dst := view[uint32](indices.Bytes())
	var texts []string
	at, _ := slices.BinarySearch(p.starts, from+1)
	for at--; at < len(p.starts) && p.starts[at] < end; at++ {
		start, stop := max(p.starts[at], from), end
		if at+1 < len(p.starts) {
			stop = min(stop, p.starts[at+1])
		}
		place := p.places[start]
		fill(dst[start-from:stop-from], uint32(len(texts)))
		texts = append(texts, parts[place>>placeBits].(*array.String).Value(int(place&(mostPlaces-1))))
	}
	used := make([]uint32, len(texts))
	for i := range used {
		used[i] = uint32(i)
	}
	return newDictionary(f.mem, end-from, 0, nil, indices, used, func(i uint32) []byte { return []byte(texts[i]) }), nil
}
