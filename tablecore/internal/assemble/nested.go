package assemble

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/bufpool"
)

// Copy returns a new array with n rows of source from row start on, which
// shares no memory with it.
func Copy(mem memory.Allocator, source arrow.Array, start, n int) (arrow.Array, error) {
	return build(mem, []arrow.Array{source}, []Run{{0, start, n}})
}

// structs copies structs, child by child.
func structs(mem memory.Allocator, typ *arrow.StructType, sources []arrow.Array, runs []Run) (arrow.Array, error) {
	children := make([]arrow.ArrayData, 0, typ.NumFields())
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	parts := make([]arrow.Array, len(sources))
	for i := range typ.NumFields() {
		for k, s := range sources {
			parts[k] = s.(*array.Struct).Field(i)
		}
		child, err := build(mem, parts, runs)
		if err != nil {
			return nil, err
		}
		child.Data().Retain()
		children = append(children, child.Data())
		child.Release()
	}
	n := Rows(runs)
	valid, nulls := validity(mem, n, sources, runs)
	if valid != nil {
		defer valid.Release()
	}
	d := array.NewData(typ, n, []*memory.Buffer{valid}, children, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

// lists copies lists or maps: what a run of lists holds is one run of elements.
func lists(mem memory.Allocator, typ arrow.DataType, sources []arrow.Array, runs []Run) (arrow.Array, error) {
	parts := make([]arrow.Array, len(sources))
	starts := make([][]int32, len(sources))
	for i, s := range sources {
		parts[i] = s.(array.ListLike).ListValues()
		if d := s.Data(); d.Len() > 0 {
			starts[i] = arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+d.Len()+1]
		}
	}
	n := Rows(runs)
	ob := memory.NewResizableBuffer(mem)
	defer ob.Release()
	ob.Resize((n + 1) * arrow.Int32SizeBytes)
	ends := arrow.Int32Traits.CastFromBytes(ob.Bytes())
	ends[0] = 0
	var elements []Run
	total, row := int64(0), 0
	for _, r := range runs {
		if r.Len == 0 {
			continue
		}
		o := starts[r.Source][r.Start : r.Start+r.Len+1]
		for _, end := range o[1:] {
			row++
			ends[row] = int32(total + int64(end-o[0]))
		}
		count := int(o[len(o)-1] - o[0])
		if total += int64(count); total > math.MaxInt32 {
			return nil, fmt.Errorf("%w: more than %d elements of lists", ErrTooLarge, math.MaxInt32)
		}
		elements = appendRun(elements, Run{r.Source, int(o[0]), count})
	}
	values, err := build(mem, parts, elements)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	valid, nulls := validity(mem, n, sources, runs)
	if valid != nil {
		defer valid.Release()
	}
	d := array.NewData(typ, n, []*memory.Buffer{valid, ob}, []arrow.ArrayData{values.Data()}, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

// appendRun joins runs that follow each other in their source.
func appendRun(runs []Run, r Run) []Run {
	if r.Len == 0 {
		return runs
	}
	if n := len(runs); n > 0 && runs[n-1].Source == r.Source && runs[n-1].Start+runs[n-1].Len == r.Start {
		runs[n-1].Len += r.Len
		return runs
	}
	return append(runs, r)
}

// Pick returns the rows of one source at the given positions; a position below
// 0 gives a null. The result belongs to the caller.
func Pick(mem memory.Allocator, source arrow.Array, positions []int) (arrow.Array, error) {
	sources := []arrow.Array{source}
	var runs []Run
	for _, at := range positions {
		if at >= 0 {
			runs = appendRun(runs, Run{0, at, 1})
			continue
		}
		if len(sources) == 1 {
			null := array.MakeArrayOfNull(bufpool.Zeroed(mem), source.DataType(), 1)
			defer null.Release()
			sources = append(sources, null)
		}
		runs = append(runs, Run{1, 0, 1})
	}
	return build(mem, sources, runs)
}
