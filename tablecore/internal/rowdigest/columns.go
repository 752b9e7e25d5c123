package rowdigest

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"contrail/tablecore/internal/convert"
)

// add hashes rows [from, to) of an array that was aligned, so that its buffers
// hold what its type demands.
func (c *columnHash) add(arr arrow.Array, from, to int) {
	switch a := arr.(type) {
	case array.ExtensionArray:
		c.add(a.Storage(), from, to)
	case *array.Dictionary:
		c.addIndices(a, from, to)
	case *array.Null:
		c.null(uint64(to - from))
	default:
		if len(arr.NullBitmapBytes()) == 0 || arr.NullN() == 0 {
			c.addValid(arr, from, to)
			return
		}
		for from < to {
			end := from + 1
			null := arr.IsNull(from)
			for end < to && arr.IsNull(end) == null {
				end++
			}
			if null {
				c.null(uint64(end - from))
			} else {
				c.addValid(arr, from, end)
			}
			from = end
		}
	}
}

// addIndices hashes the values that a dictionary's rows stand for.
func (c *columnHash) addIndices(arr *array.Dictionary, from, to int) {
	values := arr.Dictionary()
	for i := from; i < to; i++ {
		if arr.IsNull(i) {
			c.null(1)
		} else {
			v := arr.GetValueIndex(i)
			c.add(values, v, v+1)
		}
	}
}

// addValid hashes rows of which none is null.
func (c *columnHash) addValid(arr arrow.Array, from, to int) {
	if from == to {
		return
	}
	c.count += uint64(to - from)
	switch a := arr.(type) {
	case *array.Struct:
		for i, child := range c.children {
			child.add(a.Field(i), from, to)
		}
	case array.ListLike:
		first, _ := a.ValueOffsets(from)
		last := first
		for i := from; i < to; i++ {
			var start int64
			start, last = a.ValueOffsets(i)
			c.lengths.number(uint64(last - start))
		}
		c.children[0].add(a.ListValues(), int(first), int(last))
	case *array.Boolean:
		c.addBooleans(a, from, to)
	case array.ViewLike:
		for i := from; i < to; i++ {
			v := viewValue(a, i)
			c.lengths.number(uint64(len(v)))
			c.values.bytes(v)
		}
	default:
		switch arr.DataType().ID() {
		case arrow.STRING, arrow.BINARY:
			addText[int32](c, arr, from, to)
		case arrow.LARGE_STRING, arrow.LARGE_BINARY:
			addText[int64](c, arr, from, to)
		default:
			data := arr.Data()
			at := data.Offset()
			c.values.bytes(data.Buffers()[1].Bytes()[(at+from)*c.width : (at+to)*c.width])
		}
	}
}

// addText hashes valid values that lie one behind the other.
func addText[O int32 | int64](c *columnHash, arr arrow.Array, from, to int) {
	offsets, values := convert.TextParts[O](arr)
	for i := from; i < to; i++ {
		c.lengths.number(uint64(offsets[i+1] - offsets[i]))
	}
	c.values.bytes(values[offsets[from]:offsets[to]])
}

func (c *columnHash) addBooleans(arr *array.Boolean, from, to int) {
	bits, at := arr.Data().Buffers()[1].Bytes(), arr.Data().Offset()
	var bytes [64]byte
	for from < to {
		n := min(len(bytes), to-from)
		for i := range n {
			bytes[i] = 0
			if bitutil.BitIsSet(bits, at+from+i) {
				bytes[i] = 1
			}
		}
		c.values.bytes(bytes[:n])
		from += n
	}
}

func viewValue(arr array.ViewLike, i int) []byte {
	if a, ok := arr.(*array.StringView); ok {
		return []byte(a.Value(i))
	}
	return arr.(*array.BinaryView).Value(i)
}
