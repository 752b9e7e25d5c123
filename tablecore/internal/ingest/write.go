package ingest

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/parallel"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// writers is how many files of one append are sorted or written at once.
const writers = 2

// fileWriter writes the rows of one store.
type fileWriter struct {
	cfg Config
	s   *store
	out *newfile.Writer

	pool      recycler
	constants []arrow.Array
}

// run cuts, sorts, checks and writes the store's rows.
func (w *fileWriter) run(ctx context.Context) (*Result, error) {
	plan := planner{s: w.s, domain: w.cfg.Domain, rowBytes: w.s.rowBytes(), limits: w.cfg.limits, byEntity: w.cfg.Shape.ByEntity}
	w.pool.mem = w.cfg.Rows
	defer w.pool.close()
	prep := newPreparer(w.s, w.cfg, &w.pool)
	defer prep.free()
	files, err := prep.prepareAll(ctx, plan.plan())
	if err != nil {
		return nil, err
	}
	if err := w.cfg.Shape.check(len(files)); err != nil {
		return nil, err
	}
	w.s.codes.free(w.s.heap)
	result := &Result{}
	if result.Coverage, err = prep.covered(files); err != nil {
		return nil, err
	}
	if result.Files, err = w.writeAll(ctx, files, writers); err != nil {
		w.out.Discard(ctx)
		return nil, err
	}
	result.count()
	return result, nil
}

// count adds up the rows of the files.
func (r *Result) count() {
	for i := range r.Files {
		r.Rows += r.Files[i].Rows
	}
}

// writeAll writes files, some at once. After an error it leaves what it has
// begun.
func (w *fileWriter) writeAll(ctx context.Context, files []outFile, atOnce int) ([]newfile.File, error) {
	written := make([]newfile.File, len(files))
	paths := make([]string, len(files))
	for i := range paths {
		var err error
		if paths[i], err = w.out.NewPath(); err != nil {
			return nil, err
		}
	}
	w.constants = w.s.constants(w.cfg.Mem)
	defer release(w.constants)
	err := parallel.Each(ctx, len(files), atOnce, func(ctx context.Context, i int) (err error) {
		f := &files[i]
		written[i], err = w.out.Write(ctx, paths[i], func(to *datafile.Writer) (newfile.Contents, error) {
			return newfile.Contents{Min: f.min, Max: f.max, Index: f.index}, w.writeRows(ctx, f, to)
		})
		return err
	})
	return written, err
}

// Discard removes the files of a result that will not be committed. It goes on
// when ctx is done; what it cannot remove is left for vacuum.
func (r *Result) Discard(ctx context.Context, store objstore.Store) {
	var keys []string
	for i := range r.Files {
		keys = append(keys, r.Files[i].Keys()...)
	}
	newfile.Remove(ctx, store, keys)
}

// writeRows writes a file's rows.
func (w *fileWriter) writeRows(ctx context.Context, f *outFile, to *datafile.Writer) error {
	start, first := 0, 0
	for _, end := range cutRowGroups(f.runs, w.groupRows()) {
		var runs []run
		runs, first = runsBetween(f.runs, first, start, end)
		if err := w.writeGroup(ctx, to, f.rows[start:end], runs, start); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// groupRows is the most rows of a row group.
func (w *fileWriter) groupRows() int {
	if n := w.cfg.Write.MaxRowsPerRowGroup; n > 0 {
		return int(n)
	}
	return datafile.DefaultRowsPerRowGroup
}

// writeGroup writes one row group; the writer may cut it further by bytes.
func (w *fileWriter) writeGroup(ctx context.Context, file *datafile.Writer, rows []uint32, runs []run, start int) error {
	group := newGroup(w.s, &w.pool, w.out.Schema(), w.constants, rows, runs, start)
	defer group.release()
	for from := 0; from < len(rows); {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := from + group.fit(from)
		batch, err := group.batch(from, to)
		if err != nil {
			return err
		}
		err = file.Write(batch)
		batch.Release()
		if err != nil {
			return err
		}
		from = to
	}
	return file.EndRowGroup()
}

// storeError gives a store's error its type; errors that have one, and those of
// a context, stay as they are.
func storeError(err error) error {
	var typed tableerr.Error
	switch {
	case err == nil, errors.As(err, &typed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, objstore.ErrNoSpace):
		return &tableerr.StorageFull{Cause: err}
	default:
		return &tableerr.StoreUnavailable{Cause: err}
	}
}
