package entitykey

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// layout builds a layout of columns a, b, c … of the given types.
func layout(t testing.TB, types ...arrow.DataType) *Layout {
	t.Helper()
	fields := make([]arrow.Field, len(types))
	for i, dt := range types {
		fields[i] = arrow.Field{Name: string(rune('a' + i)), Type: dt}
	}
	l, err := NewLayout(fields)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var (
	str = arrow.BinaryTypes.String
	i32 = arrow.PrimitiveTypes.Int32
	i64 = arrow.PrimitiveTypes.Int64
	u64 = arrow.PrimitiveTypes.Uint64
)

func mustKey(t testing.TB, l *Layout, values ...any) string {
	t.Helper()
	key, err := l.Key(values...)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestKeyBytes holds the persisted encoding: a change breaks stored files.
func TestKeyBytes(t *testing.T) {
	l := layout(t, str, i32, i64, u64)
	got := mustKey(t, l, "a\x00é", int32(-2), int64(5), uint64(1<<63))
	want := "a\x00\xffé\x00\x01" + "\x7f\xff\xff\xfe" + "\x80\x00\x00\x00\x00\x00\x00\x05" + "\x80\x00\x00\x00\x00\x00\x00\x00"
	if got != want {
		t.Fatalf("got %x, want %x", got, want)
	}
	if got := mustKey(t, layout(t)); got != "" {
		t.Fatalf("got %x", got)
	}
}

func TestDecode(t *testing.T) {
	l := layout(t, str, i32, str, i64, u64)
	values := []any{"\x00a\x00\xff\x01", int32(math.MinInt32), "", int64(math.MaxInt64), uint64(math.MaxUint64)}
	key := mustKey(t, l, values...)
	got, err := l.Decode(key)
	if err != nil || !slices.Equal(got, values) {
		t.Fatalf("got %v, %v", got, err)
	}
	if !l.Valid(key) {
		t.Error("the key is not valid")
	}
	named := l.Values(key)
	if len(named) != 5 || named[1] != (tableerr.NamedValue{Name: "b", Value: int32(math.MinInt32)}) {
		t.Errorf("got %v", named)
	}
	for _, bad := range []string{key[:len(key)-1], key + "\x00", "", "a", "a\x00", "a\x00\x02", strings.Repeat("\x00\xff", 10), key[:8], key[:14], key[:20]} {
		if got, err := l.Decode(bad); !errors.Is(err, ErrBadKey) {
			t.Errorf("%x: got %v, %v", bad, got, err)
		}
		if l.Valid(bad) {
			t.Errorf("%x is valid", bad)
		}
		if got := l.Values(bad); got == nil || len(got) != 0 {
			t.Errorf("%x: got %v", bad, got)
		}
	}
	if _, err := layout(t).Decode("x"); !errors.Is(err, ErrBadKey) {
		t.Error(err)
	}
}

func TestKeyRefuses(t *testing.T) {
	l := layout(t, str, i32)
	for _, values := range [][]any{{"a"}, {"a", int64(1)}, {int32(1), int32(1)}, {"a", "b"}, {"a", uint64(1)}, {"a", 1}, {nil, int32(1)}} {
		if key, err := l.Key(values...); err == nil {
			t.Errorf("%v became %x", values, key)
		}
	}
	if _, err := l.AppendValue(nil, 2, "x"); err == nil {
		t.Error("there is a third column")
	}
}

func TestLayout(t *testing.T) {
	def := &tabledef.Definition{EntityColumns: []string{"y", "x"}, Stored: arrow.NewSchema([]arrow.Field{{Name: "x", Type: i32}, {Name: "v", Type: i64}, {Name: "y", Type: arrow.BinaryTypes.LargeString}}, nil)}
	l, err := LayoutOf(def)
	if err != nil || !slices.Equal(l.Names(), []string{"y", "x"}) || l.Len() != 2 {
		t.Fatalf("got %v, %v", l, err)
	}
	if key := mustKey(t, l, "a", int32(0)); key != "a\x00\x01\x80\x00\x00\x00" {
		t.Errorf("got %x", key)
	}
	if _, err := LayoutOf(&tabledef.Definition{}); err == nil {
		t.Error("a table without a schema has a layout")
	}
	def.EntityColumns = []string{"z"}
	if _, err := LayoutOf(def); err == nil {
		t.Error("a table without its entity column has a layout")
	}
	def.EntityColumns = []string{"bad"}
	def.Stored = arrow.NewSchema([]arrow.Field{{Name: "bad", Type: arrow.PrimitiveTypes.Float64}}, nil)
	_, err = LayoutOf(def)
	var invalid *tableerr.Invalid
	if !errors.As(err, &invalid) || invalid.Column != "bad" || invalid.Type != "double" {
		t.Error(err)
	}
}

// randomValues makes values that are equal often and differ in the places
// where an encoding may go wrong.
func randomValues(rng *rand.Rand, l *Layout) []any {
	out := make([]any, l.Len())
	for i, k := range l.kinds {
		switch k {
		case kindString:
			b := make([]byte, rng.IntN(4))
			for j := range b {
				b[j] = []byte{0, 1, 'a', 0xFE, 0xFF}[rng.IntN(5)]
			}
			out[i] = string(b)
		case kindInt32:
			out[i] = []int32{math.MinInt32, -1, 0, 1, math.MaxInt32, int32(rng.Uint32())}[rng.IntN(6)]
		case kindInt64:
			out[i] = []int64{math.MinInt64, -1, 0, 1, math.MaxInt64, int64(rng.Uint64())}[rng.IntN(6)]
		default:
			out[i] = []uint64{0, 1, math.MaxInt64, 1 << 63, math.MaxUint64, rng.Uint64()}[rng.IntN(6)]
		}
	}
	return out
}

func compareValues(a, b []any) int {
	for i := range a {
		var c int
		switch x := a[i].(type) {
		case string:
			c = cmp.Compare(x, b[i].(string))
		case int32:
			c = cmp.Compare(x, b[i].(int32))
		case int64:
			c = cmp.Compare(x, b[i].(int64))
		case uint64:
			c = cmp.Compare(x, b[i].(uint64))
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func TestKeysKeepOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, l := range []*Layout{layout(t, str), layout(t, str, str), layout(t, i32, str), layout(t, i64, i32), layout(t, str, u64, str)} {
		for range 20000 {
			a, b := randomValues(rng, l), randomValues(rng, l)
			ka, kb := mustKey(t, l, a...), mustKey(t, l, b...)
			if strings.Compare(ka, kb) != compareValues(a, b) {
				t.Fatalf("%q and %q have keys %x and %x", a, b, ka, kb)
			}
			if ka != kb && strings.HasPrefix(kb, ka) {
				t.Fatalf("key %x is a prefix of %x", ka, kb)
			}
			back, err := l.Decode(ka)
			if err != nil || !slices.Equal(back, a) {
				t.Fatalf("%q came back as %q, %v", a, back, err)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("a\x00\x01\x80\x00\x00\x00b\x00\xff\x00\x01"))
	f.Add([]byte{})
	l := layout(f, str, i32, str)
	f.Fuzz(func(t *testing.T, key []byte) {
		values, err := l.Decode(string(key))
		if l.Valid(string(key)) != (err == nil) {
			t.Fatalf("%x: Valid and Decode disagree (%v)", key, err)
		}
		if err != nil {
			return
		}
		again, err := l.Key(values...)
		if err != nil || !bytes.Equal([]byte(again), key) {
			t.Fatalf("%x became %v, then %x (%v)", key, values, again, err)
		}
	})
}

func TestLists(t *testing.T) {
	keys := []string{"", "\x00\x01", "a\x00\x01", "ab\x00\x01", "abc", "abd", "b"}
	for from := range keys {
		var data []byte
		last := ""
		for _, key := range keys[from:] {
			data = AppendAfter(data, last, key)
			last = key
		}
		var r ListReader
		rest := data
		for _, want := range keys[from:] {
			var key []byte
			var ok bool
			if key, rest, ok = r.Next(rest); !ok || string(key) != want {
				t.Fatalf("got %q, %v, want %q", key, ok, want)
			}
		}
		if len(rest) != 0 {
			t.Fatalf("%x is left", rest)
		}
	}
	for name, data := range map[string][]byte{
		"nothing": {}, "shared without last": {1, 0}, "no length": {0}, "cut": {0, 3, 'a'},
		"equal": {0, 1, 'a', 1, 0}, "equal in full": {0, 1, 'a', 0, 1, 'a'}, "descending": {0, 1, 'b', 0, 1, 'a'}, "shorter": {0, 2, 'b', 'c', 1, 0}, "empty twice": {0, 0, 0, 0},
		"huge": {0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1},
	} {
		var r ListReader
		ok := true
		for rest := data; ok && (len(rest) > 0 || len(data) == 0); {
			_, rest, ok = r.Next(rest)
		}
		if ok {
			t.Errorf("%s was read", name)
		}
	}
	// Long common beginnings unfold; a bound stops them.
	data := AppendAfter(nil, "", strings.Repeat("k", 1<<20))
	var r ListReader
	_, _, ok := r.Next(data)
	for n := 0; ok; n++ {
		if n > 1000 {
			t.Fatal("keys of 1 GB were unfolded")
		}
		_, _, ok = r.Next([]byte{0x80, 0x80, 0x40, 2, byte(n >> 8), byte(n)})
	}
}
