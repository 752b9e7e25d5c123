package datafile

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// RowsBytes estimates the bytes that the rows of a batch take, as a Writer does
// to bound its row groups.
func RowsBytes(batch arrow.RecordBatch) int64 {
	total := int64(0)
	for _, column := range batch.Columns() {
		total += rowsBytes(column.Data())
	}
	return total
}

// rowsBytes estimates the bytes that the rows of one array take, values of a
// dictionary left out. Unlike the sum of its buffers it is right for a slice.
func rowsBytes(data arrow.ArrayData) int64 {
	n := int64(data.Len())
	if n == 0 {
		return 0
	}
	total := (n + 7) / 8
	switch typ := data.DataType().(type) {
	case *arrow.DictionaryType:
		return total + n*int64(typ.IndexType.(arrow.FixedWidthDataType).Bytes())
	case *arrow.StringType, *arrow.BinaryType:
		buffers := data.Buffers()
		if buffers[1] == nil {
			return total
		}
		offsets := arrow.Int32Traits.CastFromBytes(buffers[1].Bytes())[data.Offset():]
		return total + 4*n + int64(offsets[n]-offsets[0])
	case arrow.FixedWidthDataType:
		return total + n*int64(typ.BitWidth())/8
	}
	// A nested array: its children may be longer than the slice, which only
	// closes a row group early.
	total += 8 * n
	for _, child := range data.Children() {
		total += rowsBytes(child)
	}
	return total
}
