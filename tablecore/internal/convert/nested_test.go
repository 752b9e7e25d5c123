package convert_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// loosened is a type as pyarrow sends it: everything inside may be null.
func loosened(t arrow.DataType) arrow.DataType {
	children := tabledef.Children(t)
	for i := range children {
		children[i].Nullable = true
		children[i].Type = loosened(children[i].Type)
	}
	return tabledef.WithChildren(t, children)
}

// digits is a type with the highest precision in place of every decimal's.
func digits(t arrow.DataType) arrow.DataType {
	switch d := t.(type) {
	case *arrow.Decimal32Type:
		return &arrow.Decimal32Type{Precision: 9, Scale: d.Scale}
	case *arrow.Decimal64Type:
		return &arrow.Decimal64Type{Precision: 18, Scale: d.Scale}
	case *arrow.Decimal128Type:
		return &arrow.Decimal128Type{Precision: 38, Scale: d.Scale}
	case *arrow.Decimal256Type:
		return &arrow.Decimal256Type{Precision: 76, Scale: d.Scale}
	}
	children := tabledef.Children(t)
	for i := range children {
		children[i].Type = digits(children[i].Type)
	}
	return tabledef.WithChildren(t, children)
}

// unchecked builds an array whose decimals may have more digits than its type.
func unchecked(t *testing.T, mem memory.Allocator, typ arrow.DataType, rows string) arrow.Array {
	t.Helper()
	arr := fromJSON(t, mem, digits(typ), rows)
	defer arr.Release()
	data := renamed(arr.Data(), typ)
	defer data.Release()
	return array.MakeFromData(data)
}

// renamed gives array data another type of the same layout.
func renamed(data arrow.ArrayData, typ arrow.DataType) *array.Data {
	fields := []arrow.Field{}
	if nested, ok := typ.(arrow.NestedType); ok {
		fields = nested.Fields()
	}
	children := make([]arrow.ArrayData, len(fields))
	for i, f := range fields {
		child := renamed(data.Children()[i], f.Type)
		defer child.Release()
		children[i] = child
	}
	return array.NewData(typ, data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
}

func strict(name string, t arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: t} }

func loose(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

// flawCases are columns with the first thing in them that cannot be stored; ""
// as the path means that there is none.
var flawCases = []struct {
	name     string
	declared arrow.DataType
	rows     string
	path     string
	row      int64
	value    any
	null     bool
}{
	{name: "a null element", declared: arrow.ListOfField(strict("item", arrow.PrimitiveTypes.Int8)), rows: `[[1],[],null,[1,null]]`, path: "v.item", row: 3, null: true},
	{name: "no element of a null", declared: arrow.ListOfField(strict("item", arrow.PrimitiveTypes.Int8)), rows: `[[1],null]`},
	{name: "a null child", declared: arrow.StructOf(loose("a", arrow.PrimitiveTypes.Int8), strict("b", arrow.PrimitiveTypes.Int8)), rows: `[{"a":null,"b":1},null,{"a":1,"b":null}]`, path: "v.b", row: 2, null: true},
	{name: "the earlier row, whichever child", declared: arrow.StructOf(strict("a", arrow.PrimitiveTypes.Int8), strict("b", arrow.PrimitiveTypes.Int8)), rows: `[{"a":1,"b":1},{"a":1,"b":null},{"a":null,"b":1}]`, path: "v.b", row: 1, null: true},
	{name: "inside lists of lists", declared: arrow.ListOf(arrow.LargeListOf(arrow.StructOf(strict("x", arrow.BinaryTypes.String)))), rows: `[[],[null,[]],[[{"x":"1"}],[{"x":"2"},null,{"x":null}]]]`, path: "v.item.item.x", row: 2, null: true},
	{name: "inside a list of fixed size", declared: arrow.FixedSizeListOfField(2, strict("item", arrow.PrimitiveTypes.Int8)), rows: `[[1,2],null,[3,null]]`, path: "v.item", row: 2, null: true},
	{name: "a map's value", declared: arrow.MapOfFields(strict("key", arrow.BinaryTypes.String), strict("value", arrow.PrimitiveTypes.Int8)), rows: `[[{"key":"a","value":1}],[{"key":"a","value":null}]]`, path: "v.value", row: 1, null: true},
	{name: "inside a map's value", declared: arrow.MapOf(arrow.BinaryTypes.String, arrow.StructOf(strict("x", arrow.PrimitiveTypes.Int8))), rows: `[[{"key":"a","value":null}],[{"key":"a","value":{"x":null}}]]`, path: "v.value.x", row: 1, null: true},
	{name: "a date that is no day", declared: arrow.FixedWidthTypes.Date64, rows: `[0,null,86400000,86400001]`, path: "v", row: 3, value: int64(86400001)},
	{name: "a date beyond 32 bits of days", declared: arrow.FixedWidthTypes.Date64, rows: `[185542587100800000,185542587187200000]`, path: "v", row: 1, value: int64(185542587187200000)},
	{name: "dates inside", declared: arrow.ListOf(arrow.FixedWidthTypes.Date64), rows: `[[0],[0,-1]]`, path: "v.item", row: 1, value: int64(-1)},
	{name: "a time out of range inside", declared: arrow.StructOf(loose("t", stamp(arrow.Second, ""))), rows: `[{"t":0},{"t":9223372036855}]`, path: "v.t", row: 1, value: int64(9223372036855)},
	{name: "too many digits of 32 bits", declared: &arrow.Decimal32Type{Precision: 2, Scale: 1}, rows: `["9.9","-9.9",null,"10.0"]`, path: "v", row: 3, value: "10.0"},
	{name: "too many digits of 64 bits", declared: &arrow.Decimal64Type{Precision: 2}, rows: `["99","-100"]`, path: "v", row: 1, value: "-100"},
	{name: "too many digits of 128 bits", declared: arrow.ListOf(&arrow.Decimal128Type{Precision: 20, Scale: 20}), rows: `[["0.1"],["1.00000000000000000000"]]`, path: "v.item", row: 1, value: "1.00000000000000000000"},
	{name: "too many digits of 256 bits", declared: &arrow.Decimal256Type{Precision: 39}, rows: `["1","1000000000000000000000000000000000000000"]`, path: "v", row: 1, value: "1000000000000000000000000000000000000000"},
}

func TestFlawsHaveRowAndPath(t *testing.T) {
	for _, c := range flawCases {
		t.Run(c.name, func(t *testing.T) {
			mem := checked(t)
			arr := unchecked(t, mem, loosened(c.declared), c.rows)
			defer arr.Release()
			for _, from := range []int64{0, 1} {
				part := array.NewSlice(arr, from, int64(arr.Len()))
				err := alignChecked(t, mem, part, c.declared)
				part.Release()
				checkFlaw(t, err, c.path, c.row-from, c.value, c.null)
			}
		})
	}
}

// alignChecked sends an array as the payload column of a stream.
func alignChecked(t *testing.T, mem memory.Allocator, arr arrow.Array, declared arrow.DataType) error {
	t.Helper()
	stream := schema(field("ts", usUTC), field("sym", arrow.BinaryTypes.String), loose("v", arr.DataType()))
	a, err := convert.NewAligner(stream, define(false, loose("v", declared)))
	if err != nil {
		t.Fatal(err)
	}
	times, names := fromJSON(t, mem, usUTC, zeros(arr.Len())), fromJSON(t, mem, arrow.BinaryTypes.String, texts(arr.Len()))
	defer times.Release()
	defer names.Release()
	batch := array.NewRecordBatch(stream, []arrow.Array{times, names, arr}, int64(arr.Len()))
	defer batch.Release()
	aligned, err := a.Align(mem, batch)
	if err != nil {
		return err
	}
	defer aligned.Release()
	if got, want := aligned.Columns[2].DataType(), convert.AlignedType(declared); !arrow.TypeEqual(got, want) {
		t.Errorf("aligned to %s, want %s", got, want)
	}
	return nil
}

func checkFlaw(t *testing.T, err error, path string, row int64, value any, null bool) {
	t.Helper()
	var mismatch *tableerr.SchemaMismatch
	var invalid *tableerr.Invalid
	switch {
	case path == "":
		if err != nil {
			t.Errorf("refused: %v", err)
		}
	case null:
		if !errors.As(err, &mismatch) || mismatch.Column != path || mismatch.Row == nil || *mismatch.Row != row {
			t.Errorf("got %v, want SCHEMA_MISMATCH at %s, row %d", err, path, row)
		}
	default:
		if !errors.As(err, &invalid) || invalid.Column != path || invalid.Row == nil || *invalid.Row != row || invalid.Value != value {
			t.Errorf("got %v, want INVALID at %s, row %d, value %v", err, path, row, value)
		}
	}
}

// textList makes lists of texts, one of which is not UTF-8.
func textList(t *testing.T, mem memory.Allocator, elem arrow.DataType, offsets ...int32) arrow.Array {
	t.Helper()
	values := fromJSON(t, mem, arrow.BinaryTypes.Binary, `["YQ==","/w==","Yg=="]`)
	defer values.Release()
	child := array.NewData(arrow.BinaryTypes.String, 3, values.Data().Buffers(), nil, 0, 0)
	defer child.Release()
	text := array.MakeFromData(child)
	defer text.Release()
	inside := text
	if d, ok := elem.(*arrow.DictionaryType); ok {
		indices := fromJSON(t, mem, d.IndexType, `[0,1,2]`)
		defer indices.Release()
		inside = array.NewDictionaryArray(d, indices, text)
		defer inside.Release()
	}
	d := array.NewData(arrow.ListOf(elem), len(offsets)-1, []*memory.Buffer{nil, memory.NewBufferBytes(int32s(offsets...))}, []arrow.ArrayData{inside.Data()}, 0, 0)
	defer d.Release()
	return array.MakeFromData(d)
}

func TestNestedTextIsChecked(t *testing.T) {
	for _, elem := range []arrow.DataType{arrow.BinaryTypes.String, dictT} {
		mem := checked(t)
		bad := textList(t, mem, elem, 0, 1, 1, 3)
		checkFlaw(t, alignChecked(t, mem, bad, arrow.ListOf(elem)), "v.item", 2, nil, false)
		bad.Release()
		outside := textList(t, mem, elem, 2, 3) // the bad text belongs to no list
		checkFlaw(t, alignChecked(t, mem, outside, arrow.ListOf(elem)), "", 0, nil, false)
		outside.Release()
	}
}

// TestHiddenValuesAreNotChecked puts what cannot be stored under nulls of
// parents.
func TestHiddenValuesAreNotChecked(t *testing.T) {
	mem := checked(t)
	dates := fromJSON(t, mem, arrow.FixedWidthTypes.Date64, `[1,0]`)
	defer dates.Release()
	for name, typ := range map[string]arrow.DataType{
		"struct": arrow.StructOf(strict("a", arrow.FixedWidthTypes.Date64)), "fixed list": arrow.FixedSizeListOfField(1, strict("a", arrow.FixedWidthTypes.Date64)),
	} {
		d := array.NewData(typ, 2, nullBits([]byte{2}), []arrow.ArrayData{dates.Data()}, 1, 0)
		arr := array.MakeFromData(d)
		d.Release()
		if err := alignChecked(t, mem, arr, typ); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		arr.Release()
	}
}

// damagedNested are arrays whose parts do not fit together.
func damagedNested(mem memory.Allocator, t *testing.T) map[string]arrow.Array {
	ints := fromJSON(t, mem, arrow.PrimitiveTypes.Int32, `[1,2,3]`)
	defer ints.Release()
	make := func(typ arrow.DataType, n int, child arrow.Array, buffers ...[]byte) (arr arrow.Array) {
		defer func() { _ = recover() }() // arrow-go itself refuses
		bufs := []*memory.Buffer{nil}
		for _, b := range buffers {
			bufs = append(bufs, memory.NewBufferBytes(b))
		}
		d := array.NewData(typ, n, bufs, []arrow.ArrayData{child.Data()}, 0, 0)
		defer d.Release()
		return array.MakeFromData(d)
	}
	list, fixed := arrow.ListOf(arrow.PrimitiveTypes.Int32), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32)
	out := map[string]arrow.Array{
		"falling offsets":  make(list, 2, ints, int32s(0, 3, 1)),
		"beyond the child": make(list, 1, ints, int32s(0, 4)),
		"negative offset":  make(list, 1, ints, int32s(-1, 2)),
		"short child":      make(fixed, 2, ints),
		"short struct":     make(arrow.StructOf(strict("a", arrow.PrimitiveTypes.Int32)), 4, ints),
	}
	if inner := make(list, 1, ints, int32s(0, 4)); inner != nil {
		out["inside a list"] = make(arrow.ListOf(list), 1, inner, int32s(0, 1))
		inner.Release()
	}
	indices := fromJSON(t, mem, arrow.PrimitiveTypes.Int8, `[0,9]`)
	defer indices.Release()
	words := fromJSON(t, mem, arrow.BinaryTypes.String, `["a"]`)
	defer words.Release()
	dict := array.NewDictionaryArray(dictT, indices, words)
	out["dictionary index inside a list"] = make(arrow.ListOf(dictT), 1, dict, int32s(0, 2))
	dict.Release()
	return out
}

func TestDamagedNestedArrays(t *testing.T) {
	for name, arr := range damagedNested(memory.NewGoAllocator(), t) { // arrow-go leaks what it refuses
		if arr == nil {
			continue
		}
		var invalid *tableerr.Invalid
		if err := alignOne(t, arr, arr.DataType()); !errors.As(err, &invalid) || invalid.Column != "v" || !strings.Contains(invalid.Msg, "damaged") {
			t.Errorf("%s: got %v", name, err)
		}
		arr.Release()
	}
}

var nestedAlignCases = []struct {
	name             string
	stream, declared arrow.Field
	path             string // "" = accepted
}{
	{"names inside lists do not count", loose("v", arrow.ListOfField(loose("x", usUTC))), loose("v", arrow.ListOfField(loose("element", usUTC))), ""},
	{"nullability inside need not match", loose("v", arrow.ListOf(usUTC)), loose("v", arrow.ListOfField(strict("item", usUTC))), ""},
	{"no widening inside", loose("v", arrow.ListOf(arrow.PrimitiveTypes.Int8)), loose("v", arrow.ListOf(arrow.PrimitiveTypes.Int16)), "v"},
	{"no other layout inside", loose("v", arrow.ListOf(arrow.BinaryTypes.LargeString)), loose("v", arrow.ListOf(arrow.BinaryTypes.String)), "v"},
	{"no other list", loose("v", arrow.LargeListOf(usUTC)), loose("v", arrow.ListOf(usUTC)), "v"},
	{"no other length", loose("v", arrow.FixedSizeListOf(2, usUTC)), loose("v", arrow.FixedSizeListOf(3, usUTC)), "v"},
	{"no other order of children", loose("v", arrow.StructOf(loose("a", usUTC), loose("b", usUTC))), loose("v", arrow.StructOf(loose("b", usUTC), loose("a", usUTC))), "v"},
	{"no fewer children", loose("v", arrow.StructOf(loose("a", usUTC))), loose("v", arrow.StructOf(loose("a", usUTC), loose("b", usUTC))), "v"},
	{"dictionary of the type", loose("v", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Float64}), loose("v", arrow.PrimitiveTypes.Float64), ""},
	{"dictionary of another type", loose("v", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Float32}), loose("v", arrow.PrimitiveTypes.Float64), "v"},
	{"plain for a dictionary", loose("v", arrow.BinaryTypes.String), loose("v", dictT), "v"},
	{"no other decimal", loose("v", &arrow.Decimal128Type{Precision: 5}), loose("v", &arrow.Decimal128Type{Precision: 6}), "v"},
	{"no other unit", loose("v", arrow.FixedWidthTypes.Duration_ms), loose("v", arrow.FixedWidthTypes.Duration_us), "v"},
	{"metadata inside left out", loose("v", arrow.ListOf(usUTC)), loose("v", arrow.ListOfField(noted(loose("item", usUTC), "unit", "m"))), ""},
	{"metadata inside changed", loose("v", arrow.ListOfField(noted(loose("item", usUTC), "unit", "km"))), loose("v", arrow.ListOfField(noted(loose("item", usUTC), "unit", "m"))), "v.item"},
	{"metadata inside added", loose("v", arrow.StructOf(noted(loose("a", usUTC), "unit", "m"))), loose("v", arrow.StructOf(loose("a", usUTC))), "v.a"},
	{"Parquet ids inside", loose("v", arrow.ListOfField(noted(loose("item", usUTC), "PARQUET:field_id", "7"))), loose("v", arrow.ListOf(usUTC)), ""},
	{"an extension left out", loose("v", &arrow.FixedSizeBinaryType{ByteWidth: 16}), noted(loose("v", &arrow.FixedSizeBinaryType{ByteWidth: 16}), "ARROW:extension:name", "arrow.uuid", "ARROW:extension:metadata", ""), ""},
	{"an extension as a type", loose("v", extensions.NewUUIDType()), noted(loose("v", &arrow.FixedSizeBinaryType{ByteWidth: 16}), "ARROW:extension:name", "arrow.uuid", "ARROW:extension:metadata", ""), ""},
	{"another extension", noted(loose("v", usUTC), "ARROW:extension:name", "a"), noted(loose("v", usUTC), "ARROW:extension:name", "b"), "v"},
	{"an extension added", loose("v", extensions.NewUUIDType()), loose("v", &arrow.FixedSizeBinaryType{ByteWidth: 16}), "v"},
}

func TestNestedAlignment(t *testing.T) {
	for _, c := range nestedAlignCases {
		_, err := convert.NewAligner(schema(ts, sym, c.stream), define(false, c.declared))
		var mismatch *tableerr.SchemaMismatch
		if c.path == "" && err != nil || c.path != "" && (!errors.As(err, &mismatch) || mismatch.Column != c.path) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	deep := arrow.DataType(arrow.PrimitiveTypes.Int8)
	for range 100_000 {
		deep = arrow.ListOf(deep)
	}
	var mismatch *tableerr.SchemaMismatch
	if _, err := convert.NewAligner(schema(ts, sym, loose("v", deep)), define(false, price)); !errors.As(err, &mismatch) || mismatch.Column != "v" {
		t.Errorf("got %v", err)
	}
}

// TestCompatHasTheSameStorage is what lets compat scans read the same files.
func TestCompatHasTheSameStorage(t *testing.T) {
	for _, c := range storageCases {
		if got, want := tabledef.StorageType(convert.Compat(c.declared)), tabledef.StorageType(c.declared); !arrow.TypeEqual(got, want) {
			t.Errorf("%s: %s, want %s", c.declared, got, want)
		}
	}
}

// TestUnfoldingIsLimited sends a few bytes that stand for gigabytes.
func TestUnfoldingIsLimited(t *testing.T) {
	mem := memory.NewGoAllocator()
	words := array.NewStringBuilder(mem)
	words.Append(strings.Repeat("x", 1<<20))
	values := words.NewArray()
	const rows = 5000
	indices := fromJSON(t, mem, arrow.PrimitiveTypes.Int8, "["+strings.Repeat("0,", rows-1)+"0]")
	texts := array.NewDictionaryArray(dictT, indices, values)
	binaries := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.Binary}
	octets := array.NewData(arrow.BinaryTypes.Binary, 1, values.Data().Buffers(), nil, 0, 0)
	views := array.NewStringViewBuilder(mem)
	views.Append(strings.Repeat("y", 1<<20))
	one := views.NewArray()
	var headers []byte
	for range rows {
		headers = append(headers, one.Data().Buffers()[1].Bytes()[:16]...)
	}
	all := array.NewData(arrow.BinaryTypes.StringView, rows, []*memory.Buffer{nil, memory.NewBufferBytes(headers), one.Data().Buffers()[2]}, nil, 0, 0)
	list := array.NewData(arrow.ListOf(dictT), 1, []*memory.Buffer{nil, memory.NewBufferBytes(int32s(0, rows))}, []arrow.ArrayData{texts.Data()}, 0, 0)
	for name, arr := range map[string]arrow.Array{
		"dictionary": array.NewDictionaryArray(binaries, indices, array.MakeFromData(octets)), "views": array.MakeFromData(all), "dictionary inside": array.MakeFromData(list),
	} {
		var large *tableerr.MessageTooLarge
		if err := alignOne(t, arr, arr.DataType()); !errors.As(err, &large) || large.LimitBytes != 1<<30 {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := alignOne(t, texts, dictT); err != nil {
		t.Errorf("a dictionary of texts stays one, but: %v", err)
	}
}

func TestWideNullsComeInSmallerBatches(t *testing.T) {
	mem := memory.NewGoAllocator()
	for stored, declared := range map[arrow.DataType]arrow.DataType{
		arrow.ListOfField(element(arrow.PrimitiveTypes.Int8)): arrow.FixedSizeListOf(1<<25, arrow.PrimitiveTypes.Int8),
		arrow.BinaryTypes.Binary:                              &arrow.FixedSizeBinaryType{ByteWidth: 1 << 25},
	} {
		nulls := array.MakeArrayOfNull(mem, stored, 3)
		var large *convert.BatchTooLargeError
		if _, err := convert.FromStorage(mem, nulls, declared); !errors.As(err, &large) {
			t.Errorf("%s: got %v", declared, err)
		}
		one := array.NewSlice(nulls, 0, 1)
		if got, err := convert.FromStorage(mem, one, declared); err != nil || !got.IsNull(0) {
			t.Errorf("%s: got %v", declared, err)
		}
	}
}
