package tabledef

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The layout below is that of Arrow's format files Message.fbs and Schema.fbs
// in the FlatBuffers encoding: a table begins with the signed distance back to
// its vtable, whose entries, from the third on, say where each field lies in
// the table (0 = left out); tables, strings and vectors are referred to by
// their unsigned distance ahead.
const (
	slotMessageHeaderType = 1
	slotMessageHeader     = 2
	slotMessageBodyLength = 3
	slotMessageMetadata   = 4
	slotFooterSchema      = 1
	slotSchemaFields      = 1
	slotSchemaMetadata    = 2
	slotFieldName         = 0
	slotFieldTypeType     = 2
	slotFieldType         = 3
	slotFieldChildren     = 5
	slotFieldMetadata     = 6
	slotKey               = 0
	slotValue             = 1
	slotTypeVector        = 1 // Timestamp's zone, Union's type ids

	headerSchema  = 1
	typeTimestamp = 10
	typeUnion     = 14
)

// maxSchemaDepth bounds the fields inside each other in a message: each level
// of MaxTypeDepth may be a map, which takes two.
const maxSchemaDepth = 2*MaxTypeDepth + 2

var errSchemaMessage = errors.New("the schema message is damaged, or nested too deep")

// CheckSchemaMessage walks the bytes of an IPC schema message without its
// framing (Flight's data_header) and refuses what the IPC reader must not be
// given: another kind of message, a body, references outside of the bytes,
// fields nested too deep, and parts that are referred to again and again so
// that a few bytes unfold into gigabytes.
func CheckSchemaMessage(message []byte) error {
	if len(message) > maxSchemaBytes {
		return fmt.Errorf("the schema message has %d bytes, more than the %d that a schema may have; it has too many columns", len(message), maxSchemaBytes)
	}
	// Bytes that are referred to once each cannot cost more than there are.
	w := schemaWalk{data: message, budget: 4*len(message) + 1024}
	if !w.message() {
		return errSchemaMessage
	}
	return nil
}

// CheckFooter does the same with the schema in the footer of an Arrow IPC file.
func CheckFooter(footer []byte) error {
	if len(footer) > maxSchemaBytes {
		return fmt.Errorf("the footer has %d bytes, more than the %d that are read; write the rows in fewer batches, or as a stream", len(footer), maxSchemaBytes)
	}
	w := schemaWalk{data: footer, budget: 4*len(footer) + 1024}
	root, ok := w.u32(0)
	if !ok || root == 0 || !w.schema(root, slotFooterSchema) {
		return errSchemaMessage
	}
	return nil
}

// schemaWalk reads FlatBuffers with every access checked. Its methods return
// false for damage; positions are offsets into data.
type schemaWalk struct {
	data   []byte
	budget int
}

func (w *schemaWalk) charge(n int) bool {
	w.budget -= n
	return w.budget >= 0
}

func (w *schemaWalk) u32(pos int) (int, bool) {
	if pos < 0 || pos > len(w.data)-4 {
		return 0, false
	}
	v := binary.LittleEndian.Uint32(w.data[pos:])
	return int(v), v <= maxSchemaBytes
}

func (w *schemaWalk) u16(pos int) (int, bool) {
	if pos < 0 || pos > len(w.data)-2 {
		return 0, false
	}
	return int(binary.LittleEndian.Uint16(w.data[pos:])), true
}

// field returns the position of a table's field, 0 when it is left out.
func (w *schemaWalk) field(table, slot int) (int, bool) {
	if table < 0 || table > len(w.data)-4 {
		return 0, false
	}
	vtable := table - int(int32(binary.LittleEndian.Uint32(w.data[table:])))
	size, ok := w.u16(vtable)
	if !ok || size%2 != 0 { // the reader takes half an entry at the end for a whole one
		return 0, false
	}
	entry := 4 + 2*slot
	if entry+2 > size {
		return 0, true
	}
	off, ok := w.u16(vtable + entry)
	if !ok || off == 0 {
		return 0, ok
	}
	return table + off, true
}

// follow returns what the reference in a table's field leads to, 0 when the
// field is left out.
func (w *schemaWalk) follow(table, slot int) (int, bool) {
	pos, ok := w.field(table, slot)
	if !ok || pos == 0 {
		return 0, ok
	}
	return w.target(pos)
}

func (w *schemaWalk) target(pos int) (int, bool) {
	off, ok := w.u32(pos)
	if !ok || off == 0 || pos+off > len(w.data)-4 {
		return 0, false
	}
	return pos + off, true
}

// vector returns where the elements of the vector or string in a table's field
// begin and how many there are, each of the given size, and charges for them.
func (w *schemaWalk) vector(table, slot, size int) (start, n int, ok bool) {
	pos, ok := w.follow(table, slot)
	if !ok || pos == 0 {
		return 0, 0, ok
	}
	n, ok = w.u32(pos)
	if !ok || n*size > len(w.data)-pos-4 || !w.charge(4+n*size) {
		return 0, 0, false
	}
	return pos + 4, n, true
}

// tables calls visit for each table of a vector.
func (w *schemaWalk) tables(table, slot int, visit func(pos int) bool) bool {
	start, n, ok := w.vector(table, slot, 4)
	for i := 0; ok && i < n; i++ {
		var pos int
		if pos, ok = w.target(start + 4*i); ok {
			ok = visit(pos)
		}
	}
	return ok
}

func (w *schemaWalk) message() bool {
	root, ok := w.u32(0)
	if !ok || root == 0 {
		return false
	}
	kind, ok := w.byteField(root, slotMessageHeaderType)
	if !ok || kind != headerSchema || !w.emptyBody(root) || !w.metadata(root, slotMessageMetadata) {
		return false
	}
	return w.schema(root, slotMessageHeader)
}

// schema walks the schema in a table's field.
func (w *schemaWalk) schema(table, slot int) bool {
	schema, ok := w.follow(table, slot)
	if !ok || schema == 0 || !w.metadata(schema, slotSchemaMetadata) {
		return false
	}
	return w.tables(schema, slotSchemaFields, func(pos int) bool { return w.oneField(pos, 1) })
}

func (w *schemaWalk) byteField(table, slot int) (byte, bool) {
	pos, ok := w.field(table, slot)
	if !ok || pos == 0 {
		return 0, ok
	}
	if pos >= len(w.data) {
		return 0, false
	}
	return w.data[pos], true
}

// emptyBody says whether a message claims no body.
func (w *schemaWalk) emptyBody(message int) bool {
	pos, ok := w.field(message, slotMessageBodyLength)
	if !ok || pos == 0 {
		return ok
	}
	return pos <= len(w.data)-8 && binary.LittleEndian.Uint64(w.data[pos:]) == 0
}

func (w *schemaWalk) metadata(table, slot int) bool {
	return w.tables(table, slot, func(pos int) bool {
		_, _, okKey := w.vector(pos, slotKey, 1)
		_, _, okValue := w.vector(pos, slotValue, 1)
		return okKey && okValue
	})
}

func (w *schemaWalk) oneField(pos, depth int) bool {
	if depth > maxSchemaDepth || !w.charge(8) {
		return false
	}
	if _, _, ok := w.vector(pos, slotFieldName, 1); !ok || !w.metadata(pos, slotFieldMetadata) || !w.fieldType(pos) {
		return false
	}
	return w.tables(pos, slotFieldChildren, func(child int) bool { return w.oneField(child, depth+1) })
}

// fieldType charges for what a type itself refers to.
func (w *schemaWalk) fieldType(field int) bool {
	kind, ok := w.byteField(field, slotFieldTypeType)
	if !ok {
		return false
	}
	pos, ok := w.follow(field, slotFieldType)
	if !ok || pos == 0 {
		return ok
	}
	switch kind {
	case typeTimestamp:
		_, _, ok = w.vector(pos, slotTypeVector, 1)
	case typeUnion:
		_, _, ok = w.vector(pos, slotTypeVector, 4)
	}
	return ok
}
