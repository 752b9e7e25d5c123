package tablecore_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

var quotesName = tabledef.Name{Namespace: "default", Table: "quotes"}

var quotes = arrow.NewSchema([]arrow.Field{
	{Name: "symbol", Type: arrow.BinaryTypes.String},
	{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{Name: "price", Type: arrow.PrimitiveTypes.Float64},
	{Name: "size", Type: arrow.PrimitiveTypes.Int64},
	{Name: "venue", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// quotesIn opens the table of quotes, one a second at most, in a warehouse of
// its own.
func quotesIn(b testing.TB, dir string, create bool) (*tablecore.Warehouse, *tablecore.Table) {
	b.Helper()
	store, err := localfs.Open(dir, localfs.Options{Create: create})
	if err != nil {
		b.Fatal(err)
	}
	w, err := tablecore.Open(b.Context(), tablecore.Options{Store: store, Maintenance: unmaintained})
	if err != nil {
		b.Fatal(err)
	}
	if create {
		if _, err := w.CreateTable(b.Context(), tablecore.CreateOptions{Name: quotesName, IndexColumn: "at", IndexGranularity: "1s",
			EntityColumns: []string{"symbol"}, Schema: quotes}); err != nil {
			b.Fatal(err)
		}
	}
	table, err := w.Table(b.Context(), quotesName)
	if err != nil {
		b.Fatal(err)
	}
	return w, table
}

// appendQuotes appends rows of all entities from one second on; skip leaves some
// out.
func appendQuotes(b testing.TB, table *tablecore.Table, entities, first, seconds int, skip func(entity, second int) bool) {
	b.Helper()
	r := array.NewRecordBuilder(memory.DefaultAllocator, quotes)
	defer r.Release()
	for e := range entities {
		for s := first; s < first+seconds; s++ {
			if skip != nil && skip(e, s) {
				continue
			}
			r.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("S%06d", e))
			r.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(int64(s) * 1e6))
			r.Field(2).(*array.Float64Builder).Append(float64(e) + float64(s)/100)
			r.Field(3).(*array.Int64Builder).Append(int64(s))
			r.Field(4).(*array.StringBuilder).Append("XNAS")
		}
	}
	batch := r.NewRecordBatch()
	defer batch.Release()
	if _, err := table.Append(b.Context(), tabletest.NewReader(quotes, batch), tablecore.AppendOptions{}); err != nil {
		b.Fatal(err)
	}
}

// rowsIn runs an answer to its end and returns its rows.
func rowsIn(b testing.TB, l *tablecore.Listing, err error) int64 {
	b.Helper()
	rows := int64(0)
	if err == nil {
		err = l.Run(b.Context(), func(batch arrow.RecordBatch) error {
			rows += batch.NumRows()
			return nil
		})
	}
	if err != nil {
		b.Fatal(err)
	}
	return rows
}

// BenchmarkLatest asks for the newest row of every entity of tables of a few
// files: again and again, after an append of one row, and first thing after the
// table was opened.
func BenchmarkLatest(b *testing.B) {
	for _, shape := range []struct{ entities, files, each int }{{1_000, 10, 1_000}, {100_000, 5, 10}} {
		dir := b.TempDir()
		w, table := quotesIn(b, dir, true)
		for f := range shape.files {
			appendQuotes(b, table, shape.entities, f*shape.each, shape.each, nil)
		}
		ask := func(b *testing.B, table *tablecore.Table) {
			l, err := table.Latest(b.Context(), tablecore.LatestOptions{})
			if n := rowsIn(b, l, err); n != int64(shape.entities) {
				b.Fatalf("%d rows", n)
			}
		}
		b.Run(fmt.Sprintf("entities=%d/warm", shape.entities), func(b *testing.B) {
			ask(b, table)
			for b.Loop() {
				ask(b, table)
			}
		})
		next := shape.files * shape.each
		b.Run(fmt.Sprintf("entities=%d/appended", shape.entities), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				appendQuotes(b, table, 1, next, 1, nil)
				next++
				b.StartTimer()
				ask(b, table)
			}
		})
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("entities=%d/cold", shape.entities), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				w, table := quotesIn(b, dir, false)
				b.StartTimer()
				ask(b, table)
				b.StopTimer()
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkCoverage makes a gap report of entities that miss every seventh
// interval, and a summary.
func BenchmarkCoverage(b *testing.B) {
	for _, shape := range []struct{ entities, intervals, files int }{{1_000, 10_000, 10}, {10_000, 1_000, 10}} {
		w, table := quotesIn(b, b.TempDir(), true)
		for f := range shape.files {
			n := shape.intervals / shape.files
			appendQuotes(b, table, shape.entities, f*n, n, func(e, s int) bool { return (e+s)%7 == 0 })
		}
		for _, kind := range []string{tablecore.CoverageMissing, tablecore.CoverageSummary} {
			b.Run(fmt.Sprintf("entities=%d/intervals=%d/%s", shape.entities, shape.intervals, kind), func(b *testing.B) {
				rows := int64(0)
				for b.Loop() {
					l, err := table.Coverage(b.Context(), tablecore.CoverageOptions{Kind: kind})
					rows = rowsIn(b, l, err)
				}
				b.ReportMetric(float64(rows), "rows")
			})
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
