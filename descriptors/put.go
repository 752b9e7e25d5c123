package descriptors

import "bytes"

// Append is the command of a DoPut that appends rows.
type Append struct {
	Table   string
	TableID string // "" when left out
	// Rows is how many rows the stream must hold; nil when not announced.
	Rows *int64
	// EndMarker says that only a marker message ends the stream (ParseMarker).
	EndMarker       bool
	ExpectedVersion *int64
	RequestID       string // "" when left out
	// Compression is the client's word, "" when left out; the core knows which
	// there are.
	Compression         string
	MaxRowsPerRowGroup  *int64
	MaxBytesPerRowGroup *int64
}

// maxRequestID is the longest request id, in bytes.
const maxRequestID = 128

var appendFields = []fieldOf[Append]{
	opField[Append](OpAppend),
	tableField(func(a *Append) *string { return &a.Table }),
	rowsField(func(a *Append) **int64 { return &a.Rows }),
	endField(func(a *Append) *bool { return &a.EndMarker }),
	expectedField(func(a *Append) **int64 { return &a.ExpectedVersion }),
	requestIDField(func(a *Append) *string { return &a.RequestID }),
	compressionField(func(a *Append) *string { return &a.Compression }),
	groupRowsField(func(a *Append) **int64 { return &a.MaxRowsPerRowGroup }),
	groupBytesField(func(a *Append) **int64 { return &a.MaxBytesPerRowGroup }),
	tableIDField(func(a *Append) *string { return &a.TableID }),
}

// rowsField, endField and requestIDField are those of every put.
func rowsField[T any](target func(*T) **int64) fieldOf[T] {
	return fieldOf[T]{Field{"rows", "int64", false, "The stream must hold exactly so many rows, else STREAM_INCOMPLETE. Not together with `end`."}, optionalInto(0, target)}
}

func endField[T any](target func(*T) *bool) fieldOf[T] {
	return fieldOf[T]{Field{"end", "string", false, "`marker`: only a metadata-only message `{\"commit\":true,\"rows\":N}` ends the stream, else STREAM_INCOMPLETE."},
		func(into *T, v value) *fault {
			_, f := v.word("marker")
			*target(into) = f == nil
			return f
		}}
}

// compressionField, groupRowsField and groupBytesField are those of puts that
// write new rows.
func compressionField[T any](target func(*T) *string) fieldOf[T] {
	return fieldOf[T]{Field{"compression", "string", false, "`auto` (default), `zstd`, `snappy`, `lz4_raw` or `uncompressed`, in any case."}, textInto(target)}
}

func groupRowsField[T any](target func(*T) **int64) fieldOf[T] {
	return fieldOf[T]{Field{"max_rows_per_row_group", "int64", false, "Rows that close a row group; default 262144."}, optionalInto(1, target)}
}

func groupBytesField[T any](target func(*T) **int64) fieldOf[T] {
	return fieldOf[T]{Field{"max_bytes_per_row_group", "int64", false, "Estimated encoded bytes that close a row group; default 134217728."}, optionalInto(1, target)}
}

func requestIDField[T any](target func(*T) *string) fieldOf[T] {
	return fieldOf[T]{Field{"request_id", "string", false, "1 to 128 printable ASCII characters; a known one is answered with its first report."},
		func(into *T, v value) *fault {
			id, f := v.requestID()
			*target(into) = id
			return f
		}}
}

func (v value) requestID() (string, *fault) {
	id, f := v.filledText()
	if f != nil {
		return "", f
	}
	if len(id) > maxRequestID {
		return "", faultf("has %d bytes, more than %d", len(id), maxRequestID)
	}
	for i := 0; i < len(id); i++ {
		if c := id[i]; c < ' ' || c > '~' {
			return "", faultf("has a character other than printable ASCII at byte %d", i)
		}
	}
	return id, nil
}

// Put is what the command of a DoPut asks for: an *Append, an *UpdateRows or a
// *Stage.
type Put interface {
	TableRequest
	// Encode returns a command that ParsePut reads as the same request.
	Encode() ([]byte, error)
}

// ParsePut reads the CMD descriptor of a DoPut.
func ParsePut(command []byte) (Put, error) {
	const root = "command"
	v, op, err := parseOp(root, command)
	if err != nil {
		return nil, err
	}
	switch op {
	case OpAppend:
		return asPut(parseFields(root, v, appendFields, func(a *Append) *fault { return oneEnd(a.Rows, a.EndMarker) }))
	case OpUpdateRows:
		return asPut(parseFields(root, v, updateRowsFields, func(u *UpdateRows) *fault { return oneEnd(u.Rows, u.EndMarker) }))
	case OpStage:
		return asPut(parseFields(root, v, stageFields, func(s *Stage) *fault { return oneEnd(s.Rows, s.EndMarker) }))
	}
	return nil, stampTable(misplaced(op).inKey("op").invalid(root), v)
}

// asPut makes nothing of a request that was refused.
func asPut[P Put](request P, err error) (Put, error) {
	if err != nil {
		return nil, err
	}
	return request, nil
}

// oneEnd refuses two announced ends.
func oneEnd(rows *int64, marker bool) *fault {
	if rows != nil && marker {
		return faultf("goes not together with rows: a stream has one announced end").inKey("end")
	}
	return nil
}

// Encode returns the command that ParsePut reads as a.
func (a *Append) Encode() ([]byte, error) {
	var w objectWriter
	w.text("op", OpAppend)
	w.text("table", a.Table)
	w.ending(a.Rows, a.EndMarker)
	w.optional("expected_version", a.ExpectedVersion)
	w.filledText("request_id", a.RequestID)
	w.fileSettings(a.Compression, a.MaxRowsPerRowGroup, a.MaxBytesPerRowGroup)
	w.filledText("table_id", a.TableID)
	return w.finish()
}

// ending writes what rowsField and endField read.
func (w *objectWriter) ending(rows *int64, marker bool) {
	w.optional("rows", rows)
	if marker {
		w.text("end", "marker")
	}
}

// fileSettings writes what compressionField, groupRowsField and groupBytesField
// read.
func (w *objectWriter) fileSettings(compression string, groupRows, groupBytes *int64) {
	w.filledText("compression", compression)
	w.optional("max_rows_per_row_group", groupRows)
	w.optional("max_bytes_per_row_group", groupBytes)
}

// markerMessage is the metadata-only message that ends a put which announced
// a marker.
type markerMessage struct {
	commit bool
	rows   int64
}

var markerFields = []fieldOf[markerMessage]{
	{Field{"commit", "bool", true, "`true`."}, boolInto(func(m *markerMessage) *bool { return &m.commit })},
	{Field{"rows", "int64", true, "The rows that the whole stream holds."},
		integerInto(0, func(m *markerMessage) *int64 { return &m.rows })},
}

// ParseMarker reads the app_metadata of a metadata-only message in a put that
// announced a marker. Such messages are free for other uses, so only an object
// with the key "commit" is taken for a marker; ok is false for all others. A
// message that means to be a marker and is none, is an error.
func ParseMarker(metadata []byte) (rows int64, ok bool, err error) {
	const root = "marker"
	if !bytes.Contains(metadata, []byte("commit")) || checkSyntax(metadata) != nil {
		return 0, false, nil
	}
	v := trimmed(metadata)
	if !hasMember(v, "commit") {
		return 0, false, nil
	}
	m, f := decode(v, markerFields)
	if f == nil && !m.commit {
		f = faultf("is false in the message that ends the stream").inKey("commit")
	}
	if f != nil {
		return 0, false, f.inKey(root).invalid(root)
	}
	return m.rows, true, nil
}

// EncodeMarker returns the marker message for a stream of that many rows.
func EncodeMarker(rows int64) []byte {
	var w objectWriter
	w.raw("commit", []byte("true"))
	w.integer("rows", rows)
	marker, _ := w.finish()
	return marker
}

func hasMember(v value, name string) bool {
	if v[0] != '{' {
		return false
	}
	for key := range v.members() {
		if key == name {
			return true
		}
	}
	return false
}
