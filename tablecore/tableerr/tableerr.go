// Package tableerr holds the typed errors of the table core.
//
// Each error condition of the service is one type with a stable token and
// machine-readable fields. The core returns these types (found with
// errors.As), the Flight service maps them to status codes and trailers in one
// place, and clients tell them apart by token. The package is a leaf: it
// imports nothing of the project.
package tableerr

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
)

// Token is the stable name of an error condition, as clients see it.
type Token string

// The tokens of the protocol. Each belongs to exactly one error type.
const (
	TokenInvalid            Token = "INVALID"
	TokenStreamIncomplete   Token = "STREAM_INCOMPLETE"
	TokenSchemaMismatch     Token = "SCHEMA_MISMATCH"
	TokenNullKey            Token = "NULL_KEY"
	TokenDuplicateInterval  Token = "DUPLICATE_INTERVAL"
	TokenIntervalOverlap    Token = "INTERVAL_OVERLAP"
	TokenDuplicateSourceKey Token = "DUPLICATE_SOURCE_KEY"
	TokenUnmatchedSourceKey Token = "UNMATCHED_SOURCE_KEY"
	TokenAmbiguousTargetKey Token = "AMBIGUOUS_TARGET_KEY"
	TokenVersionConflict    Token = "VERSION_CONFLICT"
	TokenTableNotFound      Token = "TABLE_NOT_FOUND"
	TokenTableExists        Token = "TABLE_EXISTS"
	TokenVersionNotFound    Token = "VERSION_NOT_FOUND"
	TokenVersionExpired     Token = "VERSION_EXPIRED"
	TokenRequestIDReused    Token = "REQUEST_ID_REUSED"
	TokenFormatUnreadable   Token = "FORMAT_UNREADABLE"
	TokenFormatUnwritable   Token = "FORMAT_UNWRITABLE"
	TokenCommitUnknown      Token = "COMMIT_UNKNOWN"
	TokenUnsupported        Token = "UNSUPPORTED"
	TokenFileMissing        Token = "FILE_MISSING"
	TokenUniquenessViolated Token = "UNIQUENESS_VIOLATED"
	TokenNoGranularity      Token = "NO_GRANULARITY"
	TokenNotAppendOnly      Token = "NOT_APPEND_ONLY"
	TokenVacuumIncomplete   Token = "VACUUM_INCOMPLETE"
	TokenClockBehind        Token = "CLOCK_BEHIND"
	TokenMessageTooLarge    Token = "MESSAGE_TOO_LARGE"
	TokenTooManyStreams     Token = "TOO_MANY_STREAMS"
	TokenQueueTimeout       Token = "QUEUE_TIMEOUT"
	TokenStorageFull        Token = "STORAGE_FULL"
	TokenStoreUnavailable   Token = "STORE_UNAVAILABLE"
	TokenDraining           Token = "DRAINING"
	TokenTimedOut           Token = "TIMED_OUT"
	TokenCorrupt            Token = "CORRUPT"
)

// Field is one machine-readable part of an error. Value marshals to JSON.
type Field struct {
	Key   string
	Value any
}

// Error is implemented by every error type of this package.
type Error interface {
	error
	// Token names the condition.
	Token() Token
	// Text is the sentence for a person, without token and fields.
	Text() string
	// Fields lists the machine-readable parts in their documented order, the
	// table first where one is concerned.
	Fields() []Field

	about() *About
}

// About carries the table an error is about. Error types embed it.
type About struct {
	// Table is the full name, such as "default.weather"; empty when no table
	// is concerned or it is not known yet.
	Table string
}

func (a *About) about() *About { return a }

// fields puts the table before an error's own fields.
func (a *About) fields(own ...Field) []Field {
	if a.Table == "" {
		return own
	}
	return append([]Field{{"table", a.Table}}, own...)
}

// object is the table's name for use in a sentence.
func (a *About) object() string {
	if a.Table == "" {
		return "the table"
	}
	return a.Table
}

// WithTable records the table's name in the first Error in err's chain unless
// it already names one, and returns err. Layers below the warehouse do not
// know the table's name; the handle that does stamps it once.
func WithTable(err error, table string) error {
	var e Error
	if !errors.As(err, &e) {
		return err
	}
	stamping.Lock()
	defer stamping.Unlock()
	if e.about().Table == "" {
		e.about().Table = table
	}
	return err
}

// stamping guards the tables of all errors: callers that waited for the same
// work get the same error, and each of them stamps it.
var stamping sync.Mutex

// TokenOf returns the token of the first Error in err's chain, or "".
func TokenOf(err error) Token {
	var e Error
	if errors.As(err, &e) {
		return e.Token()
	}
	return ""
}

// NamedValue is a column's name with a typed value.
type NamedValue struct {
	Name  string
	Value any
}

// Values is an entity identity or a key: column values in declared order. It
// marshals as a JSON object that keeps this order; an empty one is {}.
type Values []NamedValue

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, nv := range v {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(nv.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(nv.Value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
