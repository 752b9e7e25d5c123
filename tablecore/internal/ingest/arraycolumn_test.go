package ingest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

// nestedRows makes rows [from, from+n) of a struct of a list, a decimal and a
// text; each says which row it is.
func nestedRows(t *testing.T, mem memory.Allocator, from, n int) arrow.Array {
	t.Helper()
	typ := arrow.StructOf(arrow.Field{Name: "l", Type: arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.PrimitiveTypes.Int64, Nullable: true}), Nullable: true},
		arrow.Field{Name: "d", Type: &arrow.Decimal128Type{Precision: 9}, Nullable: true}, arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true})
	rows := make([]string, n)
	for i := range rows {
		row := from + i
		rows[i] = fmt.Sprintf(`{"l":[%s],"d":"%d","s":"row %d"}`, strings.TrimSuffix(strings.Repeat(fmt.Sprint(row, ","), row%4), ","), row, row)
		if row%7 == 0 {
			rows[i] = "null"
		}
	}
	arr, _, err := array.FromJSON(mem, typ, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return arr
}

// TestArrayColumn puts batches of one row and of many, over a chunk's end, and
// gathers rows in any order.
func TestArrayColumn(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	h := &heap{mem: mem, limit: math.MaxInt64}
	rng := rand.New(rand.NewPCG(1, 1))
	const total = chunkRows + 3000
	whole := nestedRows(t, mem, 0, total)
	defer whole.Release()
	c := &arrayColumn{typ: whole.DataType()}
	for from := 0; from < total; {
		n := min(1+rng.IntN(1500)*rng.IntN(2), total-from)
		part := array.NewSlice(whole, int64(from), int64(from+n))
		putAll(t, c, h, part, from)
		part.Release()
		from += n
	}
	if n := len(c.pieces); n > 20 || c.pieces[0].rows.Len() != chunkRows {
		t.Errorf("%d pieces, the first of %d rows", n, c.pieces[0].rows.Len())
	}
	rows := make([]uint32, 4000)
	for i := range rows {
		rows[i] = rng.Uint32N(total)
	}
	copy(rows[100:], []uint32{chunkRows - 2, chunkRows - 1, chunkRows, chunkRows + 1})
	got, err := c.gather(mem, rows)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	for i, row := range rows {
		if got.ValueStr(i) != whole.ValueStr(int(row)) {
			t.Fatalf("row %d is %s, want %s", row, got.ValueStr(i), whole.ValueStr(int(row)))
		}
	}
	if c.size(1) >= c.size(3) {
		t.Errorf("a row with one element takes %d bytes, one with three %d", c.size(1), c.size(3))
	}
	if used := h.used.Load(); used < 40*total || used > 200*total {
		t.Errorf("%d bytes are counted for %d rows", used, total)
	}
	c.free(h)
	if h.used.Load() != 0 {
		t.Errorf("%d bytes are counted after free", h.used.Load())
	}
}

func TestArrayColumnKeepsTheBudget(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	h := &heap{mem: mem, limit: 1000}
	arr := nestedRows(t, mem, 0, 100)
	defer arr.Release()
	c := &arrayColumn{typ: arr.DataType()}
	var large *tableerr.MessageTooLarge
	if err := c.put(h, arr, 0, 100, place{0, 0, 128}); !errors.As(err, &large) {
		t.Errorf("got %v", err)
	}
	c.free(h)
	if h.used.Load() != 0 {
		t.Errorf("%d bytes are counted after free", h.used.Load())
	}
}
