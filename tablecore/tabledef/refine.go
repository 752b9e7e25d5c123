package tabledef

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// ParseDeltaSchema returns the declared schema of a table from Delta's schema
// string and the table's Arrow schema property, "" where there is none. The
// Delta schema decides names, order and nullability; the property refines
// types and carries field and schema metadata, and loses where the two
// disagree about a type. The result is nil for a schema without columns.
//
// Damaged text is *tableerr.Corrupt, a type of Delta that is not known here
// *tableerr.Unsupported.
func ParseDeltaSchema(schemaString, arrowSchema string) (*arrow.Schema, error) {
	fields, err := parseDelta(schemaString)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, nil
	}
	if arrowSchema == "" {
		return arrow.NewSchema(fields, nil), nil
	}
	declared, err := DecodeArrowSchema(arrowSchema)
	if err != nil {
		return nil, &tableerr.Corrupt{Path: logDir, Msg: "the property " + KeyArrowSchema + " is damaged: " + err.Error(), Cause: err}
	}
	if slices.ContainsFunc(declared.Fields(), func(f arrow.Field) bool { return TooDeep(f.Type) }) {
		return nil, &tableerr.Corrupt{Path: logDir, Msg: "the property " + KeyArrowSchema + " holds a type that is nested too deep"}
	}
	declared = WithoutExtensions(declared)
	md := declared.Metadata()
	return arrow.NewSchema(refineFields(fields, declared.Fields()), &md), nil
}

// refineFields gives each stored field the type and metadata of the declared
// field with its name.
func refineFields(stored, declared []arrow.Field) []arrow.Field {
	byName := make(map[string]*arrow.Field, len(declared))
	for i := range declared {
		byName[declared[i].Name] = &declared[i]
	}
	out := make([]arrow.Field, len(stored))
	for i, f := range stored {
		if d := byName[f.Name]; d != nil {
			f.Metadata = d.Metadata
			if t := refine(f.Type, d.Type); t != nil {
				f.Type = t
			}
		}
		out[i] = f
	}
	return out
}

// refine returns the declared type if its values are stored as the stored type
// says, with the stored type's nullability of children; else nil.
func refine(stored, declared arrow.DataType) arrow.DataType {
	if !arrow.IsNested(declared.ID()) {
		if s := StorageType(declared); s != nil && arrow.TypeEqual(s, stored) {
			return declared
		}
		return nil
	}
	switch s := stored.(type) {
	case *arrow.ListType:
		return refineList(s, declared)
	case *arrow.MapType:
		return refineMap(s, declared)
	case *arrow.StructType:
		if d, ok := declared.(*arrow.StructType); ok {
			return arrow.StructOf(refineFields(s.Fields(), d.Fields())...)
		}
	}
	return nil
}

func refineList(stored *arrow.ListType, declared arrow.DataType) arrow.DataType {
	list, ok := declared.(arrow.ListLikeType)
	if !ok || declared.ID() == arrow.MAP {
		return nil
	}
	elem := list.ElemField()
	if elem.Type = refine(stored.Elem(), elem.Type); elem.Type == nil {
		return nil
	}
	elem.Nullable = stored.ElemField().Nullable
	switch d := declared.(type) {
	case *arrow.ListType:
		return arrow.ListOfField(elem)
	case *arrow.LargeListType:
		return arrow.LargeListOfField(elem)
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(d.Len(), elem)
	default:
		return nil
	}
}

func refineMap(stored *arrow.MapType, declared arrow.DataType) arrow.DataType {
	d, ok := declared.(*arrow.MapType)
	if !ok {
		return nil
	}
	key, item := d.KeyField(), d.ItemField()
	key.Type = refine(stored.KeyType(), key.Type)
	item.Type = refine(stored.ItemType(), item.Type)
	if key.Type == nil || item.Type == nil {
		return nil
	}
	item.Nullable = stored.ItemField().Nullable
	m := arrow.MapOfFields(key, item)
	m.KeysSorted = d.KeysSorted
	return m
}
