package convert

import (
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/tableerr"
)

// firstNull returns the first null among arr's first limit rows, or -1.
func firstNull(arr arrow.Array, limit int) int {
	if nullCount(arr) > 0 {
		for i := range limit {
			if arr.IsNull(i) {
				return i
			}
		}
	}
	return -1
}

// firstBadText returns the first of arr's first limit rows whose text is not
// UTF-8, or -1. What lies under a null does not count.
func firstBadText(arr arrow.Array, limit int) int {
	switch arr.DataType().ID() {
	case arrow.STRING:
		return badText[int32](arr, limit)
	case arrow.LARGE_STRING:
		return badText[int64](arr, limit)
	case arrow.DICTIONARY:
		return badDictionaryText(arr.(*array.Dictionary), limit)
	}
	return -1
}

func badText[O int32 | int64](arr arrow.Array, limit int) int {
	offsets, values := TextParts[O](arr)
	if len(offsets) == 0 || isASCII(values[offsets[0]:offsets[limit]]) {
		return -1
	}
	for i := range limit {
		if !utf8.Valid(values[offsets[i]:offsets[i+1]]) && arr.IsValid(i) {
			return i
		}
	}
	return -1
}

// badDictionaryText looks for rows only where a value of the dictionary is bad.
func badDictionaryText(arr *array.Dictionary, limit int) int {
	if arr.Len() == 0 {
		return -1
	}
	dict := arr.Dictionary()
	if firstBadText(dict, dict.Len()) < 0 {
		return -1
	}
	bad := make([]bool, dict.Len())
	for i := range bad {
		bad[i] = dict.IsValid(i) && !utf8.ValidString(textValue(dict, i))
	}
	for i := range limit {
		if arr.IsValid(i) && bad[arr.GetValueIndex(i)] {
			return i
		}
	}
	return -1
}

// textValue returns a value of a string array with offsets.
func textValue(arr arrow.Array, i int) string {
	if a, ok := arr.(*array.LargeString); ok {
		return a.Value(i)
	}
	return arr.(*array.String).Value(i)
}

func isASCII(b []byte) bool {
	wide := view[uint64](b)
	any := uint64(0)
	for _, w := range wide {
		any |= w
	}
	for _, c := range b[len(wide)*8:] {
		any |= uint64(c)
	}
	return any&0x8080808080808080 == 0
}

// firstOutside returns the first of the first limit values that is valid and
// beyond ±bound, or -1.
func firstOutside(arr arrow.Array, values []int64, bound int64, limit int) int {
	outside := false
	for _, v := range values[:limit] {
		outside = outside || v > bound || v < -bound
	}
	if !outside {
		return -1
	}
	for i, v := range values[:limit] {
		if (v > bound || v < -bound) && arr.IsValid(i) {
			return i
		}
	}
	return -1
}

// firstLostTime returns the first of arr's first limit rows whose time does not
// fit the microseconds in which it is stored, or -1.
func firstLostTime(arr arrow.Array, limit int) int {
	t, ok := arr.DataType().(*arrow.TimestampType)
	if !ok {
		return -1
	}
	_, factor := stored(t)
	if factor == 1 {
		return -1
	}
	return firstOutside(arr, words[int64](arr), math.MaxInt64/factor, limit)
}

// checkRows finds the first offending row of a batch and reports it: a null
// where none may be, text that is not UTF-8, a time out of range. Within one
// row the entity columns come first, then the index, then the others in stored
// order; nulls come before values.
func (a *Aligner) checkRows(columns []arrow.Array, rows int) error {
	limit := rows // rows from here on cannot be the first offender any more
	var found error
	for _, i := range a.nullOrder {
		if columns[i] == nil {
			continue
		}
		if row := firstNull(columns[i], limit); row >= 0 && row < limit {
			limit, found = row, a.nullError(i, int64(row))
		}
	}
	for i, arr := range columns {
		if f := a.seek(seeker{nulls: true}, i, arr, limit, a.columns[i].rules.nulls); f != nil {
			limit, found = f.slot, a.nestedNull(f)
		}
	}
	for i, arr := range columns {
		if arr == nil {
			continue
		}
		name := a.columns[i].field.Name
		if row := firstBadText(arr, limit); row >= 0 && row < limit {
			limit, found = row, tableerr.InvalidValue(name, a.rows+int64(row), nil, "the text is not valid UTF-8")
		}
		if row := firstLostTime(arr, limit); row >= 0 && row < limit {
			limit, found = row, tableerr.InvalidValue(name, a.rows+int64(row), words[int64](arr)[row],
				"the time does not fit a 64-bit number of microseconds")
		}
		if f := a.seek(seeker{}, i, arr, limit, a.columns[i].rules.values && !checkedAbove(arr)); f != nil {
			limit, found = f.slot, tableerr.InvalidValue(f.path, a.rows+int64(f.slot), f.value, f.why)
		}
	}
	return found
}

// checkedAbove says whether checkRows has looked at an array's values without a
// seeker.
func checkedAbove(arr arrow.Array) bool {
	switch arr.DataType().ID() {
	case arrow.STRING, arrow.TIMESTAMP, arrow.DICTIONARY:
		return true
	}
	return false
}

// seek looks for a flaw of a column in the rows before limit.
func (a *Aligner) seek(s seeker, column int, arr arrow.Array, limit int, needed bool) *flaw {
	if arr == nil || !needed || limit == 0 {
		return nil
	}
	f := a.columns[column].field
	return s.find(arr, f.Type, f.Name, limit, nil)
}

// nestedNull reports a null inside a column.
func (a *Aligner) nestedNull(f *flaw) error {
	row := a.rows + int64(f.slot)
	return &tableerr.SchemaMismatch{Column: f.path, Row: &row, Msg: "column " + quote(f.path) + " " + f.why + " in row " + decimal(row)}
}

func (a *Aligner) nullError(column int, row int64) error {
	row += a.rows
	name := a.columns[column].field.Name
	if a.def.IsKey(name) {
		return &tableerr.NullKey{Column: name, Row: row}
	}
	return &tableerr.SchemaMismatch{Column: name, Row: &row, Msg: "column " + quote(name) + " takes no null, but is null in row " + decimal(row)}
}
