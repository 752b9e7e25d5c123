package descriptors

import (
	"encoding/json"
	"fmt"
	"strings"

	"contrail/tablecore/tableerr"
)

// ProtocolVersion is the version of this wire contract, as server_info tells
// it.
const ProtocolVersion = 1

// FlightMetadata is the app_metadata of a FlightInfo.
type FlightMetadata struct {
	Table    string `json:"table"`
	TableID  string `json:"table_id"`
	Version  int64  `json:"version"`
	SchemaID string `json:"schema_id"`
}

// ServerInfo is the result of server_info.
type ServerInfo struct {
	Name                   string `json:"name"`
	Version                string `json:"version"`
	ProtocolVersion        int    `json:"protocol_version"`
	FormatVersion          string `json:"format_version"`
	MaxReceiveMessageBytes int64  `json:"max_receive_message_bytes"`
	MaxSendMessageBytes    int64  `json:"max_send_message_bytes"`
	DefaultProfile         string `json:"default_profile"`
	// Served is what scans have sent since the server started.
	Served *Served `json:"served,omitempty"`
}

// Served counts scans that ended well, each part of a scan on its own, and sums
// up their statistics as the trailer x-contrail-stats gives them.
type Served struct {
	Scans            int64 `json:"scans"`
	Rows             int64 `json:"rows"`
	Bytes            int64 `json:"bytes"`
	Files            int64 `json:"files"`
	FilesSkipped     int64 `json:"files_skipped"`
	RowGroups        int64 `json:"row_groups"`
	RowGroupsSkipped int64 `json:"row_groups_skipped"`
}

// TableList is the result of list_tables; T is the core's summary of a table.
type TableList[T any] struct {
	Tables []T `json:"tables"`
}

// NewTableList returns a list that is [] and not null when it is empty.
func NewTableList[T any](tables []T) TableList[T] {
	if tables == nil {
		tables = []T{}
	}
	return TableList[T]{tables}
}

// EncodeResult returns the last message of an action, {"result":…}.
func EncodeResult(result any) ([]byte, error) {
	return EncodeMessage(struct {
		Result any `json:"result"`
	}{result})
}

// EncodeMessage returns a message of an action: an object with one member that
// says what it is, such as {"progress":…}.
func EncodeMessage(message any) ([]byte, error) {
	raw, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encode a message of an action: %w", err)
	}
	return raw, nil
}

// TableOfPath returns the table's name that a PATH descriptor stands for:
// ["table"] or ["namespace", "table"]. The characters of a name are for the
// core to check; a part with a dot is refused here because joining it would
// move the border between the parts.
func TableOfPath(path []string) (string, error) {
	if len(path) == 0 || len(path) > 2 {
		return "", tableerr.InvalidField("path", "path has %d parts where a table's name of one or two is due", len(path))
	}
	for i, part := range path {
		if strings.Contains(part, ".") {
			return "", tableerr.InvalidField(fmt.Sprintf("path[%d]", i), "path[%d] has a dot, which no part of a name may have", i)
		}
	}
	return strings.Join(path, "."), nil
}
