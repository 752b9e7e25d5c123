package assemble

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/bufpool"
)

var nestedCases = []struct {
	typ  arrow.DataType
	rows string
}{
	{arrow.ListOf(arrow.PrimitiveTypes.Int32), `[[1,null],[],null,[2,3,4],[5]]`},
	{arrow.ListOf(arrow.ListOf(arrow.BinaryTypes.String)), `[[["a"],null,[]],[],null,[["bc",null]],[[]]]`},
	{arrow.MapOf(arrow.BinaryTypes.String, arrow.FixedWidthTypes.Boolean), `[[{"key":"a","value":true}],[],null,[{"key":"b","value":null},{"key":"c","value":false}],[]]`},
	{arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int8, Nullable: true}, arrow.Field{Name: "b", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64), Nullable: true}),
		`[{"a":1,"b":[1.5]},null,{"a":null,"b":[]},{"a":4,"b":null},{"a":5,"b":[2,3]}]`},
	{&arrow.Decimal128Type{Precision: 20}, `["1",null,"3","4","5"]`},
}

// TestNested compares random runs over several slices with row by row copies.
func TestNested(t *testing.T) {
	for _, c := range nestedCases {
		t.Run(c.typ.String(), func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			whole, _, err := array.FromJSON(mem, c.typ, strings.NewReader(c.rows))
			if err != nil {
				t.Fatal(err)
			}
			defer whole.Release()
			tail := array.NewSlice(whole, 1, 5)
			defer tail.Release()
			sources := []arrow.Array{whole, tail}
			rng := rand.New(rand.NewPCG(1, 1))
			for range 200 {
				var runs []Run
				var want []string
				for range rng.IntN(6) {
					s := rng.IntN(2)
					start := rng.IntN(sources[s].Len())
					r := Run{s, start, rng.IntN(sources[s].Len() - start + 1)}
					runs = append(runs, r)
					for i := range r.Len {
						want = append(want, sources[s].ValueStr(start+i))
					}
				}
				got, err := Array(bufpool.Poison(mem), sources, runs)
				if err != nil {
					t.Fatal(err)
				}
				sameRows(t, got, want)
				got.Release()
			}
		})
	}
}

func sameRows(t *testing.T, got arrow.Array, want []string) {
	t.Helper()
	if err := array.ValidateFull(got); err != nil {
		t.Fatal(err)
	}
	if got.Len() != len(want) {
		t.Fatalf("%d rows, want %d", got.Len(), len(want))
	}
	for i := range want {
		if got.ValueStr(i) != want[i] {
			t.Fatalf("row %d is %s, want %s", i, got.ValueStr(i), want[i])
		}
	}
}

func TestPickAndCopy(t *testing.T) {
	for _, c := range nestedCases {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		whole, _, err := array.FromJSON(mem, c.typ, strings.NewReader(c.rows))
		if err != nil {
			t.Fatal(err)
		}
		picked, err := Pick(bufpool.Poison(mem), whole, []int{4, -1, 0, 1, 1, -1})
		if err != nil {
			t.Fatal(err)
		}
		null := array.NullValueStr
		sameRows(t, picked, []string{whole.ValueStr(4), null, whole.ValueStr(0), whole.ValueStr(1), whole.ValueStr(1), null})
		copied, err := Copy(bufpool.Poison(mem), whole, 1, 3)
		if err != nil {
			t.Fatal(err)
		}
		sameRows(t, copied, []string{whole.ValueStr(1), whole.ValueStr(2), whole.ValueStr(3)})
		for _, a := range []arrow.Array{whole, picked, copied} {
			a.Release()
		}
		mem.AssertSize(t, 0)
	}
}
