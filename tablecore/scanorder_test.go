package tablecore_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// pointSchema has two entity columns, an index that repeats and the number of
// the row.
var pointSchema = arrow.NewSchema([]arrow.Field{
	{Name: "a", Type: arrow.BinaryTypes.String},
	{Name: "b", Type: arrow.PrimitiveTypes.Int64},
	{Name: "i", Type: arrow.PrimitiveTypes.Int64},
	{Name: "row", Type: arrow.PrimitiveTypes.Int64},
}, nil)

type point struct {
	a    string
	b, i int64
	row  int64
}

func pointTable(t testing.TB, mem memory.Allocator) *tablecore.Table {
	t.Helper()
	return pointTableOn(t, memstore.New(), mem)
}

func pointTableOn(t testing.TB, store objstore.Store, mem memory.Allocator) *tablecore.Table {
	t.Helper()
	house := tabletest.Warehouse(t, store, mem)
	name := tabledef.Name{Namespace: "default", Table: "points"}
	if _, err := house.CreateTable(t.Context(), tablecore.CreateOptions{Name: name, IndexColumn: "i", EntityColumns: []string{"a", "b"},
		Uniqueness: "none", Schema: pointSchema}); err != nil {
		t.Fatal(err)
	}
	table, err := house.Table(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// pointBatch returns points as a batch, which the caller releases.
func pointBatch(mem memory.Allocator, points []point) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, pointSchema)
	defer b.Release()
	for _, p := range points {
		b.Field(0).(*array.StringBuilder).Append(p.a)
		for k, v := range []int64{p.b, p.i, p.row} {
			b.Field(1 + k).(*array.Int64Builder).Append(v)
		}
	}
	return b.NewRecordBatch()
}

func appendPoints(t testing.TB, mem memory.Allocator, table *tablecore.Table, points []point) {
	t.Helper()
	batch := pointBatch(mem, points)
	defer batch.Release()
	most := int64(500)
	if _, err := table.Append(t.Context(), tabletest.NewReader(pointSchema, batch), tablecore.AppendOptions{MaxRowsPerRowGroup: &most}); err != nil {
		t.Fatal(err)
	}
}

// randomPoints stores points in several commits whose ranges overlap.
func randomPoints(t testing.TB, r *rand.Rand, mem memory.Allocator, table *tablecore.Table, files, each int, spread int64) []point {
	var all []point
	for file := range files {
		var some []point
		for range each {
			p := point{a: string(rune('p' + r.IntN(3))), b: r.Int64N(3), i: int64(file*5) + r.Int64N(spread), row: int64(len(all))}
			some, all = append(some, p), append(all, p)
		}
		appendPoints(t, mem, table, some)
	}
	return all
}

func rowsInOrder(points []point, by func(x, y point) int) []int64 {
	sorted := slices.Clone(points)
	slices.SortStableFunc(sorted, by)
	rows := make([]int64, len(sorted))
	for i, p := range sorted {
		rows[i] = p.row
	}
	return rows
}

func byEntityIndex(x, y point) int {
	return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b), cmp.Compare(x.i, y.i))
}

func byNewest(x, y point) int {
	return cmp.Or(cmp.Compare(y.i, x.i), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
}

func TestScanOrders(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	for seed, c := range []struct {
		files, each int
		spread      int64
	}{{1, 50, 10}, {7, 40, 3}, {5, 3000, 4000}, {80, 30, 9}, {3, 6000, 2}} {
		t.Run(fmt.Sprintf("files=%d rows=%d spread=%d", c.files, c.each, c.spread), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			table := pointTable(t, mem)
			points := randomPoints(t, r, mem, table, c.files, c.each, c.spread)
			sorted, newest := rowsInOrder(points, byEntityIndex), rowsInOrder(points, byNewest)
			checkOrder(t, table, "sorted", tablecore.ScanOptions{BatchRows: 100}, sorted)
			checkOrder(t, table, "newest first", tablecore.ScanOptions{NewestFirst: true}, newest)
			for _, limit := range []int64{0, 1, 17, 1500, int64(len(points)), int64(len(points)) + 1} {
				end := min(int(limit), len(points))
				checkOrder(t, table, "sorted, limited", tablecore.ScanOptions{Limit: &limit}, sorted[:end])
				checkOrder(t, table, "newest, limited", tablecore.ScanOptions{Limit: &limit, NewestFirst: true}, newest[:end])
				got, _ := scanRows(t, table, tablecore.ScanOptions{Limit: &limit, Order: "unordered"})
				if slices.Sort(got); len(got) != end || len(slices.Compact(got)) != end {
					t.Errorf("unordered with limit %d gave %d rows", limit, len(got))
				}
			}
			got, _ := scanRows(t, table, tablecore.ScanOptions{Order: "unordered"})
			checkSet(t, "unordered", got, points, func(point) bool { return true })
			span := tablecore.ScanOptions{Start: json.RawMessage("6"), End: json.RawMessage("12"), Entities: []tablecore.EntityFilter{{"a": json.RawMessage(`"q"`)}}}
			for _, o := range []tablecore.ScanOptions{{}, {Order: "unordered"}, {NewestFirst: true}} {
				o.Start, o.End, o.Entities = span.Start, span.End, span.Entities
				got, _ := scanRows(t, table, o)
				checkSet(t, "part", got, points, func(p point) bool { return p.a == "q" && p.i >= 6 && p.i < 12 })
			}
		})
	}
}

func checkOrder(t *testing.T, table *tablecore.Table, what string, o tablecore.ScanOptions, want []int64) {
	t.Helper()
	got, stats := scanRows(t, table, o)
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %d rows, want %d; first difference at %d", what, len(got), len(want), firstDifference(got, want))
	}
	if stats.Rows != int64(len(want)) {
		t.Errorf("%s: statistics say %d rows", what, stats.Rows)
	}
}

func firstDifference(a, b []int64) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func checkSet(t *testing.T, what string, got []int64, points []point, wanted func(point) bool) {
	t.Helper()
	want := []int64{}
	for _, p := range points {
		if wanted(p) {
			want = append(want, p.row)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %d rows, want %d", what, len(got), len(want))
	}
}

func TestSplitsOfEveryOrder(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	table := pointTable(t, mem)
	points := randomPoints(t, rand.New(rand.NewPCG(5, 5)), mem, table, 9, 200, 30)
	for _, o := range []tablecore.ScanOptions{{}, {Order: "unordered"}, {Filter: []tablecore.Condition{{Column: "row", Op: ">=", Value: json.RawMessage("0")}}}} {
		for _, most := range []int{1, 2, 5, 1000} {
			plan, err := table.PlanScan(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			splits, err := plan.Splits(t.Context(), most)
			if err != nil {
				t.Fatal(err)
			}
			var rows []int64
			for i := range splits {
				part := o
				part.Split = &tablecore.Split{Index: i, Count: len(splits)}
				got, _ := scanRows(t, table, part)
				rows = append(rows, got...)
			}
			if o.Order == "" && !slices.Equal(rows, rowsInOrder(points, byEntityIndex)) {
				t.Errorf("%d splits are not in order", len(splits))
			}
			checkSet(t, fmt.Sprintf("%d splits", len(splits)), rows, points, func(point) bool { return true })
		}
	}
	for _, o := range []tablecore.ScanOptions{{NewestFirst: true}, {Limit: ptr(int64(5))}} {
		plan, err := table.PlanScan(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if splits, err := plan.Splits(t.Context(), 8); err != nil || len(splits) != 1 {
			t.Errorf("%d splits (%v), want 1", len(splits), err)
		}
		o.Split = &tablecore.Split{Index: 0, Count: 2}
		if _, err := table.PlanScan(t.Context(), o); tableerr.TokenOf(err) != tableerr.TokenInvalid {
			t.Errorf("a second part: %v", err)
		}
	}
}

func TestLimitReadsLittle(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	table := pointTable(t, mem)
	randomPoints(t, rand.New(rand.NewPCG(5, 5)), mem, table, 20, 5000, 100000)
	limit := int64(10)
	_, stats := scanRows(t, table, tablecore.ScanOptions{Limit: &limit, Order: "unordered"})
	if stats.RowGroups > 20 { // those of one file
		t.Errorf("10 rows took %d row groups", stats.RowGroups)
	}
	plan, err := table.PlanScan(t.Context(), tablecore.ScanOptions{Limit: &limit})
	if err != nil || plan.Rows() != 10 || !plan.Ordered() {
		t.Errorf("%v: %d rows planned", err, plan.Rows())
	}
	unordered, err := table.PlanScan(t.Context(), tablecore.ScanOptions{Order: "unordered"})
	if err != nil || unordered.Ordered() || unordered.Rows() != 100000 {
		t.Errorf("%v: %d rows planned", err, unordered.Rows())
	}
}

// invalidAt asserts an INVALID about a field of the request.
func invalidAt(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *tableerr.Invalid
	if !errors.As(err, &invalid) || invalid.Field != field {
		t.Errorf("got %v, want INVALID about %s", err, field)
	}
}

func ptr[T any](v T) *T { return &v }

func TestScanOptionRefusals(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "1")))
	where := func(column, op, value string) tablecore.ScanOptions {
		c := tablecore.Condition{Column: column, Op: op}
		if value != "" {
			c.Value = json.RawMessage(value)
		}
		return tablecore.ScanOptions{Filter: []tablecore.Condition{{Column: "temp", Op: "is null"}, c}}
	}
	for _, c := range []struct {
		field string
		o     tablecore.ScanOptions
	}{
		{"limit", tablecore.ScanOptions{Limit: ptr(int64(-1))}},
		{"order", tablecore.ScanOptions{Order: "sideways"}},
		{"newest_first", tablecore.ScanOptions{Order: "unordered", NewestFirst: true}},
		{"filter[1][0]", where("nope", "=", "1")},
		{"filter[1][1]", where("temp", "~", "1")},
		{"filter[1]", where("temp", "=", "")},
		{"filter[1][2]", where("temp", "is null", "1")},
		{"filter[1][2]", where("temp", "=", "null")},
		{"filter[1][2]", where("temp", "=", `"1"`)},
		{"filter[1][2]", where("temp", "in", "1")},
		{"filter[1][2][1]", where("temp", "in", `[1,"x"]`)},
		{"filter[1][2]", where("origin", "=", "5")},
		{"filter[1][2]", where("time_hour", "=", `"2013-01-01T00:00:00"`)},
		{"filter[1][2]", where("time_hour", "=", "1.5")},
	} {
		_, err := f.table.PlanScan(t.Context(), c.o)
		invalidAt(t, err, c.field)
	}
}
