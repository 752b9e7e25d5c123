package wire

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// Slots of the tables of Schema.fbs
// (https://github.com/apache/arrow/tree/main/format).
const (
	schemaFields    = 1
	fieldDictionary = 4
	fieldChildren   = 5
	encodingID      = 0
)

// layout is how many entries the parts of a record batch's header must have
// for a schema. arrow-go's reader reads entries by number without asking how
// many there are, beyond the end if need be.
type layout struct {
	nodes   int // one an array
	buffers int // without those of view arrays that hold data
	views   int // view arrays
}

// layouts are the layouts of a stream's batches and, by id, dictionaries.
type layouts struct {
	batch        layout
	dictionaries map[int64]layout
}

// errUnread says that a stream holds a type whose batches are not read. No
// table stores such a type, so the schema is refused before they would be.
var errUnread = errors.New("is not read from streams")

// layoutsOf returns the layouts of a schema, whose verified message tells the
// ids of its dictionaries.
func layoutsOf(schema *arrow.Schema, head []byte) (layouts, error) {
	l := layouts{dictionaries: map[int64]layout{}}
	message, err := fbRoot(head)
	if err != nil {
		return l, err
	}
	content, ok, err := message.table(messageHeader)
	if err != nil || !ok {
		return l, errFlatbuffer
	}
	for _, f := range schema.Fields() {
		if err := l.batch.add(f.Type); err != nil {
			return l, fmt.Errorf("column %q: %w", f.Name, err)
		}
	}
	return l, l.collect(content, schemaFields, schema.Fields())
}

// collect notes the dictionaries of fields, which a field of the message lists.
func (l *layouts) collect(parent fbTable, slot int, fields []arrow.Field) error {
	start, n, err := parent.vector(slot, 4)
	if err != nil {
		return err
	}
	if n != len(fields) {
		return errFlatbuffer
	}
	for i, f := range fields {
		field, err := parent.follow(start + 4*i)
		if err != nil {
			return err
		}
		typ := storageOf(f.Type)
		if d, ok := typ.(*arrow.DictionaryType); ok {
			if err := l.dictionary(field, d); err != nil {
				return err
			}
			typ = storageOf(d.ValueType)
		}
		if nested, ok := typ.(arrow.NestedType); ok {
			if err := l.collect(field, fieldChildren, nested.Fields()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *layouts) dictionary(field fbTable, d *arrow.DictionaryType) error {
	encoding, ok, err := field.table(fieldDictionary)
	if err != nil || !ok {
		return errFlatbuffer
	}
	id, err := encoding.int64(encodingID)
	if err != nil {
		return err
	}
	var values layout
	if err := values.add(d.ValueType); err != nil {
		return err
	}
	l.dictionaries[id] = values
	return nil
}

func storageOf(t arrow.DataType) arrow.DataType {
	if e, ok := t.(arrow.ExtensionType); ok {
		return e.StorageType()
	}
	return t
}

// add counts an array of the type and those below it.
// Layouts: https://arrow.apache.org/docs/format/Columnar.html#buffer-listing-for-each-layout
func (l *layout) add(t arrow.DataType) error {
	l.nodes++
	switch t := storageOf(t).(type) {
	case *arrow.NullType:
	case *arrow.StructType, *arrow.FixedSizeListType:
		l.buffers++
	case *arrow.BinaryType, *arrow.StringType, *arrow.LargeBinaryType, *arrow.LargeStringType, *arrow.ListViewType, *arrow.LargeListViewType:
		l.buffers += 3
	case arrow.BinaryViewDataType:
		l.buffers += 2
		l.views++
	case arrow.UnionType, *arrow.RunEndEncodedType:
		return fmt.Errorf("type %s %w", t, errUnread)
	default: // fixed width, dictionary indices, lists, maps
		l.buffers += 2
	}
	if nested, ok := storageOf(t).(arrow.NestedType); ok {
		for _, f := range nested.Fields() {
			if err := l.add(f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}
