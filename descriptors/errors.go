package descriptors

// ErrorInfo describes a token of the protocol for people: the reference of
// errors and the hints of the command line are made of it.
type ErrorInfo struct {
	Token string
	// Fields are the keys of the machine-readable parts, beside "table", which
	// is there whenever a table is concerned.
	Fields []string
	// Remedy says what to do, as one sentence without a full stop.
	Remedy string
}

// Errors lists the tokens of the protocol in the order of its reference.
var Errors = []ErrorInfo{
	{"INVALID", []string{"field", "column", "type", "row", "value"}, "correct the field or column that is named"},
	{"STREAM_INCOMPLETE", []string{"expected_rows", "rows"}, "send the whole stream again: it ended before its announced end, and nothing was stored"},
	{"SCHEMA_MISMATCH", []string{"column", "expected", "found", "row"}, "send the columns with the types that describe_table shows"},
	{"NULL_KEY", []string{"column", "row"}, "fill the index and entity columns of the row that is named"},
	{"DUPLICATE_SOURCE_KEY", []string{"reason", "rows_seen", "violations", "example_key"}, "send one row for each key"},
	{"UNMATCHED_SOURCE_KEY", []string{"reason", "rows_seen", "violations", "example_key"}, "send only keys that the table has a row for; append the others"},
	{"AMBIGUOUS_TARGET_KEY", []string{"reason", "rows_seen", "violations", "example_key"}, "the table holds several rows with this key, so an update cannot tell which is meant"},
	{"TABLE_NOT_FOUND", nil, "look at the list of tables; create the table first"},
	{"VERSION_NOT_FOUND", []string{"version", "current"}, "ask for a version from 0 to the current one, see the history"},
	{"VERSION_EXPIRED", []string{"version", "current"}, "ask for a newer version: the files of this one were cleaned up"},
	{"TABLE_EXISTS", nil, "take another name, or drop the table that has it"},
	{"REQUEST_ID_REUSED", []string{"request_id", "version"}, "give other rows another request id: this one stands for rows that are stored already"},
	{"INTERVAL_OVERLAP", []string{"conflict_count", "entity", "interval", "version"}, "send only rows whose intervals are free; the table holds one row for each entity and interval"},
	{"DUPLICATE_INTERVAL", []string{"entity", "interval", "rows", "staged"}, "send one row for each entity and interval; the two rows that are named share one"},
	{"UNIQUENESS_VIOLATED", []string{"violations", "entity", "interval"}, "the table holds several rows in one interval; mend it first"},
	{"NO_GRANULARITY", nil, "the table has no granularity, and so no intervals to ask for; create it with one"},
	{"NOT_APPEND_ONLY", []string{"version", "operation"}, "read the table as a whole again, or pass over such versions with `changes` `ignore`"},
	{"FORMAT_UNREADABLE", []string{"table_format", "supported_format"}, "use a newer Contrail: a newer one made the table"},
	{"FORMAT_UNWRITABLE", []string{"table_format", "supported_format"}, "use a newer Contrail to write, or upgrade the table"},
	{"UNSUPPORTED", []string{"feature", "path"}, "this table uses what Contrail does not take; other Delta software may"},
	{"VERSION_CONFLICT", []string{"expected", "found"}, "read the table again and repeat with its version"},
	{"CLOCK_BEHIND", []string{"newest"}, "set the clock of the machine: it is behind the newest commit"},
	{"COMMIT_UNKNOWN", []string{"request_id"}, "repeat it with the same request id, or look for the id in the history"},
	{"MESSAGE_TOO_LARGE", []string{"limit_bytes", "bytes"}, "send smaller batches, or raise limits.max_receive_message_bytes"},
	{"TOO_MANY_STREAMS", []string{"limit"}, "run fewer calls at a time"},
	{"QUEUE_TIMEOUT", []string{"wait_ms"}, "repeat it later: the service is busy"},
	{"STORAGE_FULL", nil, "make room on the disk, then repeat it"},
	{"TIMED_OUT", []string{"wait", "limit_ms"}, "send and read without long pauses, then repeat it"},
	{"STORE_UNAVAILABLE", nil, "repeat it: nothing was changed"},
	{"DRAINING", nil, "repeat it when the service is up again"},
	{"VACUUM_INCOMPLETE", []string{"path", "partial_report"}, "run it again: it goes on where it stopped"},
	{"CORRUPT", []string{"path"}, "the file is damaged; restore it from a copy"},
	{"FILE_MISSING", []string{"path", "version"}, "the file is gone; restore it, or read another version"},
	{"INTERNAL", []string{"incident"}, "look for the incident in the service's log"},
}

// ErrorInfoOf finds what is known of a token.
func ErrorInfoOf(token string) (ErrorInfo, bool) {
	for _, e := range Errors {
		if e.Token == token {
			return e, true
		}
	}
	return ErrorInfo{}, false
}
