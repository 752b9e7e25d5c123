package tabledef

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// Request is what a client asks a new table to be. Texts are as the client
// sent them.
type Request struct {
	IndexColumn      string
	IndexType        string // may be empty where a schema says it
	IndexGranularity string
	EntityColumns    []string
	Timezone         string
	Uniqueness       string
	IngestTimeColumn *string // nil = the default name, "" = none
	Properties       map[string]string
	Schema           *arrow.Schema // nil = adopted from the first append
	// LeastSnapshotRetention is the shortest that contrail.snapshot-retention
	// may be.
	LeastSnapshotRetention time.Duration
}

// New validates a request and returns the definition of a new table with the
// given id. Refusals are INVALID and name the field or the column.
func New(id string, r Request) (*Definition, error) {
	if err := checkColumnName("index_column", r.IndexColumn); err != nil {
		return nil, err
	}
	d := &Definition{ID: id, Format: CurrentFormat, IndexColumn: r.IndexColumn, EntityColumns: r.EntityColumns,
		Timezone: r.Timezone, IngestTimeColumn: DefaultIngestTimeColumn}
	if r.IngestTimeColumn != nil {
		d.IngestTimeColumn = *r.IngestTimeColumn
	}
	if err := checkEntityColumns(r.IndexColumn, r.EntityColumns); err != nil {
		return nil, err
	}
	if err := d.checkIngestColumn(); err != nil {
		return nil, err
	}
	var err error
	if d.IndexType, err = indexType(r); err != nil {
		return nil, err
	}
	if d.Granularity, err = ParseGranularity(r.IndexGranularity, d.IndexType); err != nil {
		return nil, err
	}
	if d.Uniqueness, err = uniqueness(r.Uniqueness, d.Granularity); err != nil {
		return nil, err
	}
	if err := CheckTimezone(r.Timezone, d.IndexType); err != nil {
		return nil, err
	}
	if d, err = d.withFirstProperties(r); err != nil {
		return nil, err
	}
	if r.Schema == nil {
		return d, nil
	}
	if err := CheckSchema(r.Schema, d); err != nil {
		return nil, err
	}
	return d.WithSchema(r.Schema), nil
}

func (d *Definition) withFirstProperties(r Request) (*Definition, error) {
	set := PropertyChange{}
	for key, value := range r.Properties {
		set[key] = &value
	}
	if err := CheckProperties(set, r.LeastSnapshotRetention); err != nil {
		return nil, err
	}
	return d.WithProperties(set)
}

// checkColumnName refuses a name no column may have; field says where it stood.
func checkColumnName(field, name string) error {
	if err := CheckFieldName(name); err != nil {
		return tableerr.InvalidField(field, "%s", err)
	}
	return nil
}

func checkEntityColumns(index string, entities []string) error {
	seen := map[string]bool{}
	for i, name := range entities {
		field := "entity_columns[" + strconv.Itoa(i) + "]"
		if err := checkColumnName(field, name); err != nil {
			return err
		}
		if name == index {
			return tableerr.InvalidField(field, "column %q is the index column", name)
		}
		if fold := FoldName(name); seen[fold] {
			return tableerr.InvalidField(field, "column %q is listed twice", name)
		} else {
			seen[fold] = true
		}
	}
	return nil
}

func (d *Definition) checkIngestColumn() error {
	if d.IngestTimeColumn == "" {
		return nil
	}
	if err := checkColumnName("ingest_time_column", d.IngestTimeColumn); err != nil {
		return err
	}
	fold := FoldName(d.IngestTimeColumn)
	if fold == FoldName(d.IndexColumn) || slices.ContainsFunc(d.EntityColumns, func(n string) bool { return FoldName(n) == fold }) {
		return tableerr.InvalidField("ingest_time_column", "column %q is a key column", d.IngestTimeColumn)
	}
	return nil
}

// indexType takes the index type from the request or from the schema, and
// refuses a contradiction.
func indexType(r Request) (IndexType, error) {
	asked := IndexType(strings.ToLower(r.IndexType))
	switch asked {
	case "", IndexTimestamp, IndexInt64, IndexUint64:
	default:
		return "", tableerr.InvalidField("index_type", "index type %q is none of timestamp, int64, uint64", r.IndexType).WithValue(r.IndexType)
	}
	if r.Schema == nil {
		if asked == "" {
			return "", tableerr.InvalidField("index_type", "without columns the index type must be given: timestamp, int64 or uint64")
		}
		return asked, nil
	}
	found := r.Schema.FieldIndices(r.IndexColumn)
	if len(found) == 0 {
		return "", tableerr.InvalidField("index_column", "index column %q is not among the columns", r.IndexColumn)
	}
	typ := r.Schema.Field(found[0]).Type
	has, ok := IndexTypeOf(typ)
	if !ok {
		return "", tableerr.InvalidType(r.IndexColumn, TypeName(typ), "an index column is a timestamp, int64 or uint64")
	}
	if asked != "" && asked != has {
		return "", tableerr.InvalidField("index_type", "index type %s does not fit column %q of type %s", asked, r.IndexColumn, TypeName(typ))
	}
	return has, nil
}

// IndexTypeOf returns the index type that a column of type t makes.
func IndexTypeOf(t arrow.DataType) (IndexType, bool) {
	switch t.ID() {
	case arrow.TIMESTAMP:
		return IndexTimestamp, true
	case arrow.INT64:
		return IndexInt64, true
	case arrow.UINT64:
		return IndexUint64, true
	default:
		return "", false
	}
}

func uniqueness(text string, g Granularity) (Uniqueness, error) {
	u := Uniqueness(strings.ToLower(text))
	switch u {
	case "":
		u = UniqueReject
	case UniqueReject, UniqueOverwrite, UniqueNone:
	default:
		return "", tableerr.InvalidField("uniqueness", "uniqueness %q is none of reject, overwrite, none", text).WithValue(text)
	}
	if g.IsZero() && u != UniqueNone {
		return "", tableerr.InvalidField("index_granularity", `a table without a granularity has no intervals, so its uniqueness must be "none"`)
	}
	return u, nil
}
