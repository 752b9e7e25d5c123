package tabledef

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// simpleTypes are the types without parameters under the one name that Python
// prints for them.
var simpleTypes = []struct {
	name string
	dt   arrow.DataType
}{
	{"null", arrow.Null},
	{"bool", arrow.FixedWidthTypes.Boolean},
	{"int8", arrow.PrimitiveTypes.Int8},
	{"int16", arrow.PrimitiveTypes.Int16},
	{"int32", arrow.PrimitiveTypes.Int32},
	{"int64", arrow.PrimitiveTypes.Int64},
	{"uint8", arrow.PrimitiveTypes.Uint8},
	{"uint16", arrow.PrimitiveTypes.Uint16},
	{"uint32", arrow.PrimitiveTypes.Uint32},
	{"uint64", arrow.PrimitiveTypes.Uint64},
	{"halffloat", arrow.FixedWidthTypes.Float16},
	{"float", arrow.PrimitiveTypes.Float32},
	{"double", arrow.PrimitiveTypes.Float64},
	{"string", arrow.BinaryTypes.String},
	{"large_string", arrow.BinaryTypes.LargeString},
	{"string_view", arrow.BinaryTypes.StringView},
	{"binary", arrow.BinaryTypes.Binary},
	{"large_binary", arrow.BinaryTypes.LargeBinary},
	{"binary_view", arrow.BinaryTypes.BinaryView},
	{"date32[day]", arrow.FixedWidthTypes.Date32},
	{"date64[ms]", arrow.FixedWidthTypes.Date64},
	{"time32[s]", arrow.FixedWidthTypes.Time32s},
	{"time32[ms]", arrow.FixedWidthTypes.Time32ms},
	{"time64[us]", arrow.FixedWidthTypes.Time64us},
	{"time64[ns]", arrow.FixedWidthTypes.Time64ns},
	{"duration[s]", arrow.FixedWidthTypes.Duration_s},
	{"duration[ms]", arrow.FixedWidthTypes.Duration_ms},
	{"duration[us]", arrow.FixedWidthTypes.Duration_us},
	{"duration[ns]", arrow.FixedWidthTypes.Duration_ns},
	{"month_interval", arrow.FixedWidthTypes.MonthInterval},
	{"day_time_interval", arrow.FixedWidthTypes.DayTimeInterval},
	{"month_day_nano_interval", arrow.FixedWidthTypes.MonthDayNanoInterval},
}

// TypeName returns the text that Python prints for a type, the spelling of
// every answer and error of the service. It knows all Arrow types, also those
// that no table can store. ParseType reads it back, but for unions, extension
// types and renamed children of maps.
func TypeName(dt arrow.DataType) string {
	var b strings.Builder
	writeType(&b, dt)
	return b.String()
}

func writeType(b *strings.Builder, dt arrow.DataType) {
	switch t := dt.(type) {
	case nil:
		b.WriteString("null")
	case *arrow.FixedSizeBinaryType:
		fmt.Fprintf(b, "fixed_size_binary[%d]", t.ByteWidth)
	case *arrow.TimestampType:
		b.WriteString("timestamp[")
		b.WriteString(t.Unit.String())
		if t.TimeZone != "" {
			b.WriteString(", tz=")
			b.WriteString(t.TimeZone)
		}
		b.WriteByte(']')
	case *arrow.Decimal32Type:
		writeDecimal(b, 32, t)
	case *arrow.Decimal64Type:
		writeDecimal(b, 64, t)
	case *arrow.Decimal128Type:
		writeDecimal(b, 128, t)
	case *arrow.Decimal256Type:
		writeDecimal(b, 256, t)
	case *arrow.DictionaryType:
		b.WriteString("dictionary<values=")
		writeType(b, t.ValueType)
		b.WriteString(", indices=")
		writeType(b, t.IndexType)
		fmt.Fprintf(b, ", ordered=%d>", boolDigit(t.Ordered))
	case arrow.ExtensionType:
		fmt.Fprintf(b, "extension<%s>", t.ExtensionName())
	default:
		writeSimpleOrNested(b, dt)
	}
}

func writeSimpleOrNested(b *strings.Builder, dt arrow.DataType) {
	if arrow.IsNested(dt.ID()) || dt.ID() == arrow.RUN_END_ENCODED {
		writeNested(b, dt)
		return
	}
	for _, s := range simpleTypes {
		if arrow.TypeEqual(s.dt, dt) {
			b.WriteString(s.name)
			return
		}
	}
	b.WriteString(dt.String())
}

func writeNested(b *strings.Builder, dt arrow.DataType) {
	switch t := dt.(type) {
	case *arrow.MapType:
		writeMap(b, t)
	case *arrow.ListType:
		writeList(b, "list", t.ElemField())
	case *arrow.LargeListType:
		writeList(b, "large_list", t.ElemField())
	case *arrow.ListViewType:
		writeList(b, "list_view", t.ElemField())
	case *arrow.LargeListViewType:
		writeList(b, "large_list_view", t.ElemField())
	case *arrow.FixedSizeListType:
		writeList(b, "fixed_size_list", t.ElemField())
		fmt.Fprintf(b, "[%d]", t.Len())
	case *arrow.StructType:
		b.WriteString("struct<")
		for i, f := range t.Fields() {
			if i > 0 {
				b.WriteString(", ")
			}
			writeField(b, f)
		}
		b.WriteByte('>')
	case *arrow.RunEndEncodedType:
		b.WriteString("run_end_encoded<run_ends: ")
		writeType(b, t.RunEnds())
		b.WriteString(", values: ")
		writeType(b, t.Encoded())
		b.WriteByte('>')
	case arrow.UnionType:
		fmt.Fprintf(b, "%s_union<", strings.ToLower(t.Mode().String()))
		for i, f := range t.Fields() {
			if i > 0 {
				b.WriteString(", ")
			}
			writeField(b, f)
			fmt.Fprintf(b, "=%d", t.TypeCodes()[i])
		}
		b.WriteByte('>')
	default:
		b.WriteString(dt.String())
	}
}

func writeList(b *strings.Builder, kind string, elem arrow.Field) {
	b.WriteString(kind)
	b.WriteByte('<')
	writeField(b, elem)
	b.WriteByte('>')
}

func writeMap(b *strings.Builder, t *arrow.MapType) {
	b.WriteString("map<")
	writeMapChild(b, t.KeyField(), "key")
	b.WriteString(", ")
	writeMapChild(b, t.ItemField(), "value")
	if t.KeysSorted {
		b.WriteString(", keys_sorted")
	}
	b.WriteByte('>')
}

// writeMapChild writes a map's key or value type, with its name only where it
// is not the usual one.
func writeMapChild(b *strings.Builder, f arrow.Field, usual string) {
	writeType(b, f.Type)
	if f.Name != usual {
		fmt.Fprintf(b, " ('%s')", f.Name)
	}
}

func writeField(b *strings.Builder, f arrow.Field) {
	b.WriteString(f.Name)
	b.WriteString(": ")
	writeType(b, f.Type)
	if !f.Nullable {
		b.WriteString(" not null")
	}
}

func writeDecimal(b *strings.Builder, bits int, t arrow.DecimalType) {
	b.WriteString("decimal")
	b.WriteString(strconv.Itoa(bits))
	fmt.Fprintf(b, "(%d, %d)", t.GetPrecision(), t.GetScale())
}

func boolDigit(v bool) int {
	if v {
		return 1
	}
	return 0
}
