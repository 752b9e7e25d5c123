package predicate

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Condition is one condition of a request's filter: column, operator, value.
type Condition struct {
	Column, Op string
	// Value is JSON: one value, a list for "in", nil for "is null" and "is not
	// null".
	Value json.RawMessage
}

// The operators of conditions.
const (
	opEqual     = "="
	opNotEqual  = "!="
	opLess      = "<"
	opAtMost    = "<="
	opGreater   = ">"
	opAtLeast   = ">="
	opIn        = "in"
	opIsNull    = "is null"
	opIsNotNull = "is not null"
)

// Filter is a list of conditions that must all hold. It is immutable and safe
// for concurrent use. A nil *Filter holds for every row.
type Filter struct {
	tests []test
}

// test is a condition on one column. A comparison is the set of values that
// satisfy it, so that "≠" and "in" are no special cases; which of the sets is
// meant depends on the order of the column's values.
type test struct {
	column string
	op     string // opIsNull, opIsNotNull, or any comparison
	order  order
	scale  int32 // of decimals

	ints     []intRange
	decimals []decimalRange
	wide     []bigRange // orderDecimalText
	bytes    []bytesRange
}

// order says what the values of a column are compared as.
type order uint8

const (
	orderInteger     order = iota // 64-bit integers, also times, dates and booleans
	orderFloat                    // by floatKey
	orderDecimal                  // unscaled 128-bit integers
	orderDecimalText              // decimals stored as their text
	orderBytes
)

// ParseFilter reads the conditions of a request over the declared columns of a
// table. INVALID, naming "filter[i][j]", for an unknown or nested column, an
// unknown operator, and a value that is null or of another kind than the
// column's. A value beyond what the column can hold is no error: it compares
// beyond every stored one.
func ParseFilter(conditions []Condition, stored *arrow.Schema) (*Filter, error) {
	if len(conditions) == 0 {
		return nil, nil
	}
	f := &Filter{tests: make([]test, len(conditions))}
	for i, c := range conditions {
		if err := f.tests[i].parse(fmt.Sprintf("filter[%d]", i), c, stored); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (t *test) parse(field string, c Condition, stored *arrow.Schema) error {
	found := stored.FieldIndices(c.Column)
	if len(found) == 0 {
		return tableerr.InvalidField(field+"[0]", "column %q is not in the table", c.Column).WithValue(c.Column)
	}
	declared := flatType(stored.Field(found[0]).Type)
	t.column = c.Column
	if !t.setOrder(declared) {
		return tableerr.InvalidField(field+"[0]", "column %q of type %s is nested: a filter names flat columns", c.Column, tabledef.TypeName(declared)).WithValue(c.Column)
	}
	t.op = c.Op
	if c.Op == "==" {
		t.op = opEqual
	}
	switch t.op {
	case opIsNull, opIsNotNull:
		if c.Value != nil {
			return tableerr.InvalidField(field+"[2]", "%q takes no value", c.Op)
		}
		return nil
	case opEqual, opNotEqual, opLess, opAtMost, opGreater, opAtLeast, opIn:
	default:
		return tableerr.InvalidField(field+"[1]", "%q is no operator; they are = != < <= > >= in, is null, is not null", shorten(json.RawMessage(c.Op))).WithValue(c.Op)
	}
	if c.Value == nil {
		return tableerr.InvalidField(field, "%q needs a value", c.Op)
	}
	return t.setValues(field+"[2]", c, declared)
}

// setValues reads the value, or the list of values, of a comparison.
func (t *test) setValues(field string, c Condition, declared arrow.DataType) error {
	if t.op != opIn {
		l, err := parseLiteral(field, c.Value, declared)
		if err != nil {
			return err
		}
		t.add(t.op, l)
		t.normalise()
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(c.Value, &list); err != nil || list == nil {
		return notA(field, c.Value, "a list of values")
	}
	for i, raw := range list {
		l, err := parseLiteral(field+"["+strconv.Itoa(i)+"]", raw, declared)
		if err != nil {
			return err
		}
		t.add(opEqual, l)
	}
	t.normalise()
	return nil
}

// flatType looks through dictionaries and extension types, which are compared
// as what they stand for.
func flatType(t arrow.DataType) arrow.DataType {
	for {
		switch typed := t.(type) {
		case *arrow.DictionaryType:
			t = typed.ValueType
		case arrow.ExtensionType:
			t = typed.StorageType()
		default:
			return t
		}
	}
}

// setOrder chooses how values are compared by how they are stored; false for a
// nested column.
func (t *test) setOrder(declared arrow.DataType) bool {
	stored := tabledef.StorageType(declared)
	if stored == nil {
		return false
	}
	switch s := stored.(type) {
	case *arrow.Float32Type, *arrow.Float64Type:
		t.order = orderFloat
	case *arrow.Decimal128Type:
		t.order, t.scale = orderDecimal, s.Scale
	case *arrow.StringType, *arrow.BinaryType:
		t.order = orderBytes
		if d, ok := declared.(arrow.DecimalType); ok {
			t.order, t.scale = orderDecimalText, d.GetScale()
		}
	case *arrow.BooleanType, *arrow.Date32Type, *arrow.TimestampType, *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type:
		t.order = orderInteger
	default:
		return false
	}
	return true
}

// Columns returns the columns the filter looks at, each once.
func (f *Filter) Columns() []string {
	if f == nil {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for i := range f.tests {
		if name := f.tests[i].column; !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// String says the filter in words, for messages and tests.
func (f *Filter) String() string {
	if f == nil {
		return ""
	}
	parts := make([]string, len(f.tests))
	for i, t := range f.tests {
		parts[i] = t.column + " " + t.op
	}
	return strings.Join(parts, ", ")
}
