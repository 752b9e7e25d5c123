package descriptors

import "encoding/json"

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
	Version    *int64
	Profile    string // "compat", "exact" or "" when left out
	// BatchRows and MaxEndpoints are at least 1, or 0 when left out.
	BatchRows, MaxEndpoints int64
	// Split is set in tickets that the server made for one of several endpoints.
	Split *Split
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

// Output profiles.
const (
	ProfileCompat = "compat" // plain types that every client reads
	ProfileExact  = "exact"  // the table's declared Arrow types
)

var scanFields = []fieldOf[Scan]{
	opField[Scan](OpScan),
	tableField(func(s *Scan) *string { return &s.Table }),
	{Field{"columns", "list<string>", false, "Top-level columns in the order wanted, at least one, none twice; left out: all but the insertion-time column."}, readColumns},
	{Field{"entities", "list<object>", false, "Full or partial identities, column to value; a partial one means every entity that agrees. `[]` selects none."}, readEntities},
	{Field{"start", "value", false, "First index value, included."}, func(s *Scan, v value) (f *fault) { s.Start, f = v.bound(); return f }},
	{Field{"end", "value", false, "Index value behind the last, not included."}, func(s *Scan, v value) (f *fault) { s.End, f = v.bound(); return f }},
	{Field{"version", "int64", false, "The version to read; left out: the newest."}, optionalInto(0, func(s *Scan) **int64 { return &s.Version })},
	{Field{"batch_rows", "int64", false, "Upper bound of the rows of a batch."}, integerInto(1, func(s *Scan) *int64 { return &s.BatchRows })},
	{Field{"max_endpoints", "int64", false, "Upper bound of the endpoints of a FlightInfo; default 1."}, integerInto(1, func(s *Scan) *int64 { return &s.MaxEndpoints })},
	{Field{"profile", "string", false, "`compat` (default): plain text and binary types; `exact`: the declared types."},
		func(s *Scan, v value) (f *fault) { s.Profile, f = v.word(ProfileCompat, ProfileExact); return f }},
	tableIDField(func(s *Scan) *string { return &s.TableID }),
	{Field{"split", "object", false, "In tickets that the server made: `{\"index\":I,\"count\":N}`, with `version`."}, readSplit},
	{Field{"filter", "list", false, "Not supported yet; `[]` is accepted."}, notYet[Scan](isEmptyList)},
	{Field{"as_of", "string", false, "Not supported yet."}, notYet[Scan](nil)},
	{Field{"limit", "int64", false, "Not supported yet."}, notYet[Scan](nil)},
	{Field{"order", "string", false, "`entity_index`; others are not supported yet."}, notYet[Scan](isText("entity_index"))},
	{Field{"newest_first", "bool", false, "`false`; `true` is not supported yet."}, notYet[Scan](isFalse)},
	{Field{"compression", "string", false, "`none`; others are not supported yet."}, notYet[Scan](isText("none"))},
}

func isEmptyList(v value) bool {
	if v[0] != '[' {
		return false
	}
	for range v.elements() {
		return false
	}
	return true
}

func isFalse(v value) bool { return v[0] == 'f' }

func isText(due string) func(value) bool {
	return func(v value) bool { return v[0] == '"' && unquote(v) == due }
}

func readColumns(s *Scan, v value) (f *fault) {
	if s.Columns, f = v.textList(); f != nil {
		return f
	}
	if len(s.Columns) == 0 {
		return faultf("is empty; leave it out for all columns")
	}
	seen := make(map[string]struct{}, len(s.Columns))
	for i, name := range s.Columns {
		if _, twice := seen[name]; twice {
			return faultf("names a column a second time").inIndex(i)
		}
		seen[name] = struct{}{}
	}
	return nil
}

func readEntities(s *Scan, v value) *fault {
	if v[0] != '[' {
		return v.wrongKind("a list")
	}
	s.Entities = []Entity{}
	for i, e := range v.elements() {
		entity, f := e.entity()
		if f != nil {
			return f.inIndex(i)
		}
		s.Entities = append(s.Entities, entity)
	}
	return nil
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

// ParseScan reads the CMD descriptor of a GetFlightInfo or GetSchema. A split
// has no place in it.
func ParseScan(command []byte) (*Scan, error) {
	const root = "command"
	v, err := parseOp(root, command, OpScan)
	if err != nil {
		return nil, err
	}
	return parseFields(root, v, scanFields, func(s *Scan) *fault {
		if s.Split != nil {
			return faultf("stands in tickets only; a descriptor asks for max_endpoints").inKey("split")
		}
		return nil
	})
}

// ParseTicket reads the ticket of a DoGet, whether the server made it or a
// client wrote it by hand.
func ParseTicket(ticket []byte) (*Scan, error) {
	const root = "ticket"
	v, err := parseOp(root, ticket, OpScan)
	if err != nil {
		return nil, err
	}
	return parseFields(root, v, scanFields, func(s *Scan) *fault {
		if s.Split != nil && s.Version == nil {
			return faultf("needs the version whose plan it is a part of").inKey("split")
		}
		return nil
	})
}

// Encode returns the scan as one JSON object without blanks, its fields in a
// fixed order: equal scans give equal bytes. ParseTicket reads them as s. It
// fails when a raw value is no JSON.
func (s *Scan) Encode() ([]byte, error) {
	var w objectWriter
	w.text("op", OpScan)
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
	w.optional("version", s.Version)
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
