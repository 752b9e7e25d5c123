package tabledef

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// weather is the definition that the tests check schemas against.
func weather() *Definition {
	return &Definition{IndexColumn: "time", IndexType: IndexTimestamp, Granularity: Granularity{N: 1, Unit: "h"}, EntityColumns: []string{"origin"},
		Uniqueness: UniqueReject, IngestTimeColumn: "_ingest_ts"}
}

// schemaOf builds a schema of "name: type" texts.
func schemaOf(t testing.TB, columns ...string) *arrow.Schema {
	t.Helper()
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		name, typ, _ := strings.Cut(c, ": ")
		fields[i] = arrow.Field{Name: name, Type: mustType(t, typ), Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

var acceptedColumns = []string{
	"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "halffloat", "float", "double",
	"string", "large_string", "string_view", "binary", "large_binary", "binary_view", "fixed_size_binary[3]", "date32[day]",
	"timestamp[s]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]", "timestamp[s, tz=UTC]", "timestamp[ms, tz=Asia/Kolkata]", "timestamp[us, tz=+05:30]", "timestamp[ns, tz=-11:00]",
	"dictionary<values=string, indices=int32>", "dictionary<values=large_string, indices=uint8, ordered=1>",
	"date64[ms]", "time32[s]", "time32[ms]", "time64[us]", "time64[ns]", "duration[s]", "duration[ms]", "duration[us]", "duration[ns]",
	"decimal32(9, 2)", "decimal64(18, 18)", "decimal128(38, 0)", "decimal256(38, 2)", "decimal256(76, 76)",
	"list<item: int32>", "large_list<item: string not null>", "fixed_size_list<item: int32>[2]", "struct<a: int32, b: struct<a: int8>>", "map<string, int32>",
	"dictionary<values=int64, indices=int32, ordered=0>", "dictionary<values=binary, indices=int32, ordered=0>", "dictionary<values=list<item: int8>, indices=int32, ordered=0>",
	"list<item: dictionary<values=string_view, indices=int8, ordered=0>>", "map<list<item: int8>, list<item: timestamp[ns, tz=UTC]>>",
}

// refusedColumns are types with the path and the type that the refusal names.
var refusedColumns = []struct{ typ, path, named string }{
	{"null", "v", "null"}, {"month_day_nano_interval", "v", ""}, {"list_view<item: int32>", "v", ""}, {"run_end_encoded<run_ends: int32, values: string>", "v", ""},
	{"decimal128(9, -2)", "v", ""}, {"decimal128(9, 10)", "v", ""}, {"timestamp[us, tz=Mars/Olympus]", "v", ""}, {"timestamp[us, tz=+5]", "v", ""}, {"timestamp[us, tz=Local]", "v", ""},
	{"struct<>", "v", ""}, {"list<item: null>", "v.item", "null"}, {"struct<a: int8, b: struct<c: month_interval>>", "v.b.c", "month_interval"}, {"map<string, struct<>>", "v.value", "struct<>"},
	{"map<null, int8>", "v.key", "null"}, {"large_list<x: list<y: decimal256(5, 6)>>", "v.x.y", "decimal256(5, 6)"}, {"dictionary<values=null, indices=int32, ordered=0>", "v", "null"},
	{"dictionary<values=struct<a: null>, indices=int32, ordered=0>", "v.a", "null"}, {"dictionary<values=dictionary<values=string, indices=int8, ordered=0>, indices=int32, ordered=0>", "v", ""},
	{"fixed_size_list<item: timestamp[s, tz=X/Y]>[2]", "v.item", "timestamp[s, tz=X/Y]"},
}

func TestCheckSchemaTypes(t *testing.T) {
	for _, typ := range acceptedColumns {
		if err := CheckSchema(schemaOf(t, "origin: string", "time: timestamp[us, tz=UTC]", "v: "+typ), weather()); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
	for _, c := range refusedColumns {
		err := CheckSchema(schemaOf(t, "origin: string", "time: timestamp[us, tz=UTC]", "v: "+c.typ), weather())
		wantInvalid(t, err, c.path, cmp.Or(c.named, c.typ))
	}
	for typ, dt := range map[string]arrow.DataType{
		"fixed_size_binary[0]": &arrow.FixedSizeBinaryType{}, "fixed_size_binary[-1]": &arrow.FixedSizeBinaryType{ByteWidth: -1},
		"decimal128(39, 0)": &arrow.Decimal128Type{Precision: 39}, "decimal32(10, 0)": &arrow.Decimal32Type{Precision: 10}, "decimal64(0, 0)": &arrow.Decimal64Type{},
		"sparse_union<a: int8 not null=0>": arrow.SparseUnionOf([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int8}}, []arrow.UnionTypeCode{0}),
	} {
		s := schemaOf(t, "origin: string", "time: timestamp[us]")
		s, _ = s.AddField(2, arrow.Field{Name: "v", Type: dt})
		wantInvalid(t, CheckSchema(s, weather()), "v", typ)
	}
	deep := arrow.DataType(arrow.PrimitiveTypes.Int8)
	for range 40 {
		deep = arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(deep))
	}
	s, _ := schemaOf(t, "origin: string", "time: timestamp[us]").AddField(0, arrow.Field{Name: "v", Type: deep})
	wantInvalid(t, CheckSchema(s, weather()), "v", "map")
}

func wantInvalid(t *testing.T, err error, column, typ string) {
	t.Helper()
	var invalid *tableerr.Invalid
	if !errors.As(err, &invalid) || invalid.Column != column || invalid.Type != typ {
		t.Errorf("got %v, want INVALID column=%q type=%q", err, column, typ)
	}
}

func TestCheckSchemaNames(t *testing.T) {
	for _, names := range [][]string{
		{""}, {"  "}, {"\u00a0"}, {"a\tb"}, {"a\x00"}, {"a\u0085"}, {"\xff"},
		{"a", "a"}, {"Temp", "temp"}, {"é", "e\u0301"}, {"É", "e\u0301"}, {"straße", "STRASSE"}, {"K", "\u212a"}, {"Time"}, {"_INGEST_TS"},
	} {
		columns := []string{"origin: string", "time: timestamp[us, tz=UTC]"}
		for _, n := range names {
			columns = append(columns, n+": int8")
		}
		err := CheckSchema(schemaOf(t, columns...), weather())
		var invalid *tableerr.Invalid
		if !errors.As(err, &invalid) || invalid.Column != names[len(names)-1] || invalid.Type != "" {
			t.Errorf("%q: %v", names, err)
		}
	}
	if err := CheckSchema(schemaOf(t, "origin: string", "time: timestamp[us]", "a.b: int8", "a b: int8", "a{b}: int8", "温度: double", "-: int8"), weather()); err != nil {
		t.Error(err)
	}
}

func TestCheckSchemaKeys(t *testing.T) {
	for _, c := range []struct {
		columns     []string
		column, typ string
	}{
		{[]string{"origin: string"}, "time", ""},
		{[]string{"time: timestamp[us]"}, "origin", ""},
		{[]string{"origin: string", "time: int64"}, "time", "int64"},
		{[]string{"origin: string", "time: date32"}, "time", "date32[day]"},
		{[]string{"origin: int16", "time: timestamp[us]"}, "origin", "int16"},
		{[]string{"origin: binary", "time: timestamp[us]"}, "origin", "binary"},
		{[]string{"origin: string", "time: timestamp[us]", "_ingest_ts: timestamp[us]"}, "_ingest_ts", "timestamp[us]"},
	} {
		wantInvalid(t, CheckSchema(schemaOf(t, c.columns...), weather()), c.column, c.typ)
	}
	for _, typ := range []string{"string", "large_string", "string_view", "int32", "int64", "uint64", "dictionary<values=string, indices=int8>", "dictionary<values=large_string, indices=int8>"} {
		if err := CheckSchema(schemaOf(t, "origin: "+typ, "time: timestamp[s]", "_ingest_ts: timestamp[us, tz=UTC]"), weather()); err != nil {
			t.Errorf("entity of type %s: %v", typ, err)
		}
	}
}

func TestEntityType(t *testing.T) {
	for in, want := range map[string]string{
		"string": "string", "large_string": "large_string", "string_view": "string", "int32": "int32", "int64": "int64", "uint64": "uint64",
		"dictionary<values=string, indices=int8>": "string", "dictionary<values=large_string, indices=int8>": "large_string", "dictionary<values=string_view, indices=int8>": "string",
		"uint32": "", "binary": "", "dictionary<values=int64, indices=int8>": "",
	} {
		got, ok := EntityType(mustType(t, in))
		if ok != (want != "") || ok && TypeName(got) != want {
			t.Errorf("%s is declared as %v", in, got)
		}
	}
}

func TestCheckSchemaGranularity(t *testing.T) {
	for _, c := range []struct {
		g    Granularity
		unit string
		ok   bool
	}{
		{Granularity{1, "s"}, "s", true}, {Granularity{1, "ms"}, "s", false}, {Granularity{1000, "ms"}, "s", true}, {Granularity{1500, "us"}, "ms", false},
		{Granularity{1, "ns"}, "ns", true}, {Granularity{1, "ns"}, "us", false}, {Granularity{4294967295, "d"}, "ns", true}, {Granularity{4294967295, "w"}, "s", true},
		{Granularity{3000000000, "ns"}, "s", true}, {Granularity{3000000001, "ns"}, "s", false}, {Granularity{}, "s", true},
	} {
		d := weather()
		d.Granularity = c.g
		err := CheckSchema(schemaOf(t, "origin: string", "time: timestamp["+c.unit+"]"), d)
		var invalid *tableerr.Invalid
		if (err == nil) != c.ok || err != nil && (!errors.As(err, &invalid) || invalid.Field != "index_granularity") {
			t.Errorf("%v over %s: %v", c.g, c.unit, err)
		}
	}
}

func TestCheckAdoption(t *testing.T) {
	for _, c := range []struct {
		columns                 []string
		column, expected, found string
	}{
		{[]string{"origin: string"}, "time", "timestamp", ""},
		{[]string{"time: timestamp[us]", "time: int8"}, "origin", "string, int32, int64 or uint64", ""},
		{[]string{"time: timestamp[us]", "origin: string", "time: int8"}, "time", "", "int8"},
		{[]string{"time: int64", "origin: string"}, "time", "timestamp", "int64"},
	} {
		err := CheckAdoption(schemaOf(t, c.columns...), weather())
		var mismatch *tableerr.SchemaMismatch
		if !errors.As(err, &mismatch) || mismatch.Column != c.column || mismatch.Expected != c.expected || mismatch.Found != c.found {
			t.Errorf("%q: %v", c.columns, err)
		}
	}
	wantInvalid(t, CheckAdoption(schemaOf(t, "origin: string", "time: date32"), weather()), "time", "date32[day]")
	if err := CheckAdoption(schemaOf(t, "time: timestamp[us]", "origin: string"), weather()); err != nil {
		t.Error(err)
	}
}
