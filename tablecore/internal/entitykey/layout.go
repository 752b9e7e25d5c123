// Package entitykey turns the identity of a series, the values of a table's
// entity columns, into one key whose byte order is the order of the values,
// and rows into small codes for those keys.
//
// A key is the concatenation of its columns' values in declared order. A
// string is its bytes with 0x00 written as 0x00 0xFF, ended by 0x00 0x01; an
// int32 is 4 bytes and an int64 8 bytes, big-endian with the sign bit flipped;
// a uint64 is 8 bytes big-endian. No key is the prefix of another one, and a
// table without entity columns has one key, "". The encoding is persisted in
// coverage and entity directories: it never changes.
package entitykey

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// kind is how a column's values are encoded.
type kind uint8

const (
	kindString kind = iota
	kindInt32
	kindInt64
	kindUint64
)

// Bytes of the encoding of strings.
const (
	escape     = 0x00
	escapedNul = 0xFF
	terminator = 0x01
)

// ErrBadKey reports bytes that are no key of a layout.
var ErrBadKey = errors.New("the bytes are no entity key")

// Layout is the list of a table's entity columns. It is immutable and safe
// for concurrent use.
type Layout struct {
	names []string
	kinds []kind
}

// NewLayout returns the layout of entity columns, given with their declared
// types. A type that no entity column has is *tableerr.Invalid.
func NewLayout(fields []arrow.Field) (*Layout, error) {
	l := &Layout{}
	for _, f := range fields {
		t, ok := tabledef.EntityType(f.Type)
		if !ok {
			return nil, tableerr.InvalidType(f.Name, tabledef.TypeName(f.Type), "it is no type of an entity column")
		}
		k := kindString
		switch t.ID() {
		case arrow.INT32:
			k = kindInt32
		case arrow.INT64:
			k = kindInt64
		case arrow.UINT64:
			k = kindUint64
		}
		l.names = append(l.names, f.Name)
		l.kinds = append(l.kinds, k)
	}
	return l, nil
}

// LayoutOf returns the layout of a table, which must have a schema.
func LayoutOf(def *tabledef.Definition) (*Layout, error) {
	if def.Stored == nil {
		return nil, errors.New("the table has no schema yet")
	}
	fields := make([]arrow.Field, len(def.EntityColumns))
	for i, name := range def.EntityColumns {
		found := def.Stored.FieldIndices(name)
		if len(found) == 0 {
			return nil, fmt.Errorf("entity column %q is not in the schema", name)
		}
		fields[i] = def.Stored.Field(found[0])
	}
	return NewLayout(fields)
}

// Len returns the number of entity columns.
func (l *Layout) Len() int { return len(l.names) }

// Names returns the entity columns' names; the caller must not change them.
func (l *Layout) Names() []string { return l.names }

// AppendValue appends the encoding of one column's value, which must be a
// string, int32, int64 or uint64 as the column's type demands.
func (l *Layout) AppendValue(dst []byte, column int, value any) ([]byte, error) {
	if column < 0 || column >= len(l.kinds) {
		return nil, fmt.Errorf("there is no entity column %d", column)
	}
	switch v := value.(type) {
	case string:
		if l.kinds[column] == kindString {
			return appendString(dst, v), nil
		}
	case int32:
		if l.kinds[column] == kindInt32 {
			return binary.BigEndian.AppendUint32(dst, uint32(v)^1<<31), nil
		}
	case int64:
		if l.kinds[column] == kindInt64 {
			return binary.BigEndian.AppendUint64(dst, uint64(v)^1<<63), nil
		}
	case uint64:
		if l.kinds[column] == kindUint64 {
			return binary.BigEndian.AppendUint64(dst, v), nil
		}
	}
	return nil, fmt.Errorf("entity column %q takes no %T", l.names[column], value)
}

// Key returns the key of an identity given as one value a column.
func (l *Layout) Key(values ...any) (string, error) {
	if len(values) != len(l.kinds) {
		return "", fmt.Errorf("an identity has %d values, not %d", len(l.kinds), len(values))
	}
	var b []byte
	for i, v := range values {
		var err error
		if b, err = l.AppendValue(b, i, v); err != nil {
			return "", err
		}
	}
	return string(b), nil
}

func appendString(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, escape)
		if i < 0 {
			return append(append(dst, s...), escape, terminator)
		}
		dst = append(append(dst, s[:i]...), escape, escapedNul)
		s = s[i+1:]
	}
}

// Decode returns a key's values: string, int32, int64 or uint64, one a column.
// Anything but a whole key of this layout is ErrBadKey.
func (l *Layout) Decode(key string) ([]any, error) {
	values := make([]any, len(l.kinds))
	for i, k := range l.kinds {
		var err error
		if values[i], key, err = decodeValue(k, key); err != nil {
			return nil, err
		}
	}
	if key != "" {
		return nil, ErrBadKey
	}
	return values, nil
}

// Valid says whether the bytes are a whole key of this layout.
func (l *Layout) Valid(key string) bool {
	for _, k := range l.kinds {
		size := 8
		switch k {
		case kindInt32:
			size = 4
		case kindString:
			size = stringSize(key)
		}
		if size == 0 || size > len(key) {
			return false
		}
		key = key[size:]
	}
	return key == ""
}

// stringSize returns the size of the encoded string at the front of a key, 0
// for damage.
func stringSize(key string) int {
	for at := 0; ; {
		i := strings.IndexByte(key[at:], escape)
		if i < 0 || at+i+1 == len(key) {
			return 0
		}
		at += i + 2
		switch key[at-1] {
		case terminator:
			return at
		case escapedNul:
		default:
			return 0
		}
	}
}

// Values returns a key's values under their columns' names, as errors and
// reports show them. Bytes that are no key of this layout give an empty
// identity.
func (l *Layout) Values(key string) tableerr.Values {
	values, err := l.Decode(key)
	if err != nil {
		return tableerr.Values{}
	}
	out := make(tableerr.Values, len(values))
	for i, v := range values {
		out[i] = tableerr.NamedValue{Name: l.names[i], Value: v}
	}
	return out
}

// decodeValue cuts one value off the front of a key.
func decodeValue(k kind, key string) (value any, rest string, err error) {
	switch k {
	case kindString:
		return decodeString(key)
	case kindInt32:
		if len(key) < 4 {
			return nil, "", ErrBadKey
		}
		return int32(bigEndian(key[:4]) ^ 1<<31), key[4:], nil
	}
	if len(key) < 8 {
		return nil, "", ErrBadKey
	}
	v := bigEndian(key[:8])
	if k == kindInt64 {
		return int64(v ^ 1<<63), key[8:], nil
	}
	return v, key[8:], nil
}

func bigEndian(s string) (v uint64) {
	for i := range len(s) {
		v = v<<8 | uint64(s[i])
	}
	return v
}

func decodeString(key string) (value any, rest string, err error) {
	var unescaped strings.Builder
	for {
		i := strings.IndexByte(key, escape)
		if i < 0 || i+1 == len(key) {
			return nil, "", ErrBadKey
		}
		switch key[i+1] {
		case terminator:
			if unescaped.Len() == 0 {
				return key[:i], key[i+2:], nil
			}
			unescaped.WriteString(key[:i])
			return unescaped.String(), key[i+2:], nil
		case escapedNul:
			unescaped.WriteString(key[:i])
			unescaped.WriteByte(0)
			key = key[i+2:]
		default:
			return nil, "", ErrBadKey
		}
	}
}
