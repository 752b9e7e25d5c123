package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

const (
	// writers is how many files of one append are sorted or written at once.
	writers = 2
	// removeTimeout bounds the removal of what a failed append wrote.
	removeTimeout = 30 * time.Second
)

// fileWriter writes the rows of one store.
type fileWriter struct {
	cfg      Config
	s        *store
	schema   *arrow.Schema // storage types
	modified int64         // ms since the epoch

	pool      recycler
	constants []arrow.Array

	mu    sync.Mutex
	begun []string // keys that may exist
}

// run cuts, sorts, checks and writes the store's rows.
func (w *fileWriter) run(ctx context.Context) (*Result, error) {
	plan := planner{s: w.s, domain: w.cfg.Domain, rowBytes: w.s.rowBytes(), limits: w.cfg.limits}
	w.pool.mem = w.cfg.Mem
	defer w.pool.close()
	prep := newPreparer(w.s, w.cfg, &w.pool)
	defer prep.free()
	files, err := prep.prepareAll(ctx, plan.plan())
	if err != nil {
		return nil, err
	}
	w.s.codes.free(w.s.heap)
	result := &Result{Rows: w.s.rows}
	if result.Coverage, err = prep.covered(files); err != nil {
		return nil, err
	}
	if result.Files, err = w.writeAll(ctx, files, writers); err != nil {
		remove(ctx, w.cfg.Store, w.begun)
		return nil, err
	}
	return result, nil
}

// writeAll writes files, some at once. After an error it leaves what it has
// begun.
func (w *fileWriter) writeAll(ctx context.Context, files []outFile, atOnce int) ([]FileOut, error) {
	written := make([]FileOut, len(files))
	for i := range files {
		var err error
		if written[i].Path, err = w.cfg.NewFileName(); err != nil {
			return nil, fmt.Errorf("naming a data file: %w", err)
		}
	}
	w.constants = w.s.constants(w.cfg.Mem)
	defer release(w.constants)
	err := eachOf(ctx, atOnce, len(files), func(ctx context.Context, i int) error {
		return w.write(ctx, &files[i], &written[i])
	})
	return written, err
}

// each calls do for 0 … n−1, a few at once, and returns the first error. One
// call runs on the caller's goroutine.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	return eachOf(ctx, writers, n, do)
}

// eachOf is each with atOnce calls at once.
func eachOf(ctx context.Context, atOnce, n int, do func(ctx context.Context, i int) error) error {
	if n == 1 {
		return do(ctx, 0)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}

// Discard removes the files of a result that will not be committed. It goes on
// when ctx is done; what it cannot remove is left for vacuum.
func (r *Result) Discard(ctx context.Context, store objstore.Store) {
	var keys []string
	for _, f := range r.Files {
		keys = append(keys, f.Path)
		if f.sidecar != "" {
			keys = append(keys, f.sidecar)
		}
	}
	remove(ctx, store, keys)
}

func remove(ctx context.Context, store objstore.Store, keys []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	for _, key := range keys {
		// A file that stays is no part of the table and harms nobody.
		_ = store.Delete(ctx, key)
	}
}

// begin notes a key that is about to be written.
func (w *fileWriter) begin(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = append(w.begun, key)
}

// write writes one file and describes it.
func (w *fileWriter) write(ctx context.Context, f *outFile, out *FileOut) error {
	w.begin(out.Path)
	object, err := w.cfg.Store.Create(ctx, out.Path)
	if err != nil {
		return storeError(err)
	}
	defer object.Abort()
	sink := &sink{Writer: object}
	written, sidecar, err := w.encode(ctx, f, sink)
	if sink.err != nil {
		return storeError(sink.err)
	}
	if err != nil {
		return err
	}
	if sidecar != nil {
		out.sidecar = derived.SidecarPath(out.Path)
		w.begin(out.sidecar)
		if err := w.cfg.Store.Put(ctx, out.sidecar, sidecar(written.Bytes)); err != nil {
			return storeError(err)
		}
	}
	size, err := object.Commit(ctx)
	if err != nil {
		return storeError(err)
	}
	if size != written.Bytes || written.Rows != int64(len(f.rows)) {
		return fmt.Errorf("data file %s has %d bytes and %d rows, %d and %d were written", out.Path, size, written.Rows, written.Bytes, len(f.rows))
	}
	out.Rows, out.RowGroups, out.Bytes = written.Rows, written.RowGroups, written.Bytes
	out.MinIndex, out.MaxIndex, out.Index = f.min, f.max, f.index
	out.Add = w.add(f, out, written)
	return nil
}

// sink remembers the store's own error, which comes back from an encoder in
// other words.
type sink struct {
	objstore.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// encode writes a file's rows and metadata to a sink.
func (w *fileWriter) encode(ctx context.Context, f *outFile, to *sink) (datafile.Written, func(int64) []byte, error) {
	opts := w.cfg.Write
	opts.Mem = w.cfg.Mem
	file, err := datafile.NewWriter(to, w.schema, opts)
	if err != nil {
		return datafile.Written{}, nil, err
	}
	closed := false
	defer func() {
		if !closed {
			_, _ = file.Close() // frees what the writer holds; its error is not news
		}
	}()
	start, first := 0, 0
	for _, end := range cutRowGroups(f.runs, w.groupRows()) {
		var runs []run
		runs, first = runsBetween(f.runs, first, start, end)
		if err := w.writeGroup(ctx, file, f.rows[start:end], runs, start); err != nil {
			return datafile.Written{}, nil, err
		}
		start = end
	}
	packed, err := derived.Pack(w.cfg.Def, f.index)
	if err != nil {
		return datafile.Written{}, nil, err
	}
	for _, key := range sortedKeys(packed.KV) {
		file.SetMeta(key, packed.KV[key])
	}
	closed = true
	written, err := file.Close()
	return written, packed.Sidecar, err
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
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
	group := newGroup(w.s, &w.pool, w.schema, w.constants, rows, runs, start)
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

// add makes the action that adds a file.
func (w *fileWriter) add(f *outFile, out *FileOut, written datafile.Written) *deltalog.Add {
	nan := []string{} // "[]" says that there is none
	for _, c := range written.Columns {
		if c.HasNaN {
			nan = append(nan, c.Name)
		}
	}
	tags := map[string]string{
		tabledef.TagIndexMin: w.indexText(f.min),
		tabledef.TagIndexMax: w.indexText(f.max),
		tabledef.TagSorted:   "true",
		tabledef.TagLayout:   tabledef.LayoutMixed,
		tabledef.TagNaN:      jsonText(nan),
		tabledef.TagWriter:   w.cfg.Software,
	}
	if len(f.runs) == 1 {
		tags[tabledef.TagLayout] = tabledef.LayoutSingle
		tags[tabledef.TagEntity] = jsonText(w.s.entities.Layout().Values(w.s.entities.Key(f.runs[0].entity)))
	}
	return &deltalog.Add{Path: deltalog.EncodePath(out.Path), Size: out.Bytes, ModificationTime: w.modified, DataChange: true,
		Stats: stats(written.Rows, written.Columns, w.schema), Tags: tags}
}

// jsonText writes a value whose JSON form cannot fail.
func jsonText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// indexText writes an index value as a decimal number in the column's unit.
func (w *fileWriter) indexText(ordinal uint64) string {
	if w.cfg.Domain.Signed() {
		return strconv.FormatInt(int64(ordinal^1<<63), 10)
	}
	return strconv.FormatUint(ordinal, 10)
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
