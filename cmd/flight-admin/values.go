package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"contrail/cmd/internal/rowfile"
	"contrail/descriptors"
)

// literal is a value as it stands on the command line.
type literal struct {
	text   string
	quoted bool // it is text, whatever it looks like
}

// json is the literal as the JSON of a column's type: numbers and booleans as
// such where the column takes them and the text is one, all else as text. What
// is wrong with a value is the service's to say.
func (l literal) json(columnType string) json.RawMessage {
	text := rowfile.AppendQuoted(nil, l.text)
	if l.quoted {
		return text
	}
	switch kind, _, _ := strings.Cut(columnType, "["); {
	case kind == "bool":
		if l.text == "true" || l.text == "false" {
			return json.RawMessage(l.text)
		}
	case slices.Contains(numberTypes, kind):
		var n json.Number
		if json.Unmarshal([]byte(l.text), &n) == nil {
			return json.RawMessage(l.text)
		}
	}
	return text
}

// numberTypes are the types whose values may be JSON numbers.
var numberTypes = []string{"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "halffloat", "float", "double",
	"timestamp", "time32", "time64", "duration"}

// tableTypes knows the types of a table's columns.
type tableTypes struct {
	index   string // the index column's name
	columns map[string]string
}

// of is a column's type, "" for a column that is not there.
func (t *tableTypes) of(column string) string { return t.columns[column] }

// description is what describe_table answers.
type description struct {
	Table            string            `json:"table"`
	TableID          string            `json:"table_id"`
	Version          int64             `json:"version"`
	CommittedAt      string            `json:"committed_at"`
	FormatVersion    string            `json:"format_version"`
	IndexColumn      string            `json:"index_column"`
	IndexType        string            `json:"index_type"`
	IndexGranularity json.RawMessage   `json:"index_granularity"`
	Timezone         *string           `json:"timezone"`
	EntityColumns    []string          `json:"entity_columns"`
	Uniqueness       string            `json:"uniqueness"`
	IngestTimeColumn string            `json:"ingest_time_column"`
	Columns          []column          `json:"columns"`
	SchemaIPC        []byte            `json:"schema_ipc"`
	Rows             int64             `json:"rows"`
	Files            int64             `json:"files"`
	Bytes            int64             `json:"bytes"`
	Entities         int64             `json:"entities"`
	IndexMin         json.RawMessage   `json:"index_min"`
	IndexMax         json.RawMessage   `json:"index_max"`
	Properties       map[string]string `json:"properties"`
}

// column is a column of a schema in a request or an answer.
type column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
}

// at says which state of a table is meant.
type at struct {
	version int64 // below 0 for none
	asOf    string
}

// describeRequest is the body of describe_table.
type describeRequest struct {
	Table   string `json:"table"`
	Version *int64 `json:"version,omitempty"`
	AsOf    string `json:"as_of,omitempty"`
}

func (a *app) describe(ctx context.Context, s *session, table string, when at) (*description, error) {
	body, err := json.Marshal(describeRequest{table, when.number(), when.asOf})
	if err != nil {
		return nil, err
	}
	result, err := s.Action(ctx, descriptors.ActionDescribeTable, body, nil)
	if err != nil {
		return nil, err
	}
	var d *description
	return d, decoded(func(v *description) error { d = v; return nil })(result)
}

// number is the version, nil for none.
func (w at) number() *int64 {
	if w.version < 0 {
		return nil
	}
	return &w.version
}

// moment is the time in a request that takes one.
func (w at) moment() (*time.Time, error) {
	if w.asOf == "" {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339Nano, w.asOf)
	if err != nil {
		return nil, usagef("--as-of: %q is no time such as 2013-01-31T06:00:00Z", w.asOf)
	}
	return &t, nil
}

// types returns the types of the table's columns, of the state that is meant.
func (a *app) types(ctx context.Context, s *session, table string, when at) (*tableTypes, error) {
	d, err := a.describe(ctx, s, table, when)
	if err != nil {
		return nil, err
	}
	t := &tableTypes{index: d.IndexColumn, columns: map[string]string{d.IndexColumn: d.IndexType}}
	for _, c := range d.Columns {
		t.columns[c.Name] = c.Type
	}
	return t, nil
}

// fullName is a table's name with its namespace.
func fullName(table string) string {
	if table == "" || strings.Contains(table, ".") {
		return table
	}
	return "default." + table
}

// shortName is a table's name without the namespace default.
func shortName(table string) string { return strings.TrimPrefix(table, "default.") }
