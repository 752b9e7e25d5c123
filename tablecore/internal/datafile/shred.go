package datafile

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// isNested says whether a type has children.
func isNested(typ arrow.DataType) bool {
	switch typ.ID() {
	case arrow.LIST, arrow.STRUCT, arrow.MAP:
		return true
	}
	return false
}

// leafTypes appends the types of a type's leaves in Parquet's order.
func leafTypes(typ arrow.DataType, to []arrow.DataType) []arrow.DataType {
	switch t := typ.(type) {
	case *arrow.ListType:
		return leafTypes(t.Elem(), to)
	case *arrow.MapType:
		return leafTypes(t.ItemField().Type, leafTypes(t.KeyField().Type, to))
	case *arrow.StructType:
		for _, f := range t.Fields() {
			to = leafTypes(f.Type, to)
		}
		return to
	}
	return append(to, typ)
}

// levels are the definition and repetition levels of a leaf's entries in one
// row group.
type levels struct {
	defs, reps []uint8
}

// shapes cuts the entries into pages that begin with a row.
func (v *levels) shapes(maxDef int, yield func(pageShape) bool) {
	p := pageShape{}
	for i, def := range v.defs {
		if v.reps[i] == 0 {
			if p.entries >= pageRows {
				if !yield(p) {
					return
				}
				p = pageShape{firstEntry: i}
			}
			p.rows++
		}
		p.entries++
		if int(def) == maxDef {
			p.slots++
		}
	}
	if p.entries > 0 {
		yield(p)
	}
}

// appendTo appends a page's levels to s.body and returns how many entries hold
// no value.
func (v *levels) appendTo(p pageShape, maxDef, maxRep int, s *scratch) (nulls int) {
	part := func(levels []uint8, most int) {
		s.levels = s.levels[:0]
		for _, l := range levels[p.firstEntry : p.firstEntry+p.entries] {
			s.levels = append(s.levels, uint32(l))
		}
		s.body = appendLevels(s.body, func(b []byte) []byte { return appendRuns(b, s.levels, bitsFor(most)) })
	}
	if maxRep > 0 {
		part(v.reps, maxRep)
	}
	if maxDef > 0 {
		part(v.defs, maxDef)
	}
	return p.entries - p.slots
}

// shredder turns nested arrays into the entries of their leaves (Dremel's
// record shredding).
type shredder struct {
	defs, reps [][]uint8
	taken      [][]int64 // slots of the leaf's array that entries hold
}

// shred returns the inputs of a nested column's leaves. The function it
// returns frees them and must be called in any case.
func shred(field arrow.Field, arrays []arrow.Array, rows int, mem memory.Allocator) (inputs []leafInput, release func(), err error) {
	n := len(leafTypes(field.Type, nil))
	inputs = make([]leafInput, n)
	release = func() {
		for _, in := range inputs {
			for _, a := range in.arrays {
				a.Release()
			}
		}
	}
	for i := range inputs {
		inputs[i].rows, inputs[i].levels = rows, &levels{}
	}
	for _, arr := range arrays {
		s := shredder{defs: make([][]uint8, n), reps: make([][]uint8, n), taken: make([][]int64, n)}
		for row := range arr.Len() {
			if _, err := s.value(field, arr, row, 0, 0, 0, 0); err != nil {
				return inputs, release, err
			}
		}
		if err := s.collect(leafArrays(arr, nil), inputs, mem); err != nil {
			return inputs, release, err
		}
	}
	return inputs, release, nil
}

// value adds the entries of one slot of a field, whose first leaf is number
// leaf, and returns the number of the leaf after it. def is the level that the
// slot's parents have reached, rep that of the entry to come, depth the number
// of lists around it.
func (s *shredder) value(field arrow.Field, arr arrow.Array, i int, leaf int, def, rep, depth uint8) (int, error) {
	present := arr.IsValid(i)
	if !present && !field.Nullable {
		return 0, fmt.Errorf("%q has a null but may not be null", field.Name)
	}
	if field.Nullable && present {
		def++
	}
	if !present {
		return s.absent(field.Type, leaf, def, rep), nil
	}
	switch a := arr.(type) {
	case *array.Struct:
		var err error
		typ := a.DataType().(*arrow.StructType) // whose Fields would copy them for each value
		for c := range typ.NumFields() {
			if leaf, err = s.value(typ.Field(c), a.Field(c), i, leaf, def, rep, depth); err != nil {
				return 0, err
			}
		}
		return leaf, nil
	case *array.Map:
		from, end := a.ValueOffsets(i)
		entry := arrow.Field{Name: field.Name, Type: a.DataType().(*arrow.MapType).Elem()}
		return s.elements(field, entry, a.ListValues(), int(from), int(end), leaf, def, rep, depth)
	case *array.List:
		from, end := a.ValueOffsets(i)
		return s.elements(field, a.DataType().(*arrow.ListType).ElemField(), a.ListValues(), int(from), int(end), leaf, def, rep, depth)
	}
	s.defs[leaf] = append(s.defs[leaf], def)
	s.reps[leaf] = append(s.reps[leaf], rep)
	s.taken[leaf] = append(s.taken[leaf], int64(i))
	return leaf + 1, nil
}

func (s *shredder) elements(list, element arrow.Field, values arrow.Array, from, end, leaf int, def, rep, depth uint8) (int, error) {
	if from == end {
		return s.absent(list.Type, leaf, def, rep), nil
	}
	next := leaf
	for i := from; i < end; i++ {
		var err error
		if next, err = s.value(element, values, i, leaf, def+1, rep, depth+1); err != nil {
			return 0, err
		}
		rep = depth + 1
	}
	return next, nil
}

// absent adds an entry without a value to each leaf of a type.
func (s *shredder) absent(typ arrow.DataType, leaf int, def, rep uint8) int {
	for range numLeaves(typ) {
		s.defs[leaf] = append(s.defs[leaf], def)
		s.reps[leaf] = append(s.reps[leaf], rep)
		leaf++
	}
	return leaf
}

// numLeaves is the number of leafTypes.
func numLeaves(typ arrow.DataType) int {
	switch t := typ.(type) {
	case *arrow.ListType:
		return numLeaves(t.Elem())
	case *arrow.MapType:
		return numLeaves(t.KeyType()) + numLeaves(t.ItemType())
	case *arrow.StructType:
		n := 0
		for i := range t.NumFields() {
			n += numLeaves(t.Field(i).Type)
		}
		return n
	}
	return 1
}

// leafArrays appends the arrays that hold the values of an array's leaves.
func leafArrays(arr arrow.Array, to []arrow.Array) []arrow.Array {
	switch a := arr.(type) {
	case *array.Struct:
		for i := range a.NumField() {
			to = leafArrays(a.Field(i), to)
		}
		return to
	case *array.Map:
		return leafArrays(a.ListValues(), to)
	case *array.List:
		return leafArrays(a.ListValues(), to)
	}
	return append(to, arr)
}

// collect appends the entries of one array to the inputs.
func (s *shredder) collect(leaves []arrow.Array, inputs []leafInput, mem memory.Allocator) error {
	for i := range inputs {
		in := &inputs[i]
		in.levels.defs = append(in.levels.defs, s.defs[i]...)
		in.levels.reps = append(in.levels.reps, s.reps[i]...)
		taken, err := take(leaves[i], s.taken[i], mem)
		if err != nil {
			return err
		}
		in.arrays = append(in.arrays, taken)
	}
	return nil
}

// take returns the slots of an array one after another.
func take(arr arrow.Array, slots []int64, mem memory.Allocator) (arrow.Array, error) {
	b := array.NewInt64Builder(mem)
	defer b.Release()
	b.AppendValues(slots, nil)
	indices := b.NewArray()
	defer indices.Release()
	return compute.TakeArray(compute.WithAllocator(context.Background(), mem), arr, indices)
}
