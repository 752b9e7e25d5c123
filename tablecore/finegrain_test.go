package tablecore_test

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/internal/childtest"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// fineRun is what a child process of the memory test does: ticks of 100 symbols
// at a granularity so fine that each row has an interval of its own.
type fineRun struct {
	Rows        int64
	Granularity string // "" for none
	Dir         string
}

// fineBudget is the memory for the append's rows, and fineMost how much the
// process may have at most beside what it begins with: performance.md's bound
// of an unsorted append of any size.
const (
	fineBudget = 64 << 20
	fineMost   = 400 << 20
)

// TestFineGranularityMemory appends and asks in a child process and looks at the
// most memory it ever had. CONTRAIL_TEST_FINE_ROWS makes it larger:
//
//	CONTRAIL_TEST_FINE_ROWS=10000000 go test ./tablecore -run TestFineGranularityMemory -v
func TestFineGranularityMemory(t *testing.T) {
	var asked fineRun
	if childtest.Asked(t, &asked) {
		childtest.Answer(t, asked.peak(t))
		return
	}
	rows := numberFrom(t, "CONTRAIL_TEST_FINE_ROWS", 300_000)
	for _, granularity := range []string{"1us", "1ns", ""} {
		var peak int64
		childtest.Run(t, fineRun{Rows: int64(rows), Granularity: granularity, Dir: t.TempDir()}, &peak)
		t.Logf("%d rows at granularity %q: peak %d MiB", rows, granularity, peak>>20)
		if peak > fineMost && !raceDetector {
			t.Errorf("the peak at granularity %q is %d bytes, more than %d", granularity, peak, fineMost)
		}
	}
}

// peak appends, asks for newest rows and coverage, and returns by how many bytes
// the peak has grown.
func (run fineRun) peak(t *testing.T) int64 {
	t.Helper()
	before := childtest.PeakMemory()
	debug.SetMemoryLimit(fineMost) // what a server with such a limit asks the collector for
	store, err := localfs.Open(run.Dir+"/table", localfs.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w, err := tablecore.Open(t.Context(), tablecore.Options{Store: store, MemoryBudget: fineBudget, Scratch: run.Dir + "/scratch"})
	if err != nil {
		t.Fatal(err)
	}
	unit := arrow.Microsecond
	if run.Granularity == "1ns" {
		unit = arrow.Nanosecond
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "symbol", Type: arrow.BinaryTypes.String},
		{Name: "at", Type: &arrow.TimestampType{Unit: unit, TimeZone: "UTC"}}, {Name: "price", Type: arrow.PrimitiveTypes.Float64}}, nil)
	o := tablecore.CreateOptions{Name: tabledef.Name{Namespace: "default", Table: "fine"}, IndexColumn: "at", IndexGranularity: run.Granularity,
		EntityColumns: []string{"symbol"}, Schema: schema}
	if run.Granularity == "" {
		o.Uniqueness = "none"
	}
	if _, err := w.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	table, err := w.Table(t.Context(), o.Name)
	if err != nil {
		t.Fatal(err)
	}
	appendFine(t, table, schema, run.Rows)
	l, err := table.Latest(t.Context(), tablecore.LatestOptions{})
	if n := rowsIn(t, l, err); n != fineSymbols {
		t.Fatalf("%d newest rows", n)
	}
	if run.Granularity != "" {
		l, err = table.Coverage(t.Context(), tablecore.CoverageOptions{Kind: tablecore.CoverageMissing})
		if n := rowsIn(t, l, err); n < run.Rows {
			t.Fatalf("%d gaps", n)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return childtest.PeakMemory() - before
}

const fineSymbols = 100

// appendFine appends rows far apart from each other.
func appendFine(t *testing.T, table *tablecore.Table, schema *arrow.Schema, rows int64) {
	t.Helper()
	const batchRows = 50_000
	r := seeded(1, 2)
	for done := int64(0); done < rows; {
		stream := tabletest.NewReader(schema)
		for range 20 {
			b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			for range min(batchRows, rows-done) {
				b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("S%02d", done%fineSymbols))
				b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_000_000 + done*50 + r.Int64N(40)))
				b.Field(2).(*array.Float64Builder).Append(r.Float64())
				done++
			}
			stream.Batches = append(stream.Batches, b.NewRecordBatch())
			b.Release()
			if done == rows {
				break
			}
		}
		if _, err := table.Append(t.Context(), stream, tablecore.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, b := range stream.Batches {
			b.Release()
		}
	}
}
