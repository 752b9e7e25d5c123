package tabletest

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// ModelUpdate is an update of one column as a caller sends it. No row has a null
// in a key column.
type ModelUpdate struct {
	Schema   *arrow.Schema // the key columns and Column
	Rows     []Row
	Column   string
	Expected int64
}

// JudgeUpdate says what an update must answer on top of a version of a table in
// which no two rows have the same key, in the order of checks of
// table-semantics.md.
func (m *Model) JudgeUpdate(u ModelUpdate, version int64) Verdict {
	if u.Expected != version {
		return Verdict{Token: tableerr.TokenVersionConflict, Detail: fmt.Sprintf("expected %d found %d", u.Expected, version)}
	}
	schema := m.Schema(version)
	if schema == nil || !schema.HasField(u.Column) {
		return Verdict{Token: tableerr.TokenInvalid}
	}
	chosen := slices.DeleteFunc(slices.Clone(schema.Fields()), func(f arrow.Field) bool { return !m.isKey(f.Name) && f.Name != u.Column })
	if v := m.judgeSchema(u.Schema, arrow.NewSchema(chosen, nil), false); v.Token != "" {
		return v
	}
	for i, row := range u.Rows {
		if slices.ContainsFunc(u.Rows[:i], func(other Row) bool { return m.sameKey(u.Schema, row, u.Schema, other) }) {
			return Verdict{Token: tableerr.TokenDuplicateSourceKey}
		}
	}
	stored := m.at(version)
	for _, row := range u.Rows {
		if !slices.ContainsFunc(stored, func(old modelRow) bool { return m.sameKey(u.Schema, row, schema, old.Row) }) {
			return Verdict{Token: tableerr.TokenUnmatchedSourceKey}
		}
	}
	return Verdict{}
}

// sameKey says whether rows of two schemas have the same entity and index value.
func (m *Model) sameKey(a *arrow.Schema, x Row, b *arrow.Schema, y Row) bool {
	for _, name := range append(slices.Clone(m.Entities), m.Index) {
		if compareCells(x[a.FieldIndices(name)[0]], y[b.FieldIndices(name)[0]]) != 0 {
			return false
		}
	}
	return true
}

// CommitUpdate makes an update with rows the next version. It must have been
// judged well.
func (m *Model) CommitUpdate(u ModelUpdate) {
	m.version++
	from, to := u.Schema.FieldIndices(u.Column)[0], m.schema.FieldIndices(u.Column)[0]
	for i, old := range m.rows {
		at := slices.IndexFunc(u.Rows, func(row Row) bool { return m.sameKey(u.Schema, row, m.schema, old.Row) })
		if old.gone != 0 || at < 0 {
			continue
		}
		m.rows[i].gone = m.version
		fresh := old
		fresh.Row, fresh.version = slices.Clone(old.Row), m.version
		fresh.Row[to] = u.Rows[at][from]
		m.rows = append(m.rows, fresh)
	}
}
