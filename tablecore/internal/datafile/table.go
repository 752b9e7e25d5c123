package datafile

import (
	"context"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// ReadTable reads a Parquet file of any shape, such as a log checkpoint, batch
// by batch in file order. columns names the top-level columns wanted, nil
// means all; names the file does not have are left out. Batches have the types
// that the file's own schema gives and are valid until each returns.
func ReadTable(ctx context.Context, r Source, path string, columns []string, mem memory.Allocator, each func(arrow.RecordBatch) error) error {
	footer, err := ParseFooter(ctx, r, path)
	if err != nil {
		return err
	}
	var fields []arrow.Field
	for _, f := range footer.StorageSchema().Fields() {
		if columns == nil || slices.Contains(columns, f.Name) {
			fields = append(fields, f)
		}
	}
	rows, err := Open(r, footer, path, mem).Read(ctx, ReadRequest{Fields: fields})
	if err != nil {
		return err
	}
	defer rows.Release()
	for {
		batch, err := rows.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(batch); err != nil {
			return err
		}
	}
}

// WriteTable writes batches of any storable schema, nested columns included,
// as one file with the given key-value metadata and returns its size.
func WriteTable(w io.Writer, schema *arrow.Schema, batches []arrow.RecordBatch, keyValues map[string]string, opts WriteOptions) (int64, error) {
	writer, err := NewWriter(w, schema, opts)
	if err != nil {
		return 0, err
	}
	for _, batch := range batches {
		if err := writer.Write(batch); err != nil {
			return 0, err
		}
	}
	keys := make([]string, 0, len(keyValues))
	for key := range keyValues {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		writer.SetMeta(key, keyValues[key])
	}
	written, err := writer.Close()
	return written.Bytes, err
}
