package datafile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// CanMix says whether a row group's values of the writer's i-th column, which
// CanCopy accepts, may be Mixed: the original must say what their bounds are,
// for nobody looks at them.
func (w *Writer) CanMix(o *Original, group, i int) bool {
	if isNested(w.columns[i].field.Type) {
		return true // has no bounds
	}
	s := o.chunk(group, w.columns[i].field.Name)
	return s.nulls >= 0 && (s.nulls == o.file.footer.rowGroups[group].Rows || s.min != nil && s.max != nil)
}

// chunk returns the statistics of a flat column in a row group.
func (o *Original) chunk(group int, name string) *chunkStats {
	return &o.file.footer.zones.stats[group*len(o.file.footer.leaves)+o.leaf(name)]
}

var errOddBounds = errors.New("its bounds are none of its type")

// know takes in what the original says of a row group's values of the i-th
// column, as if they had been encoded here.
func (w *Writer) know(o *Original, group, i int) error {
	if isNested(w.columns[i].field.Type) {
		return nil
	}
	s := o.chunk(group, w.columns[i].field.Name)
	w.nulls[i] += s.nulls
	if s.nulls == o.file.footer.rowGroups[group].Rows || w.columns[i].leaves[0].encoder.know(s.min, s.max) {
		return nil
	}
	return damaged(o.file.path, fmt.Errorf("column %q: %w", w.columns[i].field.Name, errOddBounds))
}

// know takes in bounds in PLAIN; false where they are none.
func (e *extremes[T]) know(low, high []byte, decode func([]byte) (T, bool), less func(a, b T) bool) bool {
	from, ok := decode(low)
	to, also := decode(high)
	if !ok || !also {
		return false
	}
	e.merge(extremes[T]{min: from, max: to, any: true}, less)
	return true
}

func (e *intEncoder[T]) know(low, high []byte) bool {
	return e.all.know(low, high, func(b []byte) (T, bool) {
		switch any(T(0)).(type) {
		case int32:
			if len(b) == 4 {
				return T(int32(binary.LittleEndian.Uint32(b))), true
			}
		case int64:
			if len(b) == 8 {
				return T(int64(binary.LittleEndian.Uint64(b))), true
			}
		}
		return 0, false
	}, lessNumber)
}

func (e *floatEncoder[T]) know(low, high []byte) bool {
	return e.all.know(low, high, func(b []byte) (T, bool) {
		v := T(0)
		switch any(v).(type) {
		case float32:
			if len(b) == 4 {
				v = T(math.Float32frombits(binary.LittleEndian.Uint32(b)))
				return v, v == v
			}
		case float64:
			if len(b) == 8 {
				v = T(math.Float64frombits(binary.LittleEndian.Uint64(b)))
				return v, v == v
			}
		}
		return 0, false
	}, lessNumber)
}

func (e *boolEncoder) know(low, high []byte) bool {
	if len(low) != 1 || len(high) != 1 {
		return false
	}
	e.seen[0], e.seen[1] = e.seen[0] || low[0] == 0, e.seen[1] || high[0] != 0
	return true
}

func (e *decimalEncoder) know(low, high []byte) bool {
	return e.all.know(low, high, func(b []byte) (decimal128.Num, bool) {
		if len(b) != e.width {
			return decimal128.Num{}, false
		}
		return bigEndianDecimal(b), true
	}, lessDecimal)
}

func (e *bytesEncoder) know(low, high []byte) bool {
	return e.all.know(low, high, func(b []byte) ([]byte, bool) { return bytes.Clone(b), true }, lessBytes)
}
