package datafile

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// plainType returns a type as arrow-go derives it from a Parquet schema, with
// extension types as their storage and without field ids.
func plainType(typ arrow.DataType) arrow.DataType {
	switch t := typ.(type) {
	case arrow.ExtensionType:
		return plainType(t.StorageType())
	case *arrow.ListType:
		return arrow.ListOfField(plainField(t.ElemField()))
	case *arrow.StructType:
		fields := make([]arrow.Field, t.NumFields())
		for i, f := range t.Fields() {
			fields[i] = plainField(f)
		}
		return arrow.StructOf(fields...)
	case *arrow.MapType:
		return arrow.MapOfFields(plainField(t.KeyField()), plainField(t.ItemField()))
	}
	return typ
}

func plainField(f arrow.Field) arrow.Field {
	return arrow.Field{Name: f.Name, Type: plainType(f.Type), Nullable: f.Nullable}
}
