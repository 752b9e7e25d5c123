package convert

import (
	"math"
	"sort"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/tabledef"
)

// flaw is the first slot of an array that does not fit its declared type: a
// null where none may be inside it, or a value that cannot be stored.
type flaw struct {
	slot  int
	path  string // of the field
	value any    // nil where there is none to show
	why   string
}

// rules says what there is to check in the values of a declared type.
type rules struct {
	nulls  bool // a field inside takes no null
	values bool // not every value can be stored
}

// rulesOf returns the rules of a declared type.
func rulesOf(t arrow.DataType) rules {
	if d, ok := t.(*arrow.DictionaryType); ok {
		return rulesOf(d.ValueType)
	}
	var r rules
	for _, f := range tabledef.Children(t) {
		inner := rulesOf(f.Type)
		r.nulls = r.nulls || inner.nulls || !f.Nullable
		r.values = r.values || inner.values
	}
	switch t := t.(type) {
	case *arrow.TimestampType:
		_, factor := stored(t)
		r.values = factor != 1
	case *arrow.Date64Type, arrow.DecimalType:
		r.values = true
	}
	r.values = r.values || isText(t) || isBinary(t)
	return r
}

// seeker looks for the first flaw of one kind: nulls, or else values.
type seeker struct{ nulls bool }

// find returns the first flaw among the slots before limit, nil if there is
// none. arr is sound; t is its declared type. Slots that lie under a null of a
// parent are not seen: their bit in seen is false. A nil seen means all.
func (s seeker) find(arr arrow.Array, t arrow.DataType, path string, limit int, seen []bool) *flaw {
	if d, ok := t.(*arrow.DictionaryType); ok {
		t = d.ValueType
	}
	switch a := arr.(type) {
	case *array.Struct:
		return s.findInStruct(a, tabledef.Children(t), path, limit, validIn(a, limit, seen))
	case array.ListLike:
		return s.findInList(a, t, path, limit, validIn(a, limit, seen))
	}
	if s.nulls {
		return nil
	}
	return findValue(arr, path, limit, seen)
}

// validIn combines what is seen with an array's own validity.
func validIn(arr arrow.Array, limit int, seen []bool) []bool {
	if nullCount(arr) == 0 {
		return seen
	}
	both := make([]bool, limit)
	for i := range both {
		both[i] = (seen == nil || seen[i]) && arr.IsValid(i)
	}
	return both
}

// findInStruct looks through the children of a struct, or of a map's entries.
func (s seeker) findInStruct(arr *array.Struct, fields []arrow.Field, path string, limit int, seen []bool) *flaw {
	var found *flaw
	for i, f := range fields {
		child := arr.Field(i)
		if !f.Nullable && s.nulls {
			if at := firstSeenNull(child, limit, seen); at >= 0 {
				limit, found = at, nullFlaw(at, path+"."+f.Name)
			}
		}
		if inner := s.find(child, f.Type, path+"."+f.Name, limit, seen); inner != nil {
			limit, found = inner.slot, inner
		}
	}
	return found
}

func nullFlaw(slot int, path string) *flaw {
	return &flaw{slot: slot, path: path, why: "takes no null, but is null"}
}

func firstSeenNull(arr arrow.Array, limit int, seen []bool) int {
	if nullCount(arr) == 0 {
		return -1
	}
	for i := range limit {
		if arr.IsNull(i) && (seen == nil || seen[i]) {
			return i
		}
	}
	return -1
}

// findInList looks through the elements of the lists that are seen.
func (s seeker) findInList(arr array.ListLike, t arrow.DataType, path string, limit int, seen []bool) *flaw {
	if limit == 0 {
		return nil
	}
	first, _ := arr.ValueOffsets(0)
	_, last := arr.ValueOffsets(limit - 1)
	values := array.NewSlice(arr.ListValues(), first, last)
	defer values.Release()
	inside := elementsSeen(arr, first, int(last-first), limit, seen)
	var found *flaw
	if entries, ok := values.(*array.Struct); ok && t.ID() == arrow.MAP {
		found = s.findInStruct(entries, tabledef.Children(t), path, values.Len(), inside)
	} else {
		f := tabledef.Children(t)[0]
		n := values.Len()
		if !f.Nullable && s.nulls {
			if at := firstSeenNull(values, n, inside); at >= 0 {
				n, found = at, nullFlaw(at, path+"."+f.Name)
			}
		}
		if inner := s.find(values, f.Type, path+"."+f.Name, n, inside); inner != nil {
			found = inner
		}
	}
	if found == nil {
		return nil
	}
	element := first + int64(found.slot)
	found.slot = sort.Search(limit-1, func(i int) bool { _, end := arr.ValueOffsets(i); return end > element })
	return found
}

// elementsSeen says which of n elements from first on belong to lists that are
// seen.
func elementsSeen(arr array.ListLike, first int64, n, limit int, seen []bool) []bool {
	if seen == nil {
		return nil
	}
	inside := make([]bool, n)
	for i := range limit {
		start, end := arr.ValueOffsets(i)
		for k := start; seen[i] && k < end; k++ {
			inside[k-first] = true
		}
	}
	return inside
}

// findValue looks for a value that cannot be stored in a flat array.
func findValue(arr arrow.Array, path string, limit int, seen []bool) *flaw {
	bad, why, show := valueRule(arr, limit)
	if bad == nil {
		return nil
	}
	for i := range limit {
		if (seen == nil || seen[i]) && bad(i) && arr.IsValid(i) {
			f := &flaw{slot: i, path: path, why: why}
			if show != nil {
				f.value = show(i)
			}
			return f
		}
	}
	return nil
}

// valueRule returns a test for the slots that cannot be stored, nil where a
// quick look shows that there is none before limit.
func valueRule(arr arrow.Array, limit int) (bad func(i int) bool, why string, show func(i int) any) {
	switch t := arr.DataType().(type) {
	case *arrow.StringType:
		return badTextRule[int32](arr, limit), "the text is not valid UTF-8", nil
	case *arrow.LargeStringType:
		if bad := tooLongRule(arr, limit); bad != nil {
			return bad, "the text is longer than 2 GiB", nil
		}
		return badTextRule[int64](arr, limit), "the text is not valid UTF-8", nil
	case *arrow.LargeBinaryType:
		return tooLongRule(arr, limit), "the value is longer than 2 GiB", nil
	case *arrow.TimestampType:
		_, factor := stored(t)
		times := words[int64](arr)
		if factor == 1 {
			return nil, "", nil
		}
		most := math.MaxInt64 / factor
		return func(i int) bool { return times[i] > most || times[i] < -most },
			"the time does not fit a 64-bit number of microseconds", func(i int) any { return times[i] }
	case *arrow.Date64Type:
		times := words[int64](arr)
		return func(i int) bool {
			days := times[i] / millisPerDay
			return days*millisPerDay != times[i] || days != int64(int32(days))
		}, "the date is no whole number of days, or has more of them than 32 bits", func(i int) any { return times[i] }
	case arrow.DecimalType:
		return overPrecision(arr), "the decimal has more digits than the precision of its type", func(i int) any { return decimalValue(arr, i) }
	}
	return nil, "", nil
}

func badTextRule[O int32 | int64](arr arrow.Array, limit int) func(i int) bool {
	offsets, values := TextParts[O](arr)
	if len(offsets) == 0 || isASCII(values[offsets[0]:offsets[limit]]) {
		return nil
	}
	return func(i int) bool { return !utf8.Valid(values[offsets[i]:offsets[i+1]]) }
}

// tooLongRule finds values that 32-bit offsets cannot address, nil where all
// together are short enough.
func tooLongRule(arr arrow.Array, limit int) func(i int) bool {
	offsets, _ := TextParts[int64](arr)
	if len(offsets) == 0 || offsets[limit]-offsets[0] <= maxSmallText {
		return nil
	}
	return func(i int) bool { return offsets[i+1]-offsets[i] > maxSmallText }
}
