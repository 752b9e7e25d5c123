package tablecore

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tabledef"
)

// Time is a moment that marshals as RFC 3339 in UTC with microseconds, or as
// null where it is zero.
type Time struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.text())
}

func (t Time) text() string { return t.UTC().Format("2006-01-02T15:04:05.999999Z07:00") }

// AppendReport is the result of an append.
type AppendReport struct {
	StartingVersion     int64            `json:"starting_version"`
	CommittedVersion    int64            `json:"committed_version"`
	Rows                int64            `json:"rows"`
	RowsReplaced        int64            `json:"rows_replaced"`
	DataFiles           []DataFileReport `json:"data_files"`
	Compression         string           `json:"compression"`
	MaxRowsPerRowGroup  int64            `json:"max_rows_per_row_group"`
	MaxBytesPerRowGroup int64            `json:"max_bytes_per_row_group"`
	RequestID           *string          `json:"request_id"`
	Replayed            bool             `json:"replayed"`
}

// DataFileReport describes one data file of an append.
type DataFileReport struct {
	Path      string `json:"path"` // relative to the table
	Rows      int64  `json:"rows"`
	RowGroups int    `json:"row_groups"`
	Bytes     int64  `json:"bytes"`
}

// AddColumnsReport is the result of adding columns.
type AddColumnsReport struct {
	StartingVersion  int64    `json:"starting_version"`
	CommittedVersion int64    `json:"committed_version"`
	Columns          []string `json:"columns"` // those that were added
}

// SetPropertiesReport is the result of setting properties. Both versions are
// the same where nothing changed.
type SetPropertiesReport struct {
	StartingVersion  int64             `json:"starting_version"`
	CommittedVersion int64             `json:"committed_version"`
	Properties       map[string]string `json:"properties"` // all that clients have set
}

// CheckpointReport is the result of writing a checkpoint.
type CheckpointReport struct {
	Version int64  `json:"version"`
	Path    string `json:"path"` // relative to the table
	Bytes   int64  `json:"bytes"`
}

// UpdateReport is the result of an update of rows.
type UpdateReport struct {
	StartingVersion  int64 `json:"starting_version"`
	CommittedVersion int64 `json:"committed_version"`
	RowsUpdated      int64 `json:"rows_updated"`
	// SegmentsRewritten counts data files; the bytes are those of data files
	// alone.
	SegmentsRewritten    int64 `json:"segments_rewritten"`
	SourceFileBytes      int64 `json:"source_file_bytes"`
	ReplacementFileBytes int64 `json:"replacement_file_bytes"`
	NoOp                 bool  `json:"no_op"`
}

// DropReport is the result of dropping a table, or of trying to.
type DropReport struct {
	Table   string `json:"table"`
	Version int64  `json:"version"`
	Files   int64  `json:"files"`
	Bytes   int64  `json:"bytes"`
	DryRun  bool   `json:"dry_run"`
}

// TableSummary is one line of a listing. All but the name are nil for a table
// that cannot be opened.
type TableSummary struct {
	Table         string  `json:"table"`
	Version       *int64  `json:"version"`
	CommittedAt   *Time   `json:"committed_at"`
	FormatVersion *string `json:"format_version"`
	Rows          *int64  `json:"rows"`
	Files         *int64  `json:"files"`
	Bytes         *int64  `json:"bytes"`
}

// Column is a column of a table as answers show it.
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
}

// Granularity marshals as text for timestamps, as a number for integers and as
// null where there is none.
type Granularity tabledef.Granularity

// MarshalJSON implements json.Marshaler.
func (g Granularity) MarshalJSON() ([]byte, error) {
	switch {
	case g.N == 0:
		return []byte("null"), nil
	case g.Unit == "":
		return strconv.AppendUint(nil, g.N, 10), nil
	default:
		return json.Marshal(tabledef.Granularity(g).String())
	}
}

// Word is a text that is null in JSON where there is none: a plain Delta table has
// no index column.
type Word string

// MarshalJSON implements json.Marshaler.
func (w Word) MarshalJSON() ([]byte, error) {
	if w == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(w))
}

// Description says what a table is and holds at one version.
type Description struct {
	Table            string            `json:"table"`
	TableID          string            `json:"table_id"`
	Version          int64             `json:"version"`
	CommittedAt      Time              `json:"committed_at"`
	FormatVersion    string            `json:"format_version"`
	IndexColumn      Word              `json:"index_column"`
	IndexType        Word              `json:"index_type"`
	IndexGranularity Granularity       `json:"index_granularity"`
	Timezone         *string           `json:"timezone"`
	EntityColumns    []string          `json:"entity_columns"`
	Uniqueness       Word              `json:"uniqueness"`
	IngestTimeColumn string            `json:"ingest_time_column"`
	Columns          []Column          `json:"columns"`    // nil before a schema was adopted
	SchemaIPC        []byte            `json:"schema_ipc"` // base64 in JSON; nil likewise
	Rows             int64             `json:"rows"`       // −1 where the log does not say and a file cannot be read
	Files            int64             `json:"files"`
	Bytes            int64             `json:"bytes"`
	Entities         int64             `json:"entities"`
	IndexMin         any               `json:"index_min"` // smallest stored index value, nil without rows
	IndexMax         any               `json:"index_max"`
	Properties       map[string]string `json:"properties"`

	// Schema is the declared Arrow schema without the insertion-time column;
	// nil before one was adopted.
	Schema *arrow.Schema `json:"-"`
}
