package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
)

// converter turns the buffers of decoded values, with n slots, into those of
// another type. A slot whose bit in valid is clear is null; valid is nil where
// none is. It takes over buffers, and gives them back or releases them.
type converter func(mem memory.Allocator, buffers []*memory.Buffer, n int, valid []byte) ([]*memory.Buffer, error)

func identity(_ memory.Allocator, buffers []*memory.Buffer, _ int, _ []byte) ([]*memory.Buffer, error) {
	return buffers, nil
}

// newConverter returns the conversion of a leaf, which has the Arrow type have
// by its own file's account, to the type want. It is an error where values
// could change their meaning.
func newConverter(leaf *leafInfo, have, want arrow.DataType) (converter, error) {
	var c converter
	switch leaf.physical {
	case parquet.Types.Boolean:
		c = onlyIf(want.ID() == arrow.BOOL)
	case parquet.Types.Int32:
		c = fromInt32(have, want)
	case parquet.Types.Int64:
		c = fromInt64(have, want)
	case parquet.Types.Float:
		c = onlyIf(want.ID() == arrow.FLOAT32)
		if want.ID() == arrow.FLOAT64 {
			c = widenFloats
		}
	case parquet.Types.Double:
		c = onlyIf(want.ID() == arrow.FLOAT64)
	case parquet.Types.Int96:
		if ts, ok := want.(*arrow.TimestampType); ok {
			c = fromInt96(ts.Unit)
		}
	case parquet.Types.ByteArray:
		c = fromByteArray(have, want)
	case parquet.Types.FixedLenByteArray:
		c = fromFixedLen(leaf.width, have, want)
	}
	if c == nil {
		return nil, fmt.Errorf("column %q holds %s (%s) and cannot be read as %s", leaf.path, have, leaf.physical, want)
	}
	return c, nil
}

func onlyIf(same bool) converter {
	if same {
		return identity
	}
	return nil
}

func isInteger(t arrow.DataType) bool { return arrow.IsInteger(t.ID()) }

func fromInt32(have, want arrow.DataType) converter {
	switch {
	case isInteger(have) && isInteger(want):
		return narrowed[int32](have.ID(), want.ID())
	case have.ID() == want.ID() && (want.ID() == arrow.DATE32 || want.ID() == arrow.TIME32):
		return identity
	}
	if scaled(have, want) {
		return decimalsFrom(func(b []byte, i int) decimal128.Num {
			return decimal128.FromI64(int64(int32(binary.LittleEndian.Uint32(b[4*i:]))))
		})
	}
	return nil
}

func fromInt64(have, want arrow.DataType) converter {
	switch {
	case isInteger(have) && isInteger(want):
		return narrowed[int64](have.ID(), want.ID())
	case have.ID() == arrow.TIME64 && arrow.TypeEqual(have, want):
		return identity
	case have.ID() == arrow.TIMESTAMP && want.ID() == arrow.TIMESTAMP:
		return rescaled(have.(*arrow.TimestampType).Unit, want.(*arrow.TimestampType).Unit)
	}
	if scaled(have, want) {
		return decimalsFrom(func(b []byte, i int) decimal128.Num {
			return decimal128.FromI64(int64(binary.LittleEndian.Uint64(b[8*i:])))
		})
	}
	return nil
}

// narrowed converts integers that lie as P, whatever their own width.
func narrowed[P int32 | int64](have, want arrow.Type) converter {
	unsigned := have == arrow.UINT32 || have == arrow.UINT64
	switch want {
	case have:
		if have == arrow.INT32 || have == arrow.UINT32 || have == arrow.INT64 || have == arrow.UINT64 {
			return identity
		}
	}
	switch want {
	case arrow.INT8:
		return integers[P, int8](unsigned)
	case arrow.INT16:
		return integers[P, int16](unsigned)
	case arrow.INT32:
		return integers[P, int32](unsigned)
	case arrow.INT64:
		return integers[P, int64](unsigned)
	case arrow.UINT8:
		return integers[P, uint8](unsigned)
	case arrow.UINT16:
		return integers[P, uint16](unsigned)
	case arrow.UINT32:
		return integers[P, uint32](unsigned)
	}
	return nil
}

func integers[P int32 | int64, W int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](unsigned bool) converter {
	return func(mem memory.Allocator, buffers []*memory.Buffer, n int, valid []byte) ([]*memory.Buffer, error) {
		defer buffers[0].Release()
		from := arrow.GetData[P](buffers[0].Bytes())
		out := memory.NewResizableBuffer(mem)
		out.Resize(n * binary.Size(W(0)))
		to := arrow.GetData[W](out.Bytes())
		for i, v := range from[:n] {
			wide := int64(v)
			if unsigned && binary.Size(v) == 4 {
				wide = int64(uint32(v))
			}
			to[i] = W(wide)
			if (int64(to[i]) != wide || (unsigned && wide < 0)) && (valid == nil || bitAt(valid, i)) {
				out.Release()
				return nil, fmt.Errorf("the value %d is out of range", wide)
			}
		}
		return []*memory.Buffer{out}, nil
	}
}

func widenFloats(mem memory.Allocator, buffers []*memory.Buffer, n int, _ []byte) ([]*memory.Buffer, error) {
	defer buffers[0].Release()
	from := arrow.GetData[float32](buffers[0].Bytes())
	out := memory.NewResizableBuffer(mem)
	out.Resize(n * 8)
	to := arrow.GetData[float64](out.Bytes())
	for i, v := range from[:n] {
		to[i] = float64(v)
	}
	return []*memory.Buffer{out}, nil
}

// rescaled converts timestamps between units; one that the wanted unit cannot
// hold exactly is an error.
func rescaled(have, want arrow.TimeUnit) converter {
	if have == want {
		return identity
	}
	return func(_ memory.Allocator, buffers []*memory.Buffer, n int, valid []byte) ([]*memory.Buffer, error) {
		values := arrow.GetData[int64](buffers[0].Bytes())[:n]
		up, down := int64(1), int64(1)
		if have < want { // units are ordered from seconds down
			up = int64(have.Multiplier() / want.Multiplier())
		} else {
			down = int64(want.Multiplier() / have.Multiplier())
		}
		for i, v := range values {
			if valid != nil && !bitAt(valid, i) {
				continue
			}
			if v%down != 0 || v > math.MaxInt64/up || v < math.MinInt64/up {
				buffers[0].Release()
				return nil, fmt.Errorf("the time %d %s is no whole number of %s in range", v, have, want)
			}
			values[i] = v / down * up
		}
		return buffers, nil
	}
}

// julianEpoch is the Julian day of 1970-01-01, from which INT96 counts days.
const julianEpoch = 2440588

// fromInt96 converts Impala's timestamps: nanoseconds of the day, Julian day.
func fromInt96(unit arrow.TimeUnit) converter {
	per := int64(unit.Multiplier()) // nanoseconds
	return func(mem memory.Allocator, buffers []*memory.Buffer, n int, valid []byte) ([]*memory.Buffer, error) {
		defer buffers[0].Release()
		from := buffers[0].Bytes()
		out := memory.NewResizableBuffer(mem)
		out.Resize(n * 8)
		to := arrow.GetData[int64](out.Bytes())
		for i := range to {
			to[i] = 0
			if valid != nil && !bitAt(valid, i) {
				continue
			}
			nanos := int64(binary.LittleEndian.Uint64(from[12*i:]))
			days := int64(binary.LittleEndian.Uint32(from[12*i+8:])) - julianEpoch
			perDay := 24 * 3600 * int64(1e9) / per
			if nanos%per != 0 || days > math.MaxInt64/perDay-1 || days < math.MinInt64/perDay+1 || nanos < 0 || nanos > 48*3600*1e9 {
				out.Release()
				return nil, fmt.Errorf("the time of %d days and %d ns is no whole number of %s in range", days, nanos, unit)
			}
			to[i] = days*perDay + nanos/per
		}
		return []*memory.Buffer{out}, nil
	}
}

// scaled says whether decimals of type have are decimals of type want as they
// are.
func scaled(have, want arrow.DataType) bool {
	h, okH := have.(arrow.DecimalType)
	w, okW := want.(*arrow.Decimal128Type)
	return okH && okW && h.GetScale() == w.Scale && h.GetPrecision() <= w.Precision
}

// decimalsFrom converts integers that lie in the first buffer.
func decimalsFrom(at func(b []byte, i int) decimal128.Num) converter {
	return func(mem memory.Allocator, buffers []*memory.Buffer, n int, _ []byte) ([]*memory.Buffer, error) {
		defer buffers[0].Release()
		out, to := decimalBuffer(mem, n)
		for i := range to {
			to[i] = at(buffers[0].Bytes(), i)
		}
		return []*memory.Buffer{out}, nil
	}
}

func decimalBuffer(mem memory.Allocator, n int) (*memory.Buffer, []decimal128.Num) {
	out := memory.NewResizableBuffer(mem)
	out.Resize(n * 16)
	return out, arrow.GetData[decimal128.Num](out.Bytes())
}

// bigEndian reads a decimal as Parquet writes it: two's complement, most
// significant byte first.
func bigEndian(b []byte) (decimal128.Num, bool) {
	sign := uint64(0)
	if len(b) > 0 && b[0] >= 0x80 {
		sign = ^uint64(0)
	}
	for len(b) > 16 {
		if b[0] != byte(sign) || b[1]&0x80 != byte(sign)&0x80 {
			return decimal128.Num{}, false
		}
		b = b[1:]
	}
	high, low := sign, sign
	for _, v := range b {
		high = high<<8 | low>>56
		low = low<<8 | uint64(v)
	}
	return decimal128.New(int64(high), low), true
}

// decimals converts n values that are written so.
func decimals(mem memory.Allocator, n int, value func(i int) []byte) ([]*memory.Buffer, error) {
	out, to := decimalBuffer(mem, n)
	for i := range to {
		v, ok := bigEndian(value(i))
		if !ok {
			out.Release()
			return nil, errors.New("a decimal is out of range")
		}
		to[i] = v
	}
	return []*memory.Buffer{out}, nil
}

func fromFixedLen(width int, have, want arrow.DataType) converter {
	switch {
	case have.ID() == arrow.FLOAT16 && want.ID() == arrow.FLOAT16,
		have.ID() == arrow.FIXED_SIZE_BINARY && arrow.TypeEqual(have, want):
		return identity
	case have.ID() == arrow.FIXED_SIZE_BINARY && want.ID() == arrow.BINARY:
		return func(mem memory.Allocator, buffers []*memory.Buffer, n int, _ []byte) ([]*memory.Buffer, error) {
			offsets := memory.NewResizableBuffer(mem)
			offsets.Resize((n + 1) * 4)
			for i, to := 0, arrow.GetData[int32](offsets.Bytes()); i <= n; i++ {
				to[i] = int32(i * width)
			}
			return []*memory.Buffer{offsets, buffers[0]}, nil
		}
	case scaled(have, want):
		return func(mem memory.Allocator, buffers []*memory.Buffer, n int, _ []byte) ([]*memory.Buffer, error) {
			defer buffers[0].Release()
			values := buffers[0].Bytes()
			return decimals(mem, n, func(i int) []byte { return values[i*width : (i+1)*width] })
		}
	}
	return nil
}

func fromByteArray(have, want arrow.DataType) converter {
	bytesLike := have.ID() == arrow.STRING || have.ID() == arrow.BINARY
	switch {
	case bytesLike && want.ID() == arrow.STRING:
		return checkText
	case bytesLike && want.ID() == arrow.BINARY:
		return identity
	case scaled(have, want):
		return func(mem memory.Allocator, buffers []*memory.Buffer, n int, _ []byte) ([]*memory.Buffer, error) {
			defer releaseAll(buffers...)
			offsets, values := arrow.GetData[int32](buffers[0].Bytes()), buffers[1].Bytes()
			return decimals(mem, n, func(i int) []byte { return values[offsets[i]:offsets[i+1]] })
		}
	}
	return nil
}

// checkText refuses strings that are not UTF-8, which Arrow's readers rely on.
func checkText(_ memory.Allocator, buffers []*memory.Buffer, n int, _ []byte) ([]*memory.Buffer, error) {
	data := buffers[1].Bytes()
	ok := isASCII(data)
	if !ok && utf8.Valid(data) {
		// All of it is valid, so that each string is if it begins with a
		// character.
		ok = true
		for _, at := range arrow.GetData[int32](buffers[0].Bytes())[:n+1] {
			ok = ok && (int(at) == len(data) || utf8.RuneStart(data[at]))
		}
	}
	if !ok {
		releaseAll(buffers...)
		return nil, fmt.Errorf("a string is not valid UTF-8")
	}
	return buffers, nil
}

func isASCII(b []byte) bool {
	const high = 0x8080808080808080
	for len(b) >= 32 {
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
		if (word(0)|word(8)|word(16)|word(24))&high != 0 {
			return false
		}
		b = b[32:]
	}
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b)&high != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
