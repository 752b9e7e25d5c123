package tablecore_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/bufpool"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

var typesName = tabledef.Name{Namespace: "default", Table: "types"}

// typesTable is a table of random rows in memory: k is its int64 index, e its
// entity, the other fields are payload.
type typesTable struct {
	t      *testing.T
	mem    *memory.CheckedAllocator
	rng    *rand.Rand
	schema *arrow.Schema
	house  *tablecore.Warehouse
	table  *tablecore.Table
	rows   map[string]string // by index value, what was appended
	next   int64
}

func newTypesTable(t *testing.T, seed uint64, adopt bool, payload ...arrow.Field) *typesTable {
	t.Helper()
	return newTypesTableWith(t, seed, adopt, func(mem memory.Allocator) *tablecore.Warehouse {
		return tabletest.Warehouse(t, memstore.New(), mem)
	}, payload...)
}

func newTypesTableWith(t *testing.T, seed uint64, adopt bool, open func(memory.Allocator) *tablecore.Warehouse, payload ...arrow.Field) *typesTable {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	md := arrow.NewMetadata([]string{"project"}, []string{"types"})
	f := &typesTable{t: t, mem: mem, rng: rand.New(rand.NewPCG(seed, 1)), rows: map[string]string{},
		schema: arrow.NewSchema(append([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "e", Type: arrow.BinaryTypes.String}}, payload...), &md)}
	f.house = open(mem)
	o := tablecore.CreateOptions{Name: typesName, IndexColumn: "k", IndexType: "int64", IndexGranularity: "1", EntityColumns: []string{"e"}}
	if !adopt {
		o.Schema = f.schema
	}
	if _, err := f.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.table, err = f.house.Table(t.Context(), typesName); err != nil {
		t.Fatal(err)
	}
	return f
}

// append stores n random rows in batches of the given sizes, each batch a
// slice, in an order that is not that of the index.
func (f *typesTable) append(sizes ...int) {
	f.t.Helper()
	var batches []arrow.RecordBatch
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	for _, n := range sizes {
		batches = append(batches, f.batch(n))
	}
	if _, err := f.table.Append(f.t.Context(), tabletest.NewReader(f.schema, batches...), tablecore.AppendOptions{RequestID: fmt.Sprint("r", f.next)}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *typesTable) batch(n int) arrow.RecordBatch {
	columns := make([]arrow.Array, f.schema.NumFields())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i, field := range f.schema.Fields()[2:] {
		columns[i+2] = tabletest.RandomArray(f.mem, f.rng, field, n)
	}
	keys, entities := array.NewInt64Builder(f.mem), array.NewStringBuilder(f.mem)
	defer keys.Release()
	defer entities.Release()
	for i := range n {
		keys.Append(f.next*1000 + int64(n-i)*7%1000)
		entities.Append([]string{"a", "b", "c"}[i%3])
	}
	f.next++
	columns[0], columns[1] = keys.NewArray(), entities.NewArray()
	batch := array.NewRecordBatch(f.schema, columns, int64(n))
	for i := range n {
		f.rows[tabletest.ValueText(batch.Column(0), i)] = rowText(batch, i)
	}
	return batch
}

func rowText(batch arrow.RecordBatch, i int) string {
	texts := make([]string, batch.NumCols())
	for c := range texts {
		texts[c] = batch.ColumnName(c) + "=" + tabletest.ValueText(batch.Column(c), i)
	}
	return strings.Join(texts, "\n")
}

// check scans all rows and compares them with what was appended.
func (f *typesTable) check(profile string, types func(*arrow.Schema)) {
	f.t.Helper()
	if err := clean(f.t.Context(), f.house, false); err != nil {
		f.t.Error(err)
	}
	plan, err := f.table.PlanScan(f.t.Context(), tablecore.ScanOptions{Profile: profile})
	if err != nil {
		f.t.Fatal(err)
	}
	types(plan.Schema())
	seen := 0
	_, err = tabletest.EachBatch(f.t.Context(), plan, func(batch arrow.RecordBatch) error {
		for i, c := range batch.Columns() {
			if want := batch.Schema().Field(i).Type; !arrow.TypeEqual(c.DataType(), want, arrow.CheckMetadata()) {
				f.t.Errorf("column %s is %s, the schema says %s", batch.ColumnName(i), c.DataType(), want)
			}
			if err := array.ValidateFull(c); err != nil {
				f.t.Errorf("column %s: %v", batch.ColumnName(i), err)
			}
		}
		for i := range int(batch.NumRows()) {
			seen++
			if got, want := rowText(batch, i), f.rows[tabletest.ValueText(batch.Column(0), i)]; got != want {
				f.t.Fatalf("got row\n%s\nwant\n%s", got, want)
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	if seen != len(f.rows) {
		f.t.Errorf("%d rows came back of %d", seen, len(f.rows))
	}
}

// exact checks that a schema is the one declared, metadata and all.
func (f *typesTable) exact(got *arrow.Schema) {
	f.t.Helper()
	want, err := tabledef.EncodeSchemaIPC(f.schema)
	if err != nil {
		f.t.Fatal(err)
	}
	have, err := tabledef.EncodeSchemaIPC(got)
	if err != nil {
		f.t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		f.t.Errorf("got schema\n%s\nwant\n%s", got, f.schema)
	}
}

// plain checks that a schema has none of the types that compat leaves out.
func (f *typesTable) plain(got *arrow.Schema) {
	f.t.Helper()
	var check func(path string, field arrow.Field)
	check = func(path string, field arrow.Field) {
		if _, ok := field.Type.(arrow.ExtensionType); ok || slices.Contains(field.Metadata.Keys(), "ARROW:extension:name") {
			f.t.Errorf("%s is an extension", path)
		}
		switch field.Type.ID() {
		case arrow.DICTIONARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.LARGE_LIST, arrow.STRING_VIEW, arrow.BINARY_VIEW,
			arrow.DATE64, arrow.DECIMAL32, arrow.DECIMAL64:
			f.t.Errorf("%s is %s", path, tabledef.TypeName(field.Type))
		}
		for _, child := range tabledef.Children(field.Type) {
			check(path+"."+child.Name, child)
		}
	}
	for _, field := range got.Fields() {
		check(field.Name, field)
	}
}

// typeCases are the types of table-format.md, inside each other where they can
// be, with field metadata at every depth.
func typeCases() []arrow.Field {
	md := func(kv ...string) arrow.Metadata { return arrow.NewMetadata(kv[:1], kv[1:]) }
	text := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	numbers := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.PrimitiveTypes.Float64, Ordered: true}
	deep := arrow.DataType(arrow.PrimitiveTypes.Int8)
	for i := range tabledef.MaxTypeDepth {
		if i%2 == 0 {
			deep = arrow.StructOf(arrow.Field{Name: "s", Type: deep, Nullable: true})
		} else {
			deep = arrow.ListOf(deep)
		}
	}
	unknown := arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata", "note"}, []string{"app.money", "EUR", "x"})
	types := []arrow.DataType{
		text, numbers,
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int64, ValueType: arrow.BinaryTypes.LargeString},
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.StringView},
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.Binary},
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.FixedWidthTypes.Boolean},
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: &arrow.Decimal256Type{Precision: 50, Scale: 3}},
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.ListOf(arrow.PrimitiveTypes.Int16)},
		arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.PrimitiveTypes.Uint64, Metadata: md("unit", "m")}),
		arrow.LargeListOf(arrow.BinaryTypes.LargeString), arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32),
		arrow.FixedSizeListOfNonNullable(2, arrow.FixedWidthTypes.Date64), arrow.ListOf(arrow.ListOf(text)), arrow.ListOf(arrow.BinaryTypes.BinaryView),
		arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), arrow.MapOf(arrow.PrimitiveTypes.Uint8, arrow.LargeListOf(numbers)),
		arrow.StructOf(arrow.Field{Name: "a", Type: arrow.FixedWidthTypes.Float16, Nullable: true, Metadata: md("unit", "K")},
			arrow.Field{Name: "b.c", Type: arrow.BinaryTypes.StringView}, arrow.Field{Name: "a b", Type: arrow.StructOf(arrow.Field{Name: "a", Type: extensions.NewUUIDType(), Nullable: true})}),
		deep, extensions.NewUUIDType(), extensions.NewBool8Type(), arrow.ListOf(extensions.NewUUIDType()),
	}
	fields := []arrow.Field{{Name: "money", Type: &arrow.Decimal128Type{Precision: 12, Scale: 2}, Nullable: true, Metadata: unknown},
		{Name: "amounts", Type: arrow.ListOfField(arrow.Field{Name: "item", Type: arrow.BinaryTypes.String, Metadata: unknown}), Nullable: true}}
	for i, t := range append(tabletest.FlatTypes(), types...) {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("%03d", i), Type: t, Nullable: true, Metadata: md("n", fmt.Sprint(i))})
		if i%3 == 0 {
			fields = append(fields, arrow.Field{Name: fmt.Sprintf("%03d not null", i), Type: t})
		}
	}
	return fields
}

func TestEveryTypeComesBack(t *testing.T) {
	for _, adopt := range []bool{false, true} {
		t.Run(fmt.Sprintf("adopt=%v", adopt), func(t *testing.T) {
			f := newTypesTable(t, 1, adopt, typeCases()...)
			f.append(40, 1, 0, 13)
			f.append(1)
			f.append(25, 30)
			f.check("exact", f.exact)
			f.check("compat", f.plain)
		})
	}
}

// TestRandomTypesComeBack takes tables of random nested columns through append
// and scan.
func TestRandomTypesComeBack(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			var fields []arrow.Field
			for i := range 1 + rng.IntN(5) {
				fields = append(fields, arrow.Field{Name: fmt.Sprint("c", i), Type: tabletest.RandomType(rng, 4), Nullable: rng.IntN(3) > 0})
			}
			f := newTypesTable(t, seed, rng.IntN(2) == 0, fields...)
			for range 1 + rng.IntN(3) {
				f.append(1+rng.IntN(80), 1+rng.IntN(5))
			}
			f.check("exact", f.exact)
			f.check("compat", f.plain)
		})
	}
}

// TestSmallDictionariesCutBatches merges appends whose dictionaries together
// have more values than their index type can name.
func TestSmallDictionariesCutBatches(t *testing.T) {
	text := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	numbers := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Int32}
	f := newTypesTable(t, 3, true, arrow.Field{Name: "d", Type: text}, arrow.Field{Name: "l", Type: arrow.ListOf(numbers), Nullable: true})
	for part := range 6 {
		b := array.NewRecordBuilder(f.mem, f.schema)
		for i := range 100 {
			value := part*100 + i
			b.Field(0).(*array.Int64Builder).Append(int64(value))
			b.Field(1).(*array.StringBuilder).Append("a")
			if err := b.Field(2).(*array.BinaryDictionaryBuilder).AppendString(fmt.Sprint("value ", value)); err != nil {
				t.Fatal(err)
			}
			list := b.Field(3).(*array.ListBuilder)
			list.Append(true)
			for k := range 2 {
				if err := list.ValueBuilder().(*array.Int32DictionaryBuilder).Append(int32(value/2 + k)); err != nil {
					t.Fatal(err)
				}
			}
		}
		batch := b.NewRecordBatch()
		b.Release()
		for i := range 100 {
			f.rows[tabletest.ValueText(batch.Column(0), i)] = rowText(batch, i)
		}
		if _, err := f.table.Append(t.Context(), tabletest.NewReader(f.schema, batch), tablecore.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		batch.Release()
	}
	f.check("exact", f.exact)
	f.check("compat", f.plain)
}

// TestSchemaIDTellsExtensionsApart: tickets name the schema they were made for.
func TestSchemaIDTellsExtensionsApart(t *testing.T) {
	seen := map[string]bool{}
	for seed, typ := range []arrow.DataType{extensions.NewUUIDType(), arrow.ListOf(extensions.NewUUIDType()), extensions.NewBool8Type()} {
		f := newTypesTable(t, uint64(seed), false, arrow.Field{Name: "v", Type: typ})
		plan, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{Profile: "exact"})
		if err != nil {
			t.Fatal(err)
		}
		seen[plan.SchemaID()] = true
	}
	if len(seen) != 3 {
		t.Errorf("three schemas have %d ids", len(seen))
	}
}

// TestEveryTypeSpills makes appends that find little memory.
func TestEveryTypeSpills(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 3))
		fields := typeCases()
		if seed > 0 {
			fields = []arrow.Field{{Name: "v", Type: tabletest.RandomType(rng, 4), Nullable: true}, {Name: "w", Type: tabletest.RandomType(rng, 4)}}
		}
		f := newTypesTableWith(t, seed, true, func(mem memory.Allocator) *tablecore.Warehouse {
			w := tabletest.Open(t, tablecore.Options{Store: memstore.New(), Allocator: mem, Batches: bufpool.Poison(mem), Clock: tabletest.NewClock().Now,
				Random: tabletest.Random(1), MemoryBudget: 256 << 10, Scratch: t.TempDir()})
			return w
		}, fields...)
		sizes := make([]int, 30)
		for i := range sizes {
			sizes[i] = 1 + rng.IntN(200)
		}
		f.append(sizes...)
		f.check("exact", f.exact)
	}
}
