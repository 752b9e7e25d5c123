package rowfile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// typedReader reads a format that brings its own types, and cuts batches so
// that one fits into a message.
type typedReader struct {
	schema *arrow.Schema
	read   func() (arrow.RecordBatch, error) // owned by the source; io.EOF
	close  func() error

	whole arrow.RecordBatch // retained; pieces of it are given out
	from  int64
	rows  int64 // of a piece
	piece arrow.RecordBatch
}

func (r *typedReader) Schema() *arrow.Schema { return r.schema }

// Next implements Reader.
func (r *typedReader) Next(ctx context.Context) (batch arrow.RecordBatch, err error) {
	defer recovered(&err)
	r.release()
	for r.whole == nil || r.from == r.whole.NumRows() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r.drop()
		next, err := r.read()
		if err != nil {
			return nil, broken(err)
		}
		next.Retain()
		r.whole, r.from = next, 0
		r.rows = max(1, next.NumRows()*batchBytes/max(batchBytes, batchSize(next)))
	}
	to := min(r.from+r.rows, r.whole.NumRows())
	r.piece = r.whole.NewSlice(r.from, to)
	r.from = to
	return r.piece, nil
}

// batchSize is what the buffers of a batch take, in bytes.
func batchSize(batch arrow.RecordBatch) int64 {
	size := int64(0)
	for _, column := range batch.Columns() {
		size += dataSize(column.Data())
	}
	return size
}

func dataSize(data arrow.ArrayData) int64 {
	size := int64(0)
	for _, b := range data.Buffers() {
		if b != nil {
			size += int64(b.Len())
		}
	}
	for _, child := range data.Children() {
		size += dataSize(child)
	}
	return size
}

func (r *typedReader) release() {
	if r.piece != nil {
		r.piece.Release()
		r.piece = nil
	}
}

func (r *typedReader) drop() {
	if r.whole != nil {
		r.whole.Release()
		r.whole = nil
	}
}

// Close implements Reader.
func (r *typedReader) Close() error {
	r.release()
	r.drop()
	return r.close()
}

// broken makes an *Error of what a decoder says. The end stays the end.
func broken(err error) error {
	if err == io.EOF {
		return err
	}
	return &Error{Msg: "the file is damaged: " + err.Error(), Cause: err}
}

// recovered turns a panic into an error: decoders of files that are damaged in
// places they do not check run into them.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = &Error{Msg: fmt.Sprintf("the file is damaged: %v", r)}
	}
}

func openArrowStream(r io.Reader, mem memory.Allocator) (_ Reader, err error) {
	defer recovered(&err)
	if r, err = checkedStream(r); err != nil {
		return nil, &Error{Msg: "this is no Arrow IPC stream: " + err.Error(), Cause: err}
	}
	read := &tail{Reader: r}
	in, err := ipc.NewReader(read, ipc.WithAllocator(mem))
	if err != nil {
		return nil, &Error{Msg: "this is no Arrow IPC stream: " + err.Error(), Cause: err}
	}
	next := func() (arrow.RecordBatch, error) {
		if in.Next() {
			return in.RecordBatch(), nil
		}
		if err := in.Err(); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if string(read.last[:]) != endOfStream {
			return nil, errors.New("it ends without the mark of a whole Arrow stream")
		}
		return nil, io.EOF
	}
	return &typedReader{schema: in.Schema(), read: next, close: func() error { in.Release(); return nil }}, nil
}

// endOfStream ends an Arrow IPC stream. A reader also takes the end of the file
// for the end, and so the first part of a stream that broke off for a whole one.
const endOfStream = "\xff\xff\xff\xff\x00\x00\x00\x00"

// tail remembers the last bytes that were read.
type tail struct {
	io.Reader
	last [len(endOfStream)]byte
}

func (t *tail) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if fresh := p[:n]; n >= len(t.last) {
		copy(t.last[:], fresh[n-len(t.last):])
	} else {
		copy(t.last[:], t.last[n:])
		copy(t.last[len(t.last)-n:], fresh)
	}
	return n, err
}

func openArrowFile(r Source, mem memory.Allocator) (_ Reader, err error) {
	defer recovered(&err)
	if err := checkFooter(r); err != nil {
		return nil, &Error{Msg: "this is no whole Arrow IPC file: " + err.Error(), Cause: err}
	}
	in, err := ipc.NewFileReader(r, ipc.WithAllocator(mem))
	if err != nil {
		return nil, &Error{Msg: "this is no whole Arrow IPC file: " + err.Error(), Cause: err}
	}
	next := 0
	read := func() (arrow.RecordBatch, error) {
		if next == in.NumRecords() {
			return nil, io.EOF
		}
		next++
		return in.RecordBatch(next - 1)
	}
	return &typedReader{schema: in.Schema(), read: read, close: in.Close}, nil
}

func openParquet(r Source, mem memory.Allocator) (_ Reader, err error) {
	defer recovered(&err)
	in, err := file.NewParquetReader(unclosed{r}, file.WithReadProps(parquet.NewReaderProperties(mem)))
	if err != nil {
		return nil, &Error{Msg: "this is no whole Parquet file: " + err.Error(), Cause: err}
	}
	rows, err := pqarrow.NewFileReader(in, pqarrow.ArrowReadProperties{BatchSize: batchRows}, mem)
	if err != nil {
		return nil, errors.Join(broken(err), in.Close())
	}
	batches, err := rows.GetRecordReader(context.Background(), nil, nil)
	if err != nil { // of types that the decoder does not know, or of a damaged schema
		return nil, errors.Join(&Error{Msg: "columns of the file cannot be read: " + err.Error(), Cause: err}, in.Close())
	}
	count := int64(0)
	read := func() (arrow.RecordBatch, error) {
		batch, err := batches.Read()
		if err != nil {
			if err == io.EOF && count != in.NumRows() {
				return nil, fmt.Errorf("it holds %d rows where its footer says %d", count, in.NumRows())
			}
			return nil, err
		}
		count += batch.NumRows()
		return batch, nil
	}
	return &typedReader{schema: batches.Schema(), read: read, close: func() error { batches.Release(); return in.Close() }}, nil
}

// unclosed keeps a decoder from closing what is the caller's.
type unclosed struct{ Source }
