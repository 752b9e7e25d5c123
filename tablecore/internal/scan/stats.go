package scan

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Stats count what a scan did.
type Stats struct {
	Rows, Bytes                 int64 // of the batches; bytes of their Arrow buffers
	Files, FilesSkipped         int64
	RowGroups, RowGroupsSkipped int64 // of the files that were read
}

// batchBytes is what the rows of a batch weigh in their Arrow buffers; what a
// slice shares with the rest of its parent does not count.
func batchBytes(batch arrow.RecordBatch) int64 {
	total := int64(0)
	for _, c := range batch.Columns() {
		total += arrayBytes(c)
	}
	return total
}

func arrayBytes(a arrow.Array) int64 {
	n := int64(a.Len())
	validity := int64(0)
	if a.NullN() > 0 {
		validity = (n + 7) / 8
	}
	switch a := a.(type) {
	case array.BinaryLike:
		return validity + int64(len(a.ValueBytes())) + (n+1)*4
	case array.ListLike, *array.Struct, *array.Dictionary:
		return int64(a.Data().SizeInBytes())
	}
	if t, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		return validity + (n*int64(t.BitWidth())+7)/8
	}
	return int64(a.Data().SizeInBytes())
}
