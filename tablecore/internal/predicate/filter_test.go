package predicate

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// filterSchema has a column "c" of the given type.
func filterSchema(typ arrow.DataType) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: "c", Type: typ, Nullable: true}}, nil)
}

func parseOne(typ arrow.DataType, op, value string) (*Filter, error) {
	return ParseFilter([]Condition{{Column: "c", Op: op, Value: raw(value)}}, filterSchema(typ))
}

// storedArray builds the stored values of a column from JSON.
func storedArray(t *testing.T, mem memory.Allocator, typ arrow.DataType, values string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(mem, tabledef.StorageType(typ), strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// selected says which rows pass, as a text of ones and zeros.
func selected(t *testing.T, f *Filter, values arrow.Array) string {
	t.Helper()
	mask, err := f.Select(values.Len(), func(string) arrow.Array { return values }, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, m := range mask {
		text += map[bool]string{true: "1", false: "0"}[m]
	}
	return text
}

func TestFilterValues(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	dec := &arrow.Decimal128Type{Precision: 10, Scale: 2}
	for _, c := range []struct {
		typ               arrow.DataType
		values, op, value string
		want              string
	}{
		{i64, `[9007199254740992,9007199254740993,null]`, "=", "9007199254740993", "010"},
		{i64, `[1,2,null]`, "=", "1.5", "000"},
		{i64, `[1,2,null]`, "!=", "1.5", "110"},
		{i64, `[1,2,null]`, "<", "1.5", "100"},
		{i64, `[1,2,null]`, ">=", "1.5", "010"},
		{i64, `[1,2,null]`, "<=", "1e0", "100"},
		{i64, `[1,2,null]`, "<", "1e999999999999999999999", "110"},
		{i64, `[1,2,null]`, ">", "-1e999999999", "110"},
		{i64, `[0,1,null]`, "=", "1e-999999999", "000"},
		{i64, `[0,1,null]`, ">", "1e-999999999", "010"},
		{i64, `[1,2,3]`, "in", `[3,"1",1.5,3]`, "101"},
		{i64, `[1,2,3]`, "in", `[]`, "000"},
		{i64, `[1,null]`, "is null", "", "01"},
		{i64, `[1,null]`, "is not null", "", "10"},
		{arrow.PrimitiveTypes.Uint8, `[0,255]`, "<", "256", "11"},
		{arrow.PrimitiveTypes.Uint8, `[0,255]`, ">", "-1", "11"},
		{u64, `["18446744073709551615","1"]`, "=", "18446744073709551615", "10"},
		{u64, `["18446744073709551615","1"]`, "<", "18446744073709551616", "11"},
		{dec, `["1.50","-0.01"]`, "=", `"1.5000"`, "10"},
		{dec, `["1.50","-0.01"]`, "=", "1.505", "00"},
		{dec, `["1.50","-0.01"]`, ">", "1.4999", "10"},
		{dec, `["1.50","-0.01"]`, "<", `"0"`, "01"},
		{usUTC, `[0,1000000]`, "=", `"1970-01-01T01:00:01+01:00"`, "01"},
		{usUTC, `[0,1000000]`, "<", `"1970-01-01T00:00:01.000000001Z"`, "11"},
		{usUTC, `[0,1000000]`, "=", `"1970-01-01T00:00:01.000000001Z"`, "00"},
		{usUTC, `[0,1]`, "=", "1", "01"},
		{usUTC, `[0,1]`, "<", `"+200000-01-01T00:00:00Z"`, "11"},
		{sUTC, `[0,1000000]`, "=", "1", "01"}, // stored in microseconds
		{sUTC, `[0,1000000]`, ">", `"1970-01-01T00:00:00.5Z"`, "01"},
		{msNaive, `[0,1000000]`, "=", `"1970-01-01T00:00:01"`, "01"},
		{nsUTC, `[0,1]`, "=", `"1970-01-01T00:00:00.000000001Z"`, "01"},
		{nsUTC, `[0,1]`, "<", `"9999-01-01T00:00:00Z"`, "11"},
		{arrow.FixedWidthTypes.Date32, `["1970-01-01","1970-01-02"]`, ">", `"1970-01-01"`, "01"},
		{arrow.FixedWidthTypes.Date32, `["1970-01-01","1970-01-02"]`, "<", `"+999999-01-01"`, "11"},
		{arrow.FixedWidthTypes.Time32ms, `[5,6]`, "=", "6", "01"},
		{arrow.FixedWidthTypes.Boolean, `[true,false,null]`, "=", "true", "100"},
		{arrow.FixedWidthTypes.Boolean, `[true,false,null]`, "<", "true", "010"},
		{arrow.BinaryTypes.LargeString, `["b","ab",""]`, "<", `"b"`, "011"},
		{arrow.BinaryTypes.String, `["b","ab",""]`, ">=", `"ab"`, "110"},
		{arrow.BinaryTypes.String, `["b","ab",""]`, "!=", `""`, "110"},
		{arrow.BinaryTypes.String, `["z","é"]`, ">", `"z"`, "01"}, // by bytes
		{arrow.BinaryTypes.Binary, `["AA==","AQ=="]`, ">", `"AA=="`, "01"},
		{&arrow.FixedSizeBinaryType{ByteWidth: 1}, `["AA==","AQ=="]`, "in", `["AQ==","AQE="]`, "01"},
	} {
		f, err := parseOne(c.typ, c.op, c.value)
		if err != nil {
			t.Errorf("%s %s %s: %v", c.typ, c.op, c.value, err)
			continue
		}
		values := storedArray(t, mem, c.typ, c.values)
		if got := selected(t, f, values); got != c.want {
			t.Errorf("%s %s of %s: %s, want %s", c.op, c.value, c.values, got, c.want)
		}
		values.Release()
	}
}

func TestFilterFloats(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendValues([]float64{-inf, -1, math.Copysign(0, -1), 0, 0.1, 9007199254740992, math.MaxFloat64, inf, nan, math.Float64frombits(0xFFF8000000000001)}, nil)
	values := b.NewArray()
	defer values.Release()
	big := "1" + strings.Repeat("0", 309)
	for _, c := range []struct{ op, value, want string }{
		{"=", `"NaN"`, "0000000011"},
		{">", `"Infinity"`, "0000000011"},
		{"<", `"NaN"`, "1111111100"},
		{"!=", `"NaN"`, "1111111100"},
		{"=", "0", "0011000000"},
		{"=", "-0.0", "0011000000"},
		{"<", "0", "1100000000"},
		{"=", "0.1", "0000100000"},
		{"=", "9007199254740993", "0000000000"},
		{"<", "9007199254740993", "1111110000"},
		{"=", "9007199254740993.0", "0000010000"}, // the nearest double
		{"<", big, "1111111000"},
		{"<", "1e400", "1111111000"},
		{">", "-" + big, "0111111111"},
		{">=", `"-Infinity"`, "1111111111"},
		{">", "1e-400", "0000111111"},
		{"=", "0e5", "0011000000"},
		{"in", `["NaN",0,0.1]`, "0011100011"},
	} {
		f, err := parseOne(arrow.PrimitiveTypes.Float64, c.op, c.value)
		if err != nil {
			t.Errorf("%s %s: %v", c.op, c.value, err)
			continue
		}
		if got := selected(t, f, values); got != c.want {
			t.Errorf("%s %.20s: %s, want %s", c.op, c.value, got, c.want)
		}
	}
}

func TestFilterRefusals(t *testing.T) {
	nested := arrow.ListOf(arrow.PrimitiveTypes.Int64)
	for _, c := range []struct {
		typ              arrow.DataType
		op, value, field string
	}{
		{i64, "=", "null", "filter[0][2]"},
		{i64, "=", "true", "filter[0][2]"},
		{i64, "=", `"1.5"`, "filter[0][2]"},
		{i64, "=", `"x"`, "filter[0][2]"},
		{i64, "=", "[1]", "filter[0][2]"},
		{i64, "=", "{", "filter[0][2]"},
		{i64, "=", "1" + strings.Repeat("0", 2000), "filter[0][2]"},
		{i64, "=", "", "filter[0]"},
		{i64, "like", "1", "filter[0][1]"},
		{i64, "in", "1", "filter[0][2]"},
		{i64, "in", "null", "filter[0][2]"},
		{i64, "in", "[1,null]", "filter[0][2][1]"},
		{i64, "is null", "1", "filter[0][2]"},
		{arrow.PrimitiveTypes.Float32, "=", `"inf"`, "filter[0][2]"},
		{arrow.PrimitiveTypes.Float32, "=", "true", "filter[0][2]"},
		{arrow.FixedWidthTypes.Boolean, "=", "1", "filter[0][2]"},
		{arrow.BinaryTypes.String, "=", "1", "filter[0][2]"},
		{arrow.BinaryTypes.Binary, "=", `"@"`, "filter[0][2]"},
		{arrow.BinaryTypes.Binary, "=", `"AA==\n"`, "filter[0][2]"},
		{usUTC, "=", `"2013-01-01T00:00:00"`, "filter[0][2]"},
		{msNaive, "=", `"2013-01-01T00:00:00Z"`, "filter[0][2]"},
		{usUTC, "=", "1.5", "filter[0][2]"},
		{arrow.FixedWidthTypes.Date32, "=", `"2013-02-30"`, "filter[0][2]"},
		{arrow.FixedWidthTypes.Date32, "=", "5", "filter[0][2]"},
		{arrow.FixedWidthTypes.Duration_s, "=", "1.5", "filter[0][2]"},
		{&arrow.Decimal128Type{Precision: 5, Scale: 2}, "=", `"x"`, "filter[0][2]"},
		{nested, "is null", "", "filter[0][0]"},
		{nested, "=", "1", "filter[0][0]"},
	} {
		_, err := parseOne(c.typ, c.op, c.value)
		var invalid *tableerr.Invalid
		if !errors.As(err, &invalid) || invalid.Field != c.field {
			t.Errorf("%s %s %.20s: got %v, want INVALID about %s", c.typ, c.op, c.value, err, c.field)
		}
	}
	_, err := ParseFilter([]Condition{{Column: "x", Op: "is null"}}, filterSchema(i64))
	var invalid *tableerr.Invalid
	if !errors.As(err, &invalid) || invalid.Field != "filter[0][0]" {
		t.Errorf("an unknown column: %v", err)
	}
}

func TestFilterOfOtherColumns(t *testing.T) {
	f, err := ParseFilter([]Condition{{Column: "c", Op: "is null"}, {Column: "c", Op: "=", Value: raw("1")}}, filterSchema(i64))
	if err != nil || len(f.Columns()) != 1 || f.String() != "c is null, c =" {
		t.Errorf("%v: %s", err, f)
	}
	if _, err := f.Select(3, func(string) arrow.Array { return nil }, nil); err == nil {
		t.Error("a column that is not there was evaluated")
	}
	var none *Filter
	if none.Columns() != nil || none.String() != "" || !none.MayMatch(nil) {
		t.Error("no filter does something")
	}
	texts, _, err := array.FromJSON(memory.DefaultAllocator, arrow.BinaryTypes.String, strings.NewReader(`["a"]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []arrow.DataType{i64, arrow.PrimitiveTypes.Float64, u64, &arrow.Decimal256Type{Precision: 50, Scale: 1}} {
		f, err := parseOne(typ, "=", "1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Select(1, func(string) arrow.Array { return texts }, nil); err == nil {
			t.Errorf("a text was compared as %s", typ)
		}
	}
}

func TestWideDecimals(t *testing.T) {
	wide := &arrow.Decimal256Type{Precision: 60, Scale: 3}
	texts, _, err := array.FromJSON(memory.DefaultAllocator, arrow.BinaryTypes.String,
		strings.NewReader(`["-0.001","100000000000000000000000000000000000000000000000000000.001","1.5",null]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ op, value, want string }{
		{"=", `"100000000000000000000000000000000000000000000000000000.001"`, "0100"},
		{">", "100000000000000000000000000000000000000000000000000000", "0100"},
		{"<", "0", "1000"},
		{"in", `["1.5000",-0.001]`, "1010"},
		{"!=", "1.5", "1100"},
	} {
		f, err := parseOne(wide, c.op, c.value)
		if err != nil {
			t.Fatal(err)
		}
		if got := selected(t, f, texts); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.op, c.value, got, c.want)
		}
		if !f.MayMatch(func(string) (Bounds, bool) { return Bounds{Rows: 4, Nulls: 1}, true }) {
			t.Errorf("%s %s was pruned", c.op, c.value)
		}
	}
}

func TestBounds(t *testing.T) {
	must := func(typ arrow.DataType, op, value string) *Filter {
		f, err := parseOne(typ, op, value)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	num := func(v int64) decimal128.Num { return decimal128.FromI64(v) }
	for _, c := range []struct {
		f    *Filter
		b    Bounds
		want bool
	}{
		{must(i64, ">", "5"), Bounds{10, 0, int64(1), int64(5)}, false},
		{must(i64, ">", "5"), Bounds{10, 0, int64(1), nil}, true},
		{must(i64, "<", "1"), Bounds{10, 0, int64(1), nil}, false},
		{must(i64, "!=", "5"), Bounds{10, 0, int64(5), int64(5)}, false},
		{must(i64, "in", "[1,9]"), Bounds{10, 0, int64(2), int64(8)}, false},
		{must(i64, "in", "[1,5,9]"), Bounds{10, 0, int64(2), int64(8)}, true},
		{must(i64, "in", "[]"), Bounds{10, 0, nil, nil}, false},
		{must(i64, "=", "5"), Bounds{10, 0, int64(math.MaxInt64), int64(math.MinInt64)}, true}, // nonsense
		{must(i64, "=", "5"), Bounds{10, 10, nil, nil}, false},
		{must(i64, "=", "5"), Bounds{-1, 10, nil, nil}, true},
		{must(i64, "is null", ""), Bounds{10, 0, nil, nil}, false},
		{must(i64, "is null", ""), Bounds{10, -1, nil, nil}, true},
		{must(i64, "is not null", ""), Bounds{10, 10, nil, nil}, false},
		{must(i64, "is not null", ""), Bounds{10, 9, nil, nil}, true},
		{must(arrow.PrimitiveTypes.Float64, ">", "5"), Bounds{10, 0, 1.0, 5.0}, false},
		{must(arrow.PrimitiveTypes.Float64, "=", "0"), Bounds{10, 0, 1.0, 5.0}, false},
		{must(arrow.PrimitiveTypes.Float64, "=", "0"), Bounds{10, 0, math.Copysign(0, -1), 5.0}, true},
		{must(arrow.PrimitiveTypes.Float64, "=", `"NaN"`), Bounds{10, 0, 1.0, nil}, true},
		{must(arrow.PrimitiveTypes.Float64, "=", `"NaN"`), Bounds{10, 0, 1.0, 5.0}, false},
		{must(u64, ">", "5"), Bounds{10, 0, num(1), num(5)}, false},
		{must(u64, ">", "5"), Bounds{10, 0, num(6), num(5)}, true},
		{must(u64, ">", "4"), Bounds{10, 0, nil, num(5)}, true},
		{must(u64, "<", "4"), Bounds{10, 0, num(4), nil}, false},
		{must(arrow.BinaryTypes.String, ">", `"b"`), Bounds{10, 0, []byte("a"), []byte("b")}, false},
		{must(arrow.BinaryTypes.String, "<", `"a"`), Bounds{10, 0, []byte("a"), []byte("b")}, false},
		{must(arrow.BinaryTypes.String, "=", `"c"`), Bounds{10, 0, []byte("a"), nil}, true},
		{must(arrow.BinaryTypes.String, "!=", `"a"`), Bounds{10, 0, []byte("a"), []byte("a")}, false},
		{must(arrow.BinaryTypes.String, "=", `"a"`), Bounds{10, 0, []byte("z"), []byte("b")}, true},
		{must(arrow.BinaryTypes.String, "=", `"a"`), Bounds{10, 0, int64(5), int64(6)}, true}, // of another kind
	} {
		if got := c.f.MayMatch(func(string) (Bounds, bool) { return c.b, true }); got != c.want {
			t.Errorf("%+v in %+v: %t", c.f.tests, c.b, got)
		}
		if !c.f.MayMatch(func(string) (Bounds, bool) { return Bounds{}, false }) {
			t.Error("pruned by nothing")
		}
	}
}

func TestEntityKeysOfASet(t *testing.T) {
	var all *Entities
	if _, ok := all.Keys(); ok {
		t.Error("all entities were named")
	}
}

// fuzzTypes are the types of FuzzFilter.
var fuzzTypes = []arrow.DataType{i64, u64, arrow.PrimitiveTypes.Float32, arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary,
	usUTC, msNaive, nsUTC, arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Time64us, &arrow.Decimal128Type{Precision: 38, Scale: 10}, &arrow.Decimal256Type{Precision: 76, Scale: 76}}

func FuzzFilter(f *testing.F) {
	for i := range fuzzTypes {
		for _, value := range []string{"1", `"x"`, "1e5", `"2013-01-01T00:00:00Z"`, `"2013-01-01"`, "[1,2]", "null", `"NaN"`, `"AA=="`, "-1e-99999999999"} {
			f.Add(i, "in", value)
			f.Add(i, "<=", value)
		}
	}
	f.Fuzz(func(t *testing.T, typ int, op, value string) {
		if typ < 0 || typ >= len(fuzzTypes) {
			return
		}
		filter, err := ParseFilter([]Condition{{Column: "c", Op: op, Value: json.RawMessage(value)}}, filterSchema(fuzzTypes[typ]))
		if err != nil {
			var invalid *tableerr.Invalid
			if !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Field, "filter[0]") {
				t.Fatalf("%v", err)
			}
			return
		}
		stored := tabledef.StorageType(fuzzTypes[typ])
		values := array.MakeArrayOfNull(memory.DefaultAllocator, stored, 2)
		defer values.Release()
		mask, err := filter.Select(2, func(string) arrow.Array { return values }, nil)
		if err != nil || (mask[0] != (op == opIsNull)) {
			t.Fatalf("%v: %v", err, mask)
		}
	})
}

func TestHull(t *testing.T) {
	two := func(a, b Condition) *Filter {
		a.Column, b.Column = "c", "c"
		f, err := ParseFilter([]Condition{a, b}, filterSchema(i64))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		f      *Filter
		lo, hi int64
	}{
		{nil, math.MinInt64, math.MaxInt64},
		{two(Condition{Op: ">", Value: raw("5")}, Condition{Op: "<=", Value: raw("9")}), 6, 9},
		{two(Condition{Op: "in", Value: raw("[3,8,1]")}, Condition{Op: "is not null"}), 1, 8},
		{two(Condition{Op: "in", Value: raw("[]")}, Condition{Op: "<", Value: raw("5")}), 1, 0},
		{two(Condition{Op: "<", Value: raw("2")}, Condition{Op: ">", Value: raw("5")}), 6, 1},
	} {
		if lo, hi := c.f.Hull("c"); lo != c.lo || hi != c.hi {
			t.Errorf("%s: %d … %d, want %d … %d", c.f, lo, hi, c.lo, c.hi)
		}
		if lo, hi := c.f.Hull("d"); lo != math.MinInt64 || hi != math.MaxInt64 {
			t.Errorf("%s bounds another column: %d … %d", c.f, lo, hi)
		}
	}
}
