package descriptors

import (
	"strings"

	"contrail/tablecore/tableerr"
)

// Field describes one field of a request, as ListActions and the reference
// tell it.
type Field struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
	// Text says what the field means. It stands in the reference only.
	Text string `json:"-"`
}

// fieldOf is a field together with how it is read into a T. One table of these
// drives decoding, ListActions and the reference, so they cannot disagree.
type fieldOf[T any] struct {
	Field
	// read stores an accepted value that is not null.
	read func(into *T, v value) *fault
}

// describe returns the public part of a field table.
func describe[T any](fields []fieldOf[T]) []Field {
	list := make([]Field, len(fields))
	for i, f := range fields {
		list[i] = f.Field
	}
	return list
}

// decode reads an object of exactly these fields.
func decode[T any](v value, fields []fieldOf[T]) (*T, *fault) {
	if v[0] != '{' {
		return nil, v.wrongKind("an object")
	}
	into := new(T)
	given := make([]bool, len(fields))
	for key, member := range v.members() {
		i := indexOf(fields, key)
		if i < 0 {
			return nil, faultf("is no field of this request, which has %s", fieldNames(fields)).inKey(key)
		}
		if member.isNull() {
			continue
		}
		given[i] = true
		if f := fields[i].read(into, member); f != nil {
			return nil, f.inKey(key)
		}
	}
	for i, f := range fields {
		if f.Required && !given[i] {
			return nil, faultf("is required").inKey(f.Name)
		}
	}
	return into, nil
}

func indexOf[T any](fields []fieldOf[T], name string) int {
	for i := range fields {
		if fields[i].Name == name {
			return i
		}
	}
	return -1
}

func fieldNames[T any](fields []fieldOf[T]) string {
	if len(fields) == 0 {
		return "none"
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// parseBody reads an action body. An empty one means {}.
func parseBody[T any](body []byte, fields []fieldOf[T], check func(*T) *fault) (*T, error) {
	const root = "body"
	if len(body) == 0 {
		body = []byte("{}")
	}
	if f := checkSyntax(body); f != nil {
		return nil, f.invalid(root)
	}
	return parseFields(root, trimmed(body), fields, check)
}

// parseFields reads the fields and then how they go together.
func parseFields[T any](root string, v value, fields []fieldOf[T], check func(*T) *fault) (*T, error) {
	request, f := decode(v, fields)
	if f == nil && check != nil {
		f = check(request)
	}
	if f != nil {
		return nil, stampTable(f.invalid(root), v)
	}
	return request, nil
}

// stampTable names the table a refused request is about, if it says so.
func stampTable(e *tableerr.Invalid, v value) error {
	if v[0] != '{' {
		return e
	}
	for key, member := range v.members() {
		if key == "table" && member[0] == '"' {
			e.Table = fullName(unquote(member))
		}
	}
	return e
}

// fullName returns a table's name with both parts, as answers carry it, and ""
// for a text that cannot be a name, which concerns no table.
func fullName(text string) string {
	namespace, table, found := strings.Cut(text, ".")
	if !found {
		namespace, table = "default", text
	}
	if !isNamePart(namespace) || !isNamePart(table) {
		return ""
	}
	return namespace + "." + table
}

// isNamePart tells whether a text looks like a part of a name; the core has the
// last word.
func isNamePart(s string) bool {
	const most = 128
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != "" && len(s) <= most
}

// Ops, by RPC.
const (
	// DoPut
	OpAppend     = "append"
	OpUpdateRows = "update_rows"
	OpStage      = "stage"

	// GetFlightInfo, GetSchema, DoGet
	OpScan     = "scan"
	OpExplain  = "explain"
	OpHistory  = "history"
	OpFiles    = "files"
	OpEntities = "entities"
	OpTables   = "tables"
	OpLatest   = "latest"
	OpCoverage = "coverage"
)

// readOps are those that DoPut does not take.
var readOps = map[string]bool{OpScan: true, OpExplain: true, OpHistory: true, OpFiles: true, OpEntities: true, OpTables: true,
	OpLatest: true, OpCoverage: true}

// parseOp checks a command's or ticket's form and returns what it asks for.
func parseOp(root string, body []byte) (v value, op string, err error) {
	if f := checkSyntax(body); f != nil {
		return nil, "", f.invalid(root)
	}
	v = trimmed(body)
	if v[0] != '{' {
		return nil, "", v.wrongKind("an object").invalid(root)
	}
	for key, member := range v.members() {
		if key != "op" || member.isNull() {
			continue
		}
		op, f := member.text()
		if f != nil {
			return nil, "", stampTable(f.inKey("op").invalid(root), v)
		}
		return v, op, nil
	}
	return nil, "", stampTable(faultf("is required").inKey("op").invalid(root), v)
}

// misplaced reports an op that the call at hand does not answer.
func misplaced(op string) *fault {
	switch {
	case op == OpAppend || op == OpUpdateRows || op == OpStage:
		return faultf("asks for %s, which is sent with DoPut", op)
	case readOps[op]:
		return faultf("asks for %s, which goes with GetFlightInfo, GetSchema and DoGet, not with DoPut", op)
	}
	return faultf("is %q, which is no op", cutRunes(op, maxPathKeyBytes))
}

// opField stands for "op" itself, which parseOp has already looked at.
func opField[T any](op string) fieldOf[T] {
	return fieldOf[T]{Field{"op", "string", true, "`" + op + "`."}, func(*T, value) *fault { return nil }}
}

// Readers for fields that many requests share.

func textInto[T any](target func(*T) *string) func(*T, value) *fault {
	return func(into *T, v value) (f *fault) {
		*target(into), f = v.filledText()
		return f
	}
}

func textsInto[T any](target func(*T) *[]string) func(*T, value) *fault {
	return func(into *T, v value) (f *fault) {
		*target(into), f = v.textList()
		return f
	}
}

func boolInto[T any](target func(*T) *bool) func(*T, value) *fault {
	return func(into *T, v value) (f *fault) {
		*target(into), f = v.boolean()
		return f
	}
}

// integerInto reads an integer of at least least.
func integerInto[T any](least int64, target func(*T) *int64) func(*T, value) *fault {
	return func(into *T, v value) (f *fault) {
		*target(into), f = v.integer(least)
		return f
	}
}

// optionalInto is integerInto for fields whose every value means something.
func optionalInto[T any](least int64, target func(*T) **int64) func(*T, value) *fault {
	return func(into *T, v value) *fault {
		n, f := v.integer(least)
		if f != nil {
			return f
		}
		*target(into) = &n
		return nil
	}
}

func tableField[T any](target func(*T) *string) fieldOf[T] {
	return fieldOf[T]{Field{"table", "string", true, "The table, `namespace.table`, or `table` in the namespace `default`."}, textInto(target)}
}

func expectedField[T any](target func(*T) **int64) fieldOf[T] {
	return fieldOf[T]{Field{"expected_version", "int64", false, "Another current version is VERSION_CONFLICT."}, optionalInto(0, target)}
}

func tableIDField[T any](target func(*T) *string) fieldOf[T] {
	return fieldOf[T]{Field{"table_id", "string", false, "The table's id; another one means that the table was dropped and made again, and is TABLE_NOT_FOUND."}, textInto(target)}
}

// TableRequest is a put, or an action on a table that must be there.
type TableRequest interface {
	// TableName is the table's name as the client wrote it, with or without its
	// namespace.
	TableName() string
}

// TableName implements TableRequest, as do the others.
func (r *Append) TableName() string        { return r.Table }
func (r *UpdateRows) TableName() string    { return r.Table }
func (r *Stage) TableName() string         { return r.Table }
func (r *DescribeTable) TableName() string { return r.Table }
func (r *AddColumns) TableName() string    { return r.Table }
func (r *Optimize) TableName() string      { return r.Table }
func (r *Upgrade) TableName() string       { return r.Table }
func (r *Rollback) TableName() string      { return r.Table }
func (r *SetProperties) TableName() string { return r.Table }
func (r *Checkpoint) TableName() string    { return r.Table }
func (r *Vacuum) TableName() string        { return r.Table }
func (r *CommitStaged) TableName() string  { return r.Table }
func (r *AbortStaged) TableName() string   { return r.Table }
