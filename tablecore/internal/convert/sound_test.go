package convert_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/tableerr"
)

func nullBits(b []byte) []*memory.Buffer { return []*memory.Buffer{memory.NewBufferBytes(b)} }

// dictionary builds ["é", null, "b"] with a null in the dictionary's values
// too, which must read as a null.
func dictionary(t *testing.T, mem memory.Allocator, d *arrow.DictionaryType) arrow.Array {
	t.Helper()
	dict := fromJSON(t, mem, d.ValueType, `["b","é"]`)
	defer dict.Release()
	indices := fromJSON(t, mem, d.IndexType, `[1,null,0]`)
	defer indices.Release()
	return array.NewDictionaryArray(d, indices, dict)
}

// raw builds an array from buffers without any check; it returns nil where
// arrow-go itself refuses.
func raw(dt arrow.DataType, n int, buffers ...[]byte) (arr arrow.Array) {
	defer func() {
		if recover() != nil {
			arr = nil
		}
	}()
	bufs := make([]*memory.Buffer, len(buffers))
	for i, b := range buffers {
		if b != nil {
			bufs[i] = memory.NewBufferBytes(b)
		}
	}
	return array.MakeFromData(array.NewData(dt, n, bufs, nil, -1, 0))
}

func int32s(values ...int32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// alignOne sends one array as the payload column of a stream.
func alignOne(t testing.TB, arr arrow.Array, declared arrow.DataType) error {
	t.Helper()
	mem := memory.NewGoAllocator()
	stream := schema(field("ts", usUTC), field("sym", arrow.BinaryTypes.String), field("v", arr.DataType()))
	a, err := convert.NewAligner(stream, define(false, arrow.Field{Name: "v", Type: declared, Nullable: true}))
	if err != nil {
		t.Fatal(err)
	}
	ts, sym := zeros(arr.Len()), texts(arr.Len())
	batch := array.NewRecordBatch(stream, []arrow.Array{fromJSON(t, mem, usUTC, ts), fromJSON(t, mem, arrow.BinaryTypes.String, sym), arr}, int64(arr.Len()))
	b, err := a.Align(mem, batch)
	if err != nil {
		return err
	}
	for i := range b.Rows {
		_ = b.Columns[2].ValueStr(i) // must not panic
	}
	if stored, err := convert.ToStorage(mem, b.Columns[2]); err == nil {
		for i := range b.Rows {
			_ = stored.ValueStr(i)
		}
	}
	return nil
}

// TestDamagedArrays checks that arrays whose buffers contradict each other are
// refused with the column named.
func TestDamagedArrays(t *testing.T) {
	str, view := arrow.BinaryTypes.String, arrow.BinaryTypes.StringView
	header := func(size, buffer, offset int32) []byte { return int32s(size, 0, buffer, offset) }
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: str}
	values := raw(str, 2, nil, int32s(0, 1, 2), []byte("ab"))
	withIndices := func(b []byte) arrow.Array {
		data := array.NewDataWithDictionary(dict, len(b), []*memory.Buffer{nil, memory.NewBufferBytes(b)}, 0, 0, values.Data().(*array.Data))
		return array.MakeFromData(data)
	}
	cases := []struct {
		name     string
		arr      arrow.Array
		declared arrow.DataType
	}{
		{"offsets fall", raw(str, 3, nil, int32s(0, 5, 1, 6), []byte("abcdef")), str},
		{"offset negative", raw(str, 2, nil, int32s(-1, 1, 2), []byte("ab")), str},
		{"offset in the middle too large", raw(str, 2, nil, int32s(0, 1<<30, 2), []byte("ab")), str},
		{"view without its buffer", raw(view, 1, nil, header(20, 0, 0)), view},
		{"view past its buffer", raw(view, 1, nil, header(20, 0, 1), make([]byte, 20)), view},
		{"view with a negative size", raw(view, 1, nil, header(-1, 0, 0), make([]byte, 20)), view},
		{"view with a negative offset", raw(view, 1, nil, header(20, 0, -1), make([]byte, 20)), view},
		{"view of a negative buffer", raw(view, 1, nil, header(20, -1, 0), make([]byte, 20)), view},
		{"index too large", withIndices([]byte{0, 2}), str},
		{"index negative", withIndices([]byte{0, 0xFF}), str},
		{"validity too short", raw(arrow.PrimitiveTypes.Int64, 20, []byte{1}, make([]byte, 160)), arrow.PrimitiveTypes.Int64},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.arr == nil {
				t.Fatal("arrow-go refuses to build it")
			}
			var invalid *tableerr.Invalid
			if err := alignOne(t, c.arr, c.declared); !errors.As(err, &invalid) || invalid.Column != "v" {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := alignOne(t, withIndices([]byte{0, 1}), str); err != nil {
		t.Error(err)
	}
}

// TestIndexTypes checks the bounds of indices of every type: a null's index does
// not count.
func TestIndexTypes(t *testing.T) {
	p := arrow.PrimitiveTypes
	for _, index := range []arrow.DataType{p.Int8, p.Int16, p.Int32, p.Int64, p.Uint8, p.Uint16, p.Uint32, p.Uint64} {
		mem := memory.NewGoAllocator()
		dt := &arrow.DictionaryType{IndexType: index, ValueType: arrow.BinaryTypes.String}
		values := fromJSON(t, mem, arrow.BinaryTypes.String, `["a","b"]`)
		build := func(text string, bits byte) arrow.Array {
			indices := fromJSON(t, mem, index, text).Data()
			bufs := []*memory.Buffer{memory.NewBufferBytes([]byte{bits}), indices.Buffers()[1]}
			return array.MakeFromData(array.NewDataWithDictionary(dt, indices.Len(), bufs, -1, 0, values.Data().(*array.Data)))
		}
		if err := alignOne(t, build(`[1,0]`, 3), arrow.BinaryTypes.String); err != nil {
			t.Errorf("%s: %v", index, err)
		}
		if err := alignOne(t, build(`[1,100]`, 1), arrow.BinaryTypes.String); err != nil {
			t.Errorf("%s under a null: %v", index, err)
		}
		var invalid *tableerr.Invalid
		if err := alignOne(t, build(`[1,2]`, 3), arrow.BinaryTypes.String); !errors.As(err, &invalid) {
			t.Errorf("%s out of range: got %v", index, err)
		}
	}
}

// TestFalseNullCounts checks that the validity bitmap counts, not the number of
// nulls that a stream claims.
func TestFalseNullCounts(t *testing.T) {
	values := memory.NewBufferBytes(make([]byte, 16))
	claim := func(bits []byte, nulls int) arrow.Array {
		bufs := []*memory.Buffer{nil, values}
		if bits != nil {
			bufs[0] = memory.NewBufferBytes(bits)
		}
		return array.MakeFromData(array.NewData(arrow.PrimitiveTypes.Int64, 2, bufs, nil, nulls, 0))
	}
	cases := []struct {
		arr  arrow.Array
		want int
	}{{claim(nil, 2), 0}, {claim([]byte{1}, 0), 1}, {claim([]byte{3}, 1), 0}, {claim([]byte{0}, -1), 2}}
	for i, c := range cases {
		mem := memory.NewGoAllocator()
		stream := schema(field("ts", usUTC), field("sym", arrow.BinaryTypes.String), field("v", c.arr.DataType()))
		a, err := convert.NewAligner(stream, define(false, arrow.Field{Name: "v", Type: c.arr.DataType(), Nullable: true}))
		if err != nil {
			t.Fatal(err)
		}
		batch := array.NewRecordBatch(stream, []arrow.Array{fromJSON(t, mem, usUTC, zeros(2)), fromJSON(t, mem, arrow.BinaryTypes.String, texts(2)), c.arr}, 2)
		b, err := a.Align(mem, batch)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Columns[2].NullN(); got != c.want {
			t.Errorf("case %d: %d nulls, want %d", i, got, c.want)
		}
	}
}

// TestBadTextInDictionary checks that a bad value counts only where a row
// refers to it.
func TestBadTextInDictionary(t *testing.T) {
	str := arrow.BinaryTypes.String
	values := raw(str, 2, nil, int32s(0, 1, 2), []byte("a\xff"))
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: str}
	build := func(b ...byte) arrow.Array {
		return array.MakeFromData(array.NewDataWithDictionary(dict, len(b), []*memory.Buffer{nil, memory.NewBufferBytes(b)}, 0, 0, values.Data().(*array.Data)))
	}
	if err := alignOne(t, build(0, 0), str); err != nil {
		t.Error(err)
	}
	var invalid *tableerr.Invalid
	if err := alignOne(t, build(0, 1), str); !errors.As(err, &invalid) || invalid.Row == nil || *invalid.Row != 1 {
		t.Errorf("got %v", err)
	}
}

// TestNullInDictionaryIsNullKey checks that a row which refers to a null of its
// dictionary counts as null.
func TestNullInDictionaryIsNullKey(t *testing.T) {
	mem := checked(t)
	dict := fromJSON(t, mem, arrow.BinaryTypes.String, `["a",null]`)
	defer dict.Release()
	indices := fromJSON(t, mem, arrow.PrimitiveTypes.Int8, `[0,1]`)
	defer indices.Release()
	sym := array.NewDictionaryArray(dictT, indices, dict)
	defer sym.Release()
	ts := fromJSON(t, mem, usUTC, `[0,0]`)
	defer ts.Release()
	stream := schema(field("ts", usUTC), field("sym", dictT))
	batch := array.NewRecordBatch(stream, []arrow.Array{ts, sym}, 2)
	defer batch.Release()
	a, err := convert.NewAligner(stream, define(false))
	if err != nil {
		t.Fatal(err)
	}
	var null *tableerr.NullKey
	if _, err := a.Align(mem, batch); !errors.As(err, &null) || null.Column != "sym" || null.Row != 1 {
		t.Errorf("got %v", err)
	}
}

// FuzzAlign feeds arrays made of arbitrary buffers through alignment, reading
// and storage.
func FuzzAlign(f *testing.F) {
	f.Add(uint8(0), uint8(2), []byte{}, int32s(0, 1, 2), []byte("ab"))
	f.Add(uint8(1), uint8(2), []byte{1}, int32s(0, 0, 1, 0, 2, 0), []byte("ab"))
	f.Add(uint8(2), uint8(1), []byte{}, int32s(20, 0, 0, 0), make([]byte, 20))
	f.Add(uint8(3), uint8(2), []byte{3}, []byte{0, 1}, []byte("a\xff"))
	f.Fuzz(func(t *testing.T, kind, rows uint8, bits, main, values []byte) {
		if len(bits) == 0 {
			bits = nil
		}
		n := int(rows%64) + 1
		var arr arrow.Array
		declared := arrow.DataType(arrow.BinaryTypes.String)
		switch kind % 5 {
		case 0:
			arr = raw(arrow.BinaryTypes.String, n, bits, main, values)
		case 1:
			arr = raw(arrow.BinaryTypes.LargeString, n, bits, main, values)
		case 2:
			arr = raw(arrow.BinaryTypes.StringView, n, bits, main, values)
		case 3:
			arr = rawDictionary(n, bits, main, values)
		default:
			declared = arrow.BinaryTypes.BinaryView
			arr = raw(declared, n, bits, main, values)
		}
		if arr != nil && arr.Len() > 0 {
			_ = alignOne(t, arr, declared)
		}
	})
}

// rawDictionary builds a dictionary of one-byte values with unchecked indices.
func rawDictionary(n int, bits, indices, values []byte) (arr arrow.Array) {
	defer func() {
		if recover() != nil {
			arr = nil
		}
	}()
	offsets := make([]int32, len(values)+1)
	for i := range offsets {
		offsets[i] = int32(i)
	}
	dict := raw(arrow.BinaryTypes.String, len(values), nil, int32s(offsets...), values)
	bufs := []*memory.Buffer{nil, memory.NewBufferBytes(indices)}
	if bits != nil {
		bufs[0] = memory.NewBufferBytes(bits)
	}
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	return array.MakeFromData(array.NewDataWithDictionary(dt, n, bufs, -1, 0, dict.Data().(*array.Data)))
}
