package tabledef

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// storedTypes are declared types with their storage type and Delta type.
var storedTypes = []struct{ declared, stored, delta string }{
	{"bool", "bool", `"boolean"`},
	{"int8", "int8", `"byte"`}, {"int16", "int16", `"short"`}, {"int32", "int32", `"integer"`}, {"int64", "int64", `"long"`},
	{"uint8", "int16", `"short"`}, {"uint16", "int32", `"integer"`}, {"uint32", "int64", `"long"`}, {"uint64", "decimal128(20, 0)", `"decimal(20,0)"`},
	{"halffloat", "float", `"float"`}, {"float", "float", `"float"`}, {"double", "double", `"double"`},
	{"string", "string", `"string"`}, {"large_string", "string", `"string"`}, {"string_view", "string", `"string"`},
	{"dictionary<values=large_string, indices=int8, ordered=1>", "string", `"string"`},
	{"dictionary<values=string, indices=uint64, ordered=0>", "string", `"string"`},
	{"binary", "binary", `"binary"`}, {"large_binary", "binary", `"binary"`}, {"binary_view", "binary", `"binary"`}, {"fixed_size_binary[16]", "binary", `"binary"`},
	{"date32[day]", "date32[day]", `"date"`}, {"date64[ms]", "date32[day]", `"date"`},
	{"timestamp[s]", "timestamp[us]", `"timestamp_ntz"`}, {"timestamp[ms]", "timestamp[us]", `"timestamp_ntz"`}, {"timestamp[us]", "timestamp[us]", `"timestamp_ntz"`},
	{"timestamp[s, tz=UTC]", "timestamp[us, tz=UTC]", `"timestamp"`}, {"timestamp[ms, tz=+05:30]", "timestamp[us, tz=UTC]", `"timestamp"`},
	{"timestamp[us, tz=America/New_York]", "timestamp[us, tz=UTC]", `"timestamp"`},
	{"timestamp[ns]", "int64", `"long"`}, {"timestamp[ns, tz=UTC]", "int64", `"long"`},
	{"time32[s]", "int32", `"integer"`}, {"time64[ns]", "int64", `"long"`}, {"duration[ms]", "int64", `"long"`},
	{"decimal32(9, 2)", "decimal128(9, 2)", `"decimal(9,2)"`}, {"decimal64(18, 2)", "decimal128(18, 2)", `"decimal(18,2)"`},
	{"decimal128(38, 38)", "decimal128(38, 38)", `"decimal(38,38)"`}, {"decimal256(30, 2)", "decimal128(30, 2)", `"decimal(30,2)"`}, {"decimal256(39, 2)", "string", `"string"`},
	{"list<item: uint8>", "list<element: int16>", `{"type":"array","elementType":"short","containsNull":true}`},
	{"large_list<x: string not null>", "list<element: string not null>", `{"type":"array","elementType":"string","containsNull":false}`},
	{"fixed_size_list<item: halffloat>[3]", "list<element: float>", `{"type":"array","elementType":"float","containsNull":true}`},
	{"map<string, timestamp[ns]>", "map<string, int64>", `{"type":"map","keyType":"string","valueType":"long","valueContainsNull":true}`},
	{"map<uint64, int8, keys_sorted>", "map<decimal128(20, 0), int8>", `{"type":"map","keyType":"decimal(20,0)","valueType":"byte","valueContainsNull":true}`},
	{"struct<a b: int8, c: list<item: string_view> not null>", "struct<a b: int8, c: list<element: string> not null>",
		`{"type":"struct","fields":[{"name":"a b","type":"byte","nullable":true,"metadata":{}},{"name":"c","type":{"type":"array","elementType":"string","containsNull":true},"nullable":false,"metadata":{}}]}`},
}

var unstoredTypes = []string{
	"null", "month_day_nano_interval", "month_interval", "list_view<item: int32>", "run_end_encoded<run_ends: int32, values: string>", "struct<>",
	"decimal128(5, -2)", "decimal128(5, 6)", "list<item: null>", "map<string, null>", "map<null, string>", "struct<a: null>", "dictionary<values=null, indices=int8>",
	"large_list<item: struct<>>", "fixed_size_list<item: null>[2]",
}

func mustType(t testing.TB, text string) arrow.DataType {
	t.Helper()
	dt, err := ParseType(text)
	if err != nil {
		t.Fatal(err)
	}
	return dt
}

func TestStorageTypesAndDelta(t *testing.T) {
	for _, c := range storedTypes {
		declared := mustType(t, c.declared)
		stored := StorageType(declared)
		if stored == nil || TypeName(stored) != c.stored {
			t.Errorf("%s is stored as %v, want %s", c.declared, stored, c.stored)
			continue
		}
		if again := StorageType(stored); !arrow.TypeEqual(again, stored) {
			t.Errorf("%s is stored as %v", stored, again)
		}
		schema := arrow.NewSchema([]arrow.Field{{Name: "x<y>", Type: declared}, {Name: "z", Type: arrow.PrimitiveTypes.Int8, Nullable: true}}, nil)
		text, err := DeltaSchemaJSON(schema)
		if err != nil {
			t.Error(err)
			continue
		}
		want := `{"type":"struct","fields":[{"name":"x<y>","type":` + c.delta + `,"nullable":false,"metadata":{}},{"name":"z","type":"byte","nullable":true,"metadata":{}}]}`
		if text != want {
			t.Errorf("%s in Delta:\n got %s\nwant %s", c.declared, text, want)
		}
		checkDeltaRoundTrip(t, schema, text)
	}
}

// checkDeltaRoundTrip reads a schema string back, without and with the
// property.
func checkDeltaRoundTrip(t *testing.T, schema *arrow.Schema, text string) {
	t.Helper()
	plain, err := ParseDeltaSchema(text, "")
	if err != nil || !plain.Equal(StorageSchema(schema)) {
		t.Errorf("read back as %v, %v; want %v", plain, err, StorageSchema(schema))
	}
	property, err := EncodeArrowSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	full, err := ParseDeltaSchema(text, property)
	if err != nil || !full.Equal(schema) {
		t.Errorf("read back as %v, %v; want %v", full, err, schema)
	}
}

func TestTypesWithoutStorage(t *testing.T) {
	for _, text := range unstoredTypes {
		dt := mustType(t, text)
		if got := StorageType(dt); got != nil {
			t.Errorf("%s is stored as %v", text, got)
		}
		_, err := DeltaSchemaJSON(arrow.NewSchema([]arrow.Field{{Name: "x", Type: dt}}, nil))
		var invalid *tableerr.Invalid
		if !errors.As(err, &invalid) || invalid.Column != "x" || invalid.Type != TypeName(dt) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDeltaSchemaOfNothing(t *testing.T) {
	text, err := DeltaSchemaJSON(nil)
	if err != nil || text != `{"type":"struct","fields":[]}` {
		t.Fatalf("got %s, %v", text, err)
	}
	if schema, err := ParseDeltaSchema(text, ""); schema != nil || err != nil {
		t.Fatalf("got %v, %v", schema, err)
	}
}

func TestParseDeltaMetadata(t *testing.T) {
	schema, err := ParseDeltaSchema(`{"type":"struct","fields":[{"name":"a","type":"decimal","nullable":true,"metadata":{"comment":"b","delta.columnMapping.id":9,"x":{"y":[1, 2]}}},{"name":"b","type":"decimal( 5 , 2 )","nullable":false}]}`, "")
	if err != nil {
		t.Fatal(err)
	}
	md := arrow.MetadataFrom(map[string]string{"comment": "b", "delta.columnMapping.id": "9", "x": `{"y":[1, 2]}`})
	want := arrow.NewSchema([]arrow.Field{{Name: "a", Type: &arrow.Decimal128Type{Precision: 10}, Nullable: true, Metadata: md}, {Name: "b", Type: &arrow.Decimal128Type{Precision: 5, Scale: 2}}}, nil)
	if !schema.Equal(want) || schema.Field(0).Metadata.String() != md.String() {
		t.Fatalf("got %v", schema)
	}
}

func field(typ string) string {
	return fmt.Sprintf(`{"type":"struct","fields":[{"name":"a","type":%s,"nullable":true,"metadata":{}}]}`, typ)
}

var corruptDelta = []string{
	"", "{", "[]", `"long"`, `{"type":"array"}`, field(`""`)[:30], field(`7`), field(`[]`), field(`{"type":7}`),
	`{"type":"struct","fields":[{"name":"a"}]}`, `{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"a","type":"long"}]}`,
	`{"type":"struct","fields":[{"name":"a","type":"long","metadata":[]}]}`, `{"type":"struct","fields":7}`,
	field(`"decimal(39,0)"`), field(`"decimal(0,0)"`), field(`"decimal(5,6)"`),
	field(`{"type":"array"}`), field(`{"type":"array","elementType":7}`), field(`{"type":"array","containsNull":7}`), field(`{"type":"map","keyType":"long"}`), field(`{"type":"map","valueType":"long"}`), field(`{"type":"map","keyType":"string","valueContainsNull":"x"}`),
	field(`{"type":"struct","fields":[{"name":"x","type":null}]}`), field(`{"type":"struct","fields":{}}`),
	field(strings.Repeat(`{"type":"array","elementType":`, MaxTypeDepth+1) + `"long"` + strings.Repeat(`}`, MaxTypeDepth+1)),
}

func TestParseDeltaRefuses(t *testing.T) {
	for _, text := range corruptDelta {
		_, err := ParseDeltaSchema(text, "")
		var corrupt *tableerr.Corrupt
		if !errors.As(err, &corrupt) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
	for _, typ := range []string{"variant", "void", "int", "interval year", "decimal(1)", strings.Repeat("x", 1000)} {
		_, err := ParseDeltaSchema(field(`"`+typ+`"`), "")
		var unsupported *tableerr.Unsupported
		if !errors.As(err, &unsupported) || !strings.HasPrefix(unsupported.Feature, "type "+typ[:1]) || len(unsupported.Feature) > 100 {
			t.Errorf("%.80s: %v", typ, err)
		}
	}
	_, err := ParseDeltaSchema(field(`{"type":"udt"}`), "")
	var unsupported *tableerr.Unsupported
	if !errors.As(err, &unsupported) || unsupported.Feature != "type udt" {
		t.Errorf("udt: %v", err)
	}
	for _, property := range []string{"!", "AAAA"} {
		_, err := ParseDeltaSchema(field(`"long"`), property)
		var corrupt *tableerr.Corrupt
		if !errors.As(err, &corrupt) {
			t.Errorf("property %q: %v", property, err)
		}
	}
}

// TestDeltaSchemaWins lets the property and the Delta schema disagree.
func TestDeltaSchemaWins(t *testing.T) {
	md := arrow.NewMetadata([]string{"k"}, []string{"v"})
	top := arrow.NewMetadata([]string{"owner"}, []string{"ops"})
	declared := arrow.NewSchema([]arrow.Field{
		{Name: "gone", Type: arrow.PrimitiveTypes.Int8},
		{Name: "u", Type: arrow.PrimitiveTypes.Uint8, Metadata: md},
		{Name: "retyped", Type: arrow.PrimitiveTypes.Uint8, Metadata: md},
		{Name: "l", Type: mustType(t, "large_list<x: uint32 not null>"), Nullable: true},
		{Name: "bad", Type: mustType(t, "list_view<x: uint32>")},
		{Name: "m", Type: mustType(t, "map<large_string, struct<b: uint8, a: string_view>, keys_sorted>")},
		{Name: "m2", Type: mustType(t, "map<string, int8>")}, {Name: "m3", Type: mustType(t, "list<item: int8>")},
		{Name: "l2", Type: mustType(t, "list<x: int64>")}, {Name: "l3", Type: mustType(t, "map<string, int8>")},
	}, &top)
	property, err := EncodeArrowSchema(declared)
	if err != nil {
		t.Fatal(err)
	}
	delta := arrow.NewSchema([]arrow.Field{
		{Name: "new", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "retyped", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "l", Type: mustType(t, "list<element: int64>")},
		{Name: "bad", Type: mustType(t, "list<element: int64>")},
		{Name: "u", Type: arrow.PrimitiveTypes.Int16, Nullable: true},
		{Name: "m", Type: mustType(t, "map<string, struct<a: string, b: int16 not null, c: int8>>")},
		{Name: "m2", Type: mustType(t, "map<string, int16>")}, {Name: "m3", Type: mustType(t, "map<string, int16>")},
		{Name: "l2", Type: mustType(t, "list<element: int32>")}, {Name: "l3", Type: mustType(t, "list<element: int32>")},
	}, nil)
	text, err := DeltaSchemaJSON(delta)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseDeltaSchema(text, property)
	if err != nil {
		t.Fatal(err)
	}
	want := arrow.NewSchema([]arrow.Field{
		{Name: "new", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "retyped", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: md},
		{Name: "l", Type: mustType(t, "large_list<x: uint32>")},
		{Name: "bad", Type: mustType(t, "list<element: int64>")},
		{Name: "u", Type: arrow.PrimitiveTypes.Uint8, Nullable: true, Metadata: md},
		{Name: "m", Type: mustType(t, "map<large_string, struct<a: string_view, b: uint8 not null, c: int8>, keys_sorted>")},
		{Name: "m2", Type: mustType(t, "map<string, int16>")}, {Name: "m3", Type: mustType(t, "map<string, int16>")},
		{Name: "l2", Type: mustType(t, "list<element: int32>")}, {Name: "l3", Type: mustType(t, "list<element: int32>")},
	}, &top)
	if got.String() != want.String() || !arrow.TypeEqual(arrow.StructOf(got.Fields()...), arrow.StructOf(want.Fields()...), arrow.CheckMetadata()) {
		t.Fatalf("got %v\nwant %v", got, want)
	}
}

func FuzzParseDeltaSchema(f *testing.F) {
	for _, c := range storedTypes {
		f.Add(field(c.delta), "")
	}
	for _, text := range corruptDelta {
		f.Add(text, "")
	}
	if python, err := os.ReadFile("testdata/python-schema.b64"); err == nil {
		f.Add(field(`"long"`), strings.TrimSpace(string(python)))
	}
	f.Fuzz(func(t *testing.T, text, property string) {
		schema, err := ParseDeltaSchema(text, property)
		if err != nil || schema == nil || property != "" {
			return
		}
		again, err := DeltaSchemaJSON(schema)
		if err != nil {
			return // an empty struct or the like
		}
		if !json.Valid([]byte(again)) {
			t.Fatalf("wrote %s", again)
		}
		second, err := ParseDeltaSchema(again, "")
		if err != nil || !StorageSchema(second).Equal(StorageSchema(schema)) {
			t.Fatalf("%s became %s: %v", text, again, err)
		}
	})
}
