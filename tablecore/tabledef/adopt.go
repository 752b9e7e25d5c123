package tabledef

import (
	"encoding/json"
	"slices"
	"strings"

	"contrail/tablecore/tableerr"
)

// Keys are what a plain Delta table is given to become a Contrail table. Texts
// are as the client sent them, empty ones were left out.
type Keys struct {
	IndexColumn      string
	IndexGranularity string
	EntityColumns    []string
	Timezone         string
	Uniqueness       string
}

// given says whether there is any.
func (k Keys) given() bool {
	return k.IndexColumn != "" || k.IndexGranularity != "" || k.EntityColumns != nil || k.Timezone != "" || k.Uniqueness != ""
}

// Adopt returns what the plain Delta table d becomes with keys, of the current
// format and with the columns it has, and its schema's JSON form in Delta's log,
// made of the one there is: the key columns are not null, all else stays. Errors
// are *tableerr.Invalid and name the field or the column.
func (d *Definition) Adopt(k Keys, schemaString string) (*Definition, string, error) {
	if k.IndexColumn == "" {
		return nil, "", tableerr.InvalidField("index_column", "the table is a plain Delta table: its index column must be given")
	}
	if d.Stored == nil {
		return nil, "", tableerr.InvalidColumn(k.IndexColumn, "index column %q is not among the columns: the table has none", k.IndexColumn)
	}
	none := ""
	adopted, err := New(d.ID, Request{IndexColumn: k.IndexColumn, IndexGranularity: k.IndexGranularity, EntityColumns: k.EntityColumns,
		Timezone: k.Timezone, Uniqueness: k.Uniqueness, IngestTimeColumn: &none, Schema: d.Stored})
	if err != nil {
		return nil, "", err
	}
	adopted.Properties, adopted.ColumnsAdded = d.Properties, d.ColumnsAdded
	text, err := notNull(schemaString, append([]string{k.IndexColumn}, k.EntityColumns...))
	return adopted, text, err
}

// notNull makes columns of a schema string not null. The others stay as they
// are, with what other writers have noted about them.
func notNull(schemaString string, names []string) (string, error) {
	var s struct {
		Type   string            `json:"type"`
		Fields []json.RawMessage `json:"fields"`
	}
	if err := json.Unmarshal([]byte(schemaString), &s); err != nil {
		return "", corruptSchema(err)
	}
	for i, raw := range s.Fields {
		var f deltaField
		if err := json.Unmarshal(raw, &f); err != nil {
			return "", corruptSchema(err)
		}
		if !f.Nullable || !slices.Contains(names, f.Name) {
			continue
		}
		f.Nullable = false
		if f.Metadata == nil {
			f.Metadata = json.RawMessage("{}")
		}
		var err error
		if s.Fields[i], err = marshal(f); err != nil {
			return "", err
		}
	}
	text, err := marshal(s)
	return string(text), err
}

// CheckKeys makes sure that keys given for a table that has its own are the same
// ones, as they are where an upgrade is run again. INVALID names the field.
func (d *Definition) CheckKeys(k Keys) error {
	if !k.given() {
		return nil
	}
	refuse := func(field, has string) error {
		return tableerr.InvalidField(field, "the table is Contrail's already, with %s %q; an upgrade does not change it", field, has)
	}
	g, err := ParseGranularity(k.IndexGranularity, d.IndexType)
	if err != nil {
		return err
	}
	switch {
	case k.IndexColumn != "" && k.IndexColumn != d.IndexColumn:
		return refuse("index_column", d.IndexColumn)
	case k.IndexGranularity != "" && g != d.Granularity:
		return refuse("index_granularity", d.Granularity.String())
	case k.EntityColumns != nil && !slices.Equal(k.EntityColumns, d.EntityColumns):
		columns, _ := json.Marshal(d.EntityColumns) // texts alone
		return refuse("entity_columns", string(columns))
	case k.Timezone != "" && k.Timezone != d.Timezone:
		return refuse("timezone", d.Timezone)
	case k.Uniqueness != "" && !strings.EqualFold(k.Uniqueness, string(d.Uniqueness)):
		return refuse("uniqueness", string(d.Uniqueness))
	}
	return nil
}
