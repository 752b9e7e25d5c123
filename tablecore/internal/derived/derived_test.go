package derived

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
)

// row is a row's key columns: a string, an int64 and the raw index value.
type row struct {
	site  string
	unit  int64
	index int64
}

// definition is a table of rows with the given index type and granularity.
func definition(index arrow.DataType, g tabledef.Granularity, entities ...string) *tabledef.Definition {
	kind, _ := tabledef.IndexTypeOf(index)
	return &tabledef.Definition{ID: "9b3f6c1e", IndexColumn: "at", IndexType: kind, Granularity: g, EntityColumns: entities,
		Stored: arrow.NewSchema([]arrow.Field{{Name: "at", Type: index}, {Name: "site", Type: arrow.BinaryTypes.LargeString}, {Name: "unit", Type: arrow.PrimitiveTypes.Int64}}, nil)}
}

// hourly is a table of rows with an hourly index.
func hourly() *tabledef.Definition {
	return definition(arrow.FixedWidthTypes.Timestamp_us, tabledef.Granularity{N: 1, Unit: "h"}, "site", "unit")
}

const hour = int64(3600e6)

// batchOf builds the rows' storage columns.
func batchOf(t testing.TB, mem memory.Allocator, def *tabledef.Definition, rows []row) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(mem, tabledef.StorageSchema(def.Stored))
	defer b.Release()
	for _, r := range rows {
		switch at := b.Field(0).(type) {
		case *array.TimestampBuilder:
			at.Append(arrow.Timestamp(r.index))
		case *array.Int64Builder:
			at.Append(r.index)
		case *array.Decimal128Builder:
			at.Append(decimal128.FromU64(uint64(r.index)))
		}
		b.Field(1).(*array.StringBuilder).Append(r.site)
		b.Field(2).(*array.Int64Builder).Append(r.unit)
	}
	return b.NewRecordBatch()
}

// source is a file in memory.
type source struct{ *bytes.Reader }

func (s source) Size() int64 { return s.Reader.Size() }

// fileOf writes rows as a data file with the given metadata.
func fileOf(t testing.TB, mem memory.Allocator, def *tabledef.Definition, rows []row, kv map[string]string) *datafile.File {
	t.Helper()
	var out bytes.Buffer
	w, err := datafile.NewWriter(&out, tabledef.StorageSchema(def.Stored), datafile.WriteOptions{Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(rows, 10_000) {
		batch := batchOf(t, mem, def, part)
		err := w.Write(batch)
		batch.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(kv)) {
		w.SetMeta(key, kv[key])
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, mem, out.Bytes())
}

func open(t testing.TB, mem memory.Allocator, data []byte) *datafile.File {
	t.Helper()
	src := source{bytes.NewReader(data)}
	footer, err := datafile.ParseFooter(context.Background(), src, "f")
	if err != nil {
		t.Fatal(err)
	}
	return datafile.Open(src, footer, "f", mem)
}

// naive computes an index the simple way.
func naive(t testing.TB, def *tabledef.Definition, rows []row) FileIndex {
	t.Helper()
	layout, err := entitykey.LayoutOf(def)
	if err != nil {
		t.Fatal(err)
	}
	domain, err := interval.New(def.IndexType, def.IndexUnit(), def.Granularity)
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		key     string
		ordinal uint64
	}
	entries := make([]entry, len(rows))
	for i, r := range rows {
		var values []any
		for _, name := range def.EntityColumns {
			values = append(values, map[string]any{"site": r.site, "unit": r.unit}[name])
		}
		key, err := layout.Key(values...)
		if err != nil {
			t.Fatal(err)
		}
		ordinal := uint64(r.index)
		if domain.Signed() {
			at := r.index
			if def.IndexType == tabledef.IndexTimestamp && def.IndexUnit() == arrow.Second { // stored in µs
				at = at / 1e6
			}
			ordinal = interval.SignedOrdinal(at)
		}
		entries[i] = entry{key, ordinal}
	}
	order := func(a, b entry) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.ordinal, b.ordinal))
	}
	x := FileIndex{Rows: int64(len(rows))}
	if slices.IsSortedFunc(entries, order) {
		x.Directory = Directory{}
		for i, e := range entries {
			if n := len(x.Directory); n > 0 && x.Directory[n-1].Key == e.key {
				x.Directory[n-1].End, x.Directory[n-1].Last = int64(i+1), e.ordinal
			} else {
				x.Directory = append(x.Directory, Run{Key: e.key, Start: int64(i), End: int64(i + 1), First: e.ordinal, Last: e.ordinal})
			}
		}
	}
	if !domain.HasIntervals() {
		return x
	}
	slices.SortFunc(entries, order)
	b := coverage.NewBuilder()
	for i, e := range entries {
		if i == 0 || e.key != entries[i-1].key {
			b.Entity(e.key)
		}
		b.Add(domain.ID(e.ordinal))
	}
	if x.Coverage, err = b.Finish(); err != nil {
		t.Fatal(err)
	}
	return x
}

func checkIndex(t testing.TB, got, want FileIndex) {
	t.Helper()
	if got.Rows != want.Rows || got.Sorted() != want.Sorted() || !slices.Equal(got.Directory, want.Directory) {
		t.Fatalf("got %d rows, sorted %v, %d runs; want %d, %v, %d", got.Rows, got.Sorted(), len(got.Directory), want.Rows, want.Sorted(), len(want.Directory))
	}
	if (got.Coverage == nil) != (want.Coverage == nil) {
		t.Fatalf("coverage is %v, want %v", got.Coverage, want.Coverage)
	}
	if got.Coverage != nil && !bytes.Equal(got.Coverage.AppendEncoded(nil), want.Coverage.AppendEncoded(nil)) {
		t.Fatal("the coverage is wrong")
	}
	if got.Bytes() <= 0 {
		t.Fatal("the index holds no memory")
	}
}

// sortedRows makes rows sorted by (site, unit, index).
func sortedRows(entities, each int, step int64) []row {
	var rows []row
	for e := range entities {
		for i := range each {
			rows = append(rows, row{fmt.Sprintf("site-%05d", e/2), int64(e%2) - 1, 1357016400000000 + int64(e)*hour + int64(i)*step})
		}
	}
	return rows
}

// packedFile writes a file as an append does and returns it with the store its
// sidecar is in.
func packedFile(t testing.TB, mem memory.Allocator, def *tabledef.Definition, rows []row) (*datafile.File, *memstore.Store, Packed) {
	t.Helper()
	p, err := Pack(def, naive(t, def, rows))
	if err != nil {
		t.Fatal(err)
	}
	file := fileOf(t, mem, def, rows, p.KV)
	store := memstore.New()
	if p.Sidecar != nil {
		if err := store.Put(context.Background(), SidecarPath("f"), p.Sidecar(file.Size())); err != nil {
			t.Fatal(err)
		}
	}
	return file, store, p
}

func TestStoredIndex(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	fine := definition(arrow.FixedWidthTypes.Timestamp_us, tabledef.Granularity{N: 1, Unit: "us"}, "site", "unit")
	for _, c := range []struct {
		name    string
		def     *tabledef.Definition
		rows    []row
		inline  []string
		sidecar bool
	}{
		{"small", hourly(), sortedRows(7, 50, hour), []string{KeyCoverage, KeyEntities}, false},
		{"many entities", hourly(), sortedRows(20_000, 2, hour), nil, true},
		{"one large", fine, sortedRows(2, 40_000, 1_000_003), []string{KeyEntities}, true},
		{"no granularity", definition(arrow.FixedWidthTypes.Timestamp_us, tabledef.Granularity{}, "site", "unit"), sortedRows(3, 3, hour), []string{KeyEntities}, false},
		{"no rows", hourly(), nil, []string{KeyCoverage, KeyEntities}, false},
		{"no entities", definition(arrow.FixedWidthTypes.Timestamp_us, tabledef.Granularity{N: 1, Unit: "h"}), sortedRows(1, 9, hour), []string{KeyCoverage, KeyEntities}, false},
		{"unsorted", hourly(), []row{{"b", 0, 1}, {"a", 0, 1}}, []string{KeyCoverage, KeyEntities}, false},
	} {
		file, store, p := packedFile(t, mem, c.def, c.rows)
		if got := slices.Sorted(maps.Keys(p.KV)); !slices.Equal(got, c.inline) || (p.Sidecar != nil) != c.sidecar {
			t.Errorf("%s: the footer has %v, a sidecar: %v", c.name, got, p.Sidecar != nil)
		}
		x, err := Load(context.Background(), store, file, "f", c.def, func(reason string) { t.Errorf("%s: %s", c.name, reason) })
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		checkIndex(t, x, naive(t, c.def, c.rows))
	}
}

func TestRecomputedIndex(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	shuffled := sortedRows(40, 60, hour/3)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	late := sortedRows(5, 50, hour)
	late[7], late[8] = late[8], late[7]
	ns := &arrow.TimestampType{Unit: arrow.Nanosecond}
	seconds := &arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}
	for name, c := range map[string]struct {
		def  *tabledef.Definition
		rows []row
	}{
		"sorted":            {hourly(), sortedRows(7, 20_000, hour)},
		"shuffled":          {hourly(), shuffled},
		"one row late":      {hourly(), late},
		"entity comes back": {hourly(), []row{{"a", 0, 1}, {"b", 0, 1}, {"a", 0, 5 * hour}}},
		"no granularity":    {definition(arrow.FixedWidthTypes.Timestamp_us, tabledef.Granularity{}, "site"), late},
		"unsorted, none":    {definition(arrow.FixedWidthTypes.Timestamp_us, tabledef.Granularity{}, "site"), shuffled},
		"nanoseconds":       {definition(ns, tabledef.Granularity{N: 1, Unit: "s"}, "unit"), sortedRows(1, 90, 77)},
		"seconds":           {definition(seconds, tabledef.Granularity{N: 1, Unit: "m"}, "site"), sortedRows(1, 90, 1e6)},
		"integers":          {definition(arrow.PrimitiveTypes.Int64, tabledef.Granularity{N: 10}, "site"), []row{{"a", 0, -11}, {"a", 0, -1}, {"a", 0, math.MaxInt64}}},
		"unsigned":          {definition(arrow.PrimitiveTypes.Uint64, tabledef.Granularity{N: 10}, "site"), []row{{"a", 0, 3}, {"a", 0, -1}}},
		"no entities":       {definition(arrow.PrimitiveTypes.Int64, tabledef.Granularity{N: 10}), []row{{"b", 0, 1}, {"a", 0, 2}}},
		"no rows":           {hourly(), nil},
	} {
		file := fileOf(t, mem, c.def, c.rows, nil)
		var reasons []string
		x, err := Load(context.Background(), memstore.New(), file, "f", c.def, func(reason string) { reasons = append(reasons, reason) })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Equal(reasons, []string{KeyEntities + " is missing"}) {
			t.Errorf("%s: %v", name, reasons)
		}
		checkIndex(t, x, naive(t, c.def, c.rows))
	}
}

// TestUnsortedInParts makes the bounded gathering of pairs go round often.
func TestUnsortedInParts(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	def := hourly()
	rows := sortedRows(30, 40, hour/2)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	layout, err := entitykey.LayoutOf(def)
	if err != nil {
		t.Fatal(err)
	}
	domain, err := interval.New(def.IndexType, def.IndexUnit(), def.Granularity)
	if err != nil {
		t.Fatal(err)
	}
	x := newIndexer(layout, domain)
	x.maxPairs, x.maxParts = 50, 3
	for part := range slices.Chunk(rows, 111) {
		batch := batchOf(t, mem, def, part)
		keys := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{batch.Schema().Field(1), batch.Schema().Field(2), batch.Schema().Field(0)}, nil),
			[]arrow.Array{batch.Column(1), batch.Column(2), batch.Column(0)}, batch.NumRows())
		err := x.Add(keys)
		keys.Release()
		batch.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := x.Finish()
	if err != nil {
		t.Fatal(err)
	}
	checkIndex(t, got, naive(t, def, rows))
}

func TestDirectoryFind(t *testing.T) {
	d := Directory{{Key: "a", End: 3}, {Key: "c", Start: 3, End: 4}}
	if r, ok := d.Find("c"); !ok || r.Start != 3 {
		t.Errorf("got %v, %v", r, ok)
	}
	for _, key := range []string{"", "b", "d"} {
		if r, ok := d.Find(key); ok {
			t.Errorf("%q: got %v", key, r)
		}
	}
}
