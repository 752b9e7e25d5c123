package entitykey

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Keys are the keys of a batch's rows in one piece of memory.
type Keys struct {
	data []byte
	ends []int
}

// Len returns the number of keys.
func (k Keys) Len() int { return len(k.ends) }

// Key returns a row's key as a part of the batch's memory.
func (k Keys) Key(row int) []byte {
	start := 0
	if row > 0 {
		start = k.ends[row-1]
	}
	return k.data[start:k.ends[row]]
}

// Encoder makes the keys of rows, a batch at a time. It is for use by one
// goroutine.
type Encoder struct {
	layout *Layout
	keys   Keys
	ints   [][]uint64
}

// NewEncoder returns an encoder.
func NewEncoder(l *Layout) *Encoder {
	return &Encoder{layout: l, ints: make([][]uint64, l.Len())}
}

// Encode returns the keys of the first rows of the entity columns, given in
// declared order with their declared types, their storage types or as
// dictionaries of strings. The columns are borrowed and must be valid arrays;
// the keys stay valid until the next call. A null is *NullError.
func (e *Encoder) Encode(cols []arrow.Array, rows int) (Keys, error) {
	if err := e.layout.checkColumns(cols, rows); err != nil {
		return Keys{}, err
	}
	for i, col := range cols {
		if e.layout.kinds[i] == kindString {
			if err := e.checkStrings(i, col); err != nil {
				return Keys{}, err
			}
			continue
		}
		var err error
		if e.ints[i], err = e.layout.integers(e.ints[i][:0], i, col, rows); err != nil {
			return Keys{}, err
		}
	}
	e.keys.data, e.keys.ends = e.keys.data[:0], e.keys.ends[:0]
	for row := range rows {
		for i, col := range cols {
			if err := e.append(i, col, row); err != nil {
				return Keys{}, err
			}
		}
		e.keys.ends = append(e.keys.ends, len(e.keys.data))
	}
	return e.keys, nil
}

func (e *Encoder) checkStrings(column int, col arrow.Array) error {
	if d, ok := col.(*array.Dictionary); ok {
		_, err := e.layout.dictionary(column, d)
		return err
	}
	if !isStrings(col) {
		return e.layout.typeError(column, col)
	}
	return nil
}

// append adds one column's value of a row to the key that is being built.
func (e *Encoder) append(column int, col arrow.Array, row int) error {
	switch e.layout.kinds[column] {
	case kindInt32:
		e.keys.data = binary.BigEndian.AppendUint32(e.keys.data, uint32(e.ints[column][row]))
		return nil
	case kindInt64, kindUint64:
		e.keys.data = binary.BigEndian.AppendUint64(e.keys.data, e.ints[column][row])
		return nil
	}
	switch a := col.(type) {
	case *array.String:
		e.keys.data = appendString(e.keys.data, a.Value(row))
	case *array.Dictionary:
		values, err := e.layout.dictionary(column, a)
		if err != nil {
			return err
		}
		i, err := e.layout.dictionaryValue(column, a, values, row)
		if err != nil {
			return err
		}
		e.keys.data = appendString(e.keys.data, values.Value(i))
	case stringArray:
		e.keys.data = appendString(e.keys.data, a.Value(row))
	default:
		return fmt.Errorf("entity column %d is of no known type", column)
	}
	return nil
}
