package maintain

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// RowReader is a stream of batches, as ingest takes it.
type RowReader interface {
	Schema() *arrow.Schema
	Next(ctx context.Context) (arrow.RecordBatch, error)
}

// Sorting says how rows are to be sorted into files.
type Sorting struct {
	// Def is the definition to sort and write by: every row is kept, as it is.
	Def *tabledef.Definition
	// FileRows is about how many rows a file has. ByEntity gives each entity files
	// of its own, MaxFiles at most.
	FileRows int64
	ByEntity bool
	MaxFiles int
}

// Rewriter is what the rewriting of files works with.
type Rewriter struct {
	Store objstore.Store
	Files *filecache.Files
	Mem   memory.Allocator
	// Sort writes rows as data files cut by ranges of the index, or by entity,
	// and sorted by (entity, index) inside; rows with equal ones stay in the
	// order in which they come. After an error nothing is left.
	Sort func(ctx context.Context, rows RowReader, sorting Sorting) ([]newfile.File, error)
	// Merge does the same with the rows of files of a snapshot that are sorted, or
	// says false where they have to be sorted after all.
	Merge func(ctx context.Context, s *snapshot.Snapshot, files []*snapshot.File, sorting Sorting) ([]newfile.File, bool, error)
	// Progress, when set, is told after each group how many files were read.
	Progress func(done int)
}

// Write writes the new files of all groups. Each old file is read once; memory
// is bounded by what Sort uses and a few batches. A missing or damaged file is
// *tableerr.FileMissing or *tableerr.Corrupt. After an error nothing is left.
func (o *Optimize) Write(ctx context.Context, w Rewriter) error {
	done := 0
	for _, g := range o.groups {
		var err error
		if g.out, err = o.writeGroup(ctx, w, g); err != nil {
			o.Discard(ctx, w.Store)
			return err
		}
		if done += len(g.files); w.Progress != nil {
			w.Progress(done)
		}
	}
	return nil
}

// writeGroup writes the new files of one group.
func (o *Optimize) writeGroup(ctx context.Context, w Rewriter, g *group) ([]newfile.File, error) {
	if err := o.countRows(ctx, w, g); err != nil {
		return nil, err
	}
	out, err := o.rewriteRows(ctx, w, g)
	if err != nil {
		return nil, err
	}
	o.tag(g, out)
	return out, nil
}

// rewriteRows merges the rows of a group where they are in order, else sorts them.
func (o *Optimize) rewriteRows(ctx context.Context, w Rewriter, g *group) ([]newfile.File, error) {
	sorting := Sorting{Def: sortingDefinition(o.base.Def), FileRows: o.fileRows(g), ByEntity: g.byEntity, MaxFiles: o.cfg.MaxFiles}
	if !slices.ContainsFunc(g.files, func(f *snapshot.File) bool { return !sorted(f) }) {
		if out, done, err := w.Merge(ctx, o.base, g.files, sorting); done || err != nil {
			return out, err
		}
	}
	rows := startGroupRows(ctx, w, o.base, g.files, sorting.Def)
	defer rows.close()
	return w.Sort(ctx, rows, sorting)
}

// countRows completes the number of a group's rows where the log does not say.
func (o *Optimize) countRows(ctx context.Context, w Rewriter, g *group) error {
	for _, f := range g.files {
		if f.Rows >= 0 {
			continue
		}
		groups, err := w.Files.RowGroups(ctx, o.base, f)
		if err != nil {
			return err
		}
		for _, rg := range groups {
			g.rows += rg.Rows
		}
	}
	return nil
}

// fileRows is how many of a group's rows make a file of the target size, as far
// as the old files tell.
func (o *Optimize) fileRows(g *group) int64 {
	rows := o.maxRows()
	if g.bytes > o.cfg.TargetBytes {
		rows = min(rows, int64(float64(g.rows)*float64(o.cfg.TargetBytes)/float64(g.bytes)))
	}
	return max(1, rows)
}

// tag completes what the log says of a group's new files.
func (o *Optimize) tag(g *group, out []newfile.File) {
	order := int64(0)
	for _, f := range g.files {
		order = max(order, f.Order)
	}
	for i := range out {
		tags := out[i].Add.Tags
		switch {
		case g.settled || len(out) > 1:
			tags[tabledef.TagTarget] = strconv.FormatInt(o.cfg.TargetBytes, 10)
		case o.cfg.ByEntity:
			tags[tabledef.TagTarget] = "0" // small on purpose
		}
		if o.base.Def.Uniqueness == tabledef.UniqueNone {
			tags[tabledef.TagOrder] = strconv.FormatInt(order, 10)
		}
	}
}

// sortingDefinition is the definition by which rows are moved: they are taken as
// they are stored, but for the keys, which mean something, and no rule is applied
// to them.
func sortingDefinition(def *tabledef.Definition) *tabledef.Definition {
	moved := *def
	fields := slices.Clone(def.Stored.Fields())
	stored := tabledef.StorageSchema(def.Stored)
	for i := range fields {
		if !def.IsKey(fields[i].Name) {
			fields[i] = stored.Field(i)
		}
	}
	md := def.Stored.Metadata()
	moved.Stored = arrow.NewSchema(fields, &md)
	moved.Uniqueness, moved.IngestTimeColumn = tabledef.UniqueNone, ""
	return &moved
}

// Small files are read some at once: each takes several requests for little.
const (
	smallReadBytes = 1 << 20
	smallReaders   = 4
)

// groupRows gives the rows of files one after another, read a batch ahead of who
// takes them, and small files a few files ahead.
type groupRows struct {
	w       Rewriter
	snap    *snapshot.Snapshot
	def     *tabledef.Definition
	stored  []arrow.Field
	keys    []int // places of the key columns
	stop    context.CancelFunc
	files   chan *fileRows
	file    *fileRows // whose batches are being given; nil between files
	current arrow.RecordBatch
	err     error // why there are no more files; set before the channel is closed
}

// fileRows are the rows of one file.
type fileRows struct {
	batches chan arrow.RecordBatch
	err     error // why there are no more batches; set before the channel is closed
}

func startGroupRows(ctx context.Context, w Rewriter, snap *snapshot.Snapshot, files []*snapshot.File, def *tabledef.Definition) *groupRows {
	// Who takes the rows holds one file more than the channel.
	r := &groupRows{w: w, snap: snap, def: def, stored: tabledef.StorageSchema(snap.Def.Stored).Fields(), files: make(chan *fileRows, readers(files)-1)}
	for i, f := range def.Stored.Fields() {
		if def.IsKey(f.Name) {
			r.keys = append(r.keys, i)
		}
	}
	ctx, r.stop = context.WithCancel(ctx)
	go func() {
		defer close(r.files)
		for _, f := range files {
			file := &fileRows{batches: make(chan arrow.RecordBatch, 1)}
			select {
			case r.files <- file:
			case <-ctx.Done():
				r.err = ctx.Err()
				return
			}
			go func() {
				defer close(file.batches)
				file.err = r.read(ctx, f, file.batches)
			}()
		}
	}()
	return r
}

// readers is how many of some files are read at once.
func readers(files []*snapshot.File) int {
	for _, f := range files {
		if f.Add.Size > smallReadBytes {
			return 1
		}
	}
	return smallReaders
}

// Schema implements RowReader.
func (r *groupRows) Schema() *arrow.Schema { return r.def.Stored }

// Next implements RowReader.
func (r *groupRows) Next(context.Context) (arrow.RecordBatch, error) {
	r.release()
	for {
		if r.file == nil {
			file, more := <-r.files
			if !more {
				return nil, cmp.Or(r.err, io.EOF)
			}
			r.file = file
		}
		if batch, more := <-r.file.batches; more {
			r.current = batch
			return batch, nil
		}
		if r.file.err != nil {
			return nil, r.file.err
		}
		r.file = nil
	}
}

func (r *groupRows) release() {
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
}

// close ends the reading and frees what was read ahead.
func (r *groupRows) close() {
	r.stop()
	r.release()
	if r.file != nil {
		r.file.drop()
	}
	for file := range r.files {
		file.drop()
	}
}

// drop frees what was read of a file and waits for its reader.
func (f *fileRows) drop() {
	for batch := range f.batches {
		batch.Release()
	}
}

// read reads one file.
func (r *groupRows) read(ctx context.Context, f *snapshot.File, batches chan<- arrow.RecordBatch) error {
	file, err := r.w.Files.Open(ctx, r.snap, f)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Each(ctx, datafile.ReadRequest{Fields: r.stored}, func(_ int64, batch arrow.RecordBatch) error {
		moved, err := r.restoreKeys(batch)
		if err != nil {
			return atPath(err, f.Path)
		}
		select {
		case batches <- moved:
			return nil
		case <-ctx.Done():
			moved.Release()
			return ctx.Err()
		}
	})
}

// restoreKeys returns a batch whose key columns have their declared types.
func (r *groupRows) restoreKeys(batch arrow.RecordBatch) (arrow.RecordBatch, error) {
	columns := slices.Clone(batch.Columns())
	for _, i := range r.keys {
		restored, err := convert.FromStorage(r.w.Mem, columns[i], r.def.Stored.Field(i).Type)
		if err != nil {
			return nil, err
		}
		defer restored.Release()
		columns[i] = restored
	}
	return array.NewRecordBatch(r.def.Stored, columns, batch.NumRows()), nil
}

// atPath puts a file's path into an error that tells of damage without one.
func atPath(err error, path string) error {
	var corrupt *tableerr.Corrupt
	if errors.As(err, &corrupt) && corrupt.Path == "" {
		corrupt.Path = path
	}
	return err
}
