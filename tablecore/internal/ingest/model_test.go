package ingest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
)

// modelTypes are the payload columns of the property test: every type.
var modelTypes = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
	arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView,
	arrow.PrimitiveTypes.Date32, &arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"},
	&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Asia/Kolkata"}, &arrow.TimestampType{Unit: arrow.Nanosecond},
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
}

// model is one random append: its table, its rows and how they come.
type model struct {
	def      *tabledef.Definition
	schema   *arrow.Schema // declared, without the insertion time
	stream   *arrow.Schema // the same with other layouts of text
	rows     int
	spread   int64 // index values lie in [0, spread)
	entities int
	distinct int // different texts, but only 300 in the first few rows
	few      int
	limits   limits
	group    int64
	batch    int
}

// newModel makes the table of a model: an index of a random type, none to two
// entity columns, the row's number, and a few payload columns.
func newModel(rng *rand.Rand, rows int) *model {
	index := []arrow.DataType{&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Second},
		arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64}[rng.IntN(4)]
	keys := []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64}
	fields := []arrow.Field{{Name: "ts", Type: index}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}}
	def := &tabledef.Definition{ID: "model", Format: tabledef.CurrentFormat, IndexColumn: "ts", Uniqueness: tabledef.UniqueNone, IngestTimeColumn: "_ingest_ts"}
	def.IndexType, _ = tabledef.IndexTypeOf(index)
	if rng.IntN(4) > 0 {
		def.Granularity = tabledef.Granularity{N: uint64(1 + rng.IntN(100))}
		if def.IndexType == tabledef.IndexTimestamp {
			def.Granularity.Unit = "s"
		}
	}
	for i := range rng.IntN(3) {
		name := fmt.Sprintf("key%d", i)
		fields = append(fields, arrow.Field{Name: name, Type: keys[rng.IntN(len(keys))]})
		def.EntityColumns = append(def.EntityColumns, name)
	}
	for i := range 1 + rng.IntN(6) {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("v%d", i), Type: modelTypes[rng.IntN(len(modelTypes))], Nullable: true})
	}
	rng.Shuffle(len(fields), func(a, b int) { fields[a], fields[b] = fields[b], fields[a] })
	m := &model{schema: arrow.NewSchema(fields, nil), rows: rows, spread: int64(1 + rng.IntN(4*rows)), entities: 1 + rng.IntN(20),
		distinct: 1 + rng.IntN(rows+1), few: rng.IntN(rows + 1), group: int64(1 + rng.IntN(rows+1)), batch: 1 + rng.IntN(rows+1)}
	if def.IndexType == tabledef.IndexTimestamp && index.(*arrow.TimestampType).Unit == arrow.Microsecond {
		m.spread *= 1e6
	}
	size := int64(1 + rng.IntN(rows+1))
	m.limits = limits{rows: size, maxRows: size + size/2, bytes: 1 << 40, maxBytes: 1 << 40}
	m.def = def.WithSchema(m.schema)
	m.stream = streamSchema(rng, m.schema)
	return m
}

// streamSchema gives text columns another layout here and there.
func streamSchema(rng *rand.Rand, declared *arrow.Schema) *arrow.Schema {
	layouts := []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: arrow.BinaryTypes.String}}
	fields := slices.Clone(declared.Fields())
	for i, f := range fields {
		switch f.Type.ID() {
		case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
			fields[i].Type = layouts[rng.IntN(len(layouts))]
		}
	}
	return arrow.NewSchema(fields, nil)
}

// fill builds the batches of a model.
func (m *model) fill(rng *rand.Rand, mem memory.Allocator) []arrow.RecordBatch {
	order := rng.IntN(3) // ascending, late rows, any order
	var out []arrow.RecordBatch
	b := array.NewRecordBuilder(mem, m.stream)
	defer b.Release()
	for n := 0; n < m.rows; {
		take := min(1+rng.IntN(m.batch), m.rows-n)
		for range take {
			at := int64(n) * m.spread / int64(m.rows)
			if order == 2 || order == 1 && rng.IntN(10) == 0 {
				at = rng.Int64N(m.spread)
			}
			for i, f := range m.schema.Fields() {
				switch {
				case f.Name == "ts":
					appendNumber(b.Field(i), at-m.spread/3)
				case f.Name == "n":
					appendNumber(b.Field(i), int64(n))
				case strings.HasPrefix(f.Name, "key"):
					m.appendKey(b.Field(i), rng)
				case rng.IntN(5) == 0:
					b.Field(i).AppendNull()
				default:
					m.appendValue(b.Field(i), rng, n < m.few)
				}
			}
			n++
		}
		out = append(out, b.NewRecordBatch())
	}
	return out
}

// appendNumber appends a number; 0 stands for 2^63 where there are no negative ones.
func appendNumber(b array.Builder, v int64) {
	switch b := b.(type) {
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v))
	case *array.Int64Builder:
		b.Append(v)
	case *array.Uint64Builder:
		b.Append(uint64(v) ^ 1<<63)
	}
}

// appendKey appends a value of an entity column; strings share prefixes and
// hold NUL, integers are negative too.
func (m *model) appendKey(b array.Builder, rng *rand.Rand) {
	n := rng.IntN(m.entities)
	text := strings.Repeat("a\x00longer prefix"[:n%16], 1) + fmt.Sprint(n%7)
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(text)
	case *array.LargeStringBuilder:
		b.Append(text)
	case *array.StringViewBuilder:
		b.Append(text)
	case *array.BinaryDictionaryBuilder:
		appendDictionary(b, text)
	case *array.Int32Builder:
		b.Append(int32(n-5) * 100_000_000)
	case *array.Int64Builder:
		b.Append(int64(n-5) * 1e18)
	case *array.Uint64Builder:
		b.Append(uint64(n) << 60)
	}
}

func appendDictionary(b *array.BinaryDictionaryBuilder, text string) {
	if err := b.AppendString(text); err != nil {
		panic(err)
	}
}

// appendValue appends a payload value; few says that texts are few as yet.
func (m *model) appendValue(b array.Builder, rng *rand.Rand, few bool) {
	distinct := m.distinct
	if few {
		distinct = min(distinct, 300)
	}
	text := fmt.Sprintf("text %d", rng.IntN(distinct))
	if rng.IntN(3) == 0 {
		text += " which is longer than a view holds in line"
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(rng.IntN(2) == 0)
	case *array.Int8Builder:
		b.Append(int8(rng.Uint32()))
	case *array.Int16Builder:
		b.Append(int16(rng.Uint32()))
	case *array.Int32Builder:
		b.Append(int32(rng.Uint32()))
	case *array.Int64Builder:
		b.Append(int64(rng.Uint64()))
	case *array.Uint8Builder:
		b.Append(uint8(rng.Uint32()))
	case *array.Uint16Builder:
		b.Append(uint16(rng.Uint32()))
	case *array.Uint32Builder:
		b.Append(rng.Uint32())
	case *array.Uint64Builder:
		b.Append(rng.Uint64())
	case *array.Float16Builder:
		b.Append(float16.New(float32(rng.IntN(2000)-1000) / 8))
	case *array.Float32Builder:
		b.Append([]float32{float32(rng.NormFloat64()), float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))}[rng.IntN(4)])
	case *array.Float64Builder:
		b.Append([]float64{rng.NormFloat64(), math.NaN(), math.Inf(-1), math.Copysign(0, -1)}[rng.IntN(4)])
	case *array.StringBuilder:
		b.Append(text)
	case *array.LargeStringBuilder:
		b.Append(text)
	case *array.StringViewBuilder:
		b.Append(text)
	case *array.BinaryBuilder:
		b.Append([]byte(text))
	case *array.BinaryViewBuilder:
		b.Append([]byte(text))
	case *array.BinaryDictionaryBuilder:
		appendDictionary(b, text)
	case *array.Date32Builder:
		b.Append(arrow.Date32(rng.IntN(40000) - 10000))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(rng.Int64N(1e12) - 1e11))
	default:
		panic(fmt.Sprintf("no values for %T", b))
	}
}

// modelRow is a row as the naive reference sees it.
type modelRow struct {
	n       int
	ordinal uint64
	key     string
	values  []string
}

// reference reads the rows of a model's batches the slow way.
func (m *model) reference(t *testing.T, input []arrow.RecordBatch) []modelRow {
	t.Helper()
	var rows []modelRow
	for _, batch := range input {
		for i := range int(batch.NumRows()) {
			r := modelRow{n: len(rows)}
			for c, f := range m.schema.Fields() {
				arr := batch.Column(c)
				r.values = append(r.values, arr.ValueStr(i))
				if f.Name == "ts" {
					r.ordinal = ordinalOf(arr, i)
				}
			}
			for _, name := range m.def.EntityColumns {
				r.key += sortableKey(batch.Column(m.schema.FieldIndices(name)[0]), i)
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func ordinalOf(arr arrow.Array, i int) uint64 {
	switch a := arr.(type) {
	case *array.Timestamp:
		return uint64(a.Value(i)) ^ 1<<63
	case *array.Int64:
		return uint64(a.Value(i)) ^ 1<<63
	default:
		return arr.(*array.Uint64).Value(i)
	}
}

// sortableKey writes a key value so that texts sort as values do. It differs
// from package entitykey on purpose.
func sortableKey(arr arrow.Array, i int) string {
	switch a := arr.(type) {
	case *array.Int32:
		return fmt.Sprintf("%020d", uint64(int64(a.Value(i)))^1<<63)
	case *array.Int64:
		return fmt.Sprintf("%020d", uint64(a.Value(i))^1<<63)
	case *array.Uint64:
		return fmt.Sprintf("%020d", a.Value(i))
	default:
		return fmt.Sprintf("%x ", arr.ValueStr(i))
	}
}

// readFile reads a data file's rows back in declared types, as text.
func readFile(t *testing.T, store objstore.Store, path string, declared *arrow.Schema) [][]string {
	t.Helper()
	ctx := context.Background()
	object, err := store.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	footer, err := datafile.ParseFooter(ctx, object, path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := datafile.Open(object, footer, path, nil).Read(ctx, datafile.ReadRequest{Fields: tabledef.StorageSchema(declared).Fields()})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	var out [][]string
	for {
		batch, err := rows.Next(ctx)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		start := len(out)
		out = append(out, make([][]string, batch.NumRows())...)
		for c, f := range declared.Fields() {
			arr, err := convert.FromStorage(memory.DefaultAllocator, batch.Column(c), f.Type)
			if err != nil {
				t.Fatal(err)
			}
			for i := range arr.Len() {
				out[start+i] = append(out[start+i], arr.ValueStr(i))
			}
			arr.Release()
		}
	}
}

// check compares a result with the reference.
func (m *model) check(t *testing.T, store objstore.Store, result *Result, rows []modelRow, domain interval.Domain) {
	t.Helper()
	if result.Rows != int64(len(rows)) {
		t.Fatalf("%d rows, want %d", result.Rows, len(rows))
	}
	seen := 0
	for i, f := range result.Files {
		var want []modelRow
		for _, r := range rows {
			if r.ordinal >= f.MinIndex && r.ordinal <= f.MaxIndex {
				want = append(want, r)
			}
		}
		slices.SortStableFunc(want, func(a, b modelRow) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.ordinal, b.ordinal))
		})
		got := readFile(t, store, f.Path, m.def.Stored)
		if i > 0 && domain.ID(f.MinIndex) <= domain.ID(result.Files[i-1].MaxIndex) {
			// A range of one interval that was cut between entities.
			if domain.ID(f.MaxIndex) != domain.ID(f.MinIndex) {
				t.Fatalf("file %d reaches back", i)
			}
			return
		}
		if len(got) != len(want) || int64(len(got)) != f.Rows {
			if domain.ID(f.MaxIndex) == domain.ID(f.MinIndex) {
				return // as above, the first of them
			}
			t.Fatalf("file %d has %d rows, want %d", i, len(got), len(want))
		}
		for j, r := range want {
			if !slices.Equal(got[j][:len(r.values)], r.values) || got[j][len(r.values)] != "2027-01-15T08:00:00.123456Z" {
				t.Fatalf("file %d row %d: %q, want row %d: %q", i, j, got[j], r.n, r.values)
			}
		}
		seen += len(got)
	}
	if seen != len(rows) {
		t.Fatalf("the files hold %d rows, want %d", seen, len(rows))
	}
}

// run appends the model's rows and compares the files with the reference.
func (m *model) run(t *testing.T, rng *rand.Rand) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	input := m.fill(rng, memory.DefaultAllocator)
	store := memstore.New()
	cfg := testConfig(t, m.def, mem)
	cfg.Store, cfg.limits, cfg.Write.MaxRowsPerRowGroup = store, m.limits, m.group
	result, err := Run(context.Background(), cfg, &batches{m.stream, input})
	if err != nil {
		t.Fatal(err)
	}
	m.check(t, store, result, m.reference(t, input), cfg.Domain)
}

// TestRunEqualsReference compares random appends with a naive sort.
func TestRunEqualsReference(t *testing.T) {
	for seed := range uint64(150) {
		rows := 1 + int(seed)*7
		if seed%50 == 49 {
			rows = 140_000 // more than two chunks
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			newModel(rng, rows).run(t, rng)
		})
	}
}
