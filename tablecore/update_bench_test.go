package tablecore_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/tabletest"
)

// updateBench is a table of a number of entities with as many rows each, whose
// payload columns are doubles and one text of some bytes.
type updateBench struct {
	Entities, Each int
	Doubles        int
	TextBytes      int
	Files          int // by ranges of time
}

func (c updateBench) schema() *arrow.Schema {
	fields := []arrow.Field{{Name: "e", Type: arrow.BinaryTypes.String}, {Name: "t", Type: arrow.PrimitiveTypes.Int64}}
	for i := range c.Doubles {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("v", i), Type: arrow.PrimitiveTypes.Float64, Nullable: true})
	}
	if c.TextBytes > 0 {
		fields = append(fields, arrow.Field{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// letters are a million letters in no order.
var letters = func() string {
	rng, text := rand.New(rand.NewPCG(5, 5)), make([]byte, 1<<20)
	for i := range text {
		text[i] = 'a' + byte(rng.IntN(26))
	}
	return string(text)
}()

// rows makes rows with the numbers of at, each an entity and a time.
func (c updateBench) rows(schema *arrow.Schema, rng *rand.Rand, from, to int, number func(i int) int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Reserve(to - from)
	for i := from; i < to; i++ {
		n := number(i)
		for k, f := range schema.Fields() {
			switch f.Name {
			case "e":
				b.Field(k).(*array.StringBuilder).Append(fmt.Sprintf("entity-%04d", n%c.Entities))
			case "t":
				b.Field(k).(*array.Int64Builder).Append(int64(n / c.Entities))
			case "text":
				b.Field(k).(*array.StringBuilder).Append(letters[rng.IntN(len(letters)-c.TextBytes):][:c.TextBytes])
			default:
				b.Field(k).(*array.Float64Builder).Append(float64(rng.IntN(1e6)) / 100)
			}
		}
	}
	return b.NewRecordBatch()
}

// generated is a stream that makes its batches as they are asked for.
type generated struct {
	updateBench
	fields  *arrow.Schema
	rng     *rand.Rand
	next, n int
	number  func(i int) int
	last    arrow.RecordBatch
}

func (g *generated) Schema() *arrow.Schema { return g.fields }

func (g *generated) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if g.last != nil {
		g.last.Release()
		g.last = nil
	}
	if g.next == g.n {
		return nil, io.EOF
	}
	to := min(g.n, g.next+max(64, min(8192, 4<<20/max(1, g.TextBytes))))
	g.last = g.rows(g.fields, g.rng, g.next, to, g.number)
	g.next = to
	return g.last, nil
}

// fill makes the table and appends its rows, a file each time.
func (c updateBench) fill(b testing.TB, house *tablecore.Warehouse) (*tablecore.Table, int64) {
	b.Helper()
	if _, err := house.CreateTable(b.Context(), tablecore.CreateOptions{Name: typesName, IndexColumn: "t", IndexType: "int64", IndexGranularity: "1",
		EntityColumns: []string{"e"}, Schema: c.schema()}); err != nil {
		b.Fatal(err)
	}
	table, err := house.Table(b.Context(), typesName)
	if err != nil {
		b.Fatal(err)
	}
	version := int64(0)
	total := c.Entities * c.Each
	for f := range c.Files {
		from, to := total/c.Files*f, total/c.Files*(f+1)
		stream := &generated{updateBench: c, fields: c.schema(), rng: rand.New(rand.NewPCG(1, 1)), n: to - from, number: func(i int) int { return from + i }}
		r, err := table.Append(b.Context(), stream, tablecore.AppendOptions{})
		if err != nil {
			b.Fatal(err)
		}
		version = r.CommittedVersion
	}
	return table, version
}

// BenchmarkUpdate measures updates on a local disk, with all key checks and
// durable.
func BenchmarkUpdate(b *testing.B) {
	for _, c := range []struct {
		name   string
		table  updateBench
		column string
		rows   int
		step   int // between updated rows
	}{
		{"narrow/rows=65536of262144/files=4", updateBench{64, 4096, 2, 0, 4}, "v0", 65536, 4},
		{"wide/rows=262144of262144/files=4", updateBench{64, 4096, 1, 4096, 4}, "text", 262144, 1},
		{"point/rows=1of1000000/columns=10", updateBench{1000, 1000, 8, 0, 1}, "v3", 1, 1},
		{"some/rows=50000of1000000/columns=10", updateBench{1000, 1000, 8, 0, 1}, "v3", 50000, 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			table, version := c.table.fill(b, updateRun{Dir: b.TempDir(), Budget: 1 << 30}.open(b))
			var fields []arrow.Field
			for _, f := range c.table.schema().Fields() {
				if f.Name == "e" || f.Name == "t" || f.Name == c.column {
					fields = append(fields, f)
				}
			}
			var report *tablecore.UpdateReport
			for b.Loop() {
				b.StopTimer()
				batches := []arrow.RecordBatch{}
				stream := &generated{updateBench: c.table, fields: arrow.NewSchema(fields, nil), rng: rand.New(rand.NewPCG(uint64(version), 1)), n: c.rows,
					number: func(i int) int { return i * c.step }}
				if c.table.TextBytes == 0 {
					for {
						batch, err := stream.Next(b.Context())
						if err != nil {
							break
						}
						batch.Retain()
						batches = append(batches, batch)
					}
				}
				b.StartTimer()
				var rows tablecore.RowReader = stream
				if c.table.TextBytes == 0 {
					rows = tabletest.NewReader(stream.fields, batches...)
				}
				var err error
				if report, err = table.UpdateRows(b.Context(), rows, tablecore.UpdateOptions{Columns: []string{c.column}, ExpectedVersion: version}); err != nil {
					b.Fatal(err)
				}
				version = report.CommittedVersion
			}
			b.ReportMetric(float64(c.rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(report.ReplacementFileBytes), "bytes/op")
		})
	}
}
