package convert

import (
	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tabledef"
)

// Compat returns the type in which the compat profile gives a column of the
// declared type: one that most clients know. Large and view layouts and
// dictionaries become plain, decimals have 128 bits where these suffice,
// date64 becomes date32, extensions their storage, inside other types too;
// everything else is as declared. It has the same storage type as declared, so
// FromStorage takes it in declared's place.
func Compat(declared arrow.DataType) arrow.DataType {
	switch t := declared.(type) {
	case arrow.ExtensionType:
		return Compat(t.StorageType())
	case *arrow.DictionaryType:
		return Compat(t.ValueType)
	case *arrow.LargeListType:
		return arrow.ListOfField(compatField(t.ElemField()))
	case *arrow.Date64Type:
		return arrow.FixedWidthTypes.Date32
	case arrow.DecimalType:
		if stored, ok := tabledef.StorageType(t).(*arrow.Decimal128Type); ok {
			return stored
		}
		return declared
	}
	switch {
	case isText(declared):
		return arrow.BinaryTypes.String
	case isBinary(declared):
		return arrow.BinaryTypes.Binary
	}
	children := tabledef.Children(declared)
	if len(children) == 0 {
		return declared
	}
	plain := make([]arrow.Field, len(children))
	for i, f := range children {
		plain[i] = compatField(f)
	}
	return tabledef.WithChildren(declared, plain)
}

func compatField(f arrow.Field) arrow.Field {
	f.Type = Compat(f.Type)
	return f
}

// isText says whether t is one of the plain string layouts.
func isText(t arrow.DataType) bool {
	return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING || t.ID() == arrow.STRING_VIEW
}

// isBinary says whether t is one of the plain binary layouts.
func isBinary(t arrow.DataType) bool {
	return t.ID() == arrow.BINARY || t.ID() == arrow.LARGE_BINARY || t.ID() == arrow.BINARY_VIEW
}

// isTextDictionary says whether t is a dictionary of strings.
func isTextDictionary(t arrow.DataType) bool {
	d, ok := t.(*arrow.DictionaryType)
	return ok && isText(d.ValueType)
}

// widthRank orders the types of one widening family; the families are those of
// table-semantics: signed, unsigned, floats.
var widthRank = map[arrow.Type]struct{ family, width int }{
	arrow.INT8: {1, 1}, arrow.INT16: {1, 2}, arrow.INT32: {1, 4}, arrow.INT64: {1, 8},
	arrow.UINT8: {2, 1}, arrow.UINT16: {2, 2}, arrow.UINT32: {2, 4}, arrow.UINT64: {2, 8},
	arrow.FLOAT16: {3, 2}, arrow.FLOAT32: {3, 4}, arrow.FLOAT64: {3, 8},
}

// accepts says whether a stream's column of type from may fill a column that
// is declared as to: the same type, a wider number of the same family, another
// string layout, or a dictionary of the declared type. Neither has extension
// types, nor is too deep.
func accepts(from, to arrow.DataType) bool {
	if sameType(from, to) {
		return true
	}
	if isText(to) {
		return isText(from) || isTextDictionary(from)
	}
	if d, ok := from.(*arrow.DictionaryType); ok {
		return sameType(d.ValueType, to)
	}
	f, ok := widthRank[from.ID()]
	t := widthRank[to.ID()]
	return ok && f.family == t.family && f.width < t.width
}

// sameType says whether types are equal but for whether their children may be
// null, which the rows tell, for metadata, and for the names of what is inside
// lists, which are no part of a type.
func sameType(from, to arrow.DataType) bool {
	if !arrow.IsNested(from.ID()) && from.ID() != arrow.DICTIONARY || from.ID() != to.ID() {
		return arrow.TypeEqual(from, to)
	}
	switch f := from.(type) {
	case *arrow.DictionaryType:
		t := to.(*arrow.DictionaryType)
		return f.Ordered == t.Ordered && arrow.TypeEqual(f.IndexType, t.IndexType) && sameType(f.ValueType, t.ValueType)
	case *arrow.FixedSizeListType:
		if f.Len() != to.(*arrow.FixedSizeListType).Len() {
			return false
		}
	case *arrow.MapType:
		if f.KeysSorted != to.(*arrow.MapType).KeysSorted {
			return false
		}
	}
	mine, theirs := tabledef.Children(from), tabledef.Children(to)
	if len(mine) != len(theirs) {
		return false
	}
	for i := range mine {
		if from.ID() == arrow.STRUCT && mine[i].Name != theirs[i].Name || !sameType(mine[i].Type, theirs[i].Type) {
			return false
		}
	}
	return true
}
