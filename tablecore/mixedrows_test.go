package tablecore_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// mixedSchema has a column of each kind that a filter compares in its own way.
var mixedSchema = arrow.NewSchema([]arrow.Field{
	{Name: "e", Type: arrow.BinaryTypes.String},
	{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}},
	{Name: "row", Type: arrow.PrimitiveTypes.Int64},
	{Name: "i8", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
	{Name: "i64", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "u32", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
	{Name: "u64", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
	{Name: "f32", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
	{Name: "f64", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "dict", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, Nullable: true},
	{Name: "b", Type: arrow.BinaryTypes.Binary, Nullable: true},
	{Name: "yes", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	{Name: "naive", Type: &arrow.TimestampType{Unit: arrow.Second}, Nullable: true},
	{Name: "ns", Type: &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Asia/Kolkata"}, Nullable: true},
	{Name: "dec", Type: &arrow.Decimal128Type{Precision: 20, Scale: 3}, Nullable: true},
	{Name: "wide", Type: &arrow.Decimal256Type{Precision: 50, Scale: 3}, Nullable: true},
	{Name: "half", Type: arrow.FixedWidthTypes.Float16, Nullable: true},
	{Name: "d64", Type: arrow.FixedWidthTypes.Date64, Nullable: true},
	{Name: "clock", Type: arrow.FixedWidthTypes.Time32ms, Nullable: true},
	{Name: "span", Type: arrow.FixedWidthTypes.Duration_us, Nullable: true},
	{Name: "fix", Type: &arrow.FixedSizeBinaryType{ByteWidth: 4}, Nullable: true},
	{Name: "numbers", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.PrimitiveTypes.Int64}, Nullable: true},
	{Name: "void", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, // never a value
}, nil)

// nothing stands for a null among the values of a row.
type nothing struct{}

// mixedValues draws values of a column: ordinary and peculiar ones, from ranges
// that differ from file to file so that pruning has something to do.
func mixedValue(r *rand.Rand, name string, level int64) any {
	if r.IntN(6) == 0 || name == "void" {
		return nothing{}
	}
	pick := func(special ...any) any { return special[r.IntN(len(special))] }
	odd := r.IntN(4) == 0
	small := level*10 + r.Int64N(12)
	switch name {
	case "i8":
		return int8(small % 100)
	case "wide":
		n := decimal256.FromI64(small * 250)
		if odd {
			return n.Mul(decimal256.FromI64(math.MaxInt64)).Mul(decimal256.FromI64(math.MaxInt64))
		}
		return n
	case "half":
		return float16.New(float32(small) / 4)
	case "d64":
		return arrow.Date64((small - 20) * 86400000)
	case "clock":
		return arrow.Time32(small)
	case "span":
		return arrow.Duration(small - 50)
	case "fix":
		return fixed(fmt.Sprintf("%04d", small))
	case "i64", "numbers":
		if odd {
			return pick(int64(math.MinInt64), int64(math.MaxInt64), int64(1<<53), int64(1<<53+1), -int64(1<<53+1))
		}
		return small
	case "u32":
		return uint32(small)
	case "u64":
		if odd {
			return pick(uint64(math.MaxUint64), uint64(1<<63), uint64(1<<53+1))
		}
		return uint64(small)
	case "f32":
		if odd {
			return pick(float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Copysign(0, -1)), float32(0.1))
		}
		return float32(small) / 4
	case "f64":
		if odd {
			return pick(math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0.1, float64(1<<53), math.MaxFloat64, math.SmallestNonzeroFloat64)
		}
		return float64(small) / 4
	case "s", "dict":
		if odd {
			return pick("", strings.Repeat("z", 40), strings.Repeat("z", 31)+"é", strings.Repeat("\U0010FFFF", 33), "\x00", strings.Repeat("ab", 40)+fmt.Sprint(small))
		}
		return fmt.Sprintf("v%03d", small)
	case "b":
		if odd {
			return pick([]byte{}, bytes.Repeat([]byte{0xFF}, 40), []byte{0}, []byte{0xFF, 0xFE})
		}
		return []byte(fmt.Sprintf("b%03d", small))
	case "yes":
		return level%2 == 0 || r.IntN(8) == 0
	case "day":
		return arrow.Date32(small - 20)
	case "naive":
		return arrow.Timestamp(small*3600 - 5*3600)
	case "ns":
		if odd {
			return pick(arrow.Timestamp(math.MinInt64), arrow.Timestamp(math.MaxInt64))
		}
		return arrow.Timestamp(small*1e9 + 1)
	case "dec":
		if odd {
			return pick(decimal128.FromI64(-5), decimal128.FromU64(math.MaxUint64), decimal128.FromI64(1500))
		}
		return decimal128.FromI64(small * 250)
	}
	panic(name)
}

// fixed is a value of a fixed-size binary column.
type fixed string

// appendValue puts a value into a builder.
func appendValue(b array.Builder, v any) {
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(v.(int8))
	case *array.Decimal256Builder:
		b.Append(v.(decimal256.Num))
	case *array.Float16Builder:
		b.Append(v.(float16.Num))
	case *array.Date64Builder:
		b.Append(v.(arrow.Date64))
	case *array.Time32Builder:
		b.Append(v.(arrow.Time32))
	case *array.DurationBuilder:
		b.Append(v.(arrow.Duration))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(v.(fixed)))
	case *array.Int64DictionaryBuilder:
		if err := b.Append(v.(int64)); err != nil {
			panic(err)
		}
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Uint32Builder:
		b.Append(v.(uint32))
	case *array.Uint64Builder:
		b.Append(v.(uint64))
	case *array.Float32Builder:
		b.Append(v.(float32))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(v.(string)); err != nil {
			panic(err)
		}
	case *array.BinaryBuilder:
		b.Append(v.([]byte))
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Date32Builder:
		b.Append(v.(arrow.Date32))
	case *array.TimestampBuilder:
		b.Append(v.(arrow.Timestamp))
	case *array.Decimal128Builder:
		b.Append(v.(decimal128.Num))
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

// mixedRow is a row of mixedSchema by column.
type mixedRow map[string]any

// mixedTable stores random rows in several files with small row groups and
// returns the table with all its rows, by the number in column row.
func mixedTable(t *testing.T, r *rand.Rand, mem memory.Allocator, files, rowsEach int) (*tablecore.Table, []mixedRow) {
	t.Helper()
	table := createMixed(t, mem, mixedSchema)
	var rows []mixedRow
	for file := range files {
		rows = appendMixed(t, r, mem, table, mixedSchema, file, files, rowsEach, rows)
	}
	return table, rows
}

// createMixed makes a table of some of the columns of mixedSchema.
func createMixed(t *testing.T, mem memory.Allocator, schema *arrow.Schema) *tablecore.Table {
	t.Helper()
	house := tabletest.Warehouse(t, memstore.New(), mem)
	name := tabledef.Name{Namespace: "default", Table: "mixed"}
	if _, err := house.CreateTable(t.Context(), tablecore.CreateOptions{Name: name, IndexColumn: "t", IndexGranularity: "1ms",
		EntityColumns: []string{"e"}, Schema: schema}); err != nil {
		t.Fatal(err)
	}
	table, err := house.Table(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// appendMixed stores the random rows of one of several files, with the columns
// of a schema, and adds them to rows.
func appendMixed(t *testing.T, r *rand.Rand, mem memory.Allocator, table *tablecore.Table, schema *arrow.Schema, file, files, rowsEach int, rows []mixedRow) []mixedRow {
	t.Helper()
	b := array.NewRecordBuilder(mem, schema)
	for i := range rowsEach {
		row := mixedRow{"e": fmt.Sprintf("e%d", r.IntN(3)), "t": arrow.Timestamp(i*files + file - 40), "row": int64(len(rows))}
		for _, f := range mixedSchema.Fields()[3:] {
			row[f.Name] = nothing{}
			if schema.HasField(f.Name) {
				row[f.Name] = mixedValue(r, f.Name, int64(file+i/20))
			}
		}
		for k, f := range schema.Fields() {
			if row[f.Name] == (nothing{}) {
				b.Field(k).AppendNull()
			} else {
				appendValue(b.Field(k), row[f.Name])
			}
		}
		rows = append(rows, row)
	}
	batch := b.NewRecordBatch()
	b.Release()
	defer batch.Release()
	most := int64(16)
	if _, err := table.Append(t.Context(), tabletest.NewReader(schema, batch), tablecore.AppendOptions{MaxRowsPerRowGroup: &most}); err != nil {
		t.Fatal(err)
	}
	return rows
}
