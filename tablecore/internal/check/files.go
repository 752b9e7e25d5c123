package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
)

// files checks the live files, in the order of their ranges.
func (c *checker) files(ctx context.Context) error {
	files := byBounds(c.snap.Files)
	seen := &overlaps{checker: c}
	for i, f := range files {
		c.tell("files", int64(i), int64(len(files)), "files")
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.file(ctx, f, seen); err != nil {
			return err
		}
		c.totals.Files++
	}
	c.tell("files", int64(len(files)), int64(len(files)), "files")
	return nil
}

// file checks one data file.
func (c *checker) file(ctx context.Context, f *snapshot.File, seen *overlaps) error {
	object, err := c.cfg.Store.Open(ctx, f.Path)
	if errors.Is(err, objstore.ErrNotExist) {
		return c.add(Finding{Severity: Error, Kind: MissingFile, Path: f.Path, Text: fmt.Sprintf("data file of version %d is missing", c.snap.Version())})
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", f.Path, err)
	}
	defer object.Close() // reading is over: nothing to learn from the error
	r := &fileReader{checker: c, info: f, size: object.Size()}
	if r.size != f.Add.Size {
		if err := r.error(BadFile, "it has %d bytes, the log says %d", r.size, f.Add.Size); err != nil {
			return err
		}
	}
	footer, err := datafile.ParseFooter(ctx, object, f.Path)
	if err == nil {
		r.file = datafile.Open(object, footer, f.Path, c.cfg.Mem)
		err = r.check(ctx, seen)
	}
	if why, damaged := damage(err); damaged {
		return r.error(BadFile, "%s", why)
	}
	return err
}

// fileReader checks one data file that is there.
type fileReader struct {
	*checker
	info *snapshot.File
	file *datafile.File
	size int64

	fields  []arrow.Field // that are read
	keys    []int         // the places of the key columns in fields; nil in a table without them
	columns []*column     // of fields; nil for those without bounds
	indexer *derived.Indexer
}

func (r *fileReader) finding(s Severity, k Kind, format string, args ...any) Finding {
	return Finding{Severity: s, Kind: k, Path: r.info.Path, Text: fmt.Sprintf(format, args...)}
}

func (r *fileReader) error(k Kind, format string, args ...any) error {
	return r.add(r.finding(Error, k, format, args...))
}

// own says whether Contrail wrote the file, which then has its tags.
func (r *fileReader) own() bool { return r.info.Add.Tags[tabledef.TagWriter] != "" }

func (r *fileReader) check(ctx context.Context, seen *overlaps) error {
	if rows := r.file.Rows(); r.info.Rows >= 0 && rows != r.info.Rows {
		if err := r.error(BadStatistics, "it has %d rows, the log says %d", rows, r.info.Rows); err != nil {
			return err
		}
	}
	if err := r.prepare(); err != nil {
		return err
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	if err := r.statistics(); err != nil || r.indexer == nil {
		return err
	}
	index, err := r.indexer.Finish()
	if err != nil {
		return err
	}
	index.Rows = r.file.Rows()
	if err := r.tags(ctx, &index); err != nil {
		return err
	}
	if err := r.derived(ctx, &index); err != nil {
		return err
	}
	return r.intervals(ctx, &index, seen)
}

// prepare chooses the columns to read.
func (r *fileReader) prepare() error {
	def := r.snap.Def
	for _, f := range tabledef.StorageSchema(def.Stored).Fields() {
		// A file of another writer may lack columns whose values the log has.
		if !r.own() && !r.file.StorageSchema().HasField(f.Name) {
			continue
		}
		r.fields = append(r.fields, f)
		var col *column
		if !arrow.IsNested(f.Type.ID()) {
			col = &column{field: f, file: r.file}
		}
		r.columns = append(r.columns, col)
	}
	if r.snap.Layout == nil {
		return nil
	}
	for _, name := range append(slices.Clone(def.EntityColumns), def.IndexColumn) {
		at := slices.IndexFunc(r.fields, func(f arrow.Field) bool { return f.Name == name })
		if at < 0 {
			r.keys = nil
			return r.error(BadFile, "it lacks the key column %q", name)
		}
		r.keys = append(r.keys, at)
	}
	var err error
	r.indexer, err = derived.NewIndexer(def)
	return err
}

// read reads all rows, one row group after the other.
func (r *fileReader) read(ctx context.Context) error {
	for _, g := range r.file.RowGroups() {
		for _, col := range r.columns {
			if col != nil {
				if err := col.begin(ctx, g); err != nil {
					return err
				}
			}
		}
		if g.Rows == 0 {
			continue
		}
		request := datafile.ReadRequest{Fields: r.fields, Ranges: []datafile.RowRange{{Start: g.FirstRow, End: g.FirstRow + g.Rows}}}
		if err := r.file.Each(ctx, request, r.batch); err != nil {
			return err
		}
		for _, col := range r.columns {
			if col != nil {
				col.end()
			}
		}
	}
	return nil
}

// batch takes the next rows.
func (r *fileReader) batch(first int64, batch arrow.RecordBatch) error {
	for i, col := range r.columns {
		values := batch.Column(i)
		if err := r.nulls(first, r.fields[i], values); err != nil {
			return err
		}
		if col != nil {
			col.add(first, values)
		}
	}
	if r.indexer == nil {
		return nil
	}
	keys := make([]arrow.Array, len(r.keys))
	fields := make([]arrow.Field, len(r.keys))
	for i, at := range r.keys {
		keys[i], fields[i] = batch.Column(at), r.fields[at]
	}
	own := array.NewRecordBatch(arrow.NewSchema(fields, nil), keys, batch.NumRows())
	defer own.Release()
	if err := r.indexer.Add(own); err != nil {
		r.indexer = nil // told once; what follows from the keys cannot be told
		return r.error(BadFile, "its key columns, from row %d on: %v", first, err)
	}
	return nil
}

// nulls looks for a null where the table has none.
func (r *fileReader) nulls(first int64, field arrow.Field, values arrow.Array) error {
	if field.Nullable || values.NullN() == 0 {
		return nil
	}
	for i := range values.Len() {
		if values.IsNull(i) {
			f := r.finding(Error, BadFile, "there is a null in a column without nulls")
			row := first + int64(i)
			f.Column, f.Row = field.Name, &row
			return r.add(f)
		}
	}
	return nil
}

// statistics compares what was read of the columns with what the footer and the
// log say.
func (r *fileReader) statistics() error {
	var nan []string
	hasNaNs := r.own() && json.Unmarshal([]byte(r.info.Add.Tags[tabledef.TagNaN]), &nan) == nil
	for _, col := range r.columns {
		if col == nil {
			continue
		}
		wrong, severity := col.wrong, Error
		bounds, stated := r.snap.Statistics(r.info, col.field.Name)
		if wrong == "" && stated {
			if why := contradicts(bounds, col.all); why != "" {
				wrong = "the statistics in the log: " + why
			}
		}
		if wrong == "" && hasNaNs && col.all.nan && !slices.Contains(nan, col.field.Name) {
			wrong = "the log does not say that there is a NaN"
		}
		if wrong == "" && stated && r.own() && col.all.min != nil && (loose(bounds.Min, col.all.min) || loose(bounds.Max, col.all.max)) {
			wrong, severity = fmt.Sprintf("the bounds in the log are wider than the values, which go from %s to %s", shown(col.all.min), shown(col.all.max)), Warning
		}
		if wrong == "" {
			continue
		}
		f := r.finding(severity, BadStatistics, "%s", wrong)
		f.Column = col.field.Name
		if err := r.add(f); err != nil {
			return err
		}
	}
	return nil
}
