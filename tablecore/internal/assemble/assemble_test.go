package assemble

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/bufpool"
)

var types = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64,
	arrow.FixedWidthTypes.Timestamp_us, arrow.FixedWidthTypes.Date32, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary,
	&arrow.Decimal128Type{Precision: 20}, &arrow.FixedSizeBinaryType{ByteWidth: 3}, arrow.ListOf(arrow.PrimitiveTypes.Int32),
}

func random(mem memory.Allocator, r *rand.Rand, typ arrow.DataType, n int, nulls bool) arrow.Array {
	b := array.NewBuilder(mem, typ)
	defer b.Release()
	for range n {
		if nulls && r.IntN(3) == 0 {
			b.AppendNull()
			continue
		}
		v := r.IntN(100)
		switch b := b.(type) {
		case *array.BooleanBuilder:
			b.Append(v%2 == 0)
		case *array.Int8Builder:
			b.Append(int8(v))
		case *array.Int64Builder:
			b.Append(int64(v))
		case *array.Float64Builder:
			b.Append(float64(v))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(v))
		case *array.Date32Builder:
			b.Append(arrow.Date32(v))
		case *array.StringBuilder:
			b.Append(fmt.Sprintf("s%03d", v)[:v%4])
		case *array.BinaryBuilder:
			b.Append([]byte(fmt.Sprint(v)))
		case *array.Decimal128Builder:
			b.Append(decimal128.FromI64(int64(v)))
		case *array.FixedSizeBinaryBuilder:
			b.Append([]byte{1, 2, byte(v)})
		case *array.ListBuilder:
			b.Append(true)
			b.ValueBuilder().(*array.Int32Builder).Append(int32(v))
		}
	}
	return b.NewArray()
}

// TestArray compares with array.Concatenate of slices over random runs.
func TestArray(t *testing.T) {
	for _, typ := range types {
		t.Run(typ.String(), func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			r := rand.New(rand.NewPCG(1, 2))
			for i := range 100 {
				var sources []arrow.Array
				for k := range 1 + r.IntN(4) {
					whole := random(mem, r, typ, 2+r.IntN(40), (i+k)%2 == 0)
					sources = append(sources, array.NewSlice(whole, 1, int64(whole.Len())))
					whole.Release()
				}
				var runs []Run
				for range r.IntN(20) {
					k := r.IntN(len(sources))
					start := r.IntN(sources[k].Len())
					runs = append(runs, Run{k, start, r.IntN(sources[k].Len() - start + 1)})
				}
				got, err := Array(bufpool.Poison(mem), sources, runs)
				if err != nil {
					t.Fatal(err)
				}
				want, err := concatenated(mem, sources, runs)
				if err != nil {
					t.Fatal(err)
				}
				if !array.Equal(got, want) || got.NullN() != want.NullN() || got.Len() != Rows(runs) {
					t.Fatalf("runs %v of %v: got %v, want %v", runs, sources, got, want)
				}
				for _, a := range append(sources, got, want) {
					a.Release()
				}
			}
		})
	}
}

func TestNoSource(t *testing.T) {
	if _, err := Array(memory.DefaultAllocator, nil, nil); err == nil {
		t.Fatal("no error without a source")
	}
}

func BenchmarkArray(b *testing.B) {
	mem := &bufpool.Pool{}
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String} {
		for _, length := range []int{1, 1000} {
			b.Run(fmt.Sprintf("type=%s/run=%d", typ, length), func(b *testing.B) {
				const rows = 1 << 17
				sources := []arrow.Array{random(memory.DefaultAllocator, r, typ, rows, false), random(memory.DefaultAllocator, r, typ, rows, false)}
				var runs []Run
				for i := 0; i+length <= rows; i += length {
					runs = append(runs, Run{i % 2, i, length})
				}
				b.SetBytes(rows * 8)
				for b.Loop() {
					a, err := Array(mem, sources, runs)
					if err != nil {
						b.Fatal(err)
					}
					a.Release()
				}
			})
		}
	}
}
