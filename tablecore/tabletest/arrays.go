package tabletest

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// flatTypes are types without children, one of each way that a value is stored.
var flatTypes = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean,
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
	arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView,
	&arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.FixedSizeBinaryType{ByteWidth: 16},
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64,
	arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
	arrow.FixedWidthTypes.Duration_s, arrow.FixedWidthTypes.Duration_ms, arrow.FixedWidthTypes.Duration_us, arrow.FixedWidthTypes.Duration_ns,
	&arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Asia/Kolkata"},
	&arrow.TimestampType{Unit: arrow.Microsecond}, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	&arrow.TimestampType{Unit: arrow.Nanosecond}, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "+05:30"},
	&arrow.Decimal32Type{Precision: 9, Scale: 2}, &arrow.Decimal64Type{Precision: 18, Scale: 18},
	&arrow.Decimal128Type{Precision: 5}, &arrow.Decimal128Type{Precision: 38, Scale: 10},
	&arrow.Decimal256Type{Precision: 30, Scale: 2}, &arrow.Decimal256Type{Precision: 76, Scale: 40},
}

// FlatTypes returns one type of each kind without children, dictionaries left
// out.
func FlatTypes() []arrow.DataType { return append([]arrow.DataType(nil), flatTypes...) }

// RandomType returns a type with at most depth types nested inside each other.
func RandomType(rng *rand.Rand, depth int) arrow.DataType {
	if depth == 0 || rng.IntN(3) == 0 {
		flat := flatTypes[rng.IntN(len(flatTypes))]
		if rng.IntN(6) == 0 {
			return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: flat, Ordered: rng.IntN(2) == 0}
		}
		return flat
	}
	field := func(name string) arrow.Field {
		f := arrow.Field{Name: name, Type: RandomType(rng, depth-1), Nullable: rng.IntN(3) > 0}
		if rng.IntN(4) == 0 {
			f.Metadata = arrow.NewMetadata([]string{"unit"}, []string{strconv.Itoa(rng.IntN(9))})
		}
		return f
	}
	switch rng.IntN(5) {
	case 0:
		return arrow.ListOfField(field("item"))
	case 1:
		return arrow.LargeListOfField(field("element"))
	case 2:
		return arrow.FixedSizeListOfField(1+int32(rng.IntN(3)), field("item"))
	case 3:
		key := field("key")
		key.Nullable = false
		return arrow.MapOfFields(key, field("value"))
	default:
		fields := make([]arrow.Field, 1+rng.IntN(3))
		for i := range fields {
			fields[i] = field("f" + strconv.Itoa(i))
		}
		return arrow.StructOf(fields...)
	}
}

// RandomArray makes an array of n values with nulls where the field has them,
// empty lists, extreme values, NaNs and −0.0; it is a slice of a longer one.
// The caller releases it.
func RandomArray(mem memory.Allocator, rng *rand.Rand, f arrow.Field, n int) arrow.Array {
	const before, behind = 3, 2
	whole := randomArray(mem, rng, f, before+n+behind)
	defer whole.Release()
	return array.NewSlice(whole, before, int64(before+n))
}

func randomArray(mem memory.Allocator, rng *rand.Rand, f arrow.Field, n int) arrow.Array {
	switch t := f.Type.(type) {
	case arrow.ExtensionType:
		f.Type = t.StorageType()
		storage := randomArray(mem, rng, f, n)
		defer storage.Release()
		return array.NewExtensionArrayWithStorage(t, storage)
	case *arrow.DictionaryType:
		values := randomArray(mem, rng, arrow.Field{Type: t.ValueType, Nullable: f.Nullable}, 5)
		defer values.Release()
		indices := randomIndices(mem, rng, t.IndexType, n, 5, f.Nullable)
		defer indices.Release()
		return array.NewDictionaryArray(t, indices, values)
	case *arrow.StructType:
		return nested(mem, rng, f, n, nil, fieldArrays(mem, rng, t.Fields(), n))
	case *arrow.FixedSizeListType:
		return nested(mem, rng, f, n, nil, []arrow.Array{randomArray(mem, rng, t.ElemField(), n*int(t.Len()))})
	case *arrow.LargeListType:
		offsets, total := randomOffsets[int64](mem, rng, n)
		return nested(mem, rng, f, n, offsets, []arrow.Array{randomArray(mem, rng, t.ElemField(), total)})
	case *arrow.ListType:
		offsets, total := randomOffsets[int32](mem, rng, n)
		return nested(mem, rng, f, n, offsets, []arrow.Array{randomArray(mem, rng, t.ElemField(), total)})
	case *arrow.MapType:
		offsets, total := randomOffsets[int32](mem, rng, n)
		entries := arrow.Field{Type: t.Elem()}
		return nested(mem, rng, f, n, offsets, []arrow.Array{randomArray(mem, rng, entries, total)})
	}
	b := array.NewBuilder(mem, f.Type)
	defer b.Release()
	for range n {
		if f.Nullable && rng.IntN(4) == 0 {
			b.AppendNull()
		} else {
			appendRandom(b, rng)
		}
	}
	return b.NewArray()
}

func fieldArrays(mem memory.Allocator, rng *rand.Rand, fields []arrow.Field, n int) []arrow.Array {
	out := make([]arrow.Array, len(fields))
	for i, f := range fields {
		out[i] = randomArray(mem, rng, f, n)
	}
	return out
}

// randomOffsets makes offsets of lists, some of them empty, that begin at 1.
func randomOffsets[O int32 | int64](mem memory.Allocator, rng *rand.Rand, n int) (*memory.Buffer, int) {
	buf := memory.NewResizableBuffer(mem)
	buf.Resize((n + 1) * binary.Size(O(0)))
	out := arrow.GetData[O](buf.Bytes())
	out[0] = 1
	for i := range n {
		out[i+1] = out[i] + O(rng.IntN(4))
	}
	return buf, int(out[n]) + 1
}

// nested joins children, whose references it takes over, to one array.
func nested(mem memory.Allocator, rng *rand.Rand, f arrow.Field, n int, offsets *memory.Buffer, children []arrow.Array) arrow.Array {
	valid, nulls := memory.NewResizableBuffer(mem), 0
	defer valid.Release()
	valid.Resize((n + 7) / 8)
	clear(valid.Bytes())
	for i := range n {
		if f.Nullable && rng.IntN(4) == 0 {
			nulls++
		} else {
			valid.Bytes()[i>>3] |= 1 << (i & 7)
		}
	}
	buffers := []*memory.Buffer{valid}
	if offsets != nil {
		defer offsets.Release()
		buffers = append(buffers, offsets)
	}
	datas := make([]arrow.ArrayData, len(children))
	for i, c := range children {
		defer c.Release()
		datas[i] = c.Data()
	}
	d := array.NewData(f.Type, n, buffers, datas, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d)
}

func randomIndices(mem memory.Allocator, rng *rand.Rand, t arrow.DataType, n, values int, nullable bool) arrow.Array {
	b := array.NewBuilder(mem, t)
	defer b.Release()
	for range n {
		if nullable && rng.IntN(5) == 0 {
			b.AppendNull()
		} else if err := b.AppendValueFromString(strconv.Itoa(rng.IntN(values))); err != nil {
			panic(err) // a number is an index of every type
		}
	}
	return b.NewArray()
}

// pick returns one of values.
func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// appendRandom appends a value, often an extreme one.
func appendRandom(b array.Builder, rng *rand.Rand) {
	text := pick(rng, "", "größe\x00", "a text of more than twelve bytes", "x", strconv.Itoa(rng.IntN(100)))
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(rng.IntN(2) == 0)
	case *array.Float32Builder:
		b.Append(math.Float32frombits(pick(rng, 0x80000000, 0x7FC00001, 0xFF800000, 1, rng.Uint32()&0xBFFFFFFF)))
	case *array.Float64Builder:
		b.Append(math.Float64frombits(pick(rng, 1<<63, 0x7FF8000000000123, 0x7FF0000000000001, 0xFFF0000000000000, 1, rng.Uint64())))
	case *array.StringBuilder:
		b.Append(text)
	case *array.LargeStringBuilder:
		b.Append(text)
	case *array.StringViewBuilder:
		b.Append(text)
	case *array.BinaryBuilder:
		b.Append([]byte(text + "\xff"))
	case *array.BinaryViewBuilder:
		b.Append([]byte(text + "\xff"))
	case *array.FixedSizeBinaryBuilder:
		b.Append(randomBytes(rng, b.Type().(*arrow.FixedSizeBinaryType).ByteWidth))
	case *array.Date64Builder:
		b.Append(arrow.Date64(pick(rng, math.MinInt32, 0, math.MaxInt32, int64(rng.Int32())) * 86400000))
	case *array.TimestampBuilder:
		limit := int64(math.MaxInt64) / int64(max(1, b.Type().(*arrow.TimestampType).Unit.Multiplier()/1000))
		b.Append(arrow.Timestamp(pick(rng, -limit, limit, 0, rng.Int64N(limit))))
	case *array.Decimal32Builder:
		b.Append(decimal.Decimal32(pick(rng, -999999999, 999999999, 0, -5, rng.Int32N(999999999))))
	case *array.Decimal64Builder:
		b.Append(decimal.Decimal64(pick(rng, -999999999999999999, 999999999999999999, 0, -5, rng.Int64N(999999999999999999))))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(randomUnscaled(rng, b.Type())))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromBigInt(randomUnscaled(rng, b.Type())))
	default:
		appendInteger(b, rng.Uint64()>>rng.IntN(64), rng.IntN(2) == 0)
	}
}

func randomBytes(rng *rand.Rand, n int) []byte {
	v := make([]byte, n)
	for i := range v {
		v[i] = byte(rng.IntN(256))
	}
	return v
}

// randomUnscaled returns a number of at most the type's precision.
func randomUnscaled(rng *rand.Rand, t arrow.DataType) *big.Int {
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.(arrow.DecimalType).GetPrecision())), nil)
	most.Sub(most, big.NewInt(1))
	v := pick(rng, most, big.NewInt(0), big.NewInt(5), new(big.Int).Mod(new(big.Int).SetBytes(randomBytes(rng, 32)), most))
	if rng.IntN(2) == 0 {
		v = new(big.Int).Neg(v)
	}
	return v
}

// appendInteger appends the low bits of v, or all ones, in any type that is an
// integer underneath.
func appendInteger(b array.Builder, v uint64, ones bool) {
	if ones {
		v = math.MaxUint64
	}
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(v))
	case *array.Int16Builder:
		b.Append(int16(v))
	case *array.Int32Builder:
		b.Append(int32(v))
	case *array.Int64Builder:
		b.Append(int64(v))
	case *array.Uint8Builder:
		b.Append(uint8(v))
	case *array.Uint16Builder:
		b.Append(uint16(v))
	case *array.Uint32Builder:
		b.Append(uint32(v))
	case *array.Uint64Builder:
		b.Append(v)
	case *array.Float16Builder:
		b.Append(float16.FromBits(uint16(v)))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v))
	case *array.Time32Builder:
		b.Append(arrow.Time32(v))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(v))
	default:
		panic(fmt.Sprintf("no random values of %s", b.Type()))
	}
}

// ValueText writes a value so that two have the same text only if they are the
// same, bit for bit, whatever the layout of their types: a text is a text in
// any of its types, a dictionary's row its value, an extension its storage,
// dates are days.
func ValueText(arr arrow.Array, i int) string {
	if arr.IsNull(i) {
		return "null"
	}
	switch a := arr.(type) {
	case array.ExtensionArray:
		return ValueText(a.Storage(), i)
	case *array.Dictionary:
		return ValueText(a.Dictionary(), a.GetValueIndex(i))
	case *array.Struct:
		parts := make([]string, a.NumField())
		for k := range parts {
			parts[k] = ValueText(a.Field(k), i)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case array.ListLike:
		start, end := a.ValueOffsets(i)
		var parts []string
		for k := start; k < end; k++ {
			parts = append(parts, ValueText(a.ListValues(), int(k)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *array.Boolean:
		return strconv.FormatBool(a.Value(i))
	case *array.Date64:
		return "day " + strconv.FormatInt(int64(a.Value(i))/86400000, 10)
	case *array.Date32:
		return "day " + strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Decimal32, *array.Decimal64, *array.Decimal128, *array.Decimal256:
		return arr.ValueStr(i)
	case array.StringLike:
		return strconv.Quote(a.Value(i))
	case *array.Binary:
		return hex.EncodeToString(a.Value(i))
	case *array.LargeBinary:
		return hex.EncodeToString(a.Value(i))
	case *array.BinaryView:
		return hex.EncodeToString(a.Value(i))
	}
	width := arr.DataType().(arrow.FixedWidthDataType).Bytes()
	at := (arr.Data().Offset() + i) * width
	return hex.EncodeToString(arr.Data().Buffers()[1].Bytes()[at : at+width])
}
