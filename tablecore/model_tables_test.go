package tablecore_test

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// modelTable is a kind of table that scripts work on.
type modelTable struct {
	name    tabledef.Name
	options tablecore.CreateOptions
	schema  *arrow.Schema // of a good stream
	width   uint64        // granularity in ticks
	adopts  bool          // created without a schema
	index   func(interval int64) any
	entity  func(n int) []any
	payload func(r *rand.Rand) []any
}

func textPointer(s string) *string { return &s }

var noIngestTime = textPointer("")

// modelTables differ in index type, number of entity columns, uniqueness,
// granularity, and whether the schema comes with the first append.
var modelTables = []modelTable{
	{
		name: tabledef.Name{Namespace: "default", Table: "weather"},
		options: tablecore.CreateOptions{IndexColumn: "time_hour", IndexGranularity: "1h", EntityColumns: []string{"origin"},
			Schema: weather},
		schema: weather,
		width:  3600e6,
		index:  func(i int64) any { return i*3600e6 + 1_800e6 },
		entity: func(n int) []any { return []any{[]string{"EWR", "JFK", "", "a\x00b"}[n%4]} },
		payload: func(r *rand.Rand) []any {
			return []any{[]any{nil, math.NaN(), math.Copysign(0, -1), math.Inf(1), r.NormFloat64(), r.NormFloat64()}[r.IntN(6)]}
		},
	},
	{
		name: tabledef.Name{Namespace: "plant", Table: "counters"},
		options: tablecore.CreateOptions{IndexColumn: "tick", IndexType: "int64", IndexGranularity: "10",
			EntityColumns: []string{"plant", "sensor"}, IngestTimeColumn: noIngestTime},
		schema: arrow.NewSchema([]arrow.Field{
			{Name: "tick", Type: arrow.PrimitiveTypes.Int64},
			{Name: "plant", Type: arrow.BinaryTypes.String},
			{Name: "sensor", Type: arrow.PrimitiveTypes.Int64},
			{Name: "value", Type: arrow.PrimitiveTypes.Int64},
			{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
		}, nil),
		width:  10,
		adopts: true,
		index:  func(i int64) any { return i*10 + 3 },
		entity: func(n int) []any { return []any{[]string{"a", "ab", "a"}[n%3], int64(n%3 - 1)} },
		payload: func(r *rand.Rand) []any {
			return []any{r.Int64() >> 40, []any{nil, "", "näher", strings.Repeat("x", 40)}[r.IntN(4)]}
		},
	},
	{
		name: tabledef.Name{Namespace: "default", Table: "journal"},
		options: tablecore.CreateOptions{IndexColumn: "seq", Uniqueness: "none", IngestTimeColumn: noIngestTime,
			Schema: journal},
		schema: journal,
		index:  func(i int64) any { return uint64(i) << 3 }, // negative ones lie at the end of the domain
		entity: func(int) []any { return nil },
		payload: func(r *rand.Rand) []any {
			return []any{r.IntN(2) == 0, []any{nil, int64(math.MinInt64), r.Int64()}[r.IntN(3)]}
		},
	},
	{
		name: tabledef.Name{Namespace: "plant", Table: "readings"},
		options: tablecore.CreateOptions{IndexColumn: "at", IndexGranularity: "10", EntityColumns: []string{"sensor"}, Uniqueness: "overwrite",
			Schema: readings},
		schema: readings,
		width:  10,
		index:  func(i int64) any { return i*4 + 3 }, // an interval has two or three
		entity: func(n int) []any { return []any{int64(n%2) - 1} },
		payload: func(r *rand.Rand) []any {
			return []any{[]any{nil, math.Copysign(0, -1), r.NormFloat64(), r.NormFloat64()}[r.IntN(4)], []any{nil, "", "néant"}[r.IntN(3)]}
		},
	},
}

var readings = arrow.NewSchema([]arrow.Field{
	{Name: "value", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "sensor", Type: arrow.PrimitiveTypes.Int64},
	{Name: "at", Type: arrow.PrimitiveTypes.Int64},
	{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

var journal = arrow.NewSchema([]arrow.Field{
	{Name: "seq", Type: arrow.PrimitiveTypes.Uint64},
	{Name: "ok", Type: arrow.FixedWidthTypes.Boolean},
	{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
}, nil)

// createOptions returns the request that makes the table.
func (k *modelTable) createOptions() tablecore.CreateOptions {
	o := k.options
	o.Name = k.name
	return o
}

// model returns the reference of a new table.
func (k *modelTable) model() *tabletest.Model {
	m := &tabletest.Model{Index: k.options.IndexColumn, Entities: k.options.EntityColumns, Width: k.width,
		Reject: k.options.Uniqueness == "", Overwrite: k.options.Uniqueness == "overwrite", Timestamps: k.name == weatherName}
	if !k.adopts {
		m.SetSchema(k.schema)
	}
	return m
}

// extraColumn is the one column that tables gain, or streams have too many.
const extraColumn = "extra"

// extra is that column of a table.
func (k *modelTable) extra() arrow.Field {
	return arrow.Field{Name: extraColumn, Type: k.schema.Field(k.schema.NumFields() - 1).Type, Nullable: true}
}
