package descriptors

import (
	"encoding/json"
	"time"
)

// Scan is a scan as GetFlightInfo and GetSchema are asked for it, and the
// ticket of a DoGet.
type Scan struct {
	Table   string
	TableID string // "" when left out
	// Columns are distinct names in the order wanted; nil when left out, never
	// empty.
	Columns []string
	// Entities is nil when left out and empty when no entity is wanted.
	Entities []Entity
	// Start and End are a JSON number or text each, nil when left out.
	Start, End json.RawMessage
	// Filter is a list of conditions that must all hold, nil when left out.
	Filter []Condition
	// Version and AsOf are not both set.
	Version *int64
	AsOf    *time.Time
	// SinceVersion asks only for what appends have added behind it; nil when left
	// out. Changes, "ignore" or "" when left out, goes with it.
	SinceVersion *int64
	Changes      string
	Limit        *int64
	Order        string // "entity_index", "unordered" or "" when left out
	// NewestFirst does not go with "unordered".
	NewestFirst bool
	Compression string // "none", "lz4", "zstd" or "" when left out
	Profile     string // "compat", "exact", "spark" or "" when left out
	// BatchRows and MaxEndpoints are at least 1, or 0 when left out.
	BatchRows, MaxEndpoints int64
	// Split is set in tickets that the server made for one of several endpoints.
	Split *Split
	// Explain asks what the scan would read of each file, in place of its rows.
	Explain bool
}

// Condition is one condition of a filter. Op is one of the operators, "=" for
// "==". Value is one JSON value, a list of them for "in", and nil for "is null"
// and "is not null".
type Condition struct {
	Column, Op string
	Value      json.RawMessage
}

// Entity is a full or partial identity: values of entity columns in the
// order the client gave them, no column twice.
type Entity []EntityValue

// EntityValue is one column's part of an identity. Value is a JSON text,
// number or boolean.
type EntityValue struct {
	Column string
	Value  json.RawMessage
}

// Map returns the identity as a map.
func (e Entity) Map() map[string]json.RawMessage {
	m := make(map[string]json.RawMessage, len(e))
	for _, v := range e {
		m[v.Column] = v.Value
	}
	return m
}

// Split is one part of a scan's plan: Index counts from 0 and is below Count.
type Split struct {
	Index, Count int64
}

// Orders of a scan.
const (
	OrderEntityIndex = "entity_index"
	OrderUnordered   = "unordered"
)

// ChangesIgnore passes over commits that are no appends.
const ChangesIgnore = "ignore"

// Compressions of IPC bodies.
const (
	CompressionNone = "none"
	CompressionLZ4  = "lz4"
	CompressionZstd = "zstd"
)

// Output profiles.
const (
	ProfileCompat = "compat" // plain types that every client reads
	ProfileExact  = "exact"  // the table's declared Arrow types
	ProfileSpark  = "spark"  // types that Spark has
)

var scanFields = []fieldOf[Scan]{
	opField[Scan](OpScan),
	tableField(func(s *Scan) *string { return &s.Table }),
	columnsField(func(s *Scan) *[]string { return &s.Columns }),
	entitiesField(func(s *Scan) *[]Entity { return &s.Entities }),
	{Field{"start", "value", false, "First index value, included."}, func(s *Scan, v value) (f *fault) { s.Start, f = v.bound(); return f }},
	{Field{"end", "value", false, "Index value behind the last, not included."}, func(s *Scan, v value) (f *fault) { s.End, f = v.bound(); return f }},
	{Field{"filter", "list", false, "Conditions that must all hold: `[column, op, value]` with `=` (or `==`) `!=` `<` `<=` `>` `>=`, `[column, \"in\", [values]]`, `[column, \"is null\"]`, `[column, \"is not null\"]`."}, readFilter},
	versionField("read", func(s *Scan) **int64 { return &s.Version }),
	asOfField(func(s *Scan) **time.Time { return &s.AsOf }),
	{Field{"since_version", "int64", false, "Only the rows that appends have added behind this version, up to the one that is read; NOT_APPEND_ONLY where a commit in between changed or removed rows."},
		optionalInto(0, func(s *Scan) **int64 { return &s.SinceVersion })},
	{Field{"changes", "string", false, "With `since_version`: `ignore` passes over commits that changed or removed rows."},
		func(s *Scan, v value) (f *fault) { s.Changes, f = v.word(ChangesIgnore); return f }},
	{Field{"limit", "int64", false, "The first rows of the order; 0 is allowed. There is one endpoint then."}, optionalInto(0, func(s *Scan) **int64 { return &s.Limit })},
	{Field{"order", "string", false, "`entity_index` (default): by entity, then by index; `unordered`: as the rows lie in the files, which is faster."},
		func(s *Scan, v value) (f *fault) { s.Order, f = v.word(OrderEntityIndex, OrderUnordered); return f }},
	{Field{"newest_first", "bool", false, "By index descending over all entities, then by entity; not together with `unordered`."}, boolInto(func(s *Scan) *bool { return &s.NewestFirst })},
	{Field{"compression", "string", false, "Of the IPC bodies: `none` (default), `lz4`, `zstd`."},
		func(s *Scan, v value) (f *fault) {
			s.Compression, f = v.word(CompressionNone, CompressionLZ4, CompressionZstd)
			return f
		}},
	{Field{"batch_rows", "int64", false, "Upper bound of the rows of a batch."}, integerInto(1, func(s *Scan) *int64 { return &s.BatchRows })},
	{Field{"max_endpoints", "int64", false, "Upper bound of the endpoints of a FlightInfo; default 1."}, integerInto(1, func(s *Scan) *int64 { return &s.MaxEndpoints })},
	{Field{"profile", "string", false, "`compat` (default): plain text and binary types; `exact`: the declared types; `spark`: types that Spark has."},
		func(s *Scan, v value) (f *fault) {
			s.Profile, f = v.word(ProfileCompat, ProfileExact, ProfileSpark)
			return f
		}},
	tableIDField(func(s *Scan) *string { return &s.TableID }),
	{Field{"split", "object", false, "In tickets that the server made: `{\"index\":I,\"count\":N}`, with `version`."}, readSplit},
}

// explainFields are those of a scan under another op.
var explainFields = append([]fieldOf[Scan]{opField[Scan](OpExplain)}, scanFields[1:]...)

func columnsField[T any](target func(*T) *[]string) fieldOf[T] {
	return fieldOf[T]{Field{"columns", "list<string>", false, "Top-level columns in the order wanted, at least one, none twice; left out: all but the insertion-time column."},
		func(into *T, v value) (f *fault) { *target(into), f = v.columns(); return f }}
}

func entitiesField[T any](target func(*T) *[]Entity) fieldOf[T] {
	return fieldOf[T]{Field{"entities", "list<object>", false, "Full or partial identities, column to value; a partial one means every entity that agrees. `[]` selects none."},
		func(into *T, v value) (f *fault) { *target(into), f = v.entities(); return f }}
}

// columns reads a list of distinct names.
func (v value) columns() ([]string, *fault) {
	names, f := v.textList()
	if f != nil {
		return nil, f
	}
	if len(names) == 0 {
		return nil, faultf("is empty; leave it out for all columns")
	}
	seen := make(map[string]struct{}, len(names))
	for i, name := range names {
		if _, twice := seen[name]; twice {
			return nil, faultf("names a column a second time").inIndex(i)
		}
		seen[name] = struct{}{}
	}
	return names, nil
}

// entities reads a list of identities.
func (v value) entities() ([]Entity, *fault) {
	if v[0] != '[' {
		return nil, v.wrongKind("a list")
	}
	list := []Entity{}
	for i, e := range v.elements() {
		entity, f := e.entity()
		if f != nil {
			return nil, f.inIndex(i)
		}
		list = append(list, entity)
	}
	return list, nil
}

// entity reads an identity. A null in it is refused, not left out: it would
// silently widen the identity to every entity, and no entity has a null.
func (v value) entity() (Entity, *fault) {
	if v[0] != '{' {
		return nil, v.wrongKind("an object of column to value")
	}
	entity := Entity{}
	for column, member := range v.members() {
		raw, f := member.scalar()
		if f != nil {
			return nil, f.inKey(column)
		}
		entity = append(entity, EntityValue{column, raw})
	}
	return entity, nil
}

var splitFields = []fieldOf[Split]{
	{Field{"index", "int64", true, ""}, integerInto(0, func(s *Split) *int64 { return &s.Index })},
	{Field{"count", "int64", true, ""}, integerInto(1, func(s *Split) *int64 { return &s.Count })},
}

func readSplit(s *Scan, v value) (f *fault) {
	if s.Split, f = decode(v, splitFields); f != nil {
		return f
	}
	if s.Split.Index >= s.Split.Count {
		return faultf("is not below count").inKey("index")
	}
	return nil
}

// checkScan looks at how the fields of a scan go together.
func checkScan(s *Scan, ticket bool) *fault {
	switch {
	case s.Changes != "" && s.SinceVersion == nil:
		return faultf("goes with since_version only").inKey("changes")
	case s.NewestFirst && s.Order == OrderUnordered:
		return faultf("does not go together with the order unordered").inKey("newest_first")
	case s.Split == nil:
		return oneVersion(s.Version, s.AsOf)
	case !ticket:
		return faultf("stands in tickets only; a descriptor asks for max_endpoints").inKey("split")
	case s.Explain:
		return faultf("has no place in an explain").inKey("split")
	case s.Version == nil:
		return faultf("needs the version whose plan it is a part of").inKey("split")
	}
	return oneVersion(s.Version, s.AsOf)
}

// Encode returns the scan as one JSON object without blanks, its fields in a
// fixed order: equal scans give equal bytes. ParseTicket reads them as s. It
// fails when a raw value is no JSON.
func (s *Scan) Encode() ([]byte, error) {
	var w objectWriter
	w.text("op", s.op())
	w.text("table", s.Table)
	w.filledText("table_id", s.TableID)
	if s.Columns != nil {
		w.key("columns")
		w.buf = appendStrings(w.buf, s.Columns)
	}
	if s.Entities != nil {
		w.entities("entities", s.Entities)
	}
	w.raw("start", s.Start)
	w.raw("end", s.End)
	w.conditions("filter", s.Filter)
	w.optional("version", s.Version)
	w.moment("as_of", s.AsOf)
	w.optional("since_version", s.SinceVersion)
	w.filledText("changes", s.Changes)
	w.optional("limit", s.Limit)
	w.filledText("order", s.Order)
	if s.NewestFirst {
		w.raw("newest_first", []byte("true"))
	}
	w.filledText("compression", s.Compression)
	w.positive("batch_rows", s.BatchRows)
	w.positive("max_endpoints", s.MaxEndpoints)
	w.filledText("profile", s.Profile)
	if s.Split != nil {
		split := objectWriter{}
		split.integer("index", s.Split.Index)
		split.integer("count", s.Split.Count)
		raw, _ := split.finish() // integers cannot fail
		w.raw("split", raw)
	}
	return w.finish()
}

func (s *Scan) op() string {
	if s.Explain {
		return OpExplain
	}
	return OpScan
}
