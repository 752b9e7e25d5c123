package convert

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// nanosInMicro is how many nanoseconds a microsecond has.
const nanosInMicro = 1000

// Spark returns the type in which the spark profile gives a column of the
// declared type: its storage type, which is what Spark finds in the table's
// directory too, but timestamps of nanoseconds have microseconds instead of
// being integers.
func Spark(declared arrow.DataType) arrow.DataType {
	switch t := declared.(type) {
	case arrow.ExtensionType:
		return Spark(t.StorageType())
	case *arrow.DictionaryType:
		return Spark(t.ValueType)
	case *arrow.TimestampType:
		if t.TimeZone == "" {
			return localMicros
		}
		return utcMicros
	}
	stored := tabledef.StorageType(declared)
	inside := tabledef.Children(stored)
	if len(inside) == 0 {
		return stored
	}
	fields := make([]arrow.Field, len(inside))
	for i, f := range tabledef.Children(declared) {
		fields[i] = inside[i]
		fields[i].Type = Spark(f.Type)
	}
	return tabledef.WithChildren(stored, fields)
}

// ToSpark converts an array of the storage type of a declared type to the type
// that Spark gives for it. A time that is no whole number of microseconds is a
// *tableerr.Invalid with the value, but neither row nor column.
func ToSpark(mem memory.Allocator, arr arrow.Array, declared arrow.DataType) (arrow.Array, error) {
	if want := tabledef.StorageType(declared); want == nil || !arrow.TypeEqual(arr.DataType(), want) {
		return nil, misfit(arr, declared)
	}
	return restore(mem, arr, Spark(declared))
}

// microseconds converts stored nanoseconds.
func microseconds(mem memory.Allocator, arr arrow.Array, to *arrow.TimestampType) (arrow.Array, error) {
	values := words[int64](arr)
	for i, v := range values {
		if v%nanosInMicro != 0 && arr.IsValid(i) {
			return nil, &tableerr.Invalid{Value: v,
				Msg: "the time " + decimal(v) + " ns is no whole number of microseconds; leave the column out, or read it with profile exact"}
		}
	}
	return fixed(mem, arr, to, func(dst []byte) {
		times := view[int64](dst)
		for i, v := range values {
			times[i] = v / nanosInMicro
		}
	}), nil
}
