package tabledef

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// Delta's schema string is the JSON form of a struct type (PROTOCOL.md, Schema
// Serialization Format).

type deltaStruct struct {
	Type   string       `json:"type"`
	Fields []deltaField `json:"fields"`
}

type deltaField struct {
	Name     string          `json:"name"`
	Type     json.RawMessage `json:"type"`
	Nullable bool            `json:"nullable"`
	Metadata json.RawMessage `json:"metadata"`
}

type deltaArray struct {
	Type         string          `json:"type"`
	ElementType  json.RawMessage `json:"elementType"`
	ContainsNull bool            `json:"containsNull"`
}

type deltaMap struct {
	Type              string          `json:"type"`
	KeyType           json.RawMessage `json:"keyType"`
	ValueType         json.RawMessage `json:"valueType"`
	ValueContainsNull bool            `json:"valueContainsNull"`
}

// deltaNames maps Delta's primitive type names to storage types.
var deltaNames = map[string]arrow.DataType{
	"boolean":       arrow.FixedWidthTypes.Boolean,
	"byte":          arrow.PrimitiveTypes.Int8,
	"short":         arrow.PrimitiveTypes.Int16,
	"integer":       arrow.PrimitiveTypes.Int32,
	"long":          arrow.PrimitiveTypes.Int64,
	"float":         arrow.PrimitiveTypes.Float32,
	"double":        arrow.PrimitiveTypes.Float64,
	"string":        arrow.BinaryTypes.String,
	"binary":        arrow.BinaryTypes.Binary,
	"date":          arrow.FixedWidthTypes.Date32,
	"timestamp":     arrow.FixedWidthTypes.Timestamp_us,
	"timestamp_ntz": &arrow.TimestampType{Unit: arrow.Microsecond},
}

var deltaDecimal = regexp.MustCompile(`^decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)$`)

// DeltaSchemaJSON returns a declared schema as Delta's schema string. Field
// metadata stays out of it, for Delta's engines read meanings into some keys;
// EncodeArrowSchema keeps it. A nil schema gives an empty struct. A type
// without a stored form is *tableerr.Invalid.
func DeltaSchemaJSON(declared *arrow.Schema) (string, error) {
	s := deltaStruct{Type: "struct", Fields: []deltaField{}}
	if declared != nil {
		var err error
		if s.Fields, err = deltaFields(declared.Fields()); err != nil {
			return "", err
		}
	}
	text, err := marshal(s)
	return string(text), err
}

func deltaFields(fields []arrow.Field) ([]deltaField, error) {
	out := make([]deltaField, len(fields))
	for i, f := range fields {
		stored := StorageType(f.Type)
		if stored == nil {
			return nil, tableerr.InvalidType(f.Name, TypeName(f.Type), "no table can store it")
		}
		text, err := deltaType(stored)
		if err != nil {
			return nil, err
		}
		out[i] = deltaField{Name: f.Name, Type: text, Nullable: f.Nullable, Metadata: json.RawMessage("{}")}
	}
	return out, nil
}

// deltaType returns a storage type in Delta's JSON.
func deltaType(stored arrow.DataType) (json.RawMessage, error) {
	for name, dt := range deltaNames {
		if arrow.TypeEqual(dt, stored) {
			return marshal(name)
		}
	}
	switch t := stored.(type) {
	case *arrow.Decimal128Type:
		return marshal(fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale))
	case *arrow.ListType:
		elem, err := deltaType(t.Elem())
		if err != nil {
			return nil, err
		}
		return marshal(deltaArray{Type: "array", ElementType: elem, ContainsNull: t.ElemField().Nullable})
	case *arrow.MapType:
		key, err := deltaType(t.KeyType())
		if err != nil {
			return nil, err
		}
		item, err := deltaType(t.ItemType())
		if err != nil {
			return nil, err
		}
		return marshal(deltaMap{Type: "map", KeyType: key, ValueType: item, ValueContainsNull: t.ItemField().Nullable})
	case *arrow.StructType:
		fields, err := deltaFields(t.Fields())
		if err != nil {
			return nil, err
		}
		return marshal(deltaStruct{Type: "struct", Fields: fields})
	default:
		return nil, tableerr.InvalidType("", TypeName(stored), "Delta has no such type")
	}
}

// marshal writes JSON without HTML escapes: names read as they are.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// parseDelta reads a schema string into storage types. Delta's field metadata
// becomes Arrow's, texts as they are and other values as JSON.
func parseDelta(schemaString string) ([]arrow.Field, error) {
	var s deltaStruct
	if schemaString == "" {
		return nil, corruptSchema(errors.New("it has no schemaString"))
	}
	if err := json.Unmarshal([]byte(schemaString), &s); err != nil {
		return nil, corruptSchema(err)
	}
	if s.Type != "struct" {
		return nil, corruptSchema(fmt.Errorf("the schema is of type %.40q, not struct", s.Type))
	}
	return parseDeltaFields(s.Fields, 0)
}

func corruptSchema(err error) error {
	return &tableerr.Corrupt{Path: logDir, Msg: "the schema in the metadata is not understood: " + err.Error(), Cause: err}
}

// logDir is what errors about a table's metadata name as their path; only the
// reader of the log knows the very file.
const logDir = "_delta_log"

func parseDeltaFields(fields []deltaField, depth int) ([]arrow.Field, error) {
	out := make([]arrow.Field, len(fields))
	seen := make(map[string]bool, len(fields))
	for i, f := range fields {
		if seen[f.Name] {
			return nil, corruptSchema(fmt.Errorf("column %.80q occurs twice", f.Name))
		}
		seen[f.Name] = true
		t, err := parseDeltaType(f.Type, depth)
		if err != nil {
			return nil, err
		}
		md, err := parseDeltaMetadata(f.Metadata)
		if err != nil {
			return nil, err
		}
		out[i] = arrow.Field{Name: f.Name, Type: t, Nullable: f.Nullable, Metadata: md}
	}
	return out, nil
}

func parseDeltaMetadata(raw json.RawMessage) (arrow.Metadata, error) {
	if len(raw) == 0 {
		return arrow.Metadata{}, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return arrow.Metadata{}, corruptSchema(err)
	}
	if len(m) == 0 {
		return arrow.Metadata{}, nil
	}
	texts := make(map[string]string, len(m))
	for key, value := range m {
		var text string
		if json.Unmarshal(value, &text) == nil && value[0] == '"' {
			texts[key] = text
		} else {
			texts[key] = string(value)
		}
	}
	return arrow.MetadataFrom(texts), nil
}

// parseDeltaType reads one type; depth counts the nested types around it.
func parseDeltaType(raw json.RawMessage, depth int) (arrow.DataType, error) {
	if len(raw) == 0 {
		return nil, corruptSchema(errors.New("a type is missing"))
	}
	if raw[0] == '"' {
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return nil, corruptSchema(err)
		}
		return parseDeltaName(name)
	}
	if depth >= MaxTypeDepth {
		return nil, corruptSchema(fmt.Errorf("a type is nested deeper than %d levels", MaxTypeDepth))
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return nil, corruptSchema(err)
	}
	switch kind.Type {
	case "struct":
		return parseDeltaStruct(raw, depth+1)
	case "array":
		return parseDeltaArray(raw, depth+1)
	case "map":
		return parseDeltaMap(raw, depth+1)
	case "":
		return nil, corruptSchema(errors.New("a type has no name"))
	default:
		return nil, unsupportedType(kind.Type)
	}
}

func parseDeltaName(name string) (arrow.DataType, error) {
	if t, ok := deltaNames[name]; ok {
		return t, nil
	}
	if name == "decimal" {
		return &arrow.Decimal128Type{Precision: 10}, nil
	}
	m := deltaDecimal.FindStringSubmatch(name)
	if m == nil {
		return nil, unsupportedType(name)
	}
	p, errP := strconv.Atoi(m[1])
	s, errS := strconv.Atoi(m[2])
	if errP != nil || errS != nil || p < 1 || p > maxDeltaPrecision || s > p {
		return nil, corruptSchema(fmt.Errorf("type %s has no such precision and scale", name))
	}
	return &arrow.Decimal128Type{Precision: int32(p), Scale: int32(s)}, nil
}

func unsupportedType(name string) error {
	if len(name) > 80 {
		name = name[:80] + "…"
	}
	return &tableerr.Unsupported{Feature: "type " + name}
}

func parseDeltaStruct(raw json.RawMessage, depth int) (arrow.DataType, error) {
	var s deltaStruct
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, corruptSchema(err)
	}
	fields, err := parseDeltaFields(s.Fields, depth)
	if err != nil {
		return nil, err
	}
	return arrow.StructOf(fields...), nil
}

func parseDeltaArray(raw json.RawMessage, depth int) (arrow.DataType, error) {
	var a deltaArray
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, corruptSchema(err)
	}
	elem, err := parseDeltaType(a.ElementType, depth)
	if err != nil {
		return nil, err
	}
	return arrow.ListOfField(arrow.Field{Name: elementName, Type: elem, Nullable: a.ContainsNull}), nil
}

func parseDeltaMap(raw json.RawMessage, depth int) (arrow.DataType, error) {
	var m deltaMap
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, corruptSchema(err)
	}
	key, err := parseDeltaType(m.KeyType, depth)
	if err != nil {
		return nil, err
	}
	item, err := parseDeltaType(m.ValueType, depth)
	if err != nil {
		return nil, err
	}
	t := arrow.MapOf(key, item)
	t.SetItemNullable(m.ValueContainsNull)
	return t, nil
}
