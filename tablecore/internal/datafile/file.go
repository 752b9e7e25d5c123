package datafile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// File is an open data file. It may be used by several goroutines at once;
// each Rows it returns belongs to one.
type File struct {
	src    Source
	footer *Footer
	path   string
	mem    memory.Allocator
}

// Open joins an open object with its footer. It reads nothing and takes no
// ownership of r, which must stay open while the File is used. path names the
// file in errors; mem is where batches come from, nil means Go's heap. What it
// hands out need not be cleared.
func Open(r Source, footer *Footer, path string, mem memory.Allocator) *File {
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	return &File{src: r, footer: footer, path: path, mem: mem}
}

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return f.src.Size() }

// Rows returns the number of rows in the file.
func (f *File) Rows() int64 { return f.footer.Rows() }

// RowGroups describes the row groups in order. The slice is shared; do not
// change it.
func (f *File) RowGroups() []RowGroup { return f.footer.RowGroups() }

// Meta returns the value of a key in the file's key-value metadata.
func (f *File) Meta(key string) (string, bool) { return f.footer.Meta(key) }

// StorageSchema returns the file's columns with the Arrow types they have in
// Parquet.
func (f *File) StorageSchema() *arrow.Schema { return f.footer.StorageSchema() }

// RowRange is the half-open range [Start, End) of rows counted from the start
// of the file.
type RowRange struct{ Start, End int64 }

// Limits of one batch where ReadRequest sets none.
const (
	DefaultBatchRows  = 64 << 10
	DefaultBatchBytes = 64 << 20
)

// ReadRequest says what to read.
type ReadRequest struct {
	// Fields are the columns wanted, by name, with the storage types wanted. A
	// column that the file does not have is all null, which its field must
	// allow. A column of another type is converted where no value can change.
	Fields []arrow.Field
	// Ranges are the rows wanted: ascending, disjoint, inside the file. Nil
	// means all rows, an empty list none.
	Ranges []RowRange
	// Join lets a batch hold rows of several ranges, one after another. Without
	// it the rows of a batch follow each other in the file too.
	Join bool
	// BatchRows is the most rows a batch may have, 0 means DefaultBatchRows.
	// Batches of long values have fewer, so that they stay near
	// DefaultBatchBytes.
	BatchRows int
}

// Each reads rows and gives their batches, with the number of the first row of
// each, to do, which borrows them. It stops at the first error.
func (f *File) Each(ctx context.Context, req ReadRequest, do func(first int64, batch arrow.RecordBatch) error) error {
	rows, err := f.Read(ctx, req)
	if err != nil {
		return err
	}
	defer rows.Release()
	for {
		batch, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(rows.FirstRow(), batch); err != nil {
			return err
		}
	}
}

// Read starts reading. The pages are read as Next asks for them.
func (f *File) Read(ctx context.Context, req ReadRequest) (*Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if req.BatchRows <= 0 {
		req.BatchRows = DefaultBatchRows
	}
	ranges := req.Ranges
	if ranges == nil {
		ranges = []RowRange{{0, f.Rows()}}
	}
	last := int64(0)
	for _, r := range ranges {
		if r.Start < last || r.End < r.Start || r.End > f.Rows() {
			return nil, fmt.Errorf("rows [%d, %d) cannot be read from %q: ranges must ascend within its %d rows", r.Start, r.End, f.path, f.Rows())
		}
		last = r.End
	}
	return newRows(f, req, slices.Clone(ranges))
}
