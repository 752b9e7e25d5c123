package rowfile

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// CreateOptions say how a file is written.
type CreateOptions struct {
	Format    Format
	Text      TextOptions // Null and Comma
	Allocator memory.Allocator
}

// Create returns a writer of rows of schema to w. Nothing but w's error and a
// type that the format cannot hold make it fail.
func Create(w io.Writer, schema *arrow.Schema, o CreateOptions) (Writer, error) {
	if o.Allocator == nil {
		o.Allocator = memory.NewGoAllocator()
	}
	switch o.Format {
	case CSV:
		return newCSVWriter(w, schema, o.Text)
	case JSONLines:
		return &jsonWriter{w: bufio.NewWriterSize(w, 64<<10)}, nil
	case Arrow:
		return ipc.NewFileWriter(w, ipc.WithSchema(schema), ipc.WithAllocator(o.Allocator))
	case ArrowStream:
		return newStreamWriter(w, schema, o.Allocator)
	case Parquet:
		return newParquetWriter(w, schema, o.Allocator)
	}
	return nil, fmt.Errorf("%q is no format", o.Format)
}

// newStreamWriter returns a stream that has its schema also when no batch
// follows.
func newStreamWriter(w io.Writer, schema *arrow.Schema, mem memory.Allocator) (Writer, error) {
	return ipc.NewWriter(w, ipc.WithSchema(schema), ipc.WithAllocator(mem)), nil
}

// csvWriter writes RFC 4180 with a header. A text that equals the null's is
// quoted, so that readers which look at quotes can tell them apart.
type csvWriter struct {
	w     *bufio.Writer
	null  string
	comma byte
	cell  []byte
}

func newCSVWriter(w io.Writer, schema *arrow.Schema, o TextOptions) (*csvWriter, error) {
	c := &csvWriter{w: bufio.NewWriterSize(w, 64<<10), null: o.Null, comma: ','}
	if o.Comma != 0 {
		c.comma = byte(o.Comma)
	}
	for i, f := range schema.Fields() {
		c.write(i, f.Name)
	}
	return c, c.endLine()
}

func (c *csvWriter) Write(batch arrow.RecordBatch) error {
	for row := range int(batch.NumRows()) {
		for i, column := range batch.Columns() {
			if column.IsNull(row) {
				if i > 0 {
					c.part()
				}
				_, _ = c.w.WriteString(c.null) // a failure sticks until endLine
				continue
			}
			c.cell = AppendCell(c.cell[:0], column, row)
			c.write(i, string(c.cell))
		}
		if err := c.endLine(); err != nil {
			return err
		}
	}
	return nil
}

func (c *csvWriter) part() { _ = c.w.WriteByte(c.comma) }

func (c *csvWriter) write(i int, cell string) {
	if i > 0 {
		c.part()
	}
	if cell == c.null || strings.ContainsAny(cell, "\"\r\n"+string(rune(c.comma))) || strings.HasPrefix(cell, " ") {
		cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
	}
	_, _ = c.w.WriteString(cell)
}

func (c *csvWriter) endLine() error { return c.w.WriteByte('\n') }

func (c *csvWriter) Close() error { return c.w.Flush() }

// jsonWriter writes one object a line.
type jsonWriter struct {
	w    *bufio.Writer
	line []byte
}

func (j *jsonWriter) Write(batch arrow.RecordBatch) error {
	for row := range int(batch.NumRows()) {
		j.line = append(AppendRow(j.line[:0], batch, row), '\n')
		if _, err := j.w.Write(j.line); err != nil {
			return err
		}
	}
	return nil
}

func (j *jsonWriter) Close() error { return j.w.Flush() }

// AppendRow appends a row as a JSON object of column to value.
func AppendRow(dst []byte, batch arrow.RecordBatch, row int) []byte {
	dst = append(dst, '{')
	for i, f := range batch.Schema().Fields() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendQuoted(dst, f.Name), ':')
		dst = AppendJSON(dst, batch.Column(i), row)
	}
	return append(dst, '}')
}

// parquetWriter gathers batches into row groups.
type parquetWriter struct{ *pqarrow.FileWriter }

// rowGroupRows closes a row group; so many rows are held in memory, encoded.
const rowGroupRows = 256 << 10

func newParquetWriter(w io.Writer, schema *arrow.Schema, mem memory.Allocator) (Writer, error) {
	props := parquet.NewWriterProperties(parquet.WithAllocator(mem), parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithMaxRowGroupLength(rowGroupRows))
	out, err := pqarrow.NewFileWriter(schema, keptOpen{w}, props, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema(), pqarrow.WithAllocator(mem)))
	if err != nil {
		return nil, fmt.Errorf("a Parquet file cannot hold these columns: %w", err)
	}
	return parquetWriter{out}, nil
}

// Write implements Writer.
func (p parquetWriter) Write(batch arrow.RecordBatch) error { return p.WriteBuffered(batch) }

// keptOpen keeps the encoder from closing what is the caller's.
type keptOpen struct{ io.Writer }
