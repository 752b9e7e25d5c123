package lastvalue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// addedIn is the generation from which on the table has a column more.
const addedIn = 10

// blockOf makes a block with values that tell the rows apart.
func blockOf(rows map[string]Row, generation int, bare bool) *Block {
	block := &Block{}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		block.Rows = append(block.Rows, rows[key])
	}
	if bare {
		return block
	}
	fields := []arrow.Field{{Name: "ordinal", Type: arrow.PrimitiveTypes.Uint64}, {Name: "key", Type: arrow.BinaryTypes.String}}
	if generation >= addedIn {
		fields = append(fields, arrow.Field{Name: "added", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	}
	b := array.NewRecordBuilder(heap, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, r := range block.Rows {
		b.Field(0).(*array.Uint64Builder).Append(r.Ordinal)
		b.Field(1).(*array.StringBuilder).Append(r.Key)
		if generation >= addedIn {
			b.Field(2).(*array.Int64Builder).Append(int64(generation))
		}
	}
	block.Values = b.NewRecordBatch()
	return block
}

// compare checks that an index holds exactly the rows wanted.
func compare(t *testing.T, x *Index, want map[string]Row) {
	t.Helper()
	n, last := 0, ""
	for r := range x.All() {
		if n > 0 && r.Key <= last {
			t.Fatalf("%q comes after %q", r.Key, last)
		}
		n, last = n+1, r.Key
		if *r.Row != want[r.Key] {
			t.Fatalf("%q is %+v, want %+v", r.Key, *r.Row, want[r.Key])
		}
		if found, ok := x.Find(r.Key); !ok || found != r {
			t.Fatalf("%q is found as %+v, %t", r.Key, found, ok)
		}
		b := x.Blocks()[r.Block]
		if x.Bare() {
			if b.Values != nil {
				t.Fatal("a bare index has values")
			}
			continue
		}
		if b.Values.Column(0).(*array.Uint64).Value(r.Place) != r.Ordinal || b.Values.Column(1).(*array.String).Value(r.Place) != r.Key {
			t.Fatalf("%q has the values of another row", r.Key)
		}
		if b.Values.NumCols() > 2 {
			added := b.Values.Column(2).(*array.Int64)
			if added.IsValid(r.Place) != (r.At >= addedIn) || added.IsValid(r.Place) && added.Value(r.Place) != r.At {
				t.Fatalf("the column that was added is wrong for %q", r.Key)
			}
		}
	}
	if n != len(want) {
		t.Fatalf("%d rows, want %d", n, len(want))
	}
	if _, ok := x.Find("nobody"); ok {
		t.Fatal("a row of nobody is found")
	}
}

// TestAdvanceAgainstMap changes an index at random and compares it with a map;
// older indexes stay what they were.
func TestAdvanceAgainstMap(t *testing.T) {
	type state struct {
		index *Index
		want  map[string]Row
	}
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		first := map[string]Row{"start": {Key: "start"}}
		states := []state{{NewIndex(blockOf(first, 0, seed%3 == 0)), first}}
		for generation := range 25 {
			before := states[len(states)-1]
			want := maps.Clone(before.want)
			changed, gone := map[string]Row{}, map[string]struct{}{}
			for range rng.IntN(400) {
				key := fmt.Sprint(rng.IntN(4000))
				changed[key] = Row{Key: key, Ordinal: rng.Uint64(), Path: "p", At: int64(generation)}
			}
			for key := range want {
				if _, again := changed[key]; !again && generation%5 == 4 && rng.IntN(20) == 0 {
					gone[key] = struct{}{}
					delete(want, key)
				}
			}
			maps.Copy(want, changed)
			next, err := before.index.Advance(blockOf(changed, generation, before.index.Bare()), gone)
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, state{next, want})
		}
		for _, s := range states {
			compare(t, s.index, s.want)
		}
		last := states[len(states)-1]
		compare(t, last.index.WithoutValues(), last.want)
		if last.index.WithoutValues().Bytes() >= last.index.Bytes() && !last.index.Bare() {
			t.Error("values weigh nothing")
		}
	}
}

func TestAdvanceByNothing(t *testing.T) {
	x := NewIndex(blockOf(map[string]Row{"a": {Key: "a"}}, 0, false))
	if next, err := x.Advance(&Block{}, nil); err != nil || next != x {
		t.Errorf("got %v, %v", next, err)
	}
	next, err := x.Advance(&Block{}, map[string]struct{}{"a": {}})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, next, nil)
}

func TestNewer(t *testing.T) {
	later := func(a, b string) bool { return a > b }
	ascending := []Row{
		{Ordinal: 1, Stamp: 9, Path: "z", At: 9}, {Ordinal: 2, Stamp: NoStamp, Path: "z", At: 9}, {Ordinal: 2, Stamp: -5, Path: "z", At: 9},
		{Ordinal: 2, Stamp: 5, Path: "a", At: 9}, {Ordinal: 2, Stamp: 5, Path: "b", At: 1}, {Ordinal: 2, Stamp: 5, Path: "b", At: 2},
	}
	for i := range ascending {
		for k := range ascending {
			if got := ascending[i].Newer(&ascending[k], later); got != (i > k) {
				t.Errorf("%+v newer than %+v: %t", ascending[i], ascending[k], got)
			}
		}
	}
}

func TestGatherRefusesAnotherType(t *testing.T) {
	old := blockOf(map[string]Row{"a": {Key: "a"}}, 0, false).Values
	other := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "key", Type: arrow.PrimitiveTypes.Int8}}, nil),
		[]arrow.Array{array.MakeArrayOfNull(heap, arrow.PrimitiveTypes.Int8, 1)}, 1)
	if _, err := Gather([]arrow.RecordBatch{old, other}, AppendRun(nil, 0, 0)); err == nil {
		t.Error("a column of another type is taken")
	}
	if b, err := Gather([]arrow.RecordBatch{nil}, nil); b != nil || err != nil {
		t.Errorf("got %v, %v", b, err)
	}
}
