package tabledef

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

func nullable(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

// pythonTypes are types with what str() gives for them in pyarrow 26.
var pythonTypes = []struct {
	text string
	dt   arrow.DataType
}{
	{"null", arrow.Null},
	{"bool", arrow.FixedWidthTypes.Boolean},
	{"int8", arrow.PrimitiveTypes.Int8}, {"int16", arrow.PrimitiveTypes.Int16}, {"int32", arrow.PrimitiveTypes.Int32}, {"int64", arrow.PrimitiveTypes.Int64},
	{"uint8", arrow.PrimitiveTypes.Uint8}, {"uint16", arrow.PrimitiveTypes.Uint16}, {"uint32", arrow.PrimitiveTypes.Uint32}, {"uint64", arrow.PrimitiveTypes.Uint64},
	{"halffloat", arrow.FixedWidthTypes.Float16}, {"float", arrow.PrimitiveTypes.Float32}, {"double", arrow.PrimitiveTypes.Float64},
	{"string", arrow.BinaryTypes.String}, {"large_string", arrow.BinaryTypes.LargeString}, {"string_view", arrow.BinaryTypes.StringView},
	{"binary", arrow.BinaryTypes.Binary}, {"large_binary", arrow.BinaryTypes.LargeBinary}, {"binary_view", arrow.BinaryTypes.BinaryView},
	{"fixed_size_binary[16]", &arrow.FixedSizeBinaryType{ByteWidth: 16}},
	{"date32[day]", arrow.FixedWidthTypes.Date32}, {"date64[ms]", arrow.FixedWidthTypes.Date64},
	{"time32[s]", arrow.FixedWidthTypes.Time32s}, {"time32[ms]", arrow.FixedWidthTypes.Time32ms},
	{"time64[us]", arrow.FixedWidthTypes.Time64us}, {"time64[ns]", arrow.FixedWidthTypes.Time64ns},
	{"duration[us]", arrow.FixedWidthTypes.Duration_us}, {"duration[s]", arrow.FixedWidthTypes.Duration_s},
	{"timestamp[us]", &arrow.TimestampType{Unit: arrow.Microsecond}},
	{"timestamp[us, tz=UTC]", arrow.FixedWidthTypes.Timestamp_us},
	{"timestamp[ns, tz=America/New_York]", &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "America/New_York"}},
	{"timestamp[s, tz=+05:30]", &arrow.TimestampType{Unit: arrow.Second, TimeZone: "+05:30"}},
	{"decimal32(9, 2)", &arrow.Decimal32Type{Precision: 9, Scale: 2}}, {"decimal64(18, 2)", &arrow.Decimal64Type{Precision: 18, Scale: 2}},
	{"decimal128(20, 4)", &arrow.Decimal128Type{Precision: 20, Scale: 4}}, {"decimal128(5, -2)", &arrow.Decimal128Type{Precision: 5, Scale: -2}},
	{"decimal256(30, 2)", &arrow.Decimal256Type{Precision: 30, Scale: 2}},
	{"list<item: double>", arrow.ListOf(arrow.PrimitiveTypes.Float64)},
	{"list<element: int32 not null>", arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.PrimitiveTypes.Int32})},
	{"list<x y: int32>", arrow.ListOfField(nullable("x y", arrow.PrimitiveTypes.Int32))},
	{"large_list<item: string>", arrow.LargeListOf(arrow.BinaryTypes.String)},
	{"list_view<item: int32>", arrow.ListViewOf(arrow.PrimitiveTypes.Int32)}, {"large_list_view<item: int32>", arrow.LargeListViewOf(arrow.PrimitiveTypes.Int32)},
	{"fixed_size_list<item: float>[3]", arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32)},
	{"list<item: fixed_size_list<item: int32>[2]>", arrow.ListOf(arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32))},
	{"struct<a: int32, b: string not null>", arrow.StructOf(nullable("a", arrow.PrimitiveTypes.Int32), arrow.Field{Name: "b", Type: arrow.BinaryTypes.String})},
	{"struct<>", arrow.StructOf()},
	{"map<string, int32>", arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32)},
	{"map<string, int32, keys_sorted>", sortedMap(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32)},
	{"dictionary<values=string, indices=int32, ordered=0>", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}},
	{"dictionary<values=list<item: int8>, indices=int8, ordered=1>", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.ListOf(arrow.PrimitiveTypes.Int8), Ordered: true}},
	{"month_day_nano_interval", arrow.FixedWidthTypes.MonthDayNanoInterval},
	{"run_end_encoded<run_ends: int32, values: string>", arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String)},
}

func sortedMap(key, item arrow.DataType) arrow.DataType {
	m := arrow.MapOf(key, item)
	m.KeysSorted = true
	return m
}

func TestTypeNameIsWhatPythonPrints(t *testing.T) {
	for _, c := range pythonTypes {
		if got := TypeName(c.dt); got != c.text {
			t.Errorf("TypeName(%v) = %q, want %q", c.dt, got, c.text)
		}
		dt, err := ParseType(c.text)
		if err != nil {
			t.Errorf("ParseType(%q): %v", c.text, err)
		} else if !arrow.TypeEqual(dt, c.dt, arrow.CheckMetadata()) {
			t.Errorf("ParseType(%q) = %v", c.text, dt)
		}
	}
}

func TestTypeNameOfTypesWithoutText(t *testing.T) {
	fields := []arrow.Field{nullable("a", arrow.PrimitiveTypes.Int32), {Name: "b", Type: arrow.BinaryTypes.String}}
	for want, dt := range map[string]arrow.DataType{
		"dense_union<a: int32=0, b: string not null=1>":  arrow.DenseUnionOf(fields, []arrow.UnionTypeCode{0, 1}),
		"sparse_union<a: int32=3, b: string not null=5>": arrow.SparseUnionOf(fields, []arrow.UnionTypeCode{3, 5}),
		"null": nil,
	} {
		if got := TypeName(dt); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestParseTypeOtherSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"float16": "halffloat", "float32": "float", "float64": "double", "date32": "date32[day]", "date64": "date64[ms]",
		"utf8": "string", "large_utf8": "large_string",
		"dictionary<values=string,indices=int16>":                          "dictionary<values=string, indices=int16, ordered=0>",
		"timestamp[us,tz=UTC]":                                             "timestamp[us, tz=UTC]",
		"timestamp[us,   tz=UTC]":                                          "timestamp[us, tz=UTC]",
		"decimal128(20,4)":                                                 "decimal128(20, 4)",
		"struct<a:int32,b:   string not null>":                             "struct<a: int32, b: string not null>",
		"  list<item:  list<item:utf8>>  ":                                 "list<item: list<item: string>>",
		"map<string,struct<a:int8 not null,b c:int16>>":                    "map<string, struct<a: int8 not null, b c: int16>>",
		"struct<a: timestamp[ns, tz=Asia/Kolkata], b: map<int32, binary>>": "struct<a: timestamp[ns, tz=Asia/Kolkata], b: map<int32, binary>>",
	} {
		dt, err := ParseType(text)
		if err != nil {
			t.Errorf("ParseType(%q): %v", text, err)
		} else if got := TypeName(dt); got != want {
			t.Errorf("ParseType(%q) = %q, want %q", text, got, want)
		}
	}
}

var badTypes = []string{
	"", " ", "int", "Int32", "int32 x", "int32]", "int32[", "int32[3]", "time32[us]", "time64[s]", "timestamp", "timestamp[", "timestamp[us", "timestamp[days]",
	"timestamp[us, tz]", "timestamp[us, tz=", "timestamp[us, tz=]", "timestamp[us tz=UTC]", "date32[ms]", "fixed_size_binary", "fixed_size_binary[0]",
	"fixed_size_binary[-3]", "fixed_size_binary[99999999999999999999]", "fixed_size_binary[3", "decimal128", "decimal128(", "decimal128(39, 0)", "decimal128(0, 0)",
	"decimal32(10, 1)", "decimal128(3", "decimal128(3, x)", "decimal128(3, 1", "decimal12(3, 1)", "list", "list<", "list<int32>", "list<item int32>", "list<item: int32", "list<: int32>", "list<item: nope>",
	"set<item: int32>", "fixed_size_list<item: int32>", "fixed_size_list<item: int32>[0]", "struct", "struct<a: int32", "struct<a: int32,>", "struct<a: int32 b: int32>", "struct<a: >",
	"map<string>", "map<string, >", "map<, int32>", "map<string, int32, sorted>", "map<string int32>", "map<string, int32", "dictionary<string, int32>", "dictionary<values=string>", "dictionary<values=string, int32>",
	"dictionary<values=, indices=int32>", "dictionary<values=string, indices=>", "dictionary<values=string, indices=float>", "dictionary<values=string, indices=int32, ordered=2>", "dictionary<values=string, indices=int32, o>",
	"run_end_encoded<run_ends: int8, values: string>", "run_end_encoded<values: string>", "run_end_encoded<run_ends: int32>", "run_end_encoded<run_ends: int32, string>", "run_end_encoded<run_ends: , values: int8>", "run_end_encoded<run_ends: int32, values: >",
	"list<item: int32>>", "\x00", "list<a<b: int32>", "extension<arrow.uuid>",
}

func TestParseTypeRefuses(t *testing.T) {
	deep := strings.Repeat("list<item: ", MaxTypeDepth+1) + "int32" + strings.Repeat(">", MaxTypeDepth+1)
	hostile := []string{deep, strings.Repeat("list<item: ", 5000), strings.Repeat("x", maxTypeText+1)}
	for _, text := range append(badTypes, hostile...) {
		dt, err := ParseType(text)
		var invalid *tableerr.Invalid
		if !errors.As(err, &invalid) || invalid.Field != "type" {
			t.Errorf("ParseType(%.60q) = %v, %v; want INVALID about type", text, dt, err)
		} else if len(invalid.Msg) > 400 {
			t.Errorf("ParseType(%.60q) answers with %d bytes", text, len(invalid.Msg))
		}
	}
	fits := strings.Repeat("list<item: ", MaxTypeDepth) + "int32" + strings.Repeat(">", MaxTypeDepth)
	if _, err := ParseType(fits); err != nil {
		t.Errorf("%d levels: %v", MaxTypeDepth, err)
	}
}

func FuzzParseType(f *testing.F) {
	for _, c := range pythonTypes {
		f.Add(c.text)
	}
	for _, text := range badTypes {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dt, err := ParseType(text)
		if err != nil {
			return
		}
		again, err := ParseType(TypeName(dt))
		if err != nil {
			t.Fatalf("%q became %q: %v", text, TypeName(dt), err)
		}
		if !arrow.TypeEqual(dt, again) {
			t.Fatalf("%q became %v, then %v", text, dt, again)
		}
		StorageType(dt)
	})
}
