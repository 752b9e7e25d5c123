package rowfile

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tabledef"
)

// TextOptions say how CSV and JSON lines are read.
type TextOptions struct {
	// Null is the cell of a CSV file that means null; the empty one by default.
	Null string
	// Comma parts the cells of a CSV file; default ','.
	Comma rune
	// Zone is what a time that says no zone is taken to be in, where its column
	// has one; nil refuses such a time.
	Zone *time.Location
}

const (
	// batchRows and batchBytes end a batch of rows read from text.
	batchRows  = 16 << 10
	batchBytes = 4 << 20
)

// record is one row of a text file. Both kinds of files are read row by row
// into it.
type record interface {
	// next reads the next row; io.EOF at the end.
	next() error
	// appendTo appends the row's value of column i.
	appendTo(i int, b array.Builder) error
	// line is where the row began, bytes how long it was.
	line() int64
	bytes() int
}

// textReader makes batches of the rows of a text file.
type textReader struct {
	schema  *arrow.Schema
	rows    record
	builder *array.RecordBuilder
	batch   arrow.RecordBatch
	err     error // after the batch at hand
}

func newTextReader(schema *arrow.Schema, rows record, mem memory.Allocator) *textReader {
	return &textReader{schema: schema, rows: rows, builder: array.NewRecordBuilder(mem, schema)}
}

func (r *textReader) Schema() *arrow.Schema { return r.schema }

// Next implements Reader.
func (r *textReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	r.release()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	size, n := 0, 0
	for ; r.err == nil && n < batchRows && size < batchBytes; n++ {
		if r.err = r.rows.next(); r.err != nil {
			break
		}
		size += r.rows.bytes()
		for i := range r.schema.Fields() {
			if err := r.rows.appendTo(i, r.builder.Field(i)); err != nil {
				r.err = &Error{Line: r.rows.line(), Column: r.schema.Field(i).Name, Msg: err.Error(), Cause: err}
				return nil, r.err
			}
		}
	}
	if n == 0 || r.err != nil && r.err != io.EOF {
		return nil, r.err
	}
	r.batch = r.builder.NewRecordBatch()
	return r.batch, nil
}

func (r *textReader) release() {
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
}

// Close implements Reader.
func (r *textReader) Close() error {
	r.release()
	r.builder.Release()
	return nil
}

// columnsOf returns the columns of a table that a text file with these names
// has, in the file's order.
func columnsOf(table *arrow.Schema, names []string) (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(names))
	seen := map[string]bool{}
	for i, name := range names {
		at := table.FieldIndices(name)
		if len(at) != 1 {
			return nil, &Error{Line: 1, Column: name, Msg: "the table has no such column; it has " + fieldNames(table)}
		}
		if seen[name] {
			return nil, &Error{Line: 1, Column: name, Msg: "the file names it twice"}
		}
		seen[name] = true
		fields[i] = plainField(table.Field(at[0]))
	}
	return arrow.NewSchema(fields, nil), nil
}

// plainField is a field as text files give it: of the storage type where the
// table's is an extension.
func plainField(f arrow.Field) arrow.Field {
	if t, ok := f.Type.(arrow.ExtensionType); ok {
		f.Type = t.StorageType()
	}
	return arrow.Field{Name: f.Name, Type: f.Type, Nullable: true}
}

// fieldNames lists the columns of a schema with their types.
func fieldNames(schema *arrow.Schema) string {
	names := make([]string, schema.NumFields())
	for i, f := range schema.Fields() {
		names[i] = fmt.Sprintf("%s (%s)", f.Name, tabledef.TypeName(f.Type))
	}
	return strings.Join(names, ", ")
}
