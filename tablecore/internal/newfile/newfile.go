// Package newfile writes the data files of a change to a table: Parquet files
// with their coverage and entity directory, durable under names of their own,
// each with the action that adds it to the log.
//
// It is the one place that decides what the log and the footer say of a file:
// statistics as Delta writes them, and the tags and derived data that Contrail
// adds. Nothing that it writes is visible in the table until somebody commits
// the actions.
package newfile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
)

// removeTimeout bounds the removal of what a failed change wrote.
const removeTimeout = 30 * time.Second

// Config is what the files of one change have in common.
type Config struct {
	Store objstore.Store // the table's own
	// Def is the table's definition. It must have a schema, which is that of
	// the files.
	Def   *tabledef.Definition
	Write datafile.WriteOptions
	// NewID returns a name for a file, one that nobody uses.
	NewID func() (string, error)
	// Software names the writer in the files' tags.
	Software string
	// Modified is the files' time in the log.
	Modified time.Time
}

// File describes one data file that was written.
type File struct {
	Path      string // relative to the table
	Rows      int64
	RowGroups int
	Bytes     int64
	// Add is the action that adds the file, complete but for the tag with the
	// version.
	Add *deltalog.Add
	// MinIndex and MaxIndex are the ordinals of the smallest and the largest
	// index value.
	MinIndex, MaxIndex uint64
	Index              derived.FileIndex

	sidecar string // key of the derived data beside the file, "" for none
}

// Keys are the keys of the file and of what lies beside it.
func (f *File) Keys() []string {
	if f.sidecar == "" {
		return []string{f.Path}
	}
	return []string{f.Path, f.sidecar}
}

// AddAt returns the action that adds the file in a version.
func (f *File) AddAt(version int64) *deltalog.Add {
	add := *f.Add
	add.Tags = maps.Clone(f.Add.Tags)
	add.Tags[tabledef.TagVersion] = strconv.FormatInt(version, 10)
	return &add
}

// Writer writes the files of one change and remembers what it has begun. It may
// be used by several goroutines at once.
type Writer struct {
	cfg    Config
	schema *arrow.Schema // storage types
	layout *entitykey.Layout

	mu    sync.Mutex
	begun []string // keys that may exist
}

// NewWriter returns a writer of no files yet.
func NewWriter(cfg Config) (*Writer, error) {
	layout, err := entitykey.LayoutOf(cfg.Def)
	if err != nil {
		return nil, err
	}
	return &Writer{cfg: cfg, schema: tabledef.StorageSchema(cfg.Def.Stored), layout: layout}, nil
}

// Schema returns the columns of the files with their storage types.
func (w *Writer) Schema() *arrow.Schema { return w.schema }

// NewPath returns the path of a new data file. The two digits in front keep
// directories small.
func (w *Writer) NewPath() (string, error) {
	id, err := w.cfg.NewID()
	if err != nil {
		return "", fmt.Errorf("naming a data file: %w", err)
	}
	return "data/" + id[:2] + "/" + id + ".parquet", nil
}

// Contents is what is known of the rows of a file.
type Contents struct {
	// Min and Max are the ordinals of the smallest and the largest index value.
	Min, Max uint64
	// Index has a directory exactly if the rows are sorted by (entity, index).
	Index derived.FileIndex
	// Original is the action of the file that columns were copied from, nil
	// where none was. It must be one that Describes accepts.
	Original *deltalog.Add
}

// Write writes one file of the rows that fill gives to the Parquet writer, all
// that the contents it returns tell of and in the same order, and returns when
// the file is durable. Errors of fill come back as they are, those of the store
// as *tableerr.StorageFull or *tableerr.StoreUnavailable. After an error there
// may be a file left for Discard to remove.
func (w *Writer) Write(ctx context.Context, path string, fill func(*datafile.Writer) (Contents, error)) (File, error) {
	w.begin(path)
	object, err := w.cfg.Store.Create(ctx, path)
	if err != nil {
		return File{}, txn.StoreError(err)
	}
	defer object.Abort()
	sink := &sink{Writer: object}
	out, err := w.encode(sink, fill)
	if sink.err != nil {
		return File{}, txn.StoreError(sink.err)
	}
	if err != nil {
		return File{}, err
	}
	written := out.written
	beside := ""
	if out.sidecar != nil {
		beside = derived.SidecarPath(path)
		w.begin(beside)
		if err := w.cfg.Store.Put(ctx, beside, out.sidecar(written.Bytes)); err != nil {
			return File{}, txn.StoreError(err)
		}
	}
	size, err := object.Commit(ctx)
	if err != nil {
		return File{}, txn.StoreError(err)
	}
	if size != written.Bytes || written.Rows != out.Index.Rows {
		return File{}, fmt.Errorf("data file %s has %d bytes and %d rows, %d and %d were written", path, size, written.Rows, written.Bytes, out.Index.Rows)
	}
	return File{Path: path, Rows: written.Rows, RowGroups: written.RowGroups, Bytes: written.Bytes, MinIndex: out.Min, MaxIndex: out.Max,
		Index: out.Index, Add: w.add(path, out.Contents, written), sidecar: beside}, nil
}

// begin notes a key that is about to be written.
func (w *Writer) begin(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = append(w.begun, key)
}

// Discard removes all that was written, as Remove does. Nothing may be being
// written.
func (w *Writer) Discard(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	Remove(ctx, w.cfg.Store, w.begun)
	w.begun = nil
}

// Remove removes what was written and will not be committed. It goes on when
// ctx is done; what it cannot remove is left for vacuum.
func Remove(ctx context.Context, store objstore.Store, keys []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	for _, key := range keys {
		// A file that stays is no part of the table and harms nobody.
		_ = store.Delete(ctx, key)
	}
}

// sink remembers the store's own error, which comes back from an encoder in
// other words.
type sink struct {
	objstore.Writer
	err error
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// encoded is a file that was written to a sink.
type encoded struct {
	Contents
	written datafile.Written
	sidecar func(size int64) []byte // what belongs beside the file, nil for nothing
}

// encode writes a file's rows and metadata to a sink.
func (w *Writer) encode(to *sink, fill func(*datafile.Writer) (Contents, error)) (out encoded, err error) {
	file, err := datafile.NewWriter(to, w.schema, w.cfg.Write)
	if err != nil {
		return out, err
	}
	closed := false
	defer func() {
		if !closed {
			_, _ = file.Close() // frees what the writer holds; its error is not news
		}
	}()
	if out.Contents, err = fill(file); err != nil {
		return out, err
	}
	packed, err := derived.Pack(w.cfg.Def, out.Index)
	if err != nil {
		return out, err
	}
	for _, key := range slices.Sorted(maps.Keys(packed.KV)) {
		file.SetMeta(key, packed.KV[key])
	}
	closed = true
	out.written, err = file.Close()
	out.sidecar = packed.Sidecar
	return out, err
}

// add makes the action that adds a file.
func (w *Writer) add(path string, c Contents, written datafile.Written) *deltalog.Add {
	var original said
	if c.Original != nil {
		original, _ = readSaid(c.Original)
	}
	nan := []string{} // "[]" says that there is none
	for _, column := range written.Columns {
		if column.HasNaN || column.Copied && slices.Contains(original.nan, column.Name) {
			nan = append(nan, column.Name)
		}
	}
	tags := KeyTags(w.cfg.Def, w.layout, c)
	tags[tabledef.TagNaN] = jsonText(nan)
	tags[tabledef.TagWriter] = w.cfg.Software
	return &deltalog.Add{Path: deltalog.EncodePath(path), Size: written.Bytes, ModificationTime: w.cfg.Modified.UnixMilli(), DataChange: true,
		Stats: stats(written.Rows, written.Columns, w.schema, original), Tags: tags}
}

// jsonText writes a value whose JSON form cannot fail.
func jsonText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// KeyTags returns the tags that say how the rows of a file lie under the table's
// keys. There must be rows.
func KeyTags(def *tabledef.Definition, layout *entitykey.Layout, c Contents) map[string]string {
	tags := map[string]string{
		tabledef.TagIndexMin: indexText(def, c.Min),
		tabledef.TagIndexMax: indexText(def, c.Max),
		tabledef.TagSorted:   strconv.FormatBool(c.Index.Sorted()),
		tabledef.TagLayout:   tabledef.LayoutMixed,
	}
	if len(c.Index.Directory) == 1 {
		tags[tabledef.TagLayout] = tabledef.LayoutSingle
		tags[tabledef.TagEntity] = jsonText(layout.Values(c.Index.Directory[0].Key))
	}
	return tags
}

// indexText writes an index value as a decimal number in the column's unit.
func indexText(def *tabledef.Definition, ordinal uint64) string {
	if def.IndexType == tabledef.IndexUint64 {
		return strconv.FormatUint(ordinal, 10)
	}
	return strconv.FormatInt(int64(ordinal^1<<63), 10)
}
