package ingest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

// putAll copies an array into a column in pieces, as a store does.
func putAll(t *testing.T, c column, h *heap, arr arrow.Array, first int) {
	t.Helper()
	for from := 0; from < arr.Len(); {
		row := first + from
		pos := row & chunkMask
		n := min(arr.Len()-from, chunkRows-pos)
		capacity := chunkRows
		if row < chunkRows {
			capacity = max(firstRows, 1<<bits.Len(uint(pos+n-1)))
		}
		if err := c.put(h, arr, from, n, place{row >> chunkShift, pos, capacity}); err != nil {
			t.Fatal(err)
		}
		from += n
	}
}

// texts makes n random texts of at most so many values, some of them null.
func texts(rng *rand.Rand, n, distinct int) []*string {
	out := make([]*string, n)
	for i := range out {
		if rng.IntN(10) == 0 {
			continue
		}
		text := fmt.Sprint(rng.IntN(distinct))
		if rng.IntN(4) == 0 {
			text += " and some more"
		}
		if rng.IntN(50) == 0 {
			text = ""
		}
		out[i] = &text
	}
	return out
}

// textArray builds an array of a layout.
func textArray(mem memory.Allocator, layout arrow.DataType, values []*string) arrow.Array {
	b := array.NewBuilder(mem, layout)
	defer b.Release()
	for _, v := range values {
		if v == nil {
			b.AppendNull()
		} else if err := b.AppendValueFromString(*v); err != nil {
			panic(err)
		}
	}
	return b.NewArray()
}

// TestTextColumn takes text through all forms it is buffered in: codes of one
// and of two bytes, and plain text that begins inside a chunk or at its start.
func TestTextColumn(t *testing.T) {
	layouts := []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString,
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}}
	for _, layout := range layouts {
		for _, few := range []int{0, 30_000, 65_536, 67_000} {
			for _, distinct := range [][2]int{{200, 3_000}, {100, 1 << 30}, {3_000, 1 << 30}} {
				if layout != layouts[0] && few != 30_000 {
					continue // the forms do not depend on the layout
				}
				t.Run(fmt.Sprintf("%s/%d/%d", layout.Name(), few, distinct), func(t *testing.T) {
					mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
					defer mem.AssertSize(t, 0)
					rng := rand.New(rand.NewPCG(uint64(few), uint64(distinct[1])))
					values := append(texts(rng, few, distinct[0]), texts(rng, 70_000-few, distinct[1])...)
					h := &heap{mem: mem, limit: math.MaxInt64}
					c := newTextColumn()
					for from := 0; from < len(values); {
						n := min(1+rng.IntN(30_000), len(values)-from)
						arr := textArray(mem, layout, values[from:from+n])
						putAll(t, c, h, arr, from)
						arr.Release()
						from += n
					}
					rows := make([]uint32, 5_000)
					for i := range rows {
						rows[i] = rng.Uint32N(uint32(len(values)))
					}
					plain, err := c.gather(mem, rows)
					if err != nil {
						t.Fatal(err)
					}
					sameTexts(t, plain, values, rows)
					plain.Release()
					if group := c.gatherGroup(mem, rows); group != nil {
						sameTexts(t, group, values, rows)
						if d := group.(*array.Dictionary).Dictionary(); d.Len() > len(rows)/2 {
							t.Errorf("a dictionary of %d values for %d rows", d.Len(), len(rows))
						}
						group.Release()
					} else if distinct[1] == 3_000 && few == 67_000 {
						t.Error("few values make no dictionary")
					}
					c.free(h)
					if h.used.Load() != 0 {
						t.Errorf("%d bytes are counted after free", h.used.Load())
					}
				})
			}
		}
	}
}

func sameTexts(t *testing.T, got arrow.Array, values []*string, rows []uint32) {
	t.Helper()
	for i, row := range rows {
		want := array.NullValueStr
		if values[row] != nil {
			want = *values[row]
		}
		if got.ValueStr(i) != want || got.IsNull(i) != (values[row] == nil) {
			t.Fatalf("row %d: got %q, want %q", row, got.ValueStr(i), want)
		}
	}
}

func TestInterner(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	table := newInterner()
	want := map[string]uint32{}
	data := make([]byte, 1<<16)
	for i := range data {
		data[i] = byte(rng.IntN(2)) // many equal short texts, NUL bytes among them
	}
	for range 200_000 {
		from := rng.IntN(len(data))
		to := min(from+rng.IntN(20), len(data))
		text := string(data[from:to])
		code, known := want[text]
		if !known {
			code = uint32(len(want))
			want[text] = code
		}
		if got := table.code(data, from, to); got != code {
			t.Fatalf("text %q has code %d, want %d", text, got, code)
		}
	}
	for text, code := range want {
		if string(table.text(code)) != text {
			t.Fatalf("code %d is %q, want %q", code, table.text(code), text)
		}
	}
	if table.len() != len(want) || table.bytes() <= 0 {
		t.Errorf("%d texts, want %d", table.len(), len(want))
	}
}

// TestPlainColumnRefuses checks the limits of a chunk of plain text.
func TestPlainColumnRefuses(t *testing.T) {
	mem := memory.NewGoAllocator()
	arr := textArray(mem, arrow.BinaryTypes.String, texts(rand.New(rand.NewPCG(1, 1)), 100, 10))
	var large *tableerr.MessageTooLarge
	c := &plainColumn{typ: arrow.BinaryTypes.String}
	if err := c.put(&heap{mem: mem, limit: 100}, arr, 0, 100, place{0, 0, 128}); !errors.As(err, &large) {
		t.Errorf("beyond the budget: got %v", err)
	}
	c = &plainColumn{typ: arrow.BinaryTypes.String, chunks: []textChunk{{used: math.MaxUint32 - 10}}}
	if err := c.put(&heap{mem: mem, limit: math.MaxInt64}, arr, 0, 100, place{0, 0, 128}); !errors.As(err, &large) {
		t.Errorf("beyond 4 GiB: got %v", err)
	}
	text := newTextColumn()
	h := &heap{mem: mem, limit: math.MaxInt64}
	putAll(t, text, h, arr, 0)
	text.plain.chunks = []textChunk{{used: math.MaxUint32}}
	if err := text.goPlain(h, place{0, 100, 128}); !errors.As(err, &large) {
		t.Errorf("going plain beyond 4 GiB: got %v", err)
	}
}
