package tabledef

import (
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// acceptedTypes are the types that are stored whatever their parameters.
var acceptedTypes = map[arrow.Type]bool{
	arrow.BOOL: true,
	arrow.INT8: true, arrow.INT16: true, arrow.INT32: true, arrow.INT64: true,
	arrow.UINT8: true, arrow.UINT16: true, arrow.UINT32: true, arrow.UINT64: true,
	arrow.FLOAT16: true, arrow.FLOAT32: true, arrow.FLOAT64: true,
	arrow.STRING: true, arrow.LARGE_STRING: true, arrow.STRING_VIEW: true,
	arrow.BINARY: true, arrow.LARGE_BINARY: true, arrow.BINARY_VIEW: true,
	arrow.DATE32: true, arrow.DATE64: true, arrow.TIME32: true, arrow.TIME64: true, arrow.DURATION: true,
	arrow.LIST: true, arrow.LARGE_LIST: true, arrow.FIXED_SIZE_LIST: true, arrow.STRUCT: true, arrow.MAP: true,
}

// checkType refuses the type of a column, or of a field inside one, that no
// table stores. path is the column's name, with those of the fields down to
// this one after it; the type holds no extension types and is not too deep.
func checkType(path string, t arrow.DataType) error {
	why := ""
	switch t := t.(type) {
	case *arrow.TimestampType:
		if t.TimeZone != "" && CheckTimezone(t.TimeZone, IndexTimestamp) != nil {
			why = "its zone is neither an IANA name nor an offset such as +05:30"
		}
	case *arrow.FixedSizeBinaryType:
		if t.ByteWidth < 1 {
			why = "its width is not positive"
		}
	case *arrow.FixedSizeListType:
		if t.Len() < 1 {
			why = "its length is not positive"
		}
	case arrow.DecimalType:
		why = checkDecimal(t)
	case *arrow.DictionaryType:
		if !arrow.IsInteger(t.IndexType.ID()) {
			why = "the indices of a dictionary are integers"
			break
		}
		if t.ValueType.ID() == arrow.DICTIONARY {
			why = "a dictionary of dictionaries is not stored"
			break
		}
		return checkType(path, t.ValueType)
	case *arrow.StructType:
		if t.NumFields() == 0 {
			why = "a struct without children is not stored"
		}
	default:
		if !acceptedTypes[t.ID()] {
			why = "this type is not stored"
		}
	}
	if why != "" {
		return tableerr.InvalidType(path, TypeName(t), why)
	}
	return checkChildren(path, t)
}

// checkDecimal says what is wrong with a decimal's parameters, "" for nothing.
func checkDecimal(t arrow.DecimalType) string {
	most := map[arrow.Type]int32{arrow.DECIMAL32: 9, arrow.DECIMAL64: 18, arrow.DECIMAL128: 38, arrow.DECIMAL256: 76}[t.ID()]
	switch p, s := t.GetPrecision(), t.GetScale(); {
	case p < 1 || p > most:
		return "its precision is out of range"
	case s < 0 || s > p:
		return "its scale is below 0 or above its precision"
	default:
		return ""
	}
}

// checkChildren checks the fields inside a nested type.
func checkChildren(path string, t arrow.DataType) error {
	children := Children(t)
	if t.ID() == arrow.STRUCT {
		if err := checkNamesIn(path+".", children); err != nil {
			return err
		}
	}
	for _, f := range children {
		if !utf8.ValidString(f.Name) {
			return tableerr.InvalidColumn(path, "the name of a field inside column %q is not valid UTF-8", path)
		}
		if err := checkType(path+"."+f.Name, f.Type); err != nil {
			return err
		}
	}
	return nil
}
