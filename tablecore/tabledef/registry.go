package tabledef

import (
	"sort"
	"strconv"
	"strings"

	"contrail/tablecore/tableerr"
)

// Level says who may set a property, and when.
type Level string

// The levels of a property.
const (
	CreateOnly Level = "create only" // by create_table, never changed
	Settable   Level = "settable"    // by create_table and set_properties
	Managed    Level = "managed"     // by Contrail alone
)

// Kind is the form of a property's value.
type Kind string

// The kinds of property values.
const (
	KindText     Kind = "text"
	KindBool     Kind = "true or false"
	KindOnOff    Kind = "on or off"
	KindDuration Kind = "duration such as 7d"
	KindBytes    Kind = "number of bytes"
	KindTime     Kind = "time in RFC 3339"
	KindJSON     Kind = "JSON"
)

// Property describes one key of a table's configuration.
type Property struct {
	Key     string
	Kind    Kind
	Default string
	Level   Level
	Since   string // format version
	Text    string
}

// Keys of a table's configuration that Contrail reads.
const (
	KeyFormatVersion  = "contrail.format-version"
	KeyIndexColumn    = "contrail.index-column"
	KeyIndexType      = "contrail.index-type"
	KeyGranularity    = "contrail.index-granularity"
	KeyTimezone       = "contrail.timezone"
	KeyEntityColumns  = "contrail.entity-columns"
	KeyUniqueness     = "contrail.uniqueness"
	KeyIngestTime     = "contrail.ingest-time-column"
	KeyColumnsAdded   = "contrail.columns-added"
	KeyTimestampNS    = "contrail.timestamp-ns"
	KeyArrowSchema    = "contrail.arrow-schema"
	KeyKeepUntil      = "contrail.keep-snapshots-until"
	KeyRetainSnapshot = "contrail.snapshot-retention"
	KeyRetention      = "contrail.retention"
	KeyMaintenance    = "contrail.maintenance"
	KeyTargetBytes    = "contrail.target-file-bytes"
)

// Registry lists every property Contrail knows. It drives validation, the
// command line and the docs.
var Registry = []Property{
	{KeyFormatVersion, KindText, "0.1.0", Managed, "0.1.0", "version of the on-disk format"},
	{KeyIndexColumn, KindText, "", CreateOnly, "0.1.0", "column that orders the rows"},
	{KeyIndexType, KindText, "", CreateOnly, "0.1.0", "timestamp, int64 or uint64"},
	{KeyGranularity, KindText, "", CreateOnly, "0.1.0", "width of an interval; one entity has at most one row in each"},
	{KeyTimezone, KindText, "", CreateOnly, "0.1.0", "zone the data is about; informative"},
	{KeyEntityColumns, KindJSON, "[]", CreateOnly, "0.1.0", "columns that identify a series, as a JSON array"},
	{KeyUniqueness, KindText, "reject", CreateOnly, "0.1.0", "what an append into a filled interval does: reject, overwrite or none"},
	{KeyIngestTime, KindText, "", CreateOnly, "0.3.0", "column that holds the time of insertion; empty for none"},
	{KeyColumnsAdded, KindBool, "false", Managed, "0.1.0", "an add_columns has happened, so appends may omit nullable columns"},
	{KeyTimestampNS, KindText, "long", Managed, "0.1.0", "how nanosecond timestamps are stored; reserved"},
	{KeyArrowSchema, KindText, "", Managed, "0.1.0", "declared Arrow schema, base64 of its IPC form"},
	{KeyKeepUntil, KindTime, "", Managed, "0.1.0", "no version is expired before this time"},
	{KeyRetainSnapshot, KindDuration, "7d", Settable, "0.1.0", "how long replaced files stay"},
	{KeyRetention, KindDuration, "", Settable, "0.1.0", "rows older than the newest index value minus this are dropped by maintenance; empty for never"},
	{KeyMaintenance, KindOnOff, "on", Settable, "0.1.0", "whether maintenance may rewrite files by itself"},
	{KeyTargetBytes, KindBytes, "134217728", Settable, "0.1.0", "size that rewritten data files aim at"},
	{"delta.enableInCommitTimestamps", KindBool, "true", Managed, "0.1.0", "commits carry their own, strictly increasing time"},
	{"delta.logRetentionDuration", KindText, "interval 36500 days", Managed, "0.1.0", "keeps other software from removing log files"},
	{"delta.deletedFileRetentionDuration", KindText, "interval 7 days", Managed, "0.1.0", "Delta's word for contrail.snapshot-retention"},
	{"delta.setTransactionRetentionDuration", KindText, "interval 7 days", Managed, "0.1.0", "how long request ids are remembered"},
	{"delta.appendOnly", KindBool, "false", Settable, "0.1.0", "refuses update, overwrite and rollback"},
}

var registered = func() map[string]*Property {
	m := make(map[string]*Property, len(Registry))
	for i := range Registry {
		m[Registry[i].Key] = &Registry[i]
	}
	return m
}()

// maxPropertyBytes bounds the key and the value of a user's property.
const maxPropertyBytes = 4096

// CheckProperties validates what a client sets: keys below "contrail." and
// "delta." must be registered and settable and their values of the right kind;
// any other key is the user's own.
func CheckProperties(set map[string]string) error {
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	sort.Strings(keys) // the same request gives the same error
	for _, k := range keys {
		if err := checkProperty(k, set[k]); err != nil {
			return err
		}
	}
	return nil
}

func checkProperty(key, value string) error {
	field := "properties." + key
	if key == "" || len(key)+len(value) > maxPropertyBytes {
		return tableerr.InvalidField("properties", "a property's key must not be empty, key and value together have at most %d bytes", maxPropertyBytes)
	}
	if !reservedKey(key) {
		return nil
	}
	p := registered[key]
	if p == nil {
		return tableerr.InvalidField(field, "property %s is not known", key)
	}
	if p.Level != Settable {
		return tableerr.InvalidField(field, "property %s is %s and cannot be set", key, p.Level)
	}
	if !p.Kind.accepts(value) {
		e := tableerr.InvalidField(field, "property %s takes a %s, not %q", key, p.Kind, value)
		e.Value = value
		return e
	}
	return nil
}

// reservedKey says whether a key is Contrail's or Delta's and not a user's.
func reservedKey(key string) bool {
	lower := strings.ToLower(key)
	return strings.HasPrefix(lower, "contrail.") || strings.HasPrefix(lower, "delta.")
}

func (k Kind) accepts(value string) bool {
	switch k {
	case KindBool:
		return value == "true" || value == "false"
	case KindOnOff:
		return value == "on" || value == "off"
	case KindBytes:
		n, err := strconv.ParseUint(value, 10, 62)
		return err == nil && n > 0
	case KindDuration:
		_, err := parseTimeGranularity(value)
		return err == nil
	default:
		return true
	}
}
