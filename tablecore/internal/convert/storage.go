package convert

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// utcMicros and localMicros are how instants and zoneless times lie in a file.
var (
	utcMicros   = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	localMicros = &arrow.TimestampType{Unit: arrow.Microsecond}
	uint64Type  = &arrow.Decimal128Type{Precision: 20, Scale: 0}
)

// ToStorage converts an array of a declared type to its storage type, exactly.
// Timestamps that lie outside the microseconds of 64 bits are a
// *tableerr.Invalid with the row within arr and the value, but no column.
func ToStorage(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	switch t := arr.DataType().(type) {
	case *arrow.Uint8Type:
		return castInto[uint8, int16](mem, arr, arrow.PrimitiveTypes.Int16), nil
	case *arrow.Uint16Type:
		return castInto[uint16, int32](mem, arr, arrow.PrimitiveTypes.Int32), nil
	case *arrow.Uint32Type:
		return castInto[uint32, int64](mem, arr, arrow.PrimitiveTypes.Int64), nil
	case *arrow.Uint64Type:
		return fixed(mem, arr, uint64Type, func(dst []byte) {
			out := arrow.GetData[decimal128.Num](dst)
			for i, v := range words[uint64](arr) {
				out[i] = decimal128.FromU64(v)
			}
		}), nil
	case *arrow.Float16Type:
		return fixed(mem, arr, arrow.PrimitiveTypes.Float32, func(dst []byte) {
			halvesToSingles(view[uint32](dst), words[uint16](arr))
		}), nil
	case *arrow.TimestampType:
		return timesToStorage(mem, arr, t)
	case *arrow.BooleanType, *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type,
		*arrow.Float32Type, *arrow.Float64Type, *arrow.Date32Type, *arrow.StringType, *arrow.BinaryType:
		arr.Retain()
		return arr, nil
	}
	switch {
	case isText(arr.DataType()):
		return toText(mem, arr, arrow.BinaryTypes.String)
	case isTextDictionary(arr.DataType()):
		return decodeDictionary(mem, arr.(*array.Dictionary))
	case isBinary(arr.DataType()):
		return toText(mem, arr, arrow.BinaryTypes.Binary)
	}
	return settled(mem, arr)
}

// settled is settle for an array that was not checked before.
func settled(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	to := tabledef.StorageType(arr.DataType())
	if to == nil {
		return nil, unknownType(arr.DataType())
	}
	whole, err := soundChild(mem, arr)
	if err != nil {
		return nil, err
	}
	defer whole.Release()
	if f := (seeker{}).find(whole, arr.DataType(), "", whole.Len(), nil); f != nil {
		return nil, tableerr.InvalidValue("", int64(f.slot), f.value, f.why)
	}
	return settle(mem, whole, to)
}

// unknownType reports a type that no table of this version can have.
func unknownType(t arrow.DataType) error {
	return &tableerr.Invalid{Type: tabledef.TypeName(t), Msg: fmt.Sprintf("type %s cannot be stored", tabledef.TypeName(t))}
}

// stored returns the storage type of a timestamp and the number of storage
// ticks in one of its own.
func stored(t *arrow.TimestampType) (arrow.DataType, int64) {
	if t.Unit == arrow.Nanosecond {
		return arrow.PrimitiveTypes.Int64, 1
	}
	factor := int64(1)
	switch t.Unit {
	case arrow.Second:
		factor = 1e6
	case arrow.Millisecond:
		factor = 1e3
	}
	if t.TimeZone != "" {
		return utcMicros, factor
	}
	return localMicros, factor
}

func timesToStorage(mem memory.Allocator, arr arrow.Array, t *arrow.TimestampType) (arrow.Array, error) {
	to, factor := stored(t)
	if factor == 1 {
		return retyped(arr, to), nil
	}
	values := words[int64](arr)
	if row := firstOutside(arr, values, math.MaxInt64/factor, len(values)); row >= 0 {
		return nil, tableerr.InvalidValue("", int64(row), values[row], "the time is out of range")
	}
	return scaledTimes(mem, arr, t), nil
}

// scaledTimes converts times that are in range.
func scaledTimes(mem memory.Allocator, arr arrow.Array, t *arrow.TimestampType) arrow.Array {
	to, factor := stored(t)
	if factor == 1 {
		return retyped(arr, to)
	}
	values := words[int64](arr)
	return fixed(mem, arr, to, func(dst []byte) {
		out := view[int64](dst)[:len(values)]
		for i, v := range values {
			out[i] = v * factor
		}
	})
}

// FromStorage converts an array of a storage type to the declared type (or to
// its compat type), the inverse of ToStorage. A value that the declared type
// cannot hold is a *tableerr.Corrupt without a path: no writer of Contrail's
// stores one.
func FromStorage(mem memory.Allocator, arr arrow.Array, declared arrow.DataType) (arrow.Array, error) {
	if want := tabledef.StorageType(declared); want == nil || !arrow.TypeEqual(arr.DataType(), want) {
		if arrow.TypeEqual(arr.DataType(), declared) {
			arr.Retain()
			return arr, nil
		}
		return nil, misfit(arr, declared)
	}
	return restore(mem, arr, declared)
}

func misfit(arr arrow.Array, declared arrow.DataType) error {
	return &tableerr.Corrupt{Msg: fmt.Sprintf("a column of type %s cannot be read as %s",
		tabledef.TypeName(arr.DataType()), tabledef.TypeName(declared))}
}

// damagedValue reports a stored value outside its declared type.
func damagedValue(value any, declared arrow.DataType) error {
	return &tableerr.Corrupt{Msg: fmt.Sprintf("the stored value %v does not fit type %s", value, tabledef.TypeName(declared))}
}

// narrow converts integers to a narrower type, which all valid ones must fit.
func narrow[S int16 | int32 | int64, D uint8 | uint16 | uint32](mem memory.Allocator, arr arrow.Array, to arrow.DataType) (arrow.Array, error) {
	src := words[S](arr)
	var lost S
	for _, v := range src {
		lost |= v ^ S(D(v))
	}
	if lost != 0 {
		for i, v := range src {
			if v != S(D(v)) && arr.IsValid(i) {
				return nil, damagedValue(v, to)
			}
		}
	}
	return castInto[S, D](mem, arr, to), nil
}

func decimalsToUint64(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	src := arr.(*array.Decimal128).Values()
	for i, v := range src {
		if v.HighBits() != 0 && arr.IsValid(i) {
			return nil, damagedValue(v.BigInt(), arrow.PrimitiveTypes.Uint64)
		}
	}
	return fixed(mem, arr, arrow.PrimitiveTypes.Uint64, func(dst []byte) {
		out := view[uint64](dst)
		for i, v := range src {
			out[i] = v.LowBits()
		}
	}), nil
}

func singlesToHalves(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	bad := -1
	out := fixed(mem, arr, arrow.FixedWidthTypes.Float16, func(dst []byte) {
		halves := view[uint16](dst)
		for i, s := range words[uint32](arr) {
			var ok bool
			if halves[i], ok = singleToHalf(s); !ok && bad < 0 && arr.IsValid(i) {
				bad = i
			}
		}
	})
	if bad >= 0 {
		out.Release()
		return nil, damagedValue(words[float32](arr)[bad], arrow.FixedWidthTypes.Float16)
	}
	return out, nil
}

func timesFromStorage(mem memory.Allocator, arr arrow.Array, t *arrow.TimestampType) (arrow.Array, error) {
	_, factor := stored(t)
	switch {
	case arr.DataType().ID() == arrow.INT64 && t.Unit != arrow.Nanosecond:
		return microseconds(mem, arr, t)
	case factor == 1:
		return retyped(arr, t), nil
	}
	bad := -1
	out := fixed(mem, arr, t, func(dst []byte) {
		times := view[int64](dst)
		for i, v := range words[int64](arr) {
			q := v / factor
			if q*factor != v && bad < 0 && arr.IsValid(i) {
				bad = i
			}
			times[i] = q
		}
	})
	if bad >= 0 {
		out.Release()
		return nil, damagedValue(words[int64](arr)[bad], t)
	}
	return out, nil
}
