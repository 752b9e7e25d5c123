package tabledef

import "strconv"

// Level says who may set a property, and when.
type Level string

// The levels of a property.
const (
	CreateOnly Level = "create only" // by create_table, never changed
	Settable   Level = "settable"    // by create_table and set_properties
	Managed    Level = "managed"     // by Contrail alone
)

// Kind is the form of a property's value, in words that end a sentence such as
// "it takes …".
type Kind string

// The kinds of property values.
const (
	KindText     Kind = "text"
	KindBool     Kind = "true or false"
	KindOnOff    Kind = "on or off"
	KindDuration Kind = "a duration such as 7d"
	KindBytes    Kind = "a number of bytes"
	KindTime     Kind = "a time in RFC 3339"
	KindJSON     Kind = "JSON"
)

// Property describes one key of a table's configuration.
type Property struct {
	Key     string
	Kind    Kind
	Default string // what holds while the key is not set, "" for nothing
	Level   Level
	Since   string // format version
	Text    string // what it means
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

	// KeyFileRetention is Delta's word for KeyRetainSnapshot.
	KeyFileRetention = "delta.deletedFileRetentionDuration"
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
	{KeyRetention, KindDuration, "", Settable, "0.1.0", "files whose rows are all older than the newest index value minus this are dropped by maintenance; none where it is not set, and not for integers"},
	{KeyMaintenance, KindOnOff, "on", Settable, "0.1.0", "whether maintenance may merge files and drop old rows by itself"},
	{KeyTargetBytes, KindBytes, "134217728", Settable, "0.1.0", "size that rewritten data files aim at"},
	{"delta.enableInCommitTimestamps", KindBool, "true", Managed, "0.1.0", "commits carry their own, strictly increasing time"},
	{"delta.logRetentionDuration", KindText, "interval 36500 days", Managed, "0.1.0", "keeps other software from removing log files"},
	{KeyFileRetention, KindText, "interval 7 days", Managed, "0.1.0", "Delta's word for contrail.snapshot-retention"},
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

// PropertyOf returns what the registry says of a key; false for one that is a
// user's own or not known.
func PropertyOf(key string) (Property, bool) {
	p := registered[key]
	if p == nil {
		return Property{}, false
	}
	return *p, true
}

// accepts says whether a text is a value of the kind.
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
