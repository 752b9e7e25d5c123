package tabledef

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// maxSchemaBytes bounds the IPC form of a schema.
const maxSchemaBytes = 16 << 20

// IPC framing: a continuation marker and the message's length come before a
// message; the marker with length 0 ends a stream.
const (
	ipcContinuation = 0xFFFFFFFF
	ipcPrefix       = 8
)

// fieldIDKey is what Parquet readers add to fields and nobody means.
const fieldIDKey = "PARQUET:field_id"

// EncodeSchemaIPC returns a schema as one encapsulated IPC message, the bytes
// of Python's schema.serialize().
func EncodeSchemaIPC(schema *arrow.Schema) (encoded []byte, err error) {
	defer func() {
		// The IPC writer panics on types it does not know.
		if r := recover(); r != nil {
			encoded, err = nil, fmt.Errorf("schema has no IPC form: %v", r)
		}
	}()
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(schema))
	if err := w.Close(); err != nil {
		return nil, err
	}
	all := b.Bytes()
	if len(all) < ipcPrefix {
		return nil, errors.New("the IPC writer wrote no schema")
	}
	n := ipcPrefix + int(binary.LittleEndian.Uint32(all[4:]))
	return all[:min(n, len(all))], nil
}

// DecodeSchemaIPC reads one encapsulated IPC schema message, with or without
// an end-of-stream marker after it. The bytes may be hostile: the work is
// bounded by their number and the error is an ordinary one.
func DecodeSchemaIPC(data []byte) (*arrow.Schema, error) {
	if len(data) > maxSchemaBytes {
		return nil, fmt.Errorf("a schema has at most %d bytes, this one has %d", maxSchemaBytes, len(data))
	}
	if len(data) < ipcPrefix || binary.LittleEndian.Uint32(data) != ipcContinuation {
		return nil, errors.New("the bytes are no IPC message")
	}
	n := binary.LittleEndian.Uint32(data[4:])
	if uint64(n) > uint64(len(data)-ipcPrefix) {
		return nil, errors.New("the IPC message is cut short")
	}
	message, rest := data[ipcPrefix:ipcPrefix+int(n)], data[ipcPrefix+int(n):]
	if len(rest) > 0 && !bytes.Equal(rest, []byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}) {
		return nil, errors.New("there are bytes after the IPC message")
	}
	if err := CheckSchemaMessage(message); err != nil {
		return nil, err
	}
	r, err := ipc.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer r.Release()
	schema := r.Schema()
	if schema == nil {
		return nil, r.Err()
	}
	md := schema.Metadata()
	return arrow.NewSchema(schema.Fields(), &md), nil // without the writer's byte order
}

// EncodeArrowSchema returns a declared schema as the text of the table
// property contrail.arrow-schema.
func EncodeArrowSchema(declared *arrow.Schema) (string, error) {
	data, err := EncodeSchemaIPC(declared)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

// DecodeArrowSchema reads what EncodeArrowSchema wrote; it is as safe as
// DecodeSchemaIPC.
func DecodeArrowSchema(text string) (*arrow.Schema, error) {
	if len(text) > base64.StdEncoding.EncodedLen(maxSchemaBytes) {
		return nil, fmt.Errorf("a schema has at most %d bytes", maxSchemaBytes)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return DecodeSchemaIPC(data)
}

// CleanSchema returns the schema without what belongs to its writer and not to
// the table: the schema-level keys of pandas, Polars, Arrow and Parquet, and
// Parquet field ids at any depth. Extension types are given as by
// WithoutExtensions.
func CleanSchema(schema *arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, schema.NumFields())
	for i, f := range schema.Fields() {
		fields[i] = mapFields(f, cleanField)
	}
	md := dropKeys(schema.Metadata(), writerMade)
	return arrow.NewSchema(fields, &md)
}

func writerMade(key string) bool {
	lower := strings.ToLower(key)
	return lower == "pandas" || strings.HasPrefix(lower, "polars") ||
		strings.HasPrefix(key, "ARROW:") || strings.HasPrefix(key, "PARQUET:")
}

func dropKeys(md arrow.Metadata, drop func(string) bool) arrow.Metadata {
	var keys, values []string
	for i, key := range md.Keys() {
		if !drop(key) {
			keys = append(keys, key)
			values = append(values, md.Values()[i])
		}
	}
	return arrow.NewMetadata(keys, values)
}

// cleanField writes extension types as IPC does and drops Parquet's ids.
func cleanField(f arrow.Field) arrow.Field {
	f = writeExtension(f)
	f.Metadata = dropKeys(f.Metadata, func(key string) bool { return key == fieldIDKey })
	return f
}
