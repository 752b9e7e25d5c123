package convert_test

import (
	"errors"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

func stamp(unit arrow.TimeUnit, zone string) arrow.DataType {
	return &arrow.TimestampType{Unit: unit, TimeZone: zone}
}

var storageCases = []struct {
	declared arrow.DataType
	in       string
	storage  string // what tabledef.TypeName says of the stored array
	compat   string
}{
	{arrow.FixedWidthTypes.Boolean, `[true,null,false]`, "bool", "bool"},
	{arrow.PrimitiveTypes.Int8, `[-128,null,127]`, "int8", "int8"},
	{arrow.PrimitiveTypes.Int16, `[-32768,null,1]`, "int16", "int16"},
	{arrow.PrimitiveTypes.Int32, `[-2147483648,null,1]`, "int32", "int32"},
	{arrow.PrimitiveTypes.Int64, `[-9223372036854775808,null,1]`, "int64", "int64"},
	{arrow.PrimitiveTypes.Uint8, `[255,null,1]`, "int16", "uint8"},
	{arrow.PrimitiveTypes.Uint16, `[65535,null,1]`, "int32", "uint16"},
	{arrow.PrimitiveTypes.Uint32, `[4294967295,null,1]`, "int64", "uint32"},
	{arrow.PrimitiveTypes.Uint64, `[18446744073709551615,null,1]`, "decimal128(20, 0)", "uint64"},
	{arrow.FixedWidthTypes.Float16, `[-1.5,null,65504]`, "float", "halffloat"},
	{arrow.PrimitiveTypes.Float32, `[-1.5,null,3.25]`, "float", "float"},
	{arrow.PrimitiveTypes.Float64, `[-1.5,null,3.25]`, "double", "double"},
	{arrow.BinaryTypes.String, `["é",null,"a text of more than twelve bytes"]`, "string", "string"},
	{arrow.BinaryTypes.LargeString, `["é",null,"a text of more than twelve bytes"]`, "string", "string"},
	{arrow.BinaryTypes.StringView, `["é",null,"a text of more than twelve bytes"]`, "string", "string"},
	{arrow.BinaryTypes.Binary, `["AP8=",null,"YSB0ZXh0IG9mIG1vcmUgdGhhbiB0d2VsdmUgYnl0ZXM="]`, "binary", "binary"},
	{arrow.BinaryTypes.LargeBinary, `["AP8=",null,"YSB0ZXh0IG9mIG1vcmUgdGhhbiB0d2VsdmUgYnl0ZXM="]`, "binary", "binary"},
	{arrow.BinaryTypes.BinaryView, `["AP8=",null,"YSB0ZXh0IG9mIG1vcmUgdGhhbiB0d2VsdmUgYnl0ZXM="]`, "binary", "binary"},
	{dictT, `["é",null,"b"]`, "string", "string"},
	{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.BinaryTypes.LargeString}, `["é",null,"b"]`, "string", "string"},
	{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, `["é",null,"b"]`, "string", "string"},
	{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int64, ValueType: arrow.BinaryTypes.StringView}, `["é",null,"b"]`, "string", "string"},
	{arrow.PrimitiveTypes.Date32, `[-1,null,20000]`, "date32[day]", "date32[day]"},
	{stamp(arrow.Second, ""), `[-9223372036854,null,1]`, "timestamp[us]", "timestamp[s]"},
	{stamp(arrow.Millisecond, "Asia/Kolkata"), `[-9223372036854775,null,1]`, "timestamp[us, tz=UTC]", "timestamp[ms, tz=Asia/Kolkata]"},
	{stamp(arrow.Microsecond, ""), `[-9223372036854775808,null,1]`, "timestamp[us]", "timestamp[us]"},
	{stamp(arrow.Microsecond, "+05:30"), `[-1,null,1]`, "timestamp[us, tz=UTC]", "timestamp[us, tz=+05:30]"},
	{stamp(arrow.Nanosecond, "UTC"), `[-1,null,9223372036854775807]`, "int64", "timestamp[ns, tz=UTC]"},
	{arrow.FixedWidthTypes.Time32ms, `[1,null,86399999]`, "int32", "time32[ms]"},
	{arrow.FixedWidthTypes.Time64ns, `[1,null,86399999999999]`, "int64", "time64[ns]"},
	{arrow.FixedWidthTypes.Duration_ms, `[-1,null,1]`, "int64", "duration[ms]"},
	{arrow.FixedWidthTypes.Date64, `[-86400000,null,86400000]`, "date32[day]", "date32[day]"},
	{&arrow.FixedSizeBinaryType{ByteWidth: 2}, `["AP8=",null,"YWI="]`, "binary", "fixed_size_binary[2]"},
	{&arrow.Decimal32Type{Precision: 3, Scale: 1}, `["-99.9",null,"0.1"]`, "decimal128(3, 1)", "decimal128(3, 1)"},
	{&arrow.Decimal64Type{Precision: 18}, `["-999999999999999999",null,"1"]`, "decimal128(18, 0)", "decimal128(18, 0)"},
	{&arrow.Decimal128Type{Precision: 38, Scale: 38}, `["-0.99999999999999999999999999999999999999",null,"0.1"]`, "decimal128(38, 38)", "decimal128(38, 38)"},
	{&arrow.Decimal256Type{Precision: 38, Scale: 1}, `["-1.5",null,"0.1"]`, "decimal128(38, 1)", "decimal128(38, 1)"},
	{&arrow.Decimal256Type{Precision: 39, Scale: 2}, `["-0.05",null,"7000000000000000000000000000000000000.10"]`, "string", "decimal256(39, 2)"},
	{arrow.ListOf(arrow.PrimitiveTypes.Uint8), `[[255,null],null,[]]`, "list<element: int16>", "list<item: uint8>"},
	{arrow.LargeListOf(arrow.BinaryTypes.LargeString), `[["é"],null,[]]`, "list<element: string>", "list<item: string>"},
	{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float64), `[[1.5,null],null,[0,2]]`, "list<element: double>", "fixed_size_list<item: double>[2]"},
	{arrow.MapOf(arrow.BinaryTypes.String, arrow.FixedWidthTypes.Duration_s), `[[{"key":"a","value":1}],null,[]]`, "map<string, int64>", "map<string, duration[s]>"},
	{arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.StringView, Nullable: true}), `[{"a":"x"},null,{"a":null}]`, "struct<a: string>", "struct<a: string>"},
}

// TestStorageRoundTrip takes every type through storage and back, with nulls
// and with sliced arrays.
func TestStorageRoundTrip(t *testing.T) {
	for _, c := range storageCases {
		t.Run(tabledef.TypeName(c.declared), func(t *testing.T) {
			mem := checked(t)
			var whole arrow.Array
			if d, ok := c.declared.(*arrow.DictionaryType); ok {
				whole = dictionary(t, mem, d)
			} else {
				whole = fromJSON(t, mem, c.declared, c.in)
			}
			defer whole.Release()
			for from := range int64(4) {
				arr := array.NewSlice(whole, from, 3)
				stored, err := convert.ToStorage(mem, arr)
				if err != nil {
					t.Fatal(err)
				}
				if got := tabledef.TypeName(stored.DataType()); got != c.storage {
					t.Errorf("stored as %s, want %s", got, c.storage)
				}
				back, err := convert.FromStorage(mem, stored, c.declared)
				if err != nil {
					t.Fatal(err)
				}
				sameValues(t, back, arr)
				compat, err := convert.FromStorage(mem, stored, convert.Compat(c.declared))
				if err != nil {
					t.Fatal(err)
				}
				if got := tabledef.TypeName(compat.DataType()); got != c.compat {
					t.Errorf("compat type %s, want %s", got, c.compat)
				}
				for i := range arr.Len() {
					if compat.ValueStr(i) != arr.ValueStr(i) {
						t.Errorf("compat row %d: %s, want %s", i, compat.ValueStr(i), arr.ValueStr(i))
					}
				}
				for _, a := range []arrow.Array{arr, stored, back, compat} {
					a.Release()
				}
			}
		})
	}
}

func sameValues(t *testing.T, got, want arrow.Array) {
	t.Helper()
	if !arrow.TypeEqual(got.DataType(), want.DataType()) || got.Len() != want.Len() || got.NullN() != want.NullN() {
		t.Fatalf("got %s %v, want %s %v", got.DataType(), got, want.DataType(), want)
	}
	for i := range want.Len() {
		if got.ValueStr(i) != want.ValueStr(i) {
			t.Errorf("row %d: %s, want %s", i, got.ValueStr(i), want.ValueStr(i))
		}
	}
}

// TestHalvesRoundTrip takes all 65,536 halves through storage: every one must
// come back bit for bit, and mean the same number in between.
func TestHalvesRoundTrip(t *testing.T) {
	mem := checked(t)
	bits := array.NewUint16Builder(mem)
	defer bits.Release()
	for h := range 1 << 16 {
		bits.Append(uint16(h))
	}
	raw := bits.NewArray()
	defer raw.Release()
	data := array.NewData(arrow.FixedWidthTypes.Float16, raw.Len(), raw.Data().Buffers(), nil, 0, 0)
	defer data.Release()
	halves := array.MakeFromData(data)
	defer halves.Release()
	stored, err := convert.ToStorage(mem, halves)
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Release()
	for i, v := range stored.(*array.Float32).Float32Values() {
		exponent, fraction := i>>10&31, float64(i&1023)
		want := math.Ldexp(fraction, -24)
		switch {
		case exponent == 31 && fraction == 0:
			want = math.Inf(1)
		case exponent == 31:
			want = math.NaN()
		case exponent > 0:
			want = math.Ldexp(1+fraction/1024, exponent-15)
		}
		if i >= 1<<15 {
			want = -want
		}
		if float64(v) != want && !(math.IsNaN(want) && v != v) || (v == 0) && math.Signbit(float64(v)) != (i >= 1<<15) {
			t.Fatalf("half %#x means %v, want %v", i, v, want)
		}
	}
	back, err := convert.FromStorage(mem, stored, arrow.FixedWidthTypes.Float16)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Release()
	got := arrow.Uint16Traits.CastFromBytes(back.Data().Buffers()[1].Bytes())
	for i := range 1 << 16 {
		if int(got[i]) != i {
			t.Fatalf("half %#x came back as %#x", i, got[i])
		}
	}
}

func TestToStorageRefuses(t *testing.T) {
	mem := checked(t)
	late := fromJSON(t, mem, stamp(arrow.Millisecond, ""), `[0,9223372036854776]`)
	defer late.Release()
	var invalid *tableerr.Invalid
	if _, err := convert.ToStorage(mem, late); !errors.As(err, &invalid) || *invalid.Row != 1 || invalid.Value != int64(9223372036854776) {
		t.Errorf("got %v", err)
	}
	odd := array.NewNull(1)
	defer odd.Release()
	if _, err := convert.ToStorage(mem, odd); !errors.As(err, &invalid) || invalid.Type != "null" {
		t.Errorf("got %v", err)
	}
	part := unchecked(t, mem, arrow.ListOf(&arrow.Decimal64Type{Precision: 2}), `[["1"],[],["99","100"]]`)
	defer part.Release()
	if _, err := convert.ToStorage(mem, part); !errors.As(err, &invalid) || *invalid.Row != 2 || invalid.Value != "100" {
		t.Errorf("got %v", err)
	}
}

// TestFromStorageRefuses checks that values no writer of ours stores are told
// as damage, and that what lies under a null is not.
func TestFromStorageRefuses(t *testing.T) {
	p := arrow.PrimitiveTypes
	dec := &arrow.Decimal128Type{Precision: 20}
	cases := []struct {
		stored, declared arrow.DataType
		in               string
	}{
		{p.Int16, p.Uint8, `[0,256]`},
		{p.Int16, p.Uint8, `[0,-1]`},
		{p.Int32, p.Uint16, `[0,65536]`},
		{p.Int64, p.Uint32, `[0,-1]`},
		{dec, p.Uint64, `["0","-1"]`},
		{dec, p.Uint64, `["0","18446744073709551616"]`},
		{p.Float32, arrow.FixedWidthTypes.Float16, `[0,0.1]`},
		{p.Float32, arrow.FixedWidthTypes.Float16, `[0,70000]`},
		{stamp(arrow.Microsecond, ""), stamp(arrow.Second, ""), `[0,1]`},
		{p.Int32, p.Int64, `[0,1]`},
		{p.Int32, arrow.BinaryTypes.String, `[0,1]`},
		{stamp(arrow.Microsecond, "UTC"), stamp(arrow.Second, ""), `[0,1000000]`},
		{p.Int64, arrow.FixedWidthTypes.Time32s, `[0,1]`},
		{arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 2}, `["YWI=","YQ=="]`},
		{&arrow.Decimal128Type{Precision: 9}, &arrow.Decimal32Type{Precision: 9}, `["1","2147483648"]`},
		{&arrow.Decimal128Type{Precision: 18}, &arrow.Decimal64Type{Precision: 18}, `["1","9223372036854775808"]`},
		{arrow.BinaryTypes.String, &arrow.Decimal256Type{Precision: 39, Scale: 1}, `["0.1","1"]`},
		{arrow.BinaryTypes.String, &arrow.Decimal256Type{Precision: 39}, `["1","1000000000000000000000000000000000000000"]`},
		{arrow.ListOfField(element(p.Int8)), arrow.FixedSizeListOf(2, p.Int8), `[[1,2],[1]]`},
		{arrow.ListOfField(element(p.Int16)), arrow.LargeListOf(p.Uint8), `[[1],[256]]`},
		{arrow.StructOf(arrow.Field{Name: "a", Type: p.Int16, Nullable: true}), arrow.StructOf(arrow.Field{Name: "a", Type: p.Uint8, Nullable: true}), `[{"a":1},{"a":-1}]`},
		{arrow.StructOf(arrow.Field{Name: "a", Type: p.Int16, Nullable: true}), arrow.StructOf(arrow.Field{Name: "b", Type: p.Uint8, Nullable: true}), `[{"a":1}]`},
	}
	for _, c := range cases {
		mem := checked(t)
		arr := unchecked(t, mem, c.stored, c.in)
		var corrupt *tableerr.Corrupt
		if got, err := convert.FromStorage(mem, arr, c.declared); !errors.As(err, &corrupt) {
			t.Errorf("%s as %s: got %v, %v", c.stored, c.declared, got, err)
		}
		arr.Release()
	}
	mem := checked(t)
	arr := fromJSON(t, mem, p.Int16, `[1,300]`)
	defer arr.Release()
	bits := []byte{1}
	data := array.NewData(p.Int16, 2, append(nullBits(bits), arr.Data().Buffers()[1]), nil, 1, 0)
	defer data.Release()
	hidden := array.MakeFromData(data)
	defer hidden.Release()
	got, err := convert.FromStorage(mem, hidden, p.Uint8)
	if err != nil {
		t.Fatal(err)
	}
	got.Release()
}

func element(t arrow.DataType) arrow.Field {
	return arrow.Field{Name: "element", Type: t, Nullable: true}
}

func TestDictionaryTooSmall(t *testing.T) {
	mem := checked(t)
	b := array.NewStringBuilder(mem)
	defer b.Release()
	for i := range 129 {
		b.Append(string(rune('a' + i)))
	}
	arr := b.NewArray()
	defer arr.Release()
	var invalid *tableerr.Invalid
	if _, err := convert.FromStorage(mem, arr, dictT); !errors.As(err, &invalid) {
		t.Errorf("got %v", err)
	}
	few := array.NewSlice(arr, 0, 128)
	defer few.Release()
	got, err := convert.FromStorage(mem, few, dictT)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	sameText(t, got, few)
}

func sameText(t *testing.T, got, want arrow.Array) {
	t.Helper()
	for i := range want.Len() {
		if got.ValueStr(i) != want.ValueStr(i) {
			t.Errorf("row %d: %s, want %s", i, got.ValueStr(i), want.ValueStr(i))
		}
	}
}
