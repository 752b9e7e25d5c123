package tabledef

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// Children returns the fields directly inside a type, none for a flat one: the
// element of a list, the key and the value of a map, the fields of a struct.
// Dictionaries and extension types are looked through.
func Children(t arrow.DataType) []arrow.Field {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return Children(t.StorageType())
	case *arrow.DictionaryType:
		return Children(t.ValueType)
	case *arrow.MapType:
		return []arrow.Field{t.KeyField(), t.ItemField()}
	case arrow.NestedType:
		return t.Fields()
	default:
		return nil
	}
}

// WithChildren returns the type with other fields in the places of Children. A
// map's key stays not null; types that no table has stay as they are.
func WithChildren(t arrow.DataType, children []arrow.Field) arrow.DataType {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		if len(children) == 0 {
			return t
		}
		return &arrow.DictionaryType{IndexType: t.IndexType, ValueType: WithChildren(t.ValueType, children), Ordered: t.Ordered}
	case *arrow.ListType:
		return arrow.ListOfField(children[0])
	case *arrow.LargeListType:
		return arrow.LargeListOfField(children[0])
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(t.Len(), children[0])
	case *arrow.StructType:
		return arrow.StructOf(children...)
	case *arrow.MapType:
		key := children[0]
		key.Nullable = false
		m := arrow.MapOfFields(key, children[1])
		m.KeysSorted = t.KeysSorted
		return m
	default:
		return t
	}
}

// mapFields applies change to a field and then to those inside it.
func mapFields(f arrow.Field, change func(arrow.Field) arrow.Field) arrow.Field {
	f = change(f)
	children := Children(f.Type)
	if len(children) == 0 {
		return f
	}
	changed := make([]arrow.Field, len(children))
	for i, child := range children {
		changed[i] = mapFields(child, change)
	}
	f.Type = WithChildren(f.Type, changed)
	return f
}

// MaxTypeDepth is how many lists, structs and maps may lie inside each other
// in a column.
const MaxTypeDepth = 32

// TooDeep says whether more than MaxTypeDepth nested types lie inside each
// other. It looks no deeper than that, so that it comes before all that goes
// down a type.
func TooDeep(t arrow.DataType) bool { return deeperThan(t, MaxTypeDepth, 4*MaxTypeDepth) }

// deeperThan says whether more than limit nested types lie inside each other.
// steps bounds the dictionaries and extension types that are looked through,
// which count for nothing otherwise.
func deeperThan(t arrow.DataType, limit, steps int) bool {
	if steps == 0 {
		return true
	}
	switch t := t.(type) {
	case arrow.ExtensionType:
		return deeperThan(t.StorageType(), limit, steps-1)
	case *arrow.DictionaryType:
		return deeperThan(t.ValueType, limit, steps-1)
	case *arrow.RunEndEncodedType:
		return deeperThan(t.Encoded(), limit, steps-1)
	}
	if !arrow.IsNested(t.ID()) {
		return false
	}
	if limit == 0 {
		return true
	}
	for _, f := range Children(t) {
		if deeperThan(f.Type, limit-1, steps-1) {
			return true
		}
	}
	return false
}
