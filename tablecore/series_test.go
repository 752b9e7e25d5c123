package tablecore_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// seriesKind is a kind of table for the random comparison.
type seriesKind struct {
	index       arrow.DataType
	granularity string // "" for none
	width       *big.Int
	entities    []arrow.Field
	uniqueness  string
	noStamp     bool
	ownStamps   bool // streams bring insertion times of their own
}

func seeded(a, b uint64) *rand.Rand { return rand.New(rand.NewPCG(a, b)) }

func bigNumber(text string) *big.Int {
	n, _ := new(big.Int).SetString(text, 10)
	return n
}

var seriesKinds = []seriesKind{
	{index: &arrow.TimestampType{Unit: arrow.Second}, granularity: "1m", width: big.NewInt(60)},
	{index: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, granularity: "7ms", width: big.NewInt(7), entities: []arrow.Field{{Name: "e", Type: arrow.PrimitiveTypes.Int32}}},
	{index: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "America/New_York"}, granularity: "1h", width: big.NewInt(3600e6), entities: []arrow.Field{{Name: "e", Type: arrow.BinaryTypes.LargeString}}},
	{index: &arrow.TimestampType{Unit: arrow.Nanosecond}, granularity: "4294967295d", width: new(big.Int).Mul(big.NewInt(math.MaxUint32), big.NewInt(86400e9)), uniqueness: "none"},
	{index: arrow.PrimitiveTypes.Int64, granularity: "9223372036854775809", width: bigNumber("9223372036854775809"), uniqueness: "none", entities: []arrow.Field{{Name: "e", Type: arrow.PrimitiveTypes.Uint64}}},
	{index: arrow.PrimitiveTypes.Uint64, granularity: "9223372036854775809", width: bigNumber("9223372036854775809"), uniqueness: "none", noStamp: true},
	{index: arrow.PrimitiveTypes.Uint64, granularity: "1", width: big.NewInt(1), entities: []arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String}, {Name: "b", Type: arrow.PrimitiveTypes.Int64}}},
	{index: arrow.PrimitiveTypes.Int64, granularity: "3", width: big.NewInt(3), uniqueness: "overwrite", entities: []arrow.Field{{Name: "e", Type: arrow.BinaryTypes.String}}},
	{index: arrow.PrimitiveTypes.Int64, uniqueness: "none", ownStamps: true, entities: []arrow.Field{{Name: "e", Type: arrow.BinaryTypes.String}}},
	{index: &arrow.TimestampType{Unit: arrow.Millisecond}, granularity: "10ms", width: big.NewInt(10), uniqueness: "none", ownStamps: true},
	{index: &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, uniqueness: "none", entities: []arrow.Field{{Name: "e", Type: arrow.BinaryTypes.String}}},
}

func (k seriesKind) schema() *arrow.Schema {
	fields := append([]arrow.Field{{Name: "t", Type: k.index}}, k.entities...)
	return arrow.NewSchema(append(fields, arrow.Field{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}), nil)
}

// stream is the schema of an append.
func (k seriesKind) stream() *arrow.Schema {
	if !k.ownStamps {
		return k.schema()
	}
	return arrow.NewSchema(append(k.schema().Fields(), arrow.Field{Name: "_ingest_ts", Type: tabledef.IngestTimeType, Nullable: true}), nil)
}

func (k seriesKind) options() tablecore.CreateOptions {
	o := tablecore.CreateOptions{Name: tabledef.Name{Namespace: "default", Table: "series"}, IndexColumn: "t", IndexGranularity: k.granularity,
		Uniqueness: k.uniqueness, Schema: k.schema()}
	for _, f := range k.entities {
		o.EntityColumns = append(o.EntityColumns, f.Name)
	}
	if k.noStamp {
		o.IngestTimeColumn = textPointer("")
	}
	return o
}

// someIndex is an index value: mostly one of few, at times near an end of the
// domain where the stored column reaches it.
func (k seriesKind) someIndex(r *rand.Rand) any {
	spread := int64(40)
	if k.width != nil && k.width.IsInt64() && k.width.Int64() < math.MaxInt64/200 {
		spread *= k.width.Int64()
	}
	v := r.Int64N(spread) - spread/2
	if k.index.ID() == arrow.UINT64 {
		if r.IntN(3) == 0 {
			return uint64(math.MaxUint64) - uint64(r.Int64N(4))
		}
		return uint64(v + spread/2)
	}
	ts, isTime := k.index.(*arrow.TimestampType)
	if (!isTime || ts.Unit == arrow.Nanosecond || ts.Unit == arrow.Microsecond) && r.IntN(5) == 0 {
		if v < 0 {
			return math.MinInt64 + r.Int64N(4)
		}
		return math.MaxInt64 - r.Int64N(4)
	}
	return v
}

func (k seriesKind) someRow(r *rand.Rand) tabletest.Row {
	row := tabletest.Row{k.someIndex(r)}
	for _, f := range k.entities {
		switch f.Type.ID() {
		case arrow.UINT64:
			row = append(row, []uint64{0, 5, math.MaxUint64}[r.IntN(3)])
		case arrow.INT32:
			row = append(row, []int64{math.MinInt32, -1, math.MaxInt32}[r.IntN(3)])
		case arrow.INT64:
			row = append(row, []int64{math.MinInt64, 0}[r.IntN(2)])
		default:
			row = append(row, []string{"", "a", "a\x00b", "ž"}[r.IntN(4)])
		}
	}
	row = append(row, []any{nil, r.Int64()}[r.IntN(2)], []any{nil, "", fmt.Sprint(r.Int64())}[r.IntN(3)])
	if k.ownStamps {
		row = append(row, []any{nil, int64(-7), int64(5), int64(4e15)}[r.IntN(4)])
	}
	return row
}

// TestSeriesAgainstRows appends random rows to tables of all kinds and compares
// coverage and newest rows with all rows, at versions now and then, in
// warehouses that know the table for long, for a short time and not at all.
func TestSeriesAgainstRows(t *testing.T) {
	for i, k := range seriesKinds {
		for seed := range max(1, numberFrom(t, "SEEDS", modelSeeds)/20) {
			t.Run(fmt.Sprint(i, "/", seed), func(t *testing.T) {
				t.Parallel()
				k.compare(t, seeded(seed, uint64(i)))
			})
		}
	}
}

func (k seriesKind) compare(t *testing.T, r *rand.Rand) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	store := sharedStore{memstore.New()}
	w := tabletest.Warehouse(t, store, mem)
	if _, err := w.CreateTable(t.Context(), k.options()); err != nil {
		t.Fatal(err)
	}
	// One that can keep hardly anything, one that keeps no values.
	houses := []*tablecore.Warehouse{w}
	for _, limit := range []int64{1, 8 << 10} {
		house, err := tablecore.Open(t.Context(), tablecore.Options{Store: store, Allocator: mem, Clock: tabletest.NewClock().Now, SeriesMemory: limit})
		if err != nil {
			t.Fatal(err)
		}
		defer house.Close()
		houses = append(houses, house)
	}
	for range 12 {
		k.appendSome(t, w, mem, r)
		table, err := houses[r.IntN(len(houses))].Table(t.Context(), k.options().Name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := table.Describe(t.Context(), tablecore.At{})
		if err != nil {
			t.Fatal(err)
		}
		version := d.Version
		if r.IntN(3) == 0 {
			version = r.Int64N(version + 1)
		}
		c, err := newSeriesCheck(t.Context(), table, k.options(), version, k.width)
		if err == nil {
			err = c.run(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// appendSome appends a few rows; those that the table refuses are no matter
// here.
func (k seriesKind) appendSome(t *testing.T, w *tablecore.Warehouse, mem memory.Allocator, r *rand.Rand) {
	t.Helper()
	table, err := w.Table(t.Context(), k.options().Name)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]tabletest.Row, r.IntN(12))
	for i := range rows {
		rows[i] = k.someRow(r)
	}
	if k.uniqueness == "" {
		rows = rows[:min(len(rows), 2)]
	}
	b, err := tabletest.BatchOf(mem, k.stream(), rows)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	_, _ = table.Append(t.Context(), tabletest.NewReader(k.stream(), b), tablecore.AppendOptions{})
}
