package tablecore_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
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
	case "i64":
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

// appendValue puts a value into a builder.
func appendValue(b array.Builder, v any) {
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(v.(int8))
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
	house := tabletest.Warehouse(t, memstore.New(), mem)
	name := tabledef.Name{Namespace: "default", Table: "mixed"}
	if _, err := house.CreateTable(t.Context(), tablecore.CreateOptions{Name: name, IndexColumn: "t", IndexGranularity: "1ms",
		EntityColumns: []string{"e"}, Schema: mixedSchema}); err != nil {
		t.Fatal(err)
	}
	table, err := house.Table(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var rows []mixedRow
	for file := range files {
		b := array.NewRecordBuilder(mem, mixedSchema)
		for i := range rowsEach {
			row := mixedRow{"e": fmt.Sprintf("e%d", r.IntN(3)), "t": arrow.Timestamp(i*files + file - 40), "row": int64(len(rows))}
			for _, f := range mixedSchema.Fields()[3:] {
				row[f.Name] = mixedValue(r, f.Name, int64(file+i/20))
			}
			for k, f := range mixedSchema.Fields() {
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
		most := int64(16)
		_, err := table.Append(t.Context(), tabletest.NewReader(mixedSchema, batch), tablecore.AppendOptions{MaxRowsPerRowGroup: &most})
		batch.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	return table, rows
}

// literal is a filter value: its JSON and what it means.
type literal struct {
	json string
	mean any
}

func decimalText(v decimal128.Num) string { return v.ToString(3) }

// mixedLiteral draws a value to compare a column with.
func mixedLiteral(r *rand.Rand, name string, rows []mixedRow) literal {
	var v any = nothing{}
	for tries := 0; v == (nothing{}) && tries < 50; tries++ {
		v = rows[r.IntN(len(rows))][name]
	}
	strange := r.IntN(3) == 0
	number := func(text string) literal { rat, _ := new(big.Rat).SetString(text); return literal{text, rat} }
	switch v := v.(type) {
	case int8, int64, uint32, uint64:
		if strange {
			return number([]string{"9007199254740993", "-9007199254740993", "1.5", "18446744073709551616", "-1e30", "9223372036854775808", "1e-3", "2e0"}[r.IntN(8)])
		}
		return number(fmt.Sprint(v))
	case float32:
		return floatLiteral(r, float64(v))
	case float64:
		return floatLiteral(r, v)
	case nothing:
		return number("1")
	case string:
		if strange {
			v += "\x00"
		}
		text, _ := json.Marshal(v)
		return literal{string(text), v}
	case []byte:
		return literal{`"` + base64.StdEncoding.EncodeToString(v) + `"`, string(v)}
	case bool:
		return literal{fmt.Sprint(v), new(big.Rat).SetInt64(map[bool]int64{true: 1}[v])}
	case arrow.Date32:
		if strange {
			return literal{`"+010000-01-01"`, new(big.Rat).SetInt64(2932897)}
		}
		return literal{`"` + v.ToTime().Format(time.DateOnly) + `"`, new(big.Rat).SetInt64(int64(v))}
	case arrow.Timestamp:
		return timeLiteral(r, name, v, strange)
	case decimal128.Num:
		if strange {
			return number([]string{"0.0005", "1.5", "1.5000", "-1e40", "99999999999999999.999"}[r.IntN(5)])
		}
		l := number(decimalText(v))
		if r.IntN(2) == 0 {
			l.json = `"` + l.json + `"`
		}
		return l
	}
	panic(name)
}

func floatLiteral(r *rand.Rand, v float64) literal {
	if r.IntN(4) == 0 {
		whole := []string{"9007199254740993", "1" + strings.Repeat("0", 400), "-1" + strings.Repeat("0", 400), "3"}[r.IntN(4)]
		rat, _ := new(big.Rat).SetString(whole)
		return literal{whole, rat}
	}
	switch {
	case v != v:
		return literal{`"NaN"`, v}
	case math.IsInf(v, 1):
		return literal{`"Infinity"`, v}
	case math.IsInf(v, -1):
		return literal{`"-Infinity"`, v}
	}
	text, _ := json.Marshal(v)
	return literal{string(text), v}
}

// ticks are the nanoseconds of a tick of the timestamp columns.
var ticks = map[string]int64{"t": 1e6, "naive": 1e9, "ns": 1}

func timeLiteral(r *rand.Rand, name string, v arrow.Timestamp, strange bool) literal {
	ns := new(big.Int).Mul(big.NewInt(int64(v)), big.NewInt(ticks[name]))
	if !strange {
		return literal{fmt.Sprint(int64(v)), new(big.Rat).SetInt(ns)}
	}
	zone := "Z"
	if name == "naive" {
		zone = ""
	}
	moment := time.Unix(int64(r.IntN(20)*3600-5*3600), int64(r.IntN(2))).UTC()
	return literal{`"` + moment.Format("2006-01-02T15:04:05.999999999") + zone + `"`, new(big.Rat).SetInt64(moment.UnixNano())}
}

// exact turns a stored value into something that compares with what a literal
// means.
func exact(name string, v any) any {
	switch v := v.(type) {
	case int8:
		return new(big.Rat).SetInt64(int64(v))
	case int64:
		return new(big.Rat).SetInt64(v)
	case uint32:
		return new(big.Rat).SetInt64(int64(v))
	case uint64:
		return new(big.Rat).SetInt(new(big.Int).SetUint64(v))
	case float32:
		return float64(v)
	case []byte:
		return string(v)
	case bool:
		return new(big.Rat).SetInt64(map[bool]int64{true: 1}[v])
	case arrow.Date32:
		return new(big.Rat).SetInt64(int64(v))
	case arrow.Timestamp:
		return new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(int64(v)), big.NewInt(ticks[name])))
	case decimal128.Num:
		return new(big.Rat).SetFrac(v.BigInt(), big.NewInt(1000))
	}
	return v
}

// naiveCompare orders two values: NaN above all, infinities at the ends, all
// else by value.
func naiveCompare(a, b any) int {
	if s, ok := a.(string); ok {
		return strings.Compare(s, b.(string))
	}
	rank := func(v any) (int, *big.Rat) {
		f, ok := v.(float64)
		switch {
		case !ok:
			return 0, v.(*big.Rat)
		case f != f:
			return 2, nil
		case math.IsInf(f, 1):
			return 1, nil
		case math.IsInf(f, -1):
			return -1, nil
		}
		return 0, new(big.Rat).SetFloat64(f)
	}
	ra, va := rank(a)
	rb, vb := rank(b)
	if ra != rb || ra != 0 {
		return ra - rb
	}
	return va.Cmp(vb)
}

// naiveHolds says whether a stored value satisfies a condition.
func naiveHolds(name string, v any, op string, values []literal) bool {
	if v == (nothing{}) {
		return op == "is null"
	}
	any := func(f func(c int) bool) bool {
		return slices.ContainsFunc(values, func(l literal) bool { return f(naiveCompare(exact(name, v), l.mean)) })
	}
	switch op {
	case "is null":
		return false
	case "is not null":
		return true
	case "=", "==", "in":
		return any(func(c int) bool { return c == 0 })
	case "!=":
		return any(func(c int) bool { return c != 0 })
	case "<":
		return any(func(c int) bool { return c < 0 })
	case "<=":
		return any(func(c int) bool { return c <= 0 })
	case ">":
		return any(func(c int) bool { return c > 0 })
	default:
		return any(func(c int) bool { return c >= 0 })
	}
}

// scanRows returns the numbers of the rows a scan gives, in its order.
func scanRows(t *testing.T, table *tablecore.Table, o tablecore.ScanOptions) ([]int64, tablecore.ScanStats) {
	t.Helper()
	o.Columns = []string{"row"}
	plan, err := table.PlanScan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := plan.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	numbers := []int64{}
	for {
		batch, err := reader.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return numbers, reader.Stats()
		}
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, batch.Column(0).(*array.Int64).Int64Values()...)
	}
}

var filterOps = []string{"=", "==", "!=", "<", "<=", ">", ">=", "in", "is null", "is not null"}

func TestFilterAgainstNaive(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	skipped := int64(0)
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		table, rows := mixedTable(t, r, mem, 1+int(seed), 40+r.IntN(60))
		for range 300 {
			skipped += checkFilter(t, r, table, rows)
			if t.Failed() {
				return
			}
		}
	}
	if skipped == 0 {
		t.Error("nothing was ever pruned")
	}
}

// checkFilter compares one random filter with the naive evaluation of every
// row, with pruning and without, in several orders.
func checkFilter(t *testing.T, r *rand.Rand, table *tablecore.Table, rows []mixedRow) (skipped int64) {
	var conditions []tablecore.Condition
	var tests []func(mixedRow) bool
	for range 1 + r.IntN(2) {
		name := mixedSchema.Field(1 + r.IntN(mixedSchema.NumFields()-1)).Name
		op := filterOps[r.IntN(len(filterOps))]
		values := []literal{mixedLiteral(r, name, rows)}
		c := tablecore.Condition{Column: name, Op: op, Value: json.RawMessage(values[0].json)}
		switch op {
		case "in":
			for range r.IntN(4) {
				values = append(values, mixedLiteral(r, name, rows))
			}
			list := []string{}
			for _, v := range values {
				list = append(list, v.json)
			}
			c.Value = json.RawMessage("[" + strings.Join(list, ",") + "]")
		case "is null", "is not null":
			c.Value = nil
		}
		conditions = append(conditions, c)
		tests = append(tests, func(row mixedRow) bool { return naiveHolds(name, row[name], op, values) })
	}
	want := []int64{}
	for _, row := range rows {
		if !slices.ContainsFunc(tests, func(holds func(mixedRow) bool) bool { return !holds(row) }) {
			want = append(want, row["row"].(int64))
		}
	}
	for _, o := range []tablecore.ScanOptions{{}, {Order: "unordered"}, {NewestFirst: true}} {
		o.Filter = conditions
		got, stats := scanRows(t, table, o)
		full, _ := scanRows(t, table, o.Unpruned())
		if !slices.Equal(got, full) {
			t.Errorf("filter %s order %q: pruned %v, unpruned %v", conditions, o.Order, got, full)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("filter %s order %q: got %v, want %v", conditions, o.Order, got, want)
		}
		skipped += stats.FilesSkipped + stats.RowGroupsSkipped
	}
	return skipped
}
