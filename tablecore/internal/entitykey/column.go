package entitykey

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// NullError reports a null in an entity column.
type NullError struct {
	Column string
	Row    int // in the batch
}

func (e *NullError) Error() string {
	return fmt.Sprintf("entity column %q is null in row %d", e.Column, e.Row)
}

// stringArray is what string, large_string and string_view arrays share.
type stringArray interface {
	arrow.Array
	Value(i int) string
}

// checkColumns refuses columns that a layout's rows cannot be made of.
func (l *Layout) checkColumns(cols []arrow.Array, rows int) error {
	if len(cols) != len(l.kinds) {
		return fmt.Errorf("there are %d columns for %d entity columns", len(cols), len(l.kinds))
	}
	for i, col := range cols {
		if col.Len() < rows {
			return fmt.Errorf("entity column %q has %d rows, not %d", l.names[i], col.Len(), rows)
		}
		if err := l.checkNulls(i, col, rows); err != nil {
			return err
		}
	}
	return nil
}

func (l *Layout) checkNulls(i int, col arrow.Array, rows int) error {
	if col.NullN() == 0 {
		return nil
	}
	for row := range rows {
		if col.IsNull(row) {
			return &NullError{Column: l.names[i], Row: row}
		}
	}
	return nil
}

func (l *Layout) typeError(column int, arr arrow.Array) error {
	return fmt.Errorf("entity column %q cannot be read from %s", l.names[column], arr.DataType())
}

// integers appends the values of an integer column as the uint64 whose order
// is theirs: signed ones with their sign bit flipped. A uint64 may come as the
// decimal it is stored as.
func (l *Layout) integers(dst []uint64, column int, arr arrow.Array, rows int) ([]uint64, error) {
	switch a := arr.(type) {
	case *array.Int32:
		if l.kinds[column] == kindInt32 {
			for _, v := range a.Values()[:rows] {
				dst = append(dst, uint64(uint32(v)^1<<31))
			}
			return dst, nil
		}
	case *array.Int64:
		if l.kinds[column] == kindInt64 {
			for _, v := range a.Values()[:rows] {
				dst = append(dst, uint64(v)^1<<63)
			}
			return dst, nil
		}
	case *array.Uint64:
		if l.kinds[column] == kindUint64 {
			return append(dst, a.Values()[:rows]...), nil
		}
	case *array.Decimal128:
		if l.kinds[column] == kindUint64 {
			for i, v := range a.Values()[:rows] {
				if v.HighBits() != 0 {
					return nil, fmt.Errorf("entity column %q holds no unsigned integer of 64 bits in row %d", l.names[column], i)
				}
				dst = append(dst, v.LowBits())
			}
			return dst, nil
		}
	}
	return nil, l.typeError(column, arr)
}

// dictionary returns the values of a dictionary of strings.
func (l *Layout) dictionary(column int, arr *array.Dictionary) (stringArray, error) {
	if values, ok := arr.Dictionary().(stringArray); ok && l.kinds[column] == kindString && isStrings(values) {
		return values, nil
	}
	return nil, l.typeError(column, arr)
}

// isStrings tells strings from the other arrays whose values are Go strings.
func isStrings(arr arrow.Array) bool {
	switch arr.DataType().ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return true
	default:
		return false
	}
}

// dictionaryValue returns the place in the dictionary of a row's value.
func (l *Layout) dictionaryValue(column int, arr *array.Dictionary, values arrow.Array, row int) (int, error) {
	i := arr.GetValueIndex(row)
	if i < 0 || i >= values.Len() {
		return 0, fmt.Errorf("entity column %q has a dictionary index out of range in row %d", l.names[column], row)
	}
	if values.IsNull(i) {
		return 0, &NullError{Column: l.names[column], Row: row}
	}
	return i, nil
}
