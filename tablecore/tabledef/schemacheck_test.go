package tabledef

import (
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
}

var refusedColumns = []string{
	"null", "date64[ms]", "time32[s]", "time64[us]", "duration[s]", "month_day_nano_interval", "decimal32(9, 2)", "decimal64(9, 2)", "decimal128(9, 2)", "decimal256(9, 2)",
	"list<item: int32>", "large_list<item: int32>", "fixed_size_list<item: int32>[2]", "struct<a: int32>", "map<string, int32>", "list_view<item: int32>",
	"run_end_encoded<run_ends: int32, values: string>", "dictionary<values=int64, indices=int32, ordered=0>", "dictionary<values=binary, indices=int32, ordered=0>",
	"timestamp[us, tz=Mars/Olympus]", "timestamp[us, tz=+5]", "timestamp[us, tz=Local]",
}

func TestCheckSchemaTypes(t *testing.T) {
	for _, typ := range acceptedColumns {
		if err := CheckSchema(schemaOf(t, "origin: string", "time: timestamp[us, tz=UTC]", "v: "+typ), weather()); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
	for _, typ := range refusedColumns {
		err := CheckSchema(schemaOf(t, "origin: string", "time: timestamp[us, tz=UTC]", "v: "+typ), weather())
		wantInvalid(t, err, "v", typ)
	}
	for typ, dt := range map[string]arrow.DataType{
		"fixed_size_binary[0]": &arrow.FixedSizeBinaryType{}, "fixed_size_binary[-1]": &arrow.FixedSizeBinaryType{ByteWidth: -1},
	} {
		s := schemaOf(t, "origin: string", "time: timestamp[us]")
		s, _ = s.AddField(2, arrow.Field{Name: "v", Type: dt})
		wantInvalid(t, CheckSchema(s, weather()), "v", typ)
	}
	s, _ := schemaOf(t, "origin: string", "time: timestamp[us]").AddField(0, arrow.Field{Name: "v", Type: arrow.BinaryTypes.String,
		Metadata: arrow.NewMetadata([]string{extensionKey}, []string{"app.money"})})
	wantInvalid(t, CheckSchema(s, weather()), "v", "extension<app.money>")
	deep := arrow.DataType(arrow.PrimitiveTypes.Int8)
	for range 40 {
		deep = arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(deep))
	}
	s, _ = schemaOf(t, "origin: string", "time: timestamp[us]").AddField(0, arrow.Field{Name: "v", Type: deep})
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
