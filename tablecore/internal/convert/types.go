package convert

import "github.com/apache/arrow-go/v18/arrow"

// Compat returns the type in which the compat profile gives a column of the
// declared type: plain strings and binaries instead of large, view and
// dictionary layouts, everything else as declared. It has the same storage type
// as declared, so FromStorage takes it in declared's place.
func Compat(declared arrow.DataType) arrow.DataType {
	switch {
	case isText(declared), isTextDictionary(declared):
		return arrow.BinaryTypes.String
	case isBinary(declared):
		return arrow.BinaryTypes.Binary
	default:
		return declared
	}
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
// string layout, or a dictionary of strings for plain strings.
func accepts(from, to arrow.DataType) bool {
	if arrow.TypeEqual(from, to) {
		return true
	}
	if isText(to) {
		return isText(from) || isTextDictionary(from)
	}
	f, ok := widthRank[from.ID()]
	t := widthRank[to.ID()]
	return ok && f.family == t.family && f.width < t.width
}
