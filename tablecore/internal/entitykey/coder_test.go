package entitykey

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// column builds an array of values; nil is a null. For a dictionary its values
// are the distinct ones in order of appearance.
func column(t testing.TB, mem memory.Allocator, dt arrow.DataType, values []any) arrow.Array {
	t.Helper()
	if d, ok := dt.(*arrow.DictionaryType); ok {
		return dictionaryColumn(t, mem, d, values)
	}
	b := array.NewBuilder(mem, dt)
	defer b.Release()
	for _, v := range values {
		if err := appendTo(b, v); err != nil {
			t.Fatal(err)
		}
	}
	return b.NewArray()
}

// dictionaryColumn builds a dictionary array by hand: arrow-go has no builder
// for large strings.
func dictionaryColumn(t testing.TB, mem memory.Allocator, dt *arrow.DictionaryType, values []any) arrow.Array {
	t.Helper()
	var distinct []any
	places := map[any]int{}
	b := array.NewBuilder(mem, dt.IndexType)
	defer b.Release()
	for _, v := range values {
		at, known := places[v]
		if !known {
			at = len(distinct)
			places[v] = at
			distinct = append(distinct, v)
		}
		if err := b.AppendValueFromString(fmt.Sprint(at)); err != nil {
			t.Fatal(err)
		}
	}
	indices, words := b.NewArray(), column(t, mem, dt.ValueType, distinct)
	defer indices.Release()
	defer words.Release()
	return array.NewDictionaryArray(dt, indices, words)
}

func appendTo(b array.Builder, v any) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.LargeStringBuilder:
		b.Append(v.(string))
	case *array.StringViewBuilder:
		b.Append(v.(string))
	case *array.Int32Builder:
		b.Append(v.(int32))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Uint64Builder:
		b.Append(v.(uint64))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromU64(v.(uint64)))
	default:
		return fmt.Errorf("no builder for %T", b)
	}
	return nil
}

func dictionaryOf(index, value arrow.DataType) arrow.DataType {
	return &arrow.DictionaryType{IndexType: index, ValueType: value}
}

// forms are the array types in which a column of a kind may come.
var forms = map[kind][]arrow.DataType{
	kindString: {str, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, dictionaryOf(arrow.PrimitiveTypes.Int8, str), dictionaryOf(arrow.PrimitiveTypes.Uint8, str),
		dictionaryOf(arrow.PrimitiveTypes.Int16, str), dictionaryOf(arrow.PrimitiveTypes.Int32, str), dictionaryOf(arrow.PrimitiveTypes.Uint64, arrow.BinaryTypes.LargeString)},
	kindInt32:  {i32},
	kindInt64:  {i64},
	kindUint64: {u64, &arrow.Decimal128Type{Precision: 20}},
}

func TestCoderAndEncoderAgainstKeys(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	rng := rand.New(rand.NewPCG(7, 8))
	for _, l := range []*Layout{layout(t), layout(t, str), layout(t, i32), layout(t, i64), layout(t, u64), layout(t, str, str), layout(t, i32, str, u64), layout(t, str, i64, str, i32)} {
		c, e := NewCoder(l), NewEncoder(l)
		for range 20 {
			rows := rng.IntN(200)
			checkBatch(t, mem, rng, c, e, rows)
		}
		checkOrder(t, c)
	}
}

func checkBatch(t *testing.T, mem memory.Allocator, rng *rand.Rand, c *Coder, e *Encoder, rows int) {
	t.Helper()
	l := c.Layout()
	values := make([][]any, rows)
	for row := range values {
		values[row] = randomValues(rng, l)
		if row > 0 && rng.IntN(3) == 0 {
			values[row] = values[row-1]
		}
	}
	cols := make([]arrow.Array, l.Len())
	for i, k := range l.kinds {
		one := make([]any, rows)
		for row := range values {
			one[row] = values[row][i]
		}
		cols[i] = column(t, mem, forms[k][rng.IntN(len(forms[k]))], one)
		defer cols[i].Release()
	}
	codes, err := c.AppendCodes([]uint32{99}, cols, rows)
	if err != nil || len(codes) != rows+1 || codes[0] != 99 {
		t.Fatalf("got %v, %v", codes, err)
	}
	keys, err := e.Encode(cols, rows)
	if err != nil || keys.Len() != rows {
		t.Fatalf("got %d keys, %v", keys.Len(), err)
	}
	for row, code := range codes[1:] {
		want := mustKey(t, l, values[row]...)
		if c.Key(code) != want || string(keys.Key(row)) != want {
			t.Fatalf("row %d, %q: coder says %x, encoder %x, want %x", row, values[row], c.Key(code), keys.Key(row), want)
		}
		for i := range cols {
			part := c.Part(i, code)
			if l.kinds[i] == kindString && c.StringParts(i)[part] != values[row][i] || l.kinds[i] != kindString && c.IntegerPart(i, part) != values[row][i] {
				t.Fatalf("row %d, column %d: part %d is not %v", row, i, part, values[row][i])
			}
		}
	}
}

func checkOrder(t *testing.T, c *Coder) {
	t.Helper()
	order, ranks := c.Order(), c.Ranks()
	if len(order) != c.Len() || !sort.SliceIsSorted(order, func(i, j int) bool { return c.Key(order[i]) < c.Key(order[j]) }) {
		t.Fatal("the order is wrong")
	}
	seen := map[string]bool{}
	for rank, code := range order {
		if int(ranks[code]) != rank {
			t.Fatalf("code %d has rank %d, want %d", code, ranks[code], rank)
		}
		if seen[c.Key(code)] {
			t.Fatalf("key %x has two codes", c.Key(code))
		}
		seen[c.Key(code)] = true
	}
	if c.Bytes() <= 0 {
		t.Error("the coder holds no memory")
	}
}

func TestCoderWithoutColumns(t *testing.T) {
	c := NewCoder(layout(t))
	if c.Len() != 1 || c.Key(0) != "" {
		t.Fatalf("knows %d entities", c.Len())
	}
	codes, err := c.AppendCodes([]uint32{7}, nil, 3)
	if err != nil || !slices.Equal(codes, []uint32{7, 0, 0, 0}) {
		t.Fatalf("got %v, %v", codes, err)
	}
}

func TestManyEntities(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	const n = 30000
	texts, numbers := make([]any, n), make([]any, n)
	for i := range n {
		texts[i], numbers[i] = fmt.Sprint("entity-", i/3), int64(i%7)
	}
	a, b := column(t, mem, str, texts), column(t, mem, i64, numbers)
	defer a.Release()
	defer b.Release()
	c := NewCoder(layout(t, str, i64))
	first, err := c.AppendCodes(nil, []arrow.Array{a, b}, n)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.AppendCodes(nil, []arrow.Array{a, b}, n)
	if err != nil || !slices.Equal(first, again) || c.Len() != n {
		t.Fatalf("%d entities, %v", c.Len(), err)
	}
	if len(c.StringParts(0)) != n/3 || c.StringParts(1) != nil || c.IntegerPart(0, 0) != nil {
		t.Errorf("the parts are wrong")
	}
	checkOrder(t, c)
}

func TestUnusedDictionaryValueIsNoEntity(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	all := column(t, mem, dictionaryOf(i32, str), []any{"a", "b", "c", "b"})
	defer all.Release()
	part := array.NewSlice(all, 1, 2)
	defer part.Release()
	c := NewCoder(layout(t, str))
	if _, err := c.AppendCodes(nil, []arrow.Array{part}, 1); err != nil || c.Len() != 1 || c.Key(0) != "b\x00\x01" {
		t.Fatalf("%d entities, %v", c.Len(), err)
	}
}

func TestBadColumns(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	idx := column(t, mem, i32, []any{int32(0), int32(5)})
	negative := column(t, mem, i32, []any{int32(0), int32(-5)})
	words := column(t, mem, str, []any{"a", nil})
	null := column(t, mem, i32, []any{int32(1)})
	outside := array.NewDictionaryArray(dictionaryOf(i32, str), idx, words)
	below := array.NewDictionaryArray(dictionaryOf(i32, str), negative, words)
	nullValue := array.NewDictionaryArray(dictionaryOf(i32, str), null, words)
	ofInts := array.NewDictionaryArray(dictionaryOf(i32, i32), null, idx)
	binary := array.NewBinaryBuilder(mem, arrow.BinaryTypes.Binary)
	defer binary.Release()
	binary.AppendString("x")
	bin := binary.NewArray()
	big := array.NewDecimal128Builder(mem, &arrow.Decimal128Type{Precision: 38})
	defer big.Release()
	big.Append(decimal128.New(1, 0))
	tooBig := big.NewArray()
	for _, a := range []arrow.Array{idx, negative, words, null, outside, below, nullValue, ofInts, bin, tooBig} {
		defer a.Release()
	}
	for name, c := range map[string]struct {
		l    *Layout
		cols []arrow.Array
		rows int
		null bool
	}{
		"a column missing":           {layout(t, str, str), []arrow.Array{words}, 1, false},
		"a column short":             {layout(t, str), []arrow.Array{words}, 3, false},
		"a null":                     {layout(t, str), []arrow.Array{words}, 2, true},
		"index above the dictionary": {layout(t, str), []arrow.Array{outside}, 2, false},
		"index below the dictionary": {layout(t, str), []arrow.Array{below}, 2, false},
		"null in the dictionary":     {layout(t, str), []arrow.Array{nullValue}, 1, true},
		"dictionary of integers":     {layout(t, str), []arrow.Array{ofInts}, 1, false},
		"dictionary for integers":    {layout(t, i32), []arrow.Array{ofInts}, 1, false},
		"strings for integers":       {layout(t, i64), []arrow.Array{words}, 1, false},
		"int32 for int64":            {layout(t, i64), []arrow.Array{idx}, 1, false},
		"integers for strings":       {layout(t, str), []arrow.Array{idx}, 1, false},
		"binary for strings":         {layout(t, str), []arrow.Array{bin}, 1, false},
		"decimal beyond 64 bits":     {layout(t, u64), []arrow.Array{tooBig}, 1, false},
		"decimal for int64":          {layout(t, i64), []arrow.Array{tooBig}, 1, false},
		"in the second column":       {layout(t, str, i64), []arrow.Array{words, tooBig}, 1, false},
	} {
		_, errCode := NewCoder(c.l).AppendCodes(nil, c.cols, c.rows)
		_, errKey := NewEncoder(c.l).Encode(c.cols, c.rows)
		var null *NullError
		if errCode == nil || errKey == nil || errors.As(errCode, &null) != c.null || errors.As(errKey, &null) != c.null {
			t.Errorf("%s: %v; %v", name, errCode, errKey)
		}
	}
}

func TestCoderAfterError(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	idx := column(t, mem, i32, []any{int32(0), int32(1), int32(9)})
	words := column(t, mem, str, []any{"x", "y"})
	bad := array.NewDictionaryArray(dictionaryOf(i32, str), idx, words)
	for _, a := range []arrow.Array{idx, words, bad} {
		defer a.Release()
	}
	c := NewCoder(layout(t, str))
	if _, err := c.AppendCodes(nil, []arrow.Array{bad}, 3); err == nil {
		t.Fatal("no error")
	}
	codes, err := c.AppendCodes(nil, []arrow.Array{words}, 2)
	if err != nil || c.Key(codes[0]) != "x\x00\x01" || c.Key(codes[1]) != "y\x00\x01" || c.Len() != 2 {
		t.Fatalf("got %v, %v", codes, err)
	}
}

func BenchmarkAppendCodes(b *testing.B) {
	const rows = 64 << 10
	for _, entities := range []int{1, 1000, 100000} {
		for _, form := range []arrow.DataType{str, dictionaryOf(i32, str), i64} {
			for _, sorted := range []bool{false, true} {
				b.Run(fmt.Sprintf("type=%s/rows=%d/entities=%d/sorted=%v", form.Name(), rows, entities, sorted), func(b *testing.B) {
					rng := rand.New(rand.NewPCG(1, 2))
					numbers := make([]int, rows)
					for i := range numbers {
						numbers[i] = rng.IntN(entities)
					}
					if sorted {
						slices.Sort(numbers)
					}
					values := make([]any, rows)
					for i, n := range numbers {
						if values[i] = any(fmt.Sprintf("SYM%06d", n)); form == i64 {
							values[i] = int64(n) * math.MaxUint16
						}
					}
					kindOf := form
					if form != i64 {
						kindOf = str
					}
					col := column(b, memory.DefaultAllocator, form, values)
					c := NewCoder(layout(b, kindOf))
					var codes []uint32
					for b.Loop() {
						var err error
						if codes, err = c.AppendCodes(codes[:0], []arrow.Array{col}, rows); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
				})
			}
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	const rows = 64 << 10
	values := make([]any, rows)
	for i := range values {
		values[i] = fmt.Sprintf("SYM%06d", i%1000)
	}
	col := column(b, memory.DefaultAllocator, str, values)
	e := NewEncoder(layout(b, str))
	for b.Loop() {
		if _, err := e.Encode([]arrow.Array{col}, rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func TestStringsOfAllLengths(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	rng := rand.New(rand.NewPCG(3, 4))
	var values []any
	for n := range 40 {
		for i := range 60 {
			b := make([]byte, n)
			for j := range b {
				b[j] = "\x00a"[rng.IntN(2)]
			}
			if n > 0 && i%2 == 0 {
				b[n-1] = byte(i)
			}
			values = append(values, string(b))
		}
	}
	rng.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	l := layout(t, str)
	c := NewCoder(l)
	for _, dt := range []arrow.DataType{str, arrow.BinaryTypes.LargeString, dictionaryOf(arrow.PrimitiveTypes.Uint16, str), dictionaryOf(arrow.PrimitiveTypes.Uint32, str), dictionaryOf(i64, str)} {
		whole := column(t, mem, dt, values)
		for _, span := range [][2]int{{0, len(values)}, {7, 1000}, {len(values) - 3, len(values)}, {5, 5}} {
			part := array.NewSlice(whole, int64(span[0]), int64(span[1]))
			codes, err := c.AppendCodes(nil, []arrow.Array{part}, part.Len())
			if err != nil {
				t.Fatal(err)
			}
			for row, code := range codes {
				if want := mustKey(t, l, values[span[0]+row]); c.Key(code) != want {
					t.Fatalf("%v, row %d of %v: got %x, want %x", dt, row, span, c.Key(code), want)
				}
			}
			part.Release()
		}
		whole.Release()
	}
	checkOrder(t, c)
	if err := (&NullError{Column: "a", Row: 3}).Error(); err != `entity column "a" is null in row 3` {
		t.Error(err)
	}
}
