package tablecore_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
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
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/tabletest"
)

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
	case float16.Num:
		return floatLiteral(r, float64(v.Float32()))
	case arrow.Time32:
		return number(fmt.Sprint(int64(v)))
	case arrow.Duration:
		return number(fmt.Sprint(int64(v)))
	case arrow.Date64:
		return literal{`"` + v.ToTime().Format(time.DateOnly) + `"`, new(big.Rat).SetInt64(int64(v))}
	case fixed:
		return literal{`"` + base64.StdEncoding.EncodeToString([]byte(v)) + `"`, string(v)}
	case decimal256.Num:
		l := number(v.ToString(3))
		if strange {
			l = number("1.5")
		}
		return l
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
	case float16.Num:
		return float64(v.Float32())
	case arrow.Time32:
		return new(big.Rat).SetInt64(int64(v))
	case arrow.Duration:
		return new(big.Rat).SetInt64(int64(v))
	case arrow.Date64:
		return new(big.Rat).SetInt64(int64(v))
	case fixed:
		return string(v)
	case decimal256.Num:
		return new(big.Rat).SetFrac(v.BigInt(), big.NewInt(1000))
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
	numbers := []int64{}
	stats, err := tabletest.EachBatch(t.Context(), plan, func(batch arrow.RecordBatch) error {
		numbers = append(numbers, batch.Column(0).(*array.Int64).Int64Values()...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return numbers, stats
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
