package txn

import (
	"encoding/json"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/tabledef"
)

// Names of what Contrail adds to a commit's commitInfo.
const (
	extraOperation = "contrailOperation"
	extraRequestID = "contrailRequestId"
	extraReport    = "contrailReport"
	extraCommitID  = "contrailCommitId"
)

// Extra returns the members that Contrail adds to commitInfo: the action or
// put that made the commit, the request id and the operation's report, both of
// which may be absent.
func Extra(operation, requestID string, report json.RawMessage) map[string]json.RawMessage {
	extra := map[string]json.RawMessage{extraOperation: quoted(operation)}
	if requestID != "" {
		extra[extraRequestID] = quoted(requestID)
	}
	if report != nil {
		extra[extraReport] = report
	}
	return extra
}

// ReadExtra returns what Extra has put into commitInfo: "" and nil for what is
// not there, as in other writers' commits, or is of another kind.
func ReadExtra(info *deltalog.CommitInfo) (operation, requestID string, report json.RawMessage) {
	if info == nil {
		return "", "", nil
	}
	return text(info.Extra[extraOperation]), text(info.Extra[extraRequestID]), info.Extra[extraReport]
}

func text(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func quoted(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage("null") // cannot be: a string always marshals
	}
	return raw
}

// Describe returns the metadata and protocol actions of a definition.
func Describe(def *tabledef.Definition) (*deltalog.Metadata, *deltalog.Protocol, error) {
	configuration, err := def.Configuration()
	if err != nil {
		return nil, nil, err
	}
	configuration[tabledef.KeyFileRetention] = deltalog.FormatInterval(def.SnapshotRetention())
	stored := def.Stored
	if stored == nil {
		stored = arrow.NewSchema(nil, nil)
	}
	schema, err := tabledef.DeltaSchemaJSON(stored)
	if err != nil {
		return nil, nil, err
	}
	protocol := deltalog.ContrailProtocol(HasNaiveTime(stored))
	return &deltalog.Metadata{ID: def.ID, SchemaString: schema, Configuration: configuration}, protocol, nil
}

// HasNaiveTime says whether a declared schema stores timestamps without zone,
// which Delta reads only with a feature of its own.
func HasNaiveTime(declared *arrow.Schema) bool {
	return slices.ContainsFunc(tabledef.StorageSchema(declared).Fields(), hasNaiveTime)
}

// hasNaiveTime says whether a stored field is, or contains, a timestamp
// without zone.
func hasNaiveTime(f arrow.Field) bool {
	switch t := f.Type.(type) {
	case *arrow.TimestampType:
		return t.TimeZone == ""
	case arrow.NestedType:
		return slices.ContainsFunc(t.Fields(), hasNaiveTime)
	default:
		return false
	}
}
