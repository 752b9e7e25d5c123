package ingest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tabledef"
)

// The ticks of the benchmarks: one row per symbol and second, the symbols of a
// second in random order.
const tickSymbols = 1000

var tickTime = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}

var tickSchema = arrow.NewSchema([]arrow.Field{
	{Name: "ts", Type: tickTime},
	{Name: "symbol", Type: arrow.BinaryTypes.String},
	{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "size", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "venue", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

var tickVenues = []string{"XNYS", "XNAS", "ARCX", "BATS", "EDGX", "IEXG", "XLON", "XETR"}

// tickDefinition is the table of the ticks with a granularity of one second.
func tickDefinition() *tabledef.Definition {
	d := &tabledef.Definition{ID: "ticks", Format: tabledef.CurrentFormat, IndexColumn: "ts", IndexType: tabledef.IndexTimestamp,
		Granularity: tabledef.Granularity{N: 1, Unit: "s"}, EntityColumns: []string{"symbol"},
		Uniqueness: tabledef.UniqueReject, IngestTimeColumn: tabledef.DefaultIngestTimeColumn}
	return d.WithSchema(tickSchema)
}

// ticks makes n ticks in batches of 65,536 rows, in time order or shuffled.
func ticks(tb testing.TB, n int, shuffled bool) []arrow.RecordBatch {
	tb.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	type row struct {
		second int32
		symbol uint16
	}
	rows := make([]row, n)
	perm := rng.Perm(tickSymbols)
	for i := range rows {
		if i%tickSymbols == 0 {
			rng.Shuffle(tickSymbols, func(a, b int) { perm[a], perm[b] = perm[b], perm[a] })
		}
		rows[i] = row{int32(i / tickSymbols), uint16(perm[i%tickSymbols])}
	}
	if shuffled {
		rng.Shuffle(n, func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
	}
	names := make([]string, tickSymbols)
	prices := make([]float64, tickSymbols)
	for i := range names {
		names[i] = fmt.Sprintf("S%04d", i)
		prices[i] = 100
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, tickSchema)
	defer b.Release()
	var out []arrow.RecordBatch
	for from := 0; from < n; from += 65536 {
		to := min(from+65536, n)
		b.Reserve(to - from)
		for i, r := range rows[from:to] {
			s := int(r.symbol)
			offset := (from+i)%tickSymbols*1000 + rng.IntN(1000)
			if shuffled {
				offset = s*1000 + rng.IntN(1000)
			}
			prices[s] += rng.NormFloat64() * 0.02
			b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(1_767_225_600_000_000 + int64(r.second)*1_000_000 + int64(offset)))
			b.Field(1).(*array.StringBuilder).Append(names[s])
			b.Field(2).(*array.Float64Builder).Append(float64(int64(prices[s]*100)) / 100)
			b.Field(3).(*array.Int32Builder).Append(int32(100 * (1 + rng.IntN(99))))
			b.Field(4).(*array.BooleanBuilder).Append(rng.IntN(10) == 0)
			if rng.IntN(20) == 0 {
				b.Field(5).(*array.StringBuilder).AppendNull()
			} else {
				b.Field(5).(*array.StringBuilder).Append(tickVenues[rng.IntN(len(tickVenues))])
			}
		}
		out = append(out, b.NewRecordBatch())
	}
	return out
}
