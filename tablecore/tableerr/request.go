package tableerr

import "fmt"

// Invalid reports a request, a setting or a value that cannot be accepted.
// Either Field (a path in the request), or Column with Type, or Column with
// Row and Value say where.
type Invalid struct {
	About
	Field  string // path in the request, such as "filter[0][1]"
	Column string // column name; nested: its path, "v.a"
	Type   string // the refused type of Column
	Row    *int64 // row over the whole stream, from 0
	Value  any    // the refused value
	Msg    string // the sentence
	Cause  error
}

// InvalidField returns an Invalid about a field of the request.
func InvalidField(field, format string, args ...any) *Invalid {
	return &Invalid{Field: field, Msg: fmt.Sprintf(format, args...)}
}

// WithValue adds the value that is refused, and returns e.
func (e *Invalid) WithValue(value any) *Invalid {
	e.Value = value
	return e
}

// InvalidColumn returns an Invalid about a column.
func InvalidColumn(column, format string, args ...any) *Invalid {
	return &Invalid{Column: column, Msg: fmt.Sprintf(format, args...)}
}

// InvalidType returns an Invalid about a column whose type is refused.
func InvalidType(column, typeName, why string) *Invalid {
	return &Invalid{Column: column, Type: typeName, Msg: fmt.Sprintf("column %q has type %s: %s", column, typeName, why)}
}

// InvalidValue returns an Invalid about one value of a column.
func InvalidValue(column string, row int64, value any, why string) *Invalid {
	return &Invalid{Column: column, Row: &row, Value: value, Msg: fmt.Sprintf("column %q, row %d: %s", column, row, why)}
}

func (e *Invalid) Error() string { return e.Text() }

// Unwrap returns the cause.
func (e *Invalid) Unwrap() error { return e.Cause }

// Token implements Error.
func (e *Invalid) Token() Token { return TokenInvalid }

// Text implements Error.
func (e *Invalid) Text() string { return e.Msg }

// Fields implements Error.
func (e *Invalid) Fields() []Field {
	var own []Field
	if e.Field != "" {
		own = append(own, Field{"field", e.Field})
	}
	if e.Column != "" || e.Field == "" && (e.Type != "" || e.Row != nil) {
		own = append(own, Field{"column", e.Column})
	}
	if e.Type != "" {
		own = append(own, Field{"type", e.Type})
	}
	if e.Row != nil {
		own = append(own, Field{"row", *e.Row})
	}
	if e.Value != nil {
		own = append(own, Field{"value", e.Value})
	}
	return e.fields(own...)
}

// StreamIncomplete reports a put whose stream ended before its announced end.
type StreamIncomplete struct {
	About
	ExpectedRows *int64 // nil when the end marker is missing
	Rows         int64  // rows that arrived
}

func (e *StreamIncomplete) Error() string { return e.Text() }

// Token implements Error.
func (e *StreamIncomplete) Token() Token { return TokenStreamIncomplete }

// Text implements Error.
func (e *StreamIncomplete) Text() string {
	if e.ExpectedRows == nil {
		return fmt.Sprintf("the stream ended after %d rows without its end marker; nothing was stored", e.Rows)
	}
	return fmt.Sprintf("the stream holds %d rows where %d were announced; nothing was stored", e.Rows, *e.ExpectedRows)
}

// Fields implements Error.
func (e *StreamIncomplete) Fields() []Field {
	var expected any
	if e.ExpectedRows != nil {
		expected = *e.ExpectedRows
	}
	return e.fields(Field{"expected_rows", expected}, Field{"rows", e.Rows})
}

// SchemaMismatch reports a stream whose columns are not the table's: a missing
// or extra column, another type, another field metadata, a column given twice,
// or (with Row) a null in a payload column that takes none.
type SchemaMismatch struct {
	About
	Column   string
	Expected string // type text; "" where the column is extra
	Found    string // type text; "" where the column is missing
	Row      *int64
	Msg      string
}

func (e *SchemaMismatch) Error() string { return e.Text() }

// Token implements Error.
func (e *SchemaMismatch) Token() Token { return TokenSchemaMismatch }

// Text implements Error.
func (e *SchemaMismatch) Text() string { return e.Msg }

// Fields implements Error.
func (e *SchemaMismatch) Fields() []Field {
	if e.Row != nil {
		return e.fields(Field{"column", e.Column}, Field{"row", *e.Row})
	}
	return e.fields(Field{"column", e.Column}, Field{"expected", orNull(e.Expected)}, Field{"found", orNull(e.Found)})
}

// orNull turns an empty text into JSON null.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// NullKey reports a null in an index or entity column.
type NullKey struct {
	About
	Column string
	Row    int64
}

func (e *NullKey) Error() string { return e.Text() }

// Token implements Error.
func (e *NullKey) Token() Token { return TokenNullKey }

// Text implements Error.
func (e *NullKey) Text() string {
	return fmt.Sprintf("key column %q is null in row %d", e.Column, e.Row)
}

// Fields implements Error.
func (e *NullKey) Fields() []Field {
	return e.fields(Field{"column", e.Column}, Field{"row", e.Row})
}

// RequestIDReused reports a request id that is known with other rows or under
// another operation.
type RequestIDReused struct {
	About
	RequestID string
	Version   int64 // the version the id committed
}

func (e *RequestIDReused) Error() string { return e.Text() }

// Token implements Error.
func (e *RequestIDReused) Token() Token { return TokenRequestIDReused }

// Text implements Error.
func (e *RequestIDReused) Text() string {
	return fmt.Sprintf("request id %q already committed other rows as version %d; use a new id", e.RequestID, e.Version)
}

// Fields implements Error.
func (e *RequestIDReused) Fields() []Field {
	return e.fields(Field{"request_id", e.RequestID}, Field{"version", e.Version})
}
