package tabledef

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// Uniqueness is what a table does about a second row in an interval.
type Uniqueness string

// The uniqueness rules.
const (
	UniqueReject    Uniqueness = "reject"
	UniqueOverwrite Uniqueness = "overwrite"
	UniqueNone      Uniqueness = "none"
)

// DefaultIngestTimeColumn is the insertion-time column of a table that does
// not name another.
const DefaultIngestTimeColumn = "_ingest_ts"

// IngestTimeType is the type of the insertion-time column.
var IngestTimeType = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}

// Definition is what a table is at one version. It is immutable once built.
type Definition struct {
	ID               string // Delta's metaData.id, the table's identity
	Format           FormatVersion
	IndexColumn      string // empty for a plain Delta table
	IndexType        IndexType
	Granularity      Granularity
	Timezone         string
	EntityColumns    []string
	Uniqueness       Uniqueness
	IngestTimeColumn string // empty for none
	ColumnsAdded     bool
	// Stored is the declared Arrow schema of all columns, the insertion-time
	// column among them; nil until a table created without a schema adopts the
	// one of its first append.
	Stored *arrow.Schema
	// Properties are the user's own and the settable ones that were set.
	Properties map[string]string
}

// Schema returns the declared schema without the insertion-time column, or nil
// before a schema was adopted.
func (d *Definition) Schema() *arrow.Schema {
	if d.Stored == nil {
		return nil
	}
	fields := slices.DeleteFunc(slices.Clone(d.Stored.Fields()), func(f arrow.Field) bool {
		return d.IngestTimeColumn != "" && f.Name == d.IngestTimeColumn
	})
	md := d.Stored.Metadata()
	return arrow.NewSchema(fields, &md)
}

// IsKey says whether a column is the index column or an entity column.
func (d *Definition) IsKey(column string) bool {
	return column == d.IndexColumn || slices.Contains(d.EntityColumns, column)
}

// IndexUnit returns the unit of a timestamp index's column; it means nothing
// for other index types or without a schema.
func (d *Definition) IndexUnit() arrow.TimeUnit {
	if d.Stored == nil {
		return arrow.Microsecond
	}
	for _, f := range d.Stored.Fields() {
		if t, ok := f.Type.(*arrow.TimestampType); ok && f.Name == d.IndexColumn {
			return t.Unit
		}
	}
	return arrow.Microsecond
}

// SameKeys says whether two definitions with schemas mean the same by keys and
// intervals: what is known of a file's entities under one holds under the other.
func (d *Definition) SameKeys(other *Definition) bool {
	if d == other {
		return true
	}
	if d.IndexColumn != other.IndexColumn || d.IndexType != other.IndexType || d.IndexUnit() != other.IndexUnit() ||
		d.Granularity != other.Granularity || !slices.Equal(d.EntityColumns, other.EntityColumns) {
		return false
	}
	return !slices.ContainsFunc(d.EntityColumns, func(name string) bool {
		a, _ := d.Stored.FieldsByName(name)
		b, _ := other.Stored.FieldsByName(name)
		return len(a) != 1 || len(b) != 1 || !arrow.TypeEqual(a[0].Type, b[0].Type)
	})
}

// WithSchema returns a copy that has the given declared schema (without or
// with the insertion-time column), made complete: key columns not null and of
// plain types, writer-made metadata removed, the insertion-time column appended where it is
// missing. The schema must have passed CheckSchema against d.
func (d *Definition) WithSchema(schema *arrow.Schema) *Definition {
	fields := slices.Clone(CleanSchema(schema).Fields())
	ingest := -1
	for i := range fields {
		if d.IsKey(fields[i].Name) {
			fields[i].Nullable = false
		}
		if slices.Contains(d.EntityColumns, fields[i].Name) {
			if t, ok := EntityType(fields[i].Type); ok {
				fields[i].Type = t // views and dictionaries are forms, not types, of an identity
			}
		}
		if fields[i].Name == d.IngestTimeColumn {
			ingest = i
		}
	}
	if d.IngestTimeColumn != "" {
		if ingest >= 0 {
			fields = slices.Delete(fields, ingest, ingest+1)
		}
		fields = append(fields, arrow.Field{Name: d.IngestTimeColumn, Type: IngestTimeType, Nullable: true})
	}
	c := *d
	md := CleanSchema(schema).Metadata()
	c.Stored = arrow.NewSchema(fields, &md)
	return &c
}

// Configuration returns the table's properties as they stand in the log's
// metadata.
func (d *Definition) Configuration() (map[string]string, error) {
	c := maps.Clone(d.Properties)
	if c == nil {
		c = map[string]string{}
	}
	entities, err := json.Marshal(append([]string{}, d.EntityColumns...))
	if err != nil {
		return nil, err
	}
	c[KeyFormatVersion] = d.Format.String()
	c[KeyIndexColumn] = d.IndexColumn
	c[KeyIndexType] = string(d.IndexType)
	c[KeyEntityColumns] = string(entities)
	c[KeyUniqueness] = string(d.Uniqueness)
	setIf(c, KeyGranularity, d.Granularity.String())
	setIf(c, KeyTimezone, d.Timezone)
	setIf(c, KeyIngestTime, d.IngestTimeColumn)
	if d.ColumnsAdded {
		c[KeyColumnsAdded] = "true"
	}
	if d.Stored != nil {
		text, err := EncodeArrowSchema(d.Stored)
		if err != nil {
			return nil, err
		}
		c[KeyArrowSchema] = text
	}
	for key, value := range managedDelta {
		c[key] = value
	}
	return c, nil
}

// managedDelta are Delta's own properties that a Contrail table carries beside
// KeyFileRetention.
var managedDelta = map[string]string{
	"delta.enableInCommitTimestamps":        "true",
	"delta.logRetentionDuration":            "interval 36500 days",
	"delta.setTransactionRetentionDuration": "interval 7 days",
}

func setIf(m map[string]string, key, value string) {
	if value != "" {
		m[key] = value
	}
}

// FromMetadata reads a definition out of a log's metadata: its id, schema
// string and configuration. The format version is checked before anything
// else (FORMAT_UNREADABLE).
func FromMetadata(id, schemaString string, configuration map[string]string) (*Definition, error) {
	format, err := ReadableFormat(configuration)
	if err != nil {
		return nil, err
	}
	d := &Definition{ID: id, Format: format, IndexColumn: configuration[KeyIndexColumn], Timezone: configuration[KeyTimezone],
		IndexType: IndexType(configuration[KeyIndexType]), Uniqueness: Uniqueness(configuration[KeyUniqueness]),
		IngestTimeColumn: configuration[KeyIngestTime], ColumnsAdded: configuration[KeyColumnsAdded] == "true",
		Properties: userProperties(configuration)}
	if d.Stored, err = ParseDeltaSchema(schemaString, configuration[KeyArrowSchema]); err != nil {
		return nil, err
	}
	if d.IndexColumn == "" {
		return d, nil
	}
	if err := d.readKeys(configuration); err != nil {
		return nil, err
	}
	return d, nil
}

// readKeys fills and checks what only tables with an index column have.
func (d *Definition) readKeys(configuration map[string]string) error {
	bad := func(key string) error {
		return &tableerr.Corrupt{Path: "_delta_log", Msg: "property " + key + " has the value " + configuration[key]}
	}
	if text := configuration[KeyEntityColumns]; text != "" {
		if err := json.Unmarshal([]byte(text), &d.EntityColumns); err != nil {
			return bad(KeyEntityColumns)
		}
	}
	switch d.IndexType {
	case IndexTimestamp, IndexInt64, IndexUint64:
	default:
		return bad(KeyIndexType)
	}
	var err error
	if d.Granularity, err = ParseGranularity(configuration[KeyGranularity], d.IndexType); err != nil {
		return bad(KeyGranularity)
	}
	switch d.Uniqueness {
	case UniqueReject, UniqueOverwrite, UniqueNone:
	case "":
		d.Uniqueness = UniqueReject
	default:
		return bad(KeyUniqueness)
	}
	if d.Granularity.IsZero() && d.Uniqueness != UniqueNone {
		return bad(KeyGranularity)
	}
	return d.checkKeysStored()
}

// checkKeysStored makes sure that a log's schema holds the key columns.
func (d *Definition) checkKeysStored() error {
	if d.Stored == nil {
		return nil
	}
	for _, name := range append([]string{d.IndexColumn}, d.EntityColumns...) {
		if !d.Stored.HasField(name) {
			return &tableerr.Corrupt{Path: "_delta_log", Msg: "key column " + name + " is not in the schema"}
		}
	}
	return nil
}

// userProperties keeps what a client may set: its own keys and the settable
// ones.
func userProperties(configuration map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range configuration {
		if p := registered[k]; p != nil && p.Level == Settable || p == nil && !reservedKey(k) {
			out[k] = v
		}
	}
	return out
}
