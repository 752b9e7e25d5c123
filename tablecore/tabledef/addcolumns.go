package tabledef

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// WithColumns returns a copy of d that has more columns behind those it has, in
// their order, and the schema's JSON form in Delta's log, made of the one there
// is. Only nullable columns can be added, since the rows there are have no
// values for them, and only to a table that has a schema. Errors are
// *tableerr.Invalid and name the column.
func (d *Definition) WithColumns(added *arrow.Schema, schemaString string) (*Definition, string, error) {
	if err := d.checkAdded(added); err != nil {
		return nil, "", err
	}
	fields := CleanSchema(added).Fields()
	md := d.Stored.Metadata()
	c := *d
	c.ColumnsAdded = true
	c.Stored = arrow.NewSchema(append(slices.Clone(d.Stored.Fields()), fields...), &md)
	encoded, err := EncodeSchemaIPC(c.Stored)
	if err != nil {
		return nil, "", err
	}
	if len(encoded) > maxSchemaBytes {
		return nil, "", tableerr.InvalidField("columns", "the table's schema would have %d bytes, more than the %d that a schema may have", len(encoded), maxSchemaBytes)
	}
	text, err := appendDeltaFields(schemaString, fields)
	return &c, text, err
}

// checkAdded refuses columns that the table cannot gain.
func (d *Definition) checkAdded(added *arrow.Schema) error {
	if keys := added.Metadata().Keys(); len(keys) > 0 {
		return tableerr.InvalidField("schema_ipc", "the schema has metadata of its own under %s; a table has the one it was made with, so leave it out", strings.Join(keys, ", "))
	}
	if added.NumFields() == 0 {
		return tableerr.InvalidField("columns", "there is no column to add")
	}
	if d.Stored == nil {
		return tableerr.InvalidField("columns", "the table has no schema yet: its first append brings it, and may bring these columns")
	}
	if err := checkNames(added.Fields()); err != nil {
		return err
	}
	for _, f := range added.Fields() {
		if err := d.checkNew(f.Name); err != nil {
			return err
		}
	}
	if err := checkTypes(added); err != nil {
		return err
	}
	for _, f := range added.Fields() {
		if !f.Nullable {
			return tableerr.InvalidColumn(f.Name, "column %q takes no null, but the rows there are have no value for it", f.Name)
		}
	}
	return nil
}

// checkNew refuses the name of a column that the table has, or would have.
func (d *Definition) checkNew(name string) error {
	taken := append([]string{d.IndexColumn, d.IngestTimeColumn}, d.EntityColumns...)
	for _, f := range d.Stored.Fields() {
		taken = append(taken, f.Name)
	}
	fold := FoldName(name)
	for _, other := range taken {
		switch {
		case other == name:
			return tableerr.InvalidColumn(name, "the table has a column %q already", name)
		case FoldName(other) == fold:
			return tableerr.InvalidColumn(name, "column %q is equal to the table's column %q up to case or Unicode normal form", name, other)
		}
	}
	return nil
}

// appendDeltaFields adds fields to a schema string. Those that are there stay as
// they are, with what other writers have noted about them.
func appendDeltaFields(schemaString string, added []arrow.Field) (string, error) {
	var s struct {
		Type   string            `json:"type"`
		Fields []json.RawMessage `json:"fields"`
	}
	if err := json.Unmarshal([]byte(schemaString), &s); err != nil {
		return "", corruptSchema(err)
	}
	fields, err := deltaFields(added)
	if err != nil {
		return "", err
	}
	for _, f := range fields {
		text, err := marshal(f)
		if err != nil {
			return "", err
		}
		s.Fields = append(s.Fields, text)
	}
	text, err := marshal(s)
	return string(text), err
}
