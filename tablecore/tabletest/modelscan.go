package tabletest

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// ModelScan is a scan as a caller asks for it.
type ModelScan struct {
	Columns  []string         // nil = all
	Entities []map[string]any // nil = all; full or partial identities
	// First and Last bound the index, both included; nil is open.
	First, Last *big.Int
	Filter      []ModelCondition // all must hold
	// NewestFirst orders by index descending, then by entity.
	NewestFirst bool
}

// ModelCondition is a condition on a column, with the operators of
// tablecore.Condition. "in" takes any number of values, a comparison one, "is
// null" and "is not null" none.
type ModelCondition struct {
	Column, Op string
	Values     []any
}

// holds evaluates a condition on a value.
func (c ModelCondition) holds(v any) bool {
	switch {
	case c.Op == "is null":
		return v == nil
	case v == nil:
		return false
	case c.Op == "is not null":
		return true
	case c.Op == "in":
		return slices.ContainsFunc(c.Values, func(w any) bool { return compareValues(v, w) == 0 })
	}
	order := compareValues(v, c.Values[0])
	switch c.Op {
	case "=":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default: // ">="
		return order >= 0
	}
}

// compareValues orders payload values: NaN is above everything and equal to
// itself, the zeros are equal, false comes before true.
func compareValues(a, b any) int {
	switch a := a.(type) {
	case float64:
		b := b.(float64)
		if math.IsNaN(a) || math.IsNaN(b) {
			return cmp.Compare(bit(math.IsNaN(a)), bit(math.IsNaN(b)))
		}
		return cmp.Compare(a, b)
	case bool:
		return cmp.Compare(bit(a), bit(b.(bool)))
	}
	return compareCells(a, b)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Scan returns the rows of a scan at a version, in the order of a sorted scan:
// by entity and index, or as NewestFirst says, equal ones in the order of their
// commits and, inside one, of their arrival.
func (m *Model) Scan(q ModelScan, version int64) []Row {
	schema := m.Schema(version)
	if schema == nil {
		return nil
	}
	columns := q.Columns
	if columns == nil {
		for _, f := range schema.Fields() {
			columns = append(columns, f.Name)
		}
	}
	rows := m.sorted(m.at(version), schema)
	if q.NewestFirst {
		slices.SortStableFunc(rows, func(a, b modelRow) int { return m.indexOf(b, schema).Cmp(m.indexOf(a, schema)) })
	}
	var out []Row
	for _, row := range rows {
		index := m.indexOf(row, schema)
		if q.First != nil && index.Cmp(q.First) < 0 || q.Last != nil && index.Cmp(q.Last) > 0 || !m.wanted(q, row, schema) {
			continue
		}
		var cells Row
		for _, name := range columns {
			cells = append(cells, row.Row[schema.FieldIndices(name)[0]])
		}
		out = append(out, cells)
	}
	return out
}

// wanted says whether a row satisfies the filter and its entity agrees with one
// of those asked for.
func (m *Model) wanted(q ModelScan, row modelRow, schema *arrow.Schema) bool {
	for _, c := range q.Filter {
		if !c.holds(row.Row[schema.FieldIndices(c.Column)[0]]) {
			return false
		}
	}
	if q.Entities == nil {
		return true
	}
	return slices.ContainsFunc(q.Entities, func(id map[string]any) bool {
		for name, value := range id {
			if row.Row[schema.FieldIndices(name)[0]] != value {
				return false
			}
		}
		return true
	})
}

// ModelSummary is what describing a table tells of its rows.
type ModelSummary struct {
	Version, Rows, Entities int64
	IndexMin, IndexMax      string // decimal, "" without rows
}

// Summary describes a version.
func (m *Model) Summary(version int64) ModelSummary {
	s := ModelSummary{Version: version}
	rows := m.at(version)
	if s.Rows = int64(len(rows)); s.Rows == 0 {
		return s
	}
	schema := m.Schema(version)
	entities := map[string]bool{}
	var lowest, highest *big.Int
	for _, row := range rows {
		entities[m.entityText(schema, row.Row)] = true
		index := m.indexOf(row, schema)
		if lowest == nil || index.Cmp(lowest) < 0 {
			lowest = index
		}
		if highest == nil || index.Cmp(highest) > 0 {
			highest = index
		}
	}
	s.Entities, s.IndexMin, s.IndexMax = int64(len(entities)), lowest.String(), highest.String()
	return s
}
