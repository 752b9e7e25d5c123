package interval

import (
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tabledef"
)

func timestamps(mem memory.Allocator, unit arrow.TimeUnit, values ...arrow.Timestamp) arrow.Array {
	b := array.NewTimestampBuilder(mem, &arrow.TimestampType{Unit: unit})
	defer b.Release()
	b.AppendValues(values, nil)
	return b.NewArray()
}

func TestAppendOrdinals(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	micro := mustNew(t, tabledef.IndexTimestamp, arrow.Microsecond, tabledef.Granularity{})
	second := mustNew(t, tabledef.IndexTimestamp, arrow.Second, tabledef.Granularity{})
	nano := mustNew(t, tabledef.IndexTimestamp, arrow.Nanosecond, tabledef.Granularity{})
	signed := mustNew(t, tabledef.IndexInt64, 0, tabledef.Granularity{})
	unsigned := mustNew(t, tabledef.IndexUint64, 0, tabledef.Granularity{})

	ints := array.NewInt64Builder(mem)
	defer ints.Release()
	ints.AppendValues([]int64{math.MinInt64, -1, 5}, nil)
	i64 := ints.NewArray()
	uints := array.NewUint64Builder(mem)
	defer uints.Release()
	uints.AppendValues([]uint64{0, math.MaxUint64}, nil)
	u64 := uints.NewArray()
	decimals := array.NewDecimal128Builder(mem, &arrow.Decimal128Type{Precision: 20})
	defer decimals.Release()
	decimals.AppendValues([]decimal128.Num{decimal128.FromU64(7), decimal128.FromU64(math.MaxUint64)}, nil)
	dec := decimals.NewArray()
	decimals.AppendValues([]decimal128.Num{decimal128.FromI64(-1)}, nil)
	negative := decimals.NewArray()
	us := timestamps(mem, arrow.Microsecond, -1, 0, 1_999_999, 2_000_000)
	s := timestamps(mem, arrow.Second, 1)
	ints.AppendNull()
	null := ints.NewArray()
	sliced := array.NewSlice(i64, 1, 3)
	for _, a := range []arrow.Array{i64, u64, dec, negative, us, s, null, sliced} {
		defer a.Release()
	}

	for _, c := range []struct {
		name string
		d    Domain
		arr  arrow.Array
		want []int64 // nil where it is refused
	}{
		{"int64", signed, i64, []int64{math.MinInt64, -1, 5}},
		{"a slice", signed, sliced, []int64{-1, 5}},
		{"timestamp", micro, us, []int64{-1, 0, 1_999_999, 2_000_000}},
		{"timestamp kept as microseconds", second, us, []int64{-1, 0, 1, 2}},
		{"nanoseconds kept as int64", nano, i64, []int64{math.MinInt64, -1, 5}},
		{"a coarser timestamp", micro, s, nil},
		{"a timestamp for an integer", signed, us, nil},
		{"signed for unsigned", unsigned, i64, nil},
		{"unsigned for signed", signed, u64, nil},
		{"decimal for signed", signed, dec, nil},
		{"a negative decimal", unsigned, negative, nil},
		{"nulls", signed, null, nil},
	} {
		got, err := c.d.AppendOrdinals([]uint64{42}, c.arr)
		if c.want == nil {
			if err == nil {
				t.Errorf("%s: no error", c.name)
			}
			continue
		}
		want := []uint64{42}
		for _, v := range c.want {
			want = append(want, SignedOrdinal(v))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v", c.name, got, err)
		}
	}
	for _, arr := range []arrow.Array{u64, dec} {
		got, err := unsigned.AppendOrdinals(nil, arr)
		if err != nil || len(got) != 2 || got[1] != math.MaxUint64 {
			t.Errorf("%v: got %v, %v", arr.DataType(), got, err)
		}
	}
}
