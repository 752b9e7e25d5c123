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

// TestStorageRoundTrip takes every type through storage and back, with nulls
// and with sliced arrays.
func TestStorageRoundTrip(t *testing.T) {
	p, b := arrow.PrimitiveTypes, arrow.BinaryTypes
	cases := []struct {
		declared arrow.DataType
		in       string
		storage  string // what tabledef.TypeName says of the stored array
		compat   string
	}{
		{arrow.FixedWidthTypes.Boolean, `[true,null,false]`, "bool", "bool"},
		{p.Int8, `[-128,null,127]`, "int8", "int8"},
		{p.Int16, `[-32768,null,1]`, "int16", "int16"},
		{p.Int32, `[-2147483648,null,1]`, "int32", "int32"},
		{p.Int64, `[-9223372036854775808,null,1]`, "int64", "int64"},
		{p.Uint8, `[255,null,1]`, "int16", "uint8"},
		{p.Uint16, `[65535,null,1]`, "int32", "uint16"},
		{p.Uint32, `[4294967295,null,1]`, "int64", "uint32"},
		{p.Uint64, `[18446744073709551615,null,1]`, "decimal128(20, 0)", "uint64"},
		{arrow.FixedWidthTypes.Float16, `[-1.5,null,65504]`, "float", "halffloat"},
		{p.Float32, `[-1.5,null,3.25]`, "float", "float"},
		{p.Float64, `[-1.5,null,3.25]`, "double", "double"},
		{b.String, `["é",null,"a text of more than twelve bytes"]`, "string", "string"},
		{b.LargeString, `["é",null,"a text of more than twelve bytes"]`, "string", "string"},
		{b.StringView, `["é",null,"a text of more than twelve bytes"]`, "string", "string"},
		{b.Binary, `["AP8=",null,"YSB0ZXh0IG9mIG1vcmUgdGhhbiB0d2VsdmUgYnl0ZXM="]`, "binary", "binary"},
		{b.LargeBinary, `["AP8=",null,"YSB0ZXh0IG9mIG1vcmUgdGhhbiB0d2VsdmUgYnl0ZXM="]`, "binary", "binary"},
		{b.BinaryView, `["AP8=",null,"YSB0ZXh0IG9mIG1vcmUgdGhhbiB0d2VsdmUgYnl0ZXM="]`, "binary", "binary"},
		{dictT, `["é",null,"b"]`, "string", "string"},
		{&arrow.DictionaryType{IndexType: p.Uint16, ValueType: b.LargeString}, `["é",null,"b"]`, "string", "string"},
		{&arrow.DictionaryType{IndexType: p.Int32, ValueType: b.String}, `["é",null,"b"]`, "string", "string"},
		{&arrow.DictionaryType{IndexType: p.Int64, ValueType: b.StringView}, `["é",null,"b"]`, "string", "string"},
		{p.Date32, `[-1,null,20000]`, "date32[day]", "date32[day]"},
		{stamp(arrow.Second, ""), `[-9223372036854,null,1]`, "timestamp[us]", "timestamp[s]"},
		{stamp(arrow.Millisecond, "Asia/Kolkata"), `[-9223372036854775,null,1]`, "timestamp[us, tz=UTC]", "timestamp[ms, tz=Asia/Kolkata]"},
		{stamp(arrow.Microsecond, ""), `[-9223372036854775808,null,1]`, "timestamp[us]", "timestamp[us]"},
		{stamp(arrow.Microsecond, "+05:30"), `[-1,null,1]`, "timestamp[us, tz=UTC]", "timestamp[us, tz=+05:30]"},
		{stamp(arrow.Nanosecond, "UTC"), `[-1,null,9223372036854775807]`, "int64", "timestamp[ns, tz=UTC]"},
	}
	for _, c := range cases {
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
	odd := fromJSON(t, mem, arrow.FixedWidthTypes.Time32s, `[0]`)
	defer odd.Release()
	if _, err := convert.ToStorage(mem, odd); !errors.As(err, &invalid) || invalid.Type != "time32[s]" {
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
	}
	for _, c := range cases {
		mem := checked(t)
		arr := fromJSON(t, mem, c.stored, c.in)
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
