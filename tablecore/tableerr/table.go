package tableerr

import (
	"cmp"
	"fmt"
)

// VersionConflict reports that the table's version is not the expected one, or
// that another commit came first and may not be passed.
type VersionConflict struct {
	About
	Expected, Found int64
}

func (e *VersionConflict) Error() string { return e.Text() }

// Token implements Error.
func (e *VersionConflict) Token() Token { return TokenVersionConflict }

// Text implements Error.
func (e *VersionConflict) Text() string {
	return fmt.Sprintf("%s is at version %d, not %d; read it again and retry", e.object(), e.Found, e.Expected)
}

// Fields implements Error.
func (e *VersionConflict) Fields() []Field {
	return e.fields(Field{"expected", e.Expected}, Field{"found", e.Found})
}

// TableNotFound reports a name under which there is no table, or another one
// than the request's table_id says.
type TableNotFound struct{ About }

func (e *TableNotFound) Error() string { return e.Text() }

// Token implements Error.
func (e *TableNotFound) Token() Token { return TokenTableNotFound }

// Text implements Error.
func (e *TableNotFound) Text() string {
	return fmt.Sprintf("there is no such table: %s", e.object())
}

// Fields implements Error.
func (e *TableNotFound) Fields() []Field { return e.fields() }

// TableExists reports a name that is taken, also by a name that differs only
// in case.
type TableExists struct {
	About
	Other string // the table with the name that differs only in case; "" = the same name
}

func (e *TableExists) Error() string { return e.Text() }

// Token implements Error.
func (e *TableExists) Token() Token { return TokenTableExists }

// Text implements Error.
func (e *TableExists) Text() string {
	if e.Other != "" {
		return fmt.Sprintf("%s exists already, and names of tables and namespaces may not differ only in case", e.Other)
	}
	return fmt.Sprintf("%s exists already", e.object())
}

// Fields implements Error.
func (e *TableExists) Fields() []Field { return e.fields() }

// VersionNotFound reports a version the table never had.
type VersionNotFound struct {
	About
	Version, Current int64  // Version is −1 for a time before the first one
	Msg              string // a more exact sentence, when there is one
}

func (e *VersionNotFound) Error() string { return e.Text() }

// Token implements Error.
func (e *VersionNotFound) Token() Token { return TokenVersionNotFound }

// Text implements Error.
func (e *VersionNotFound) Text() string {
	if e.Msg != "" {
		return e.Msg
	}
	return fmt.Sprintf("%s has no version %d; its current version is %d", e.object(), e.Version, e.Current)
}

// Fields implements Error.
func (e *VersionNotFound) Fields() []Field {
	var version any
	if e.Version >= 0 {
		version = e.Version
	}
	return e.fields(Field{"version", version}, Field{"current", e.Current})
}

// VersionExpired reports a version that is no longer retained.
type VersionExpired struct {
	About
	Version, Current int64
}

func (e *VersionExpired) Error() string { return e.Text() }

// Token implements Error.
func (e *VersionExpired) Token() Token { return TokenVersionExpired }

// Text implements Error.
func (e *VersionExpired) Text() string {
	return fmt.Sprintf("version %d of %s is no longer retained; its current version is %d", e.Version, e.object(), e.Current)
}

// Fields implements Error.
func (e *VersionExpired) Fields() []Field {
	return e.fields(Field{"version", e.Version}, Field{"current", e.Current})
}

// NotAppendOnly reports a commit that did more than add rows, to a scan of what
// was appended.
type NotAppendOnly struct {
	About
	Version   int64
	Operation string // as the history names it
}

func (e *NotAppendOnly) Error() string { return e.Text() }

// Token implements Error.
func (e *NotAppendOnly) Token() Token { return TokenNotAppendOnly }

// Text implements Error.
func (e *NotAppendOnly) Text() string {
	return fmt.Sprintf("version %d of %s (%s) changed or removed rows; read the table as a whole, or pass over such versions with \"changes\":\"ignore\"", e.Version, e.object(), e.Operation)
}

// Fields implements Error.
func (e *NotAppendOnly) Fields() []Field {
	return e.fields(Field{"version", e.Version}, Field{"operation", e.Operation})
}

// FormatUnreadable reports a format version this software cannot read.
type FormatUnreadable struct {
	About
	TableFormat, SupportedFormat string
}

func (e *FormatUnreadable) Error() string { return e.Text() }

// Token implements Error.
func (e *FormatUnreadable) Token() Token { return TokenFormatUnreadable }

// Text implements Error.
func (e *FormatUnreadable) Text() string {
	return fmt.Sprintf("%s has format version %q, this software reads up to %s; other Delta readers may still read it", e.object(), e.TableFormat, e.SupportedFormat)
}

// Fields implements Error.
func (e *FormatUnreadable) Fields() []Field {
	return e.fields(Field{"table_format", e.TableFormat}, Field{"supported_format", e.SupportedFormat})
}

// FormatUnwritable reports a format version this software can read but not
// write.
type FormatUnwritable struct {
	About
	TableFormat, SupportedFormat string
	// Plain says that the table is a plain Delta table, which has no index
	// column: an upgrade that names one makes it writable.
	Plain bool
}

func (e *FormatUnwritable) Error() string { return e.Text() }

// Token implements Error.
func (e *FormatUnwritable) Token() Token { return TokenFormatUnwritable }

// Text implements Error.
func (e *FormatUnwritable) Text() string {
	if e.Plain {
		return fmt.Sprintf("%s is a plain Delta table of format version %q, this software writes up to %s; other Delta readers may still read it; "+
			"for all but scans and listings upgrade it: flight-admin upgrade %s --index-column COLUMN", e.object(), e.TableFormat, e.SupportedFormat, cmp.Or(e.Table, "TABLE"))
	}
	return fmt.Sprintf("%s has format version %q, this software writes up to %s; other Delta readers may still read it", e.object(), e.TableFormat, e.SupportedFormat)
}

// Fields implements Error.
func (e *FormatUnwritable) Fields() []Field {
	return e.fields(Field{"table_format", e.TableFormat}, Field{"supported_format", e.SupportedFormat})
}

// CommitUnknown reports a commit whose outcome could not be learned. Nothing
// was deleted; the request id tells later whether it landed.
type CommitUnknown struct {
	About
	RequestID string
	Cause     error
}

func (e *CommitUnknown) Error() string { return e.Text() }

// Unwrap returns the cause.
func (e *CommitUnknown) Unwrap() error { return e.Cause }

// Token implements Error.
func (e *CommitUnknown) Token() Token { return TokenCommitUnknown }

// Text implements Error.
func (e *CommitUnknown) Text() string {
	return fmt.Sprintf("it is not known whether the commit to %s landed; repeat it with request id %q, or look it up in the history", e.object(), e.RequestID)
}

// Fields implements Error.
func (e *CommitUnknown) Fields() []Field { return e.fields(Field{"request_id", e.RequestID}) }

// Unsupported reports a table feature or a path this software does not take.
type Unsupported struct {
	About
	Feature, Path string // one of them
	Msg           string
}

func (e *Unsupported) Error() string { return e.Text() }

// Token implements Error.
func (e *Unsupported) Token() Token { return TokenUnsupported }

// Text implements Error.
func (e *Unsupported) Text() string {
	if e.Msg != "" {
		return e.Msg
	}
	if e.Path != "" {
		return fmt.Sprintf("%s refers to %q outside its directory", e.object(), e.Path)
	}
	return fmt.Sprintf("%s uses the feature %s, which this software does not support", e.object(), e.Feature)
}

// Fields implements Error.
func (e *Unsupported) Fields() []Field {
	if e.Path != "" {
		return e.fields(Field{"path", e.Path})
	}
	return e.fields(Field{"feature", e.Feature})
}
