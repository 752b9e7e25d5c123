package wire

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"contrail/tablecore/tableerr"
)

// validate checks what the reader leaves to its callers: offsets that lead
// outside, indices beyond a dictionary, columns longer than the batch. Whether
// text is UTF-8 is for the core, which names the row.
func validate(batch arrow.RecordBatch) error {
	for i, column := range batch.Columns() {
		name := batch.ColumnName(i)
		if int64(column.Len()) != batch.NumRows() {
			return tableerr.InvalidColumn(name, "column %q has %d rows in a batch of %d", name, column.Len(), batch.NumRows())
		}
		if err := validateColumn(column); err != nil {
			e := tableerr.InvalidColumn(name, "column %q is malformed: %v", name, err)
			e.Cause = err
			return e
		}
	}
	return nil
}

func validateColumn(column arrow.Array) error {
	switch a := column.(type) {
	case *array.Null: // nothing to check, and arrow-go misses a buffer
		return nil
	case *array.String:
		return validateText(a, a.ValueOffsets)
	case *array.Binary:
		return validateText(a, a.ValueOffsets)
	case *array.LargeString:
		return validateText(a, a.ValueOffsets)
	case *array.LargeBinary:
		return validateText(a, a.ValueOffsets)
	case *array.Dictionary:
		return validateIndices(a)
	case *array.StringView, *array.Struct, array.ListLike:
		// The core looks at all of it anyway, and tells a text that is not UTF-8
		// with its row and path.
		return array.Validate(column)
	default:
		return array.ValidateFull(column)
	}
}

// validateIndices is array.ValidateFull for a dictionary without looking for
// UTF-8.
func validateIndices(a *array.Dictionary) error {
	if err := array.Validate(a); err != nil {
		return err
	}
	if a.Len() == 0 {
		return nil
	}
	values := a.Dictionary()
	for i := range a.Len() {
		if a.IsNull(i) {
			continue
		}
		if at := a.GetValueIndex(i); at < 0 || at >= values.Len() {
			return fmt.Errorf("row %d has value %d of a dictionary of %d", i, at, values.Len())
		}
	}
	return validateColumn(values)
}

// validateText is array.ValidateFull for the most common arrays of variable
// width, without looking at each value for UTF-8, which takes longer than the
// way over the network.
func validateText[T int32 | int64](a arrow.Array, offsets func() []T) error {
	if err := array.Validate(a); err != nil {
		return err
	}
	if a.Len() == 0 {
		return nil
	}
	if bits := a.NullBitmapBytes(); len(bits) > 0 {
		if set := bitutil.CountSetBits(bits, a.Data().Offset(), a.Len()); a.Len()-set != a.NullN() {
			return fmt.Errorf("%d nulls are claimed where there are %d", a.NullN(), a.Len()-set)
		}
	}
	// Neither an offset nor a step between two may be negative. Where a step
	// overflows, one of its offsets is.
	var negative, before T
	for _, offset := range offsets() {
		negative |= offset | (offset - before)
		before = offset
	}
	if negative < 0 {
		return errors.New("its offsets do not ascend")
	}
	return nil
}
