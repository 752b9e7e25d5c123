package tabletest

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// Model is what a table is by the rules of table-semantics.md, kept in memory
// and written to be obviously right, not fast: every question is answered by
// going through all rows. It belongs to one goroutine.
//
// A Model holds all versions. Questions name the version they are asked of, so
// one Model can judge answers that were given at different times.
type Model struct {
	// Index and Entities are the key columns.
	Index    string
	Entities []string
	// Width is the granularity in ticks of the index column, 0 for none.
	Width uint64
	// Reject says that two rows in one interval of an entity are refused.
	Reject bool
	// Overwrite says that a row takes the place of those in its entity's
	// interval, later ones of the same append and committed ones.
	Overwrite bool
	// Timestamps says that intervals are told as times; the index column then
	// counts microseconds.
	Timestamps bool

	schema  *arrow.Schema // the newest, nil before there is one
	schemas []modelSchema // all, by version
	team    []modelTeam   // all values of the one property, by version
	version int64
	rows    []modelRow
	known   map[string]modelRequest // by request id
}

// modelSchema is a schema with the version from which on the table has it.
type modelSchema struct {
	version int64
	schema  *arrow.Schema
	grown   bool // columns were added
}

// modelTeam is a value of the property "team", "" where it is not set.
type modelTeam struct {
	version int64
	value   string
}

// modelRequest is what is remembered of an append with a request id.
type modelRequest struct {
	version int64
	rows    string
}

// modelRow is a committed row, its values in the order of the schema.
type modelRow struct {
	Row
	version  int64
	gone     int64    // the version that took it away, 0 for none
	interval *big.Int // nil without a granularity
}

// SetSchema gives a new model its columns; without it the first append's
// schema is adopted.
func (m *Model) SetSchema(s *arrow.Schema) { m.define(0, m.declared(s), false) }

// define gives the table a schema from a version on.
func (m *Model) define(version int64, s *arrow.Schema, grown bool) {
	m.schema = s
	m.schemas = append(m.schemas, modelSchema{version, s, grown})
}

// Version is the newest version.
func (m *Model) Version() int64 { return m.version }

// Schema returns the columns at a version, nil before they were adopted.
func (m *Model) Schema(version int64) *arrow.Schema { return m.schemaAt(version).schema }

func (m *Model) schemaAt(version int64) modelSchema {
	for _, s := range slices.Backward(m.schemas) {
		if s.version <= version {
			return s
		}
	}
	return modelSchema{}
}

// Team returns the property "team" at a version, "" where it is not set.
func (m *Model) Team(version int64) string {
	for _, t := range slices.Backward(m.team) {
		if t.version <= version {
			return t.value
		}
	}
	return ""
}

// SetTeam makes a change of the property "team" the next version.
func (m *Model) SetTeam(value string) {
	m.version++
	m.team = append(m.team, modelTeam{m.version, value})
}

// Keep makes the rows as they are the next version's, too.
func (m *Model) Keep() { m.version++ }

// MayAdd says whether a table takes another column of a name at a version.
func (m *Model) MayAdd(name string, version int64) bool {
	s := m.Schema(version)
	return s != nil && !s.HasField(name)
}

// AddColumn makes a further column the next version. The rows there are have a
// null in it.
func (m *Model) AddColumn(f arrow.Field) {
	m.version++
	m.define(m.version, arrow.NewSchema(append(slices.Clone(m.schema.Fields()), f), nil), true)
	for i := range m.rows {
		m.rows[i].Row = append(slices.Clip(m.rows[i].Row), nil)
	}
}

// declared is a schema as a table keeps it: keys are never null.
func (m *Model) declared(s *arrow.Schema) *arrow.Schema {
	fields := slices.Clone(s.Fields())
	for i := range fields {
		if m.isKey(fields[i].Name) {
			fields[i].Nullable = false
		}
	}
	return arrow.NewSchema(fields, nil)
}

func (m *Model) isKey(name string) bool { return name == m.Index || slices.Contains(m.Entities, name) }

// Verdict is what a model says of an operation: a token, or success.
type Verdict struct {
	Token tableerr.Token
	// Broken says that the stream's own error comes back.
	Broken bool
	// Replays is the version of the append that this one repeats; 0 for a new
	// one.
	Replays int64
	// Detail is the text of what the error's fields say, as DetailOf gives it
	// for a real one.
	Detail string
}

func (v Verdict) String() string {
	switch {
	case v.Broken:
		return "the stream's error"
	case v.Replays > 0:
		return fmt.Sprintf("the report of version %d", v.Replays)
	case v.Token == "":
		return "success"
	}
	return fmt.Sprintf("%s %s", v.Token, v.Detail)
}

// DetailOf renders the fields of an error that a model can know.
func DetailOf(err error) string {
	var (
		conflict  *tableerr.VersionConflict
		duplicate *tableerr.DuplicateInterval
		overlap   *tableerr.IntervalOverlap
		null      *tableerr.NullKey
		mismatch  *tableerr.SchemaMismatch
	)
	switch {
	case errors.As(err, &conflict):
		return fmt.Sprintf("expected %d found %d", conflict.Expected, conflict.Found)
	case errors.As(err, &duplicate):
		return fmt.Sprintf("%s %s rows %d", valuesText(duplicate.Entity), duplicate.Interval, duplicate.Rows)
	case errors.As(err, &overlap):
		return fmt.Sprintf("%d, %s %s version %d", overlap.ConflictCount, valuesText(overlap.Entity), overlap.Interval, overlap.Version)
	case errors.As(err, &null):
		return fmt.Sprintf("column %s row %d", null.Column, null.Row)
	case errors.As(err, &mismatch):
		text := "column " + mismatch.Column
		if mismatch.Row != nil {
			text += fmt.Sprintf(" row %d", *mismatch.Row)
		}
		return text
	}
	return ""
}

func valuesText(values tableerr.Values) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprintf("%s=%v", v.Name, v.Value)
	}
	return "{" + strings.Join(texts, " ") + "}"
}

func (m *Model) indexOf(row modelRow, schema *arrow.Schema) *big.Int {
	return integer(row.Row[schema.FieldIndices(m.Index)[0]])
}

func integer(v any) *big.Int {
	if u, ok := v.(uint64); ok {
		return new(big.Int).SetUint64(u)
	}
	return big.NewInt(v.(int64))
}

// intervalOf is ⌊value / width⌋.
func (m *Model) intervalOf(value *big.Int) *big.Int {
	if m.Width == 0 {
		return nil
	}
	// Div is Euclidean, which for a positive divisor rounds down.
	return new(big.Int).Div(value, new(big.Int).SetUint64(m.Width))
}

func (m *Model) intervalText(id *big.Int) string {
	width := new(big.Int).SetUint64(m.Width)
	start := new(big.Int).Mul(id, width)
	end := new(big.Int).Add(start, width)
	if !m.Timestamps {
		return fmt.Sprintf("[%s, %s)", start, end)
	}
	text := func(us *big.Int) string { return time.UnixMicro(us.Int64()).UTC().Format(time.RFC3339Nano) }
	return fmt.Sprintf("[%s, %s)", text(start), text(end))
}

// compareEntities orders rows by their entity columns, in declared order.
func (m *Model) compareEntities(schema *arrow.Schema, a, b Row) int {
	for _, name := range m.Entities {
		i := schema.FieldIndices(name)[0]
		if c := compareCells(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func compareCells(a, b any) int {
	if s, ok := a.(string); ok {
		return strings.Compare(s, b.(string))
	}
	return integer(a).Cmp(integer(b))
}

// sorted orders rows by entity and index; equal ones keep their order.
func (m *Model) sorted(rows []modelRow, schema *arrow.Schema) []modelRow {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b modelRow) int {
		return cmp.Or(m.compareEntities(schema, a.Row, b.Row), m.indexOf(a, schema).Cmp(m.indexOf(b, schema)))
	})
	return rows
}

func (m *Model) entityText(schema *arrow.Schema, row Row) string {
	var values tableerr.Values
	for _, name := range m.Entities {
		values = append(values, tableerr.NamedValue{Name: name, Value: row[schema.FieldIndices(name)[0]]})
	}
	return valuesText(values)
}

// at returns the rows of a version in the order of their commits.
func (m *Model) at(version int64) []modelRow {
	var rows []modelRow
	for _, row := range m.rows {
		if row.version <= version && (row.gone == 0 || row.gone > version) {
			rows = append(rows, row)
		}
	}
	return rows
}
