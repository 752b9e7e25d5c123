package descriptors

import (
	"encoding/json"
	"time"
)

// Latest asks for the newest row of each entity.
type Latest struct {
	Table   string
	TableID string // "" when left out
	// Columns are distinct names in the order wanted; nil when left out, never
	// empty.
	Columns []string
	// Entities is nil when left out and empty when no entity is wanted.
	Entities []Entity
	// At is a JSON number or text, nil when left out.
	At json.RawMessage
	// Version and AsOf are not both set.
	Version *int64
	AsOf    *time.Time
}

// Coverage asks which intervals have rows.
type Coverage struct {
	Table   string
	TableID string // "" when left out
	// Entities is nil when left out and empty when no entity is wanted.
	Entities []Entity
	// Start and End are a JSON number or text each, nil when left out.
	Start, End json.RawMessage
	Kind       string // one of the coverage kinds
	N          *int64 // at least 1; set for CoverageLastWindow and nothing else
	// Version and AsOf are not both set.
	Version *int64
	AsOf    *time.Time
}

// Kinds of a coverage query.
const (
	CoverageMissing    = "missing"     // runs of intervals without rows
	CoverageCovered    = "covered"     // runs of intervals with rows
	CoverageSummary    = "summary"     // counts, a row an entity
	CoverageLastWindow = "last_window" // the newest N covered intervals in a row
)

var latestFields = []fieldOf[Latest]{
	opField[Latest](OpLatest),
	tableField(func(l *Latest) *string { return &l.Table }),
	columnsField(func(l *Latest) *[]string { return &l.Columns }),
	entitiesField(func(l *Latest) *[]Entity { return &l.Entities }),
	{Field{"at", "value", false, "Rows behind it do not count; it is included."}, func(l *Latest, v value) (f *fault) { l.At, f = v.bound(); return f }},
	versionField("read", func(l *Latest) **int64 { return &l.Version }),
	asOfField(func(l *Latest) **time.Time { return &l.AsOf }),
	tableIDField(func(l *Latest) *string { return &l.TableID }),
}

var coverageFields = []fieldOf[Coverage]{
	opField[Coverage](OpCoverage),
	tableField(func(c *Coverage) *string { return &c.Table }),
	{Field{"kind", "string", true, "`missing`, `covered`: a row a run of intervals; `summary`: a row an entity; `last_window`: the newest `n` covered intervals in a row."},
		func(c *Coverage, v value) (f *fault) {
			c.Kind, f = v.word(CoverageMissing, CoverageCovered, CoverageSummary, CoverageLastWindow)
			return f
		}},
	{Field{"entities", "list<object>", false, "Full or partial identities, column to value; left out: every entity that has a row. A full one without rows misses everything, a partial one that nothing agrees with adds no row."},
		func(c *Coverage, v value) (f *fault) { c.Entities, f = v.entities(); return f }},
	{Field{"start", "value", false, "Where the range begins; left out: with the domain. Every interval that the range touches counts whole."},
		func(c *Coverage, v value) (f *fault) { c.Start, f = v.bound(); return f }},
	{Field{"end", "value", false, "Where the range ends, not included; left out: with the domain."},
		func(c *Coverage, v value) (f *fault) { c.End, f = v.bound(); return f }},
	{Field{"n", "int64", false, "With the kind `last_window`, where it is required: the number of intervals, at least 1."},
		optionalInto(1, func(c *Coverage) **int64 { return &c.N })},
	versionField("read", func(c *Coverage) **int64 { return &c.Version }),
	asOfField(func(c *Coverage) **time.Time { return &c.AsOf }),
	tableIDField(func(c *Coverage) *string { return &c.TableID }),
}

func checkCoverage(c *Coverage) *fault {
	switch {
	case c.Kind == CoverageLastWindow && c.N == nil:
		return faultf("is required with the kind %s", CoverageLastWindow).inKey("n")
	case c.Kind != CoverageLastWindow && c.N != nil:
		return faultf("goes with the kind %s only", CoverageLastWindow).inKey("n")
	}
	return oneVersion(c.Version, c.AsOf)
}

// Encode returns the request as one JSON object without blanks, its fields in a
// fixed order. ParseTicket reads it as l. It fails when a raw value is no JSON.
func (l *Latest) Encode() ([]byte, error) {
	var w objectWriter
	w.text("op", OpLatest)
	w.text("table", l.Table)
	w.filledText("table_id", l.TableID)
	if l.Columns != nil {
		w.key("columns")
		w.buf = appendStrings(w.buf, l.Columns)
	}
	if l.Entities != nil {
		w.entities("entities", l.Entities)
	}
	w.raw("at", l.At)
	w.optional("version", l.Version)
	w.moment("as_of", l.AsOf)
	return w.finish()
}

// Encode returns the request as one JSON object without blanks, its fields in a
// fixed order. ParseTicket reads it as c. It fails when a raw value is no JSON.
func (c *Coverage) Encode() ([]byte, error) {
	var w objectWriter
	w.text("op", OpCoverage)
	w.text("table", c.Table)
	w.filledText("table_id", c.TableID)
	if c.Entities != nil {
		w.entities("entities", c.Entities)
	}
	w.raw("start", c.Start)
	w.raw("end", c.End)
	w.text("kind", c.Kind)
	w.optional("n", c.N)
	w.optional("version", c.Version)
	w.moment("as_of", c.AsOf)
	return w.finish()
}
