package deltalog

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// structReader hands out views of the members of a struct column, whose types
// are those of checkpointFields. Text that is not valid UTF-8 is noted in err.
type structReader struct {
	name   string
	column *array.Struct
	err    *error // shared with the readers of members
}

func newStructReader(name string, column *array.Struct) *structReader {
	return &structReader{name: name, column: column, err: new(error)}
}

// nullable is what an Arrow array can be asked.
type nullable interface{ IsNull(i int) bool }

// rows calls each for the rows in which neither the struct nor key, the member
// that every action has, is null.
func (r *structReader) rows(key nullable, each func(i int) error) error {
	for i := range r.column.Len() {
		if r.column.IsNull(i) || key.IsNull(i) {
			continue
		}
		if err := each(i); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		if *r.err != nil {
			return fmt.Errorf("%s: %w", r.name, *r.err)
		}
	}
	return nil
}

// memberOf returns the array of a member. Its rows are those of the struct.
func memberOf[T arrow.Array](r *structReader, name string) T {
	i, _ := r.column.DataType().(*arrow.StructType).FieldIdx(name)
	return r.column.Field(i).(T)
}

// child is the reader of a member that is itself a struct.
func (r *structReader) child(name string) *structReader {
	return &structReader{name: r.name + "." + name, column: memberOf[*array.Struct](r, name), err: r.err}
}

// textColumn reads strings.
type textColumn struct {
	*array.String
	r *structReader
}

func (r *structReader) text(name string) textColumn {
	return textColumn{memberOf[*array.String](r, name), r}
}

// at returns a copy of the string in row i, "" for null.
func (c textColumn) at(i int) string {
	if c.IsNull(i) {
		return ""
	}
	v := c.Value(i)
	if !utf8.ValidString(v) {
		*c.r.err = errText
	}
	return strings.Clone(v)
}

// integerColumn reads whole numbers.
type integerColumn struct {
	arrow.Array
	value func(int) int64
}

func (r *structReader) integer(name string) integerColumn {
	column := memberOf[*array.Int64](r, name)
	return integerColumn{column, column.Value}
}

func (r *structReader) int32(name string) integerColumn {
	column := memberOf[*array.Int32](r, name)
	return integerColumn{column, func(i int) int64 { return int64(column.Value(i)) }}
}

// at returns the number in row i, 0 for null.
func (c integerColumn) at(i int) int64 {
	if c.IsNull(i) {
		return 0
	}
	return c.value(i)
}

func (c integerColumn) optional(i int) *int64 {
	if c.IsNull(i) {
		return nil
	}
	v := c.value(i)
	return &v
}

// booleanColumn reads booleans.
type booleanColumn struct{ *array.Boolean }

func (r *structReader) boolean(name string) booleanColumn {
	return booleanColumn{memberOf[*array.Boolean](r, name)}
}

// at returns the value in row i, false for null.
func (c booleanColumn) at(i int) bool { return c.IsValid(i) && c.Value(i) }

// listColumn reads lists of strings.
type listColumn struct {
	*array.List
	values textColumn
}

func (r *structReader) list(name string) listColumn {
	column := memberOf[*array.List](r, name)
	return listColumn{column, textColumn{column.ListValues().(*array.String), r}}
}

// at returns the list in row i, nil for null.
func (c listColumn) at(i int) []string {
	if c.IsNull(i) {
		return nil
	}
	start, end := c.ValueOffsets(i)
	out := make([]string, 0, end-start)
	for j := start; j < end; j++ {
		out = append(out, c.values.at(int(j)))
	}
	return out
}

// mapColumn reads maps from strings to strings.
type mapColumn struct {
	*array.Map
	keys, values textColumn
}

func (r *structReader) texts(name string) mapColumn {
	column := memberOf[*array.Map](r, name)
	return mapColumn{column, textColumn{column.Keys().(*array.String), r}, textColumn{column.Items().(*array.String), r}}
}

// at returns the map in row i, nil for null and for an empty one.
func (c mapColumn) at(i int) map[string]string {
	start, end := c.ValueOffsets(i)
	if c.IsNull(i) || start == end {
		return nil
	}
	out := make(map[string]string, end-start)
	for j := start; j < end; j++ {
		out[c.keys.at(int(j))] = c.values.at(int(j))
	}
	return out
}

// vectorColumn reads deletion vectors.
type vectorColumn struct {
	*array.Struct
	kind, path        textColumn
	offset, size, num integerColumn
}

func (r *structReader) deletionVectors() vectorColumn {
	below := r.child("deletionVector")
	return vectorColumn{
		Struct: below.column, kind: below.text("storageType"), path: below.text("pathOrInlineDv"),
		offset: below.integer("offset"), size: below.integer("sizeInBytes"), num: below.integer("cardinality"),
	}
}

func (c vectorColumn) at(i int) *DeletionVector {
	if c.IsNull(i) {
		return nil
	}
	return &DeletionVector{
		StorageType: c.kind.at(i), PathOrInline: c.path.at(i), Offset: c.offset.optional(i),
		SizeInBytes: c.size.at(i), Cardinality: c.num.at(i),
	}
}
