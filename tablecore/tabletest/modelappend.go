package tabletest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// ModelAppend is an append as a caller sends it.
type ModelAppend struct {
	Schema   *arrow.Schema // of the stream
	Rows     []Row
	Expected *int64
	// RequestID, when not empty, is remembered with the rows.
	RequestID string
	// BadSettings says that a setting is invalid.
	BadSettings bool
	// Broken says that the stream ends with an error.
	Broken bool
}

// Judge says what an append must answer on top of a version, in the order of
// checks of table-semantics.md.
func (m *Model) Judge(a ModelAppend, version int64) Verdict {
	if a.BadSettings {
		return Verdict{Token: tableerr.TokenInvalid}
	}
	if first, ok := m.known[a.RequestID]; ok && first.version <= version {
		return m.judgeRepetition(a, first, m.schemaAt(version))
	}
	if a.Expected != nil && *a.Expected != version {
		return Verdict{Token: tableerr.TokenVersionConflict, Detail: fmt.Sprintf("expected %d found %d", *a.Expected, version)}
	}
	schema := m.Schema(version)
	if schema == nil {
		if v := m.judgeKeys(a.Schema); v.Token != "" {
			return v
		}
		schema = m.declared(a.Schema)
	}
	if v := m.judgeSchema(a.Schema, schema, m.schemaAt(version).grown); v.Token != "" {
		return v
	}
	if v := m.judgeNulls(a, schema); v.Token != "" {
		return v
	}
	if a.Broken {
		return Verdict{Broken: true}
	}
	rows := m.toRows(a, schema)
	if v := m.judgeDuplicates(rows, schema); v.Token != "" {
		return v
	}
	return m.judgeOverlap(rows, schema, version)
}

// judgeRepetition compares an append with the first one of its request id: its
// columns, and its rows in the order of their arrival.
func (m *Model) judgeRepetition(a ModelAppend, first modelRequest, now modelSchema) Verdict {
	reused := Verdict{Token: tableerr.TokenRequestIDReused}
	switch {
	case m.judgeSchema(a.Schema, now.schema, now.grown).Token != "", m.judgeNulls(a, now.schema).Token != "":
		return reused // columns or rows that the table would not take
	case a.Broken:
		return Verdict{Broken: true}
	case m.rowsText(a) != first.rows:
		return reused
	}
	return Verdict{Replays: first.version}
}

// rowsText renders the rows of a stream with its own columns.
func (m *Model) rowsText(a ModelAppend) string {
	var b strings.Builder
	order := make([]int, a.Schema.NumFields())
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return strings.Compare(a.Schema.Field(x).Name, a.Schema.Field(y).Name) })
	for _, i := range order {
		b.WriteString(a.Schema.Field(i).Name + ",")
	}
	for _, row := range a.Rows {
		b.WriteByte('\n')
		for _, i := range order {
			b.WriteString(cellText(row[i]) + ",")
		}
	}
	return b.String()
}

func mismatch(column string) Verdict {
	return Verdict{Token: tableerr.TokenSchemaMismatch, Detail: "column " + column}
}

// judgeKeys makes sure that a schema that is adopted has the key columns.
func (m *Model) judgeKeys(stream *arrow.Schema) Verdict {
	for _, name := range append([]string{m.Index}, m.Entities...) {
		if !stream.HasField(name) {
			return mismatch(name)
		}
	}
	return Verdict{}
}

// judgeSchema compares columns by name. Of the widenings it knows those of the
// types that rows are built of: int32 to int64, string to large_string and back.
// Once columns were added, nullable ones that are no keys may be missing.
func (m *Model) judgeSchema(stream, table *arrow.Schema, grown bool) Verdict {
	for _, f := range table.Fields() {
		if !stream.HasField(f.Name) && !(grown && f.Nullable && !m.isKey(f.Name)) {
			return mismatch(f.Name)
		}
	}
	for _, f := range stream.Fields() {
		if !table.HasField(f.Name) {
			return mismatch(f.Name)
		}
	}
	for _, f := range stream.Fields() {
		if len(stream.FieldIndices(f.Name)) > 1 {
			return mismatch(f.Name)
		}
	}
	for _, f := range table.Fields() {
		if !stream.HasField(f.Name) {
			continue
		}
		found := stream.Field(stream.FieldIndices(f.Name)[0]).Type
		widens := f.Type.ID() == arrow.INT64 && found.ID() == arrow.INT32 || isText(f.Type) && isText(found)
		if !arrow.TypeEqual(found, f.Type) && !widens {
			return mismatch(f.Name)
		}
	}
	return Verdict{}
}

func isText(t arrow.DataType) bool { return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING }

// judgeNulls finds the first row with a null where none may be: entity columns
// first, then the index, then the others in the table's order.
func (m *Model) judgeNulls(a ModelAppend, schema *arrow.Schema) Verdict {
	order := append(slices.Clone(m.Entities), m.Index)
	for _, f := range schema.Fields() {
		if !f.Nullable && !m.isKey(f.Name) {
			order = append(order, f.Name)
		}
	}
	for i, row := range a.Rows {
		for _, name := range order {
			if row[a.Schema.FieldIndices(name)[0]] != nil {
				continue
			}
			token := tableerr.TokenSchemaMismatch
			if m.isKey(name) {
				token = tableerr.TokenNullKey
			}
			return Verdict{Token: token, Detail: fmt.Sprintf("column %s row %d", name, i)}
		}
	}
	return Verdict{}
}

// toRows brings the rows of a stream into the table's order of columns.
func (m *Model) toRows(a ModelAppend, schema *arrow.Schema) []modelRow {
	var rows []modelRow
	for _, from := range a.Rows {
		row := modelRow{Row: make(Row, schema.NumFields())}
		for i, f := range schema.Fields() {
			if at := a.Schema.FieldIndices(f.Name); len(at) > 0 {
				row.Row[i] = from[at[0]]
			}
		}
		row.interval = m.intervalOf(m.indexOf(row, schema))
		rows = append(rows, row)
	}
	return rows
}

// judgeDuplicates finds the first two rows, by entity and index, that share an
// interval.
func (m *Model) judgeDuplicates(rows []modelRow, schema *arrow.Schema) Verdict {
	if !m.Reject {
		return Verdict{}
	}
	numbers := map[*any]int64{} // a row's values begin at an address of their own
	for i := range rows {
		numbers[&rows[i].Row[0]] = int64(i)
	}
	ordered := m.sorted(rows, schema)
	for i := 1; i < len(ordered); i++ {
		a, b := ordered[i-1], ordered[i]
		if m.compareEntities(schema, a.Row, b.Row) != 0 || a.interval.Cmp(b.interval) != 0 {
			continue
		}
		first, second := numbers[&a.Row[0]], numbers[&b.Row[0]]
		return Verdict{Token: tableerr.TokenDuplicateInterval, Detail: fmt.Sprintf("%s %s rows %d",
			m.entityText(schema, a.Row), m.intervalText(a.interval), []int64{min(first, second), max(first, second)})}
	}
	return Verdict{}
}

// judgeOverlap counts the intervals of an append that hold a committed row.
func (m *Model) judgeOverlap(rows []modelRow, schema *arrow.Schema, version int64) Verdict {
	if !m.Reject {
		return Verdict{}
	}
	committed := m.at(version)
	var hit []modelRow
	for _, row := range m.sorted(rows, schema) {
		if slices.ContainsFunc(committed, func(c modelRow) bool {
			return c.interval.Cmp(row.interval) == 0 && m.compareEntities(schema, c.Row, row.Row) == 0
		}) {
			hit = append(hit, row)
		}
	}
	if len(hit) == 0 {
		return Verdict{}
	}
	return Verdict{Token: tableerr.TokenIntervalOverlap, Detail: fmt.Sprintf("%d, %s %s version %d",
		len(hit), m.entityText(schema, hit[0].Row), m.intervalText(hit[0].interval), version)}
}

// Commit makes an append the next version. It must have been judged well. It
// returns how many of its rows are stored, and how many committed ones go.
func (m *Model) Commit(a ModelAppend) (stored, replaced int) {
	m.version++
	if m.schema == nil {
		m.define(m.version, m.declared(a.Schema), false)
	}
	if a.RequestID != "" {
		if m.known == nil {
			m.known = map[string]modelRequest{}
		}
		m.known[a.RequestID] = modelRequest{m.version, m.rowsText(a)}
	}
	rows := m.toRows(a, m.schema)
	if m.Overwrite {
		rows, replaced = m.overwrite(rows)
	}
	for _, row := range rows {
		row.version = m.version
		m.rows = append(m.rows, row)
	}
	return len(rows), replaced
}

// overwrite takes the committed rows away that new ones replace, and returns the
// new ones without those that a later one replaces.
func (m *Model) overwrite(rows []modelRow) (kept []modelRow, replaced int) {
	same := func(a, b modelRow) bool {
		return a.interval.Cmp(b.interval) == 0 && m.compareEntities(m.schema, a.Row, b.Row) == 0
	}
	for i, row := range rows {
		if !slices.ContainsFunc(rows[i+1:], func(later modelRow) bool { return same(row, later) }) {
			kept = append(kept, row)
		}
	}
	for i, old := range m.rows {
		if old.gone == 0 && slices.ContainsFunc(kept, func(row modelRow) bool { return same(old, row) }) {
			m.rows[i].gone = m.version
			replaced++
		}
	}
	return kept, replaced
}
