package entitykey

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// errTooManyEntities is told before codes run out; memory does long before.
var errTooManyEntities = errors.New("there are more entities than 32 bits can number")

// noCode marks a dictionary value that no row had yet.
const noCode = math.MaxUint32

// Coder gives each entity a small number, its code, in the order of first
// appearance, and maps rows to codes a batch at a time. Each column's distinct
// values are numbered too (its parts), so that a sorted run of rows can be
// written as a dictionary column without looking at a value again.
//
// A Coder is for use by one goroutine. Its memory grows with the entities, not
// with the rows.
type Coder struct {
	layout  *Layout
	strings []*stringTable // by column; nil for integers
	ints    []*intTable    // by column; nil for strings
	pairs   []*intTable    // pairs[i] numbers (code over columns 0 to i) << 32 | part of column i+1
	keys    []string
	bytes   int64

	right   []uint32 // parts of the column that is combined
	scratch []uint64 // an integer column's values
	memo    []uint32 // parts by place in a dictionary
}

// NewCoder returns a coder that knows no entity. For a layout without columns
// the one entity is known from the start, with code 0.
func NewCoder(l *Layout) *Coder {
	c := &Coder{layout: l, strings: make([]*stringTable, l.Len()), ints: make([]*intTable, l.Len())}
	for i, k := range l.kinds {
		if k == kindString {
			c.strings[i] = newStringTable()
		} else {
			c.ints[i] = newIntTable()
		}
		if i > 0 {
			c.pairs = append(c.pairs, newIntTable())
		}
	}
	if l.Len() == 0 {
		c.keys = []string{""}
	}
	return c
}

// Layout returns the coder's layout.
func (c *Coder) Layout() *Layout { return c.layout }

// Len returns the number of entities; codes are below it.
func (c *Coder) Len() int { return len(c.keys) }

// Key returns the entity key of a code.
func (c *Coder) Key(code uint32) string { return c.keys[code] }

// Bytes returns about how much memory the coder holds.
func (c *Coder) Bytes() int64 {
	n := c.bytes + 16*int64(cap(c.keys))
	for _, t := range c.strings {
		if t != nil {
			n += t.bytes + 8*int64(len(t.slots)) + 24*int64(len(t.shorts)) + 16*int64(cap(t.values))
		}
	}
	for _, t := range slices.Concat(c.ints, c.pairs) {
		if t != nil {
			n += 16*int64(len(t.slots)) + 8*int64(cap(t.values))
		}
	}
	return n + 8*int64(cap(c.scratch)) + 4*int64(cap(c.right)+cap(c.memo))
}

// AppendCodes appends the codes of the first rows of the entity columns, given
// as to Encoder.Encode. After an error the coder may know some of the batch's
// entities.
func (c *Coder) AppendCodes(dst []uint32, cols []arrow.Array, rows int) ([]uint32, error) {
	if err := c.layout.checkColumns(cols, rows); err != nil {
		return nil, err
	}
	n := len(dst)
	dst = slices.Grow(dst, rows)[:n+rows]
	if len(cols) == 0 {
		clear(dst[n:])
		return dst, nil
	}
	if err := c.parts(dst[n:], 0, cols[0]); err != nil {
		return nil, err
	}
	for i, col := range cols[1:] {
		c.right = slices.Grow(c.right[:0], rows)[:rows]
		if err := c.parts(c.right, i+1, col); err != nil {
			return nil, err
		}
		c.pairs[i].combine(dst[n:], c.right)
	}
	return dst, c.addKeys()
}

// parts puts the numbers of a column's values into dst.
func (c *Coder) parts(dst []uint32, column int, col arrow.Array) error {
	if t := c.ints[column]; t != nil {
		var err error
		if c.scratch, err = c.layout.integers(c.scratch[:0], column, col, len(dst)); err != nil {
			return err
		}
		t.numbers(dst, c.scratch)
		return nil
	}
	switch a := col.(type) {
	case *array.String:
		c.strings[column].numbers(dst, a)
	case *array.Dictionary:
		return c.dictionaryParts(dst, column, a)
	case stringArray:
		if !isStrings(a) {
			return c.layout.typeError(column, col)
		}
		c.strings[column].numbersOf(dst, a)
	default:
		return c.layout.typeError(column, col)
	}
	return nil
}

// dictionaryParts looks each dictionary value up once a batch, and only those
// that a row has: a value nobody uses is no entity.
func (c *Coder) dictionaryParts(dst []uint32, column int, a *array.Dictionary) error {
	values, err := c.layout.dictionary(column, a)
	if err != nil {
		return err
	}
	c.memo = slices.Grow(c.memo[:0], values.Len())[:values.Len()]
	for i := range c.memo {
		c.memo[i] = noCode
	}
	look := func(row int) error {
		i, err := c.layout.dictionaryValue(column, a, values, row)
		if err == nil {
			c.memo[i] = c.strings[column].number(values.Value(i))
		}
		return err
	}
	switch indices := a.Indices().(type) {
	case *array.Int8:
		return translate(dst, indices.Values(), c.memo, look)
	case *array.Int16:
		return translate(dst, indices.Values(), c.memo, look)
	case *array.Int32:
		return translate(dst, indices.Values(), c.memo, look)
	case *array.Int64:
		return translate(dst, indices.Values(), c.memo, look)
	case *array.Uint8:
		return translate(dst, indices.Values(), c.memo, look)
	case *array.Uint16:
		return translate(dst, indices.Values(), c.memo, look)
	case *array.Uint32:
		return translate(dst, indices.Values(), c.memo, look)
	case *array.Uint64:
		return translate(dst, indices.Values(), c.memo, look)
	default:
		return c.layout.typeError(column, a)
	}
}

// translate puts memo[index] into dst. look fills the memo for a row whose
// value is not in it yet, or tells what is wrong with its index.
func translate[T arrow.IntType | arrow.UintType](dst []uint32, indices []T, memo []uint32, look func(row int) error) error {
	indices = indices[:len(dst)]
	for row, index := range indices {
		if i := uint64(index); i < uint64(len(memo)) && memo[i] != noCode {
			dst[row] = memo[i]
			continue
		}
		if err := look(row); err != nil {
			return err
		}
		dst[row] = memo[index]
	}
	return nil
}

// addKeys builds the keys of entities that are new.
func (c *Coder) addKeys() error {
	known := c.distinct()
	if known >= noCode {
		return errTooManyEntities
	}
	for code := len(c.keys); code < known; code++ {
		key := string(c.appendKey(nil, uint32(code)))
		c.keys = append(c.keys, key)
		c.bytes += int64(len(key))
	}
	return nil
}

// distinct returns the number of entities that the tables know.
func (c *Coder) distinct() int {
	if len(c.pairs) > 0 {
		return len(c.pairs[len(c.pairs)-1].values)
	}
	if c.ints[0] != nil {
		return len(c.ints[0].values)
	}
	return len(c.strings[0].values)
}

func (c *Coder) appendKey(dst []byte, code uint32) []byte {
	for column, k := range c.layout.kinds {
		part := c.Part(column, code)
		switch k {
		case kindString:
			dst = appendString(dst, c.strings[column].values[part])
		case kindInt32:
			dst = binary.BigEndian.AppendUint32(dst, uint32(c.ints[column].values[part]))
		default:
			dst = binary.BigEndian.AppendUint64(dst, c.ints[column].values[part])
		}
	}
	return dst
}

// Part returns the number of the value that an entity has in a column, among
// the column's distinct values.
func (c *Coder) Part(column int, code uint32) uint32 {
	for i := len(c.pairs); i > 0; i-- {
		pair := c.pairs[i-1].values[code]
		if i == column {
			return uint32(pair)
		}
		code = uint32(pair >> 32)
	}
	return code
}

// StringParts returns the distinct values of a string column by number, nil
// for other columns. The caller must not change them.
func (c *Coder) StringParts(column int) []string {
	if t := c.strings[column]; t != nil {
		return t.values
	}
	return nil
}

// IntegerPart returns the value of an integer column with a number, as an
// int32, int64 or uint64; nil for string columns.
func (c *Coder) IntegerPart(column int, part uint32) any {
	t := c.ints[column]
	if t == nil {
		return nil
	}
	switch v := t.values[part]; c.layout.kinds[column] {
	case kindInt32:
		return int32(uint32(v) ^ 1<<31)
	case kindInt64:
		return int64(v ^ 1<<63)
	default:
		return v
	}
}

// Order returns the codes in the order of their keys.
func (c *Coder) Order() []uint32 {
	order := make([]uint32, len(c.keys))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return strings.Compare(c.keys[a], c.keys[b]) })
	return order
}

// Ranks returns, by code, the place of its key in the order of all keys.
func (c *Coder) Ranks() []uint32 {
	ranks := make([]uint32, len(c.keys))
	for rank, code := range c.Order() {
		ranks[code] = uint32(rank)
	}
	return ranks
}
