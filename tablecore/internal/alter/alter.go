// Package alter holds the verbs that change what a table is and touch no data:
// add_columns and set_properties. Each is one commit of metadata, made anew for
// every version that it is tried on; what the log says of the table besides,
// also what this software does not know, stays.
package alter

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/tabledef"
)

// The names of the verbs, in commits and in the history.
const (
	OpAddColumns    = "add_columns"
	OpSetProperties = "set_properties"
)

// Change is what a verb makes of a table at one version. It holds no state
// beyond that and may be dropped.
type Change struct {
	// Def is the table afterwards.
	Def *tabledef.Definition

	metadata *deltalog.Metadata // nil where there is nothing to change
	protocol *deltalog.Protocol // nil where it stays
	info     deltalog.CommitInfo
}

// NoOp says that the table is as the verb would have it already.
func (c *Change) NoOp() bool { return c.metadata == nil }

// Commit returns the actions that make the change.
func (c *Change) Commit(extra map[string]json.RawMessage) *deltalog.Commit {
	info := c.info
	info.Extra = extra
	return &deltalog.Commit{Info: &info, Protocol: c.protocol, Metadata: c.metadata}
}

// PlanAddColumns puts nullable columns behind those of a table, in their order.
// Rows that are there read as null in them, and later appends may leave nullable
// columns out. Refusals are INVALID and name the column.
func PlanAddColumns(s *snapshot.Snapshot, added *arrow.Schema) (*Change, error) {
	metadata := metadataOf(s)
	def, schemaString, err := s.Def.WithColumns(added, metadata.SchemaString)
	if err != nil {
		return nil, err
	}
	metadata.SchemaString = schemaString
	metadata.Configuration[tabledef.KeyColumnsAdded] = "true"
	if metadata.Configuration[tabledef.KeyArrowSchema], err = tabledef.EncodeArrowSchema(def.Stored); err != nil {
		return nil, err
	}
	c := &Change{Def: def, metadata: metadata}
	if was := s.State.Protocol(); txn.HasNaiveTime(added) {
		if needs := was.WithTimestampNtz(); needs != was {
			c.protocol = needs
		}
	}
	columns, err := json.Marshal(ColumnNames(added))
	c.info = deltalog.CommitInfo{Operation: "ADD COLUMNS", OperationParameters: map[string]string{"columns": string(columns)}}
	return c, err
}

// ColumnNames lists the columns of a schema.
func ColumnNames(schema *arrow.Schema) []string {
	names := make([]string, schema.NumFields())
	for i, f := range schema.Fields() {
		names[i] = f.Name
	}
	return names
}

// PlanSetProperties sets and removes properties of a table by the rules of
// tabledef's registry. Refusals are INVALID and name the property.
func PlanSetProperties(s *snapshot.Snapshot, change tabledef.PropertyChange, leastRetention time.Duration) (*Change, error) {
	if err := tabledef.CheckProperties(change, leastRetention); err != nil {
		return nil, err
	}
	def, err := s.Def.WithProperties(change)
	if err != nil {
		return nil, err
	}
	c := &Change{Def: def}
	if maps.Equal(def.Properties, s.Def.Properties) {
		return c, nil
	}
	c.metadata = metadataOf(s)
	for key, value := range change {
		if value == nil {
			delete(c.metadata.Configuration, key)
		} else {
			c.metadata.Configuration[key] = *value
		}
	}
	c.metadata.Configuration[tabledef.KeyFileRetention] = deltalog.FormatInterval(def.SnapshotRetention())
	properties, err := json.Marshal(change)
	c.info = deltalog.CommitInfo{Operation: "SET TBLPROPERTIES", OperationParameters: map[string]string{"properties": string(properties)}}
	return c, err
}

// metadataOf returns a copy of a table's metadata that may be changed.
func metadataOf(s *snapshot.Snapshot) *deltalog.Metadata {
	m := *s.State.Metadata()
	if m.Configuration = maps.Clone(m.Configuration); m.Configuration == nil {
		m.Configuration = map[string]string{}
	}
	return &m
}
