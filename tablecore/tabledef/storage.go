package tabledef

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// elementName is what Delta's Parquet files call the elements of an array.
const elementName = "element"

// maxDeltaPrecision is the highest precision of Delta's decimals.
const maxDeltaPrecision = 38

// storedAs gives the storage type of each type without parameters whose
// storage is a type of its own choosing; types that lie in a file as they are
// map to themselves.
var storedAs = map[arrow.Type]arrow.DataType{
	arrow.BOOL:              arrow.FixedWidthTypes.Boolean,
	arrow.INT8:              arrow.PrimitiveTypes.Int8,
	arrow.INT16:             arrow.PrimitiveTypes.Int16,
	arrow.INT32:             arrow.PrimitiveTypes.Int32,
	arrow.INT64:             arrow.PrimitiveTypes.Int64,
	arrow.UINT8:             arrow.PrimitiveTypes.Int16,
	arrow.UINT16:            arrow.PrimitiveTypes.Int32,
	arrow.UINT32:            arrow.PrimitiveTypes.Int64,
	arrow.UINT64:            &arrow.Decimal128Type{Precision: 20},
	arrow.FLOAT16:           arrow.PrimitiveTypes.Float32,
	arrow.FLOAT32:           arrow.PrimitiveTypes.Float32,
	arrow.FLOAT64:           arrow.PrimitiveTypes.Float64,
	arrow.STRING:            arrow.BinaryTypes.String,
	arrow.LARGE_STRING:      arrow.BinaryTypes.String,
	arrow.STRING_VIEW:       arrow.BinaryTypes.String,
	arrow.BINARY:            arrow.BinaryTypes.Binary,
	arrow.LARGE_BINARY:      arrow.BinaryTypes.Binary,
	arrow.BINARY_VIEW:       arrow.BinaryTypes.Binary,
	arrow.FIXED_SIZE_BINARY: arrow.BinaryTypes.Binary,
	arrow.DATE32:            arrow.FixedWidthTypes.Date32,
	arrow.DATE64:            arrow.FixedWidthTypes.Date32,
	arrow.TIME32:            arrow.PrimitiveTypes.Int32,
	arrow.TIME64:            arrow.PrimitiveTypes.Int64,
	arrow.DURATION:          arrow.PrimitiveTypes.Int64,
}

// StorageType returns the Arrow type of a declared type's values as they lie
// in a data file: the one that the column's Delta type demands, so that every
// Delta reader sees right values (table-format.md, Types). A dictionary is
// stored as its values. It returns nil for a type that has no stored form.
func StorageType(declared arrow.DataType) arrow.DataType {
	if t, ok := storedAs[declared.ID()]; ok {
		return t
	}
	switch t := declared.(type) {
	case *arrow.TimestampType:
		switch {
		case t.Unit == arrow.Nanosecond:
			return arrow.PrimitiveTypes.Int64
		case t.TimeZone == "":
			return &arrow.TimestampType{Unit: arrow.Microsecond}
		default:
			return arrow.FixedWidthTypes.Timestamp_us
		}
	case *arrow.DictionaryType:
		return StorageType(t.ValueType)
	case arrow.ExtensionType:
		return StorageType(t.StorageType())
	case arrow.DecimalType:
		return storedDecimal(t)
	default:
		return storedNested(declared)
	}
}

func storedDecimal(t arrow.DecimalType) arrow.DataType {
	p, s := t.GetPrecision(), t.GetScale()
	switch {
	case p < 1 || s < 0 || s > p:
		return nil
	case p <= maxDeltaPrecision:
		return &arrow.Decimal128Type{Precision: p, Scale: s}
	default:
		return arrow.BinaryTypes.String
	}
}

func storedNested(declared arrow.DataType) arrow.DataType {
	switch t := declared.(type) {
	case *arrow.MapType:
		key, item := StorageType(t.KeyType()), StorageType(t.ItemType())
		if key == nil || item == nil {
			return nil
		}
		m := arrow.MapOf(key, item)
		m.SetItemNullable(t.ItemField().Nullable)
		return m
	case *arrow.ListType:
		return storedList(t.ElemField())
	case *arrow.LargeListType:
		return storedList(t.ElemField())
	case *arrow.FixedSizeListType:
		return storedList(t.ElemField())
	case *arrow.StructType:
		if t.NumFields() == 0 {
			return nil
		}
		fields := make([]arrow.Field, t.NumFields())
		for i, f := range t.Fields() {
			child := StorageType(f.Type)
			if child == nil {
				return nil
			}
			fields[i] = arrow.Field{Name: f.Name, Type: child, Nullable: f.Nullable}
		}
		return arrow.StructOf(fields...)
	default:
		return nil
	}
}

func storedList(elem arrow.Field) arrow.DataType {
	t := StorageType(elem.Type)
	if t == nil {
		return nil
	}
	return arrow.ListOfField(arrow.Field{Name: elementName, Type: t, Nullable: elem.Nullable})
}

// StorageSchema returns the schema of a table's data files: the declared
// columns with their storage types, without metadata. The schema must have
// passed CheckSchema.
func StorageSchema(declared *arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, declared.NumFields())
	for i, f := range declared.Fields() {
		fields[i] = arrow.Field{Name: f.Name, Type: StorageType(f.Type), Nullable: f.Nullable}
	}
	return arrow.NewSchema(fields, nil)
}
