package descriptors

import (
	"bytes"
	"encoding/json"
	"slices"
)

// The operators of a filter's conditions.
const (
	opIn        = "in"
	opIsNull    = "is null"
	opIsNotNull = "is not null"
)

var operators = []string{"=", "==", "!=", "<", "<=", ">", ">=", opIn, opIsNull, opIsNotNull}

// readFilter reads a list of conditions. What their values mean depends on the
// columns' types; that each is one value, and none is null, shows here.
func readFilter(s *Scan, v value) *fault {
	if v[0] != '[' {
		return v.wrongKind("a list of conditions")
	}
	s.Filter = []Condition{}
	for i, e := range v.elements() {
		c, f := e.condition()
		if f != nil {
			return f.inIndex(i)
		}
		s.Filter = append(s.Filter, c)
	}
	return nil
}

// condition reads [column, op] or [column, op, value].
func (v value) condition() (c Condition, f *fault) {
	if v[0] != '[' {
		return c, v.wrongKind("a condition such as [column, op, value]")
	}
	n := 0
	for i, e := range v.elements() {
		n++
		switch i {
		case 0:
			c.Column, f = e.text()
		case 1:
			c.Op, f = e.operator()
		case 2:
			c.Value, f = e.operand(c.Op)
		default:
			f = faultf("is one element too many")
		}
		if f != nil {
			return c, f.inIndex(i)
		}
	}
	alone := c.Op == opIsNull || c.Op == opIsNotNull
	if n < 2 || n == 2 && !alone {
		return c, faultf("has %d elements where a column, an operator and a value are due", n)
	}
	return c, nil
}

func (v value) operator() (string, *fault) {
	op, f := v.text()
	switch {
	case f != nil:
		return "", f
	case op == "==":
		return "=", nil
	case !slices.Contains(operators, op):
		return "", faultf("is %q, which is no operator; they are = != < <= > >= in, is null, is not null", cutRunes(op, maxPathKeyBytes))
	}
	return op, nil
}

func (v value) operand(op string) (json.RawMessage, *fault) {
	switch op {
	case opIsNull, opIsNotNull:
		return nil, faultf("has no place behind %q", op)
	case opIn:
	default:
		return v.scalar()
	}
	if v[0] != '[' {
		return nil, v.wrongKind("a list of values")
	}
	for i, e := range v.elements() {
		if _, f := e.scalar(); f != nil {
			return nil, f.inIndex(i)
		}
	}
	var list bytes.Buffer
	if err := json.Compact(&list, v); err != nil { // equal scans shall be equal
		return nil, faultf("is no list")
	}
	return list.Bytes(), nil
}

func (w *objectWriter) conditions(name string, list []Condition) {
	if list == nil {
		return
	}
	w.key(name)
	w.buf = append(w.buf, '[')
	for i, c := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = append(appendString(append(w.buf, '['), c.Column), ',')
		w.buf = appendString(w.buf, c.Op)
		if c.Value != nil {
			w.buf = append(w.buf, ',')
			w.compact(name, c.Value)
		}
		w.buf = append(w.buf, ']')
	}
	w.buf = append(w.buf, ']')
}
