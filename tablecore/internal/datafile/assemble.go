package datafile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"contrail/tablecore/bufpool"
)

// node makes the arrays of a wanted field from the leaves below it. A node
// without leaves stands for a field that the file does not have.
type node struct {
	field    arrow.Field
	mem      memory.Allocator
	def, rep int // levels of file.LevelInfo
	minDef   int
	optional bool // whether the file's field may be null
	children []*node
	leaf     *leafReader // of the node itself, or the first one below it
	convert  converter   // of the node's own leaf
}

// newNode plans how a wanted field is read from a field of the file.
func (r *Rows) newNode(want arrow.Field, have *pqarrow.SchemaField, nested bool) (*node, error) {
	n := &node{field: want, mem: r.file.mem, optional: have.Field.Nullable,
		def: int(have.LevelInfo.DefLevel), rep: int(have.LevelInfo.RepLevel), minDef: int(have.LevelInfo.RepeatedAncestorDefLevel)}
	if have.IsLeaf() {
		return n, r.addLeaf(n, have, nested)
	}
	mismatch := fmt.Errorf("column %q holds %s and cannot be read as %s", want.Name, have.Field.Type, want.Type)
	switch typ := want.Type.(type) {
	case *arrow.StructType:
		if have.Field.Type.ID() != arrow.STRUCT {
			return nil, mismatch
		}
		return n, r.addStruct(n, typ, have)
	case *arrow.ListType:
		if id := have.Field.Type.ID(); id != arrow.LIST || len(have.Children) != 1 {
			return nil, mismatch
		}
		return n, r.addChild(n, typ.ElemField(), &have.Children[0])
	case *arrow.MapType:
		if have.Field.Type.ID() != arrow.MAP || len(have.Children) != 1 {
			return nil, mismatch
		}
		return n, r.addMap(n, typ, &have.Children[0])
	}
	return nil, mismatch
}

func (r *Rows) addLeaf(n *node, have *pqarrow.SchemaField, nested bool) (err error) {
	leaf, err := newLeafReader(r.file, have.ColIndex, n.minDef, nested, DefaultBatchBytes, r.file.mem)
	if err != nil {
		return err
	}
	r.leaves = append(r.leaves, leaf)
	n.leaf = leaf
	n.convert, err = newConverter(leaf.info, plainType(have.Field.Type), n.field.Type)
	return err
}

func (r *Rows) addChild(n *node, want arrow.Field, have *pqarrow.SchemaField) error {
	child, err := r.newNode(want, have, true)
	if err != nil {
		return err
	}
	n.children = append(n.children, child)
	if n.leaf == nil {
		n.leaf = child.leaf
	}
	return nil
}

// addStruct plans a struct's children, matched by name.
func (r *Rows) addStruct(n *node, typ *arrow.StructType, have *pqarrow.SchemaField) error {
	for _, want := range typ.Fields() {
		var found *pqarrow.SchemaField
		for i := range have.Children {
			if have.Children[i].Field.Name == want.Name {
				found = &have.Children[i]
			}
		}
		if found == nil {
			if !want.Nullable {
				return errMissing(want.Name)
			}
			n.children = append(n.children, &node{field: want, mem: n.mem})
			continue
		}
		if err := r.addChild(n, want, found); err != nil {
			return err
		}
	}
	if n.leaf != nil {
		return nil
	}
	// None of the children is in the file; any leaf of it still tells where
	// the struct is null.
	return r.addShapeLeaf(n, have)
}

func (r *Rows) addShapeLeaf(n *node, have *pqarrow.SchemaField) error {
	for !have.IsLeaf() {
		if len(have.Children) == 0 {
			return fmt.Errorf("column %q has no values", n.field.Name)
		}
		have = &have.Children[0]
	}
	leaf, err := newLeafReader(r.file, have.ColIndex, int(have.LevelInfo.RepeatedAncestorDefLevel), true, DefaultBatchBytes, r.file.mem)
	if err != nil {
		return err
	}
	r.leaves = append(r.leaves, leaf)
	n.leaf = leaf
	return nil
}

// addMap plans the struct of key and value under a map as one child.
func (r *Rows) addMap(n *node, typ *arrow.MapType, have *pqarrow.SchemaField) error {
	if len(have.Children) != 2 {
		return fmt.Errorf("column %q is a map without values", n.field.Name)
	}
	entries := &node{field: arrow.Field{Name: "entries", Type: typ.Elem()}, mem: n.mem,
		def: int(have.LevelInfo.DefLevel), rep: int(have.LevelInfo.RepLevel), minDef: int(have.LevelInfo.RepeatedAncestorDefLevel)}
	for i, want := range []arrow.Field{typ.KeyField(), typ.ItemField()} {
		if err := r.addChild(entries, want, &have.Children[i]); err != nil {
			return err
		}
	}
	n.children, n.leaf = []*node{entries}, entries.leaf
	return nil
}

func errMissing(name string) error {
	return fmt.Errorf("column %q is missing but may not be null", name)
}

// build makes the array of what the leaves have read; it must have the given
// number of slots.
func (n *node) build(slots int) (arrow.ArrayData, error) {
	switch {
	case n.leaf == nil:
		null := array.MakeArrayOfNull(bufpool.Zeroed(n.mem), n.field.Type, slots)
		defer null.Release()
		null.Data().Retain()
		return null.Data(), nil
	case n.convert != nil:
		return n.buildLeaf(slots)
	case n.field.Type.ID() == arrow.STRUCT:
		return n.buildStruct(slots)
	}
	return n.buildList(slots)
}

func (n *node) errSlots(got, want int) error {
	return fmt.Errorf("column %q has %d values where %d belong", n.field.Name, got, want)
}

func (n *node) buildLeaf(slots int) (arrow.ArrayData, error) {
	l := n.leaf
	if got := l.values.slots(); got != slots {
		return nil, n.errSlots(got, slots)
	}
	if err := n.checkNulls(l.info.maxDef); err != nil {
		return nil, err
	}
	bitmap, nulls := l.takeValid(n.mem)
	buffers := l.values.take()
	var valid []byte
	if nulls > 0 {
		valid = l.valid
	}
	buffers, err := n.convert(n.mem, buffers, slots, valid)
	l.valid, l.nulls = clearBits(l.valid), 0
	if err != nil {
		releaseAll(bitmap)
		return nil, fmt.Errorf("column %q: %w", n.field.Name, err)
	}
	return newData(n.field.Type, slots, nulls, append([]*memory.Buffer{bitmap}, buffers...)), nil
}

func clearBits(bitmap []byte) []byte {
	clear(bitmap)
	return bitmap[:0]
}

func releaseAll(buffers ...*memory.Buffer) {
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
}

// newData makes array data that takes over buffers and children.
func newData(typ arrow.DataType, slots, nulls int, buffers []*memory.Buffer, children ...arrow.ArrayData) arrow.ArrayData {
	data := array.NewData(typ, slots, buffers, children, nulls, 0)
	releaseAll(buffers...)
	for _, c := range children {
		c.Release()
	}
	return data
}

func (n *node) buildStruct(slots int) (arrow.ArrayData, error) {
	valid := structShape(n.leaf.nested, n.def, n.rep, n.minDef)
	if len(valid) != slots {
		return nil, n.errSlots(len(valid), slots)
	}
	if err := n.checkNulls(n.def); err != nil {
		return nil, err
	}
	bitmap, nulls := n.bitmap(valid)
	children := make([]arrow.ArrayData, 0, len(n.children))
	for _, c := range n.children {
		child, err := c.build(slots)
		if err != nil {
			releaseAll(bitmap)
			for _, done := range children {
				done.Release()
			}
			return nil, err
		}
		children = append(children, child)
	}
	return newData(n.field.Type, slots, nulls, []*memory.Buffer{bitmap}, children...), nil
}

func (n *node) buildList(slots int) (arrow.ArrayData, error) {
	ends, valid := listShape(n.leaf.nested, n.def, n.rep, n.minDef)
	if len(valid) != slots || ends[0] != 0 {
		return nil, n.errSlots(len(valid), slots)
	}
	if err := n.checkNulls(n.def - 1); err != nil {
		return nil, err
	}
	child, err := n.children[0].build(int(ends[len(ends)-1]))
	if err != nil {
		return nil, err
	}
	bitmap, nulls := n.bitmap(valid)
	offsets := memory.NewResizableBuffer(n.mem)
	offsets.Resize(len(ends) * 4)
	copy(arrow.GetData[int32](offsets.Bytes()), ends)
	return newData(n.field.Type, slots, nulls, []*memory.Buffer{bitmap, offsets}, child), nil
}

// checkNulls refuses nulls of a field that may not be null, present being the
// definition level at which it is there. A slot under a null parent does not
// count.
func (n *node) checkNulls(present int) error {
	if n.field.Nullable || !n.optional {
		return nil
	}
	found := false
	if v := n.leaf.nested; v == nil {
		found = n.leaf.nulls > 0
	} else {
		for _, def := range v.defs {
			found = found || int(def) == present-1
		}
	}
	if found {
		return fmt.Errorf("column %q has a null but may not be null", n.field.Name)
	}
	return nil
}

// bitmap packs the validity of a nested field, nil where all is valid.
func (n *node) bitmap(valid []bool) (*memory.Buffer, int) {
	bitmap := memory.NewResizableBuffer(n.mem)
	bitmap.Resize((len(valid) + 7) / 8)
	clear(bitmap.Bytes())
	nulls := 0
	for i, v := range valid {
		if v {
			setBits(bitmap.Bytes(), i, 1)
		} else {
			nulls++
		}
	}
	if nulls == 0 {
		bitmap.Release()
		return nil, 0
	}
	return bitmap, nulls
}
