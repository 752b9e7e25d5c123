package tablecore_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/tabletest"
)

// drain runs a scan and returns its rows.
func drain(b *testing.B, table *tablecore.Table, o tablecore.ScanOptions) (rows int64) {
	plan, err := table.PlanScan(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	_, err = tabletest.EachBatch(b.Context(), plan, func(batch arrow.RecordBatch) error {
		rows += batch.NumRows()
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return rows
}

// ordered appends files one after the other in time.
func ordered(b *testing.B, table *tablecore.Table, files, entities, rowsEach int) {
	for file := range files {
		r := array.NewRecordBuilder(memory.DefaultAllocator, pointSchema)
		for e := range entities {
			for k := range rowsEach {
				r.Field(0).(*array.StringBuilder).Append("e")
				r.Field(1).(*array.Int64Builder).Append(int64(e))
				r.Field(2).(*array.Int64Builder).Append(int64(file*rowsEach + k))
				r.Field(3).(*array.Int64Builder).Append(int64(e))
			}
		}
		batch := r.NewRecordBatch()
		r.Release()
		if _, err := table.Append(b.Context(), tabletest.NewReader(pointSchema, batch), tablecore.AppendOptions{}); err != nil {
			b.Fatal(err)
		}
		batch.Release()
	}
}

func BenchmarkScan(b *testing.B) {
	for _, shape := range []struct {
		name                  string
		files, entities, each int
		interleaved           bool
	}{
		{"files=4/entities=100", 4, 100, 5000, false},
		{"files=100/entities=100", 100, 100, 200, false},
		{"files=8/entities=10/overlapping", 8, 10, 25000, true},
		{"files=500/entities=100/overlapping", 500, 100, 40, true},
		{"files=1000/entities=1000", 1000, 1000, 1, false}, // a file an hour
	} {
		table := pointTable(b, memory.DefaultAllocator)
		if shape.interleaved {
			interleaved(b, table, shape.files, shape.entities, shape.each)
		} else {
			ordered(b, table, shape.files, shape.entities, shape.each)
		}
		total := int64(shape.files) * int64(shape.entities) * int64(shape.each)
		start, end := total/int64(shape.entities)/2, total/int64(shape.entities)/2+total/int64(shape.entities)/100
		for name, o := range map[string]tablecore.ScanOptions{
			"sorted": {}, "unordered": {Order: "unordered"}, "newest": {NewestFirst: true},
			"newest-10": {NewestFirst: true, Limit: ptr(int64(10))},
			"entity":    {Entities: []tablecore.EntityFilter{{"b": json.RawMessage("7")}}},
			"range-1%":  {Start: json.RawMessage(fmt.Sprint(start)), End: json.RawMessage(fmt.Sprint(end))},
			"filter":    {Filter: []tablecore.Condition{{Column: "row", Op: "<", Value: json.RawMessage("1000")}}},
		} {
			b.Run(shape.name+"/"+name, func(b *testing.B) {
				rows := int64(0)
				resetPeak(b)
				for b.Loop() {
					rows += drain(b, table, o)
				}
				reportPeak(b)
				b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// A warm plan over 10,000 files that leaves one.
func BenchmarkPlan(b *testing.B) {
	table := pointTable(b, memory.DefaultAllocator)
	ordered(b, table, 10000, 1, 2)
	for name, o := range map[string]tablecore.ScanOptions{
		"range":  {Start: json.RawMessage("5000"), End: json.RawMessage("5001")},
		"filter": {Filter: []tablecore.Condition{{Column: "i", Op: "=", Value: json.RawMessage("5000")}}},
		"entity": {Entities: []tablecore.EntityFilter{{"a": json.RawMessage(`"e"`), "b": json.RawMessage("0")}}, Start: json.RawMessage("5000"), End: json.RawMessage("5001")},
	} {
		b.Run("files=10000/"+name, func(b *testing.B) {
			resetPeak(b)
			for b.Loop() {
				if _, err := table.PlanScan(b.Context(), o); err != nil {
					b.Fatal(err)
				}
			}
			reportPeak(b)
		})
	}
}
