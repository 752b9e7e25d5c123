package tablecore_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// TestAppendCost makes sure that a small append costs the same at any length
// of the history: at most 6 store requests, two of them durable writes, and at
// most 8 KiB beside the data file.
func TestAppendCost(t *testing.T) {
	meter := meterstore.Wrap(memstore.New())
	w := tabletest.Warehouse(t, meter, memory.DefaultAllocator)
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	hour := 0
	appendOne := func() *tablecore.AppendReport {
		table, err := w.Table(t.Context(), weatherName)
		if err != nil {
			t.Fatal(err)
		}
		b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", hour, "1")))
		defer b.Release()
		hour++
		r, err := table.Append(t.Context(), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var requests []int64
	for _, commits := range []int{10, 2000} {
		for hour < commits {
			appendOne()
			// A checkpoint is not part of the append; one that is late would put off
			// all that follow it, perhaps to the append that is counted.
			w.WaitForBackground()
		}
		meter.Reset()
		r := appendOne()
		c := meter.Counts()
		requests = append(requests, c.Requests())
		if c.Requests() > 6 || c.DurableWrites() != 2 || c.List != 0 {
			t.Errorf("at %d commits an append makes %d requests: %s", commits, c.Requests(), c)
		}
		if beside := c.BytesWritten - r.DataFiles[0].Bytes; beside > 8<<10 {
			t.Errorf("at %d commits an append writes %d bytes beside the data file", commits, beside)
		}
	}
	if requests[0] != requests[1] {
		t.Errorf("requests grow with the history: %v", requests)
	}
}

// TestAppendCostOfManyEntities makes sure that an append costs what it brings,
// whatever the table knows: with 10 entities as with 100,000, all of which a
// state holds and somebody has asked for.
func TestAppendCostOfManyEntities(t *testing.T) {
	var costs []string
	name := tabledef.Name{Namespace: "default", Table: "points"}
	for _, entities := range []int{10, 100_000} {
		meter := meterstore.Wrap(memstore.New())
		w := tabletest.Warehouse(t, meter, memory.DefaultAllocator)
		if _, err := w.CreateTable(t.Context(), tablecore.CreateOptions{Name: name, IndexColumn: "i", IndexGranularity: "1",
			EntityColumns: []string{"a", "b"}, Schema: pointSchema}); err != nil {
			t.Fatal(err)
		}
		table, err := w.Table(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		appendAll := func(points []point) *tablecore.AppendReport {
			b := pointBatch(memory.DefaultAllocator, points)
			defer b.Release()
			r, err := table.Append(t.Context(), tabletest.NewReader(pointSchema, b), tablecore.AppendOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w.WaitForBackground()
			return r
		}
		points := make([]point, entities)
		for i := range points {
			points[i] = point{"a", int64(i), 0, 5}
		}
		appendAll(points)
		if err := table.WriteState(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range int64(2) {
			meter.Reset()
			r := appendAll([]point{{"a", 5, i + 1, 5}})
			c := meter.Counts()
			costs = append(costs, fmt.Sprintf("%d requests, %d bytes beside the data file", c.Requests(), c.BytesWritten-r.DataFiles[0].Bytes))
		}
	}
	if !slices.Equal(costs[:2], costs[2:]) {
		t.Errorf("appends to 10 and to 100,000 entities cost %q", costs)
	}
}

// TestPruning makes sure by count that narrow scans open few files.
func TestPruning(t *testing.T) {
	meter := meterstore.Wrap(memstore.New())
	w := tabletest.Warehouse(t, meter, memory.DefaultAllocator)
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	table, err := w.Table(t.Context(), weatherName)
	if err != nil {
		t.Fatal(err)
	}
	const files = 1000
	for hour := range files {
		b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", hour, "1"), rowAt("JFK", hour, "2")))
		_, err := table.Append(t.Context(), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
		b.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	w.WaitForBackground()
	fresh := tabletest.Warehouse(t, keepOpen{meter}, memory.DefaultAllocator) // nothing cached
	table = openWeather(t, fresh)
	scan := func() tablecore.ScanStats {
		rows, stats, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{
			Entities: []tablecore.EntityFilter{{"origin": json.RawMessage(`"JFK"`)}},
			Start:    json.RawMessage(fmt.Sprint(500 * int64(3600e6))), End: json.RawMessage(fmt.Sprint(501 * int64(3600e6)))})
		if err != nil || len(rows) != 1 {
			t.Fatalf("rows %q, %v", rows, err)
		}
		return stats
	}
	meter.Reset()
	stats := scan()
	if stats.Files != 1 || stats.FilesSkipped != files-1 || stats.RowGroups != 1 {
		t.Errorf("stats %+v", stats)
	}
	if c := meter.Counts(); c.Open > 2 {
		t.Errorf("a cold scan opens files %d times: %s", c.Open, c)
	}
	meter.Reset()
	plan, err := table.PlanScan(t.Context(), tablecore.ScanOptions{})
	if err != nil || plan.Rows() != 2*files {
		t.Fatalf("plan of %d rows, %v", plan.Rows(), err)
	}
	if c := meter.Counts(); c.Requests() > 2 {
		t.Errorf("a warm plan makes more than the freshness check: %s", c)
	}
	meter.Reset()
	version := plan.Version()
	if _, err = table.PlanScan(t.Context(), tablecore.ScanOptions{Version: &version}); err != nil || meter.Counts().Requests() > 1 {
		t.Errorf("a plan of a pinned version does more than look for a newer commit: %s, %v", meter.Counts(), err)
	}
}

// keepOpen lets two warehouses share a store.
type keepOpen struct{ *meterstore.Store }

func (keepOpen) Close() error { return nil }
