package derived

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
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
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
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
		err := x.add(keys)
		keys.Release()
		batch.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := x.finish()
	if err != nil {
		t.Fatal(err)
	}
	checkIndex(t, got, naive(t, def, rows))
}

func TestWrongDerivedData(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	def, rows := hourly(), sortedRows(7, 50, hour)
	good, err := Pack(def, naive(t, def, rows))
	if err != nil {
		t.Fatal(err)
	}
	edit := func(key string, change func(block []byte) []byte) map[string]string {
		kv := maps.Clone(good.KV)
		block, err := base64.StdEncoding.DecodeString(kv[key])
		if err != nil {
			t.Fatal(err)
		}
		kv[key] = base64.StdEncoding.EncodeToString(change(block))
		return kv
	}
	packedAs := func(def *tabledef.Definition, x FileIndex) map[string]string {
		p, err := Pack(def, x)
		if err != nil {
			t.Fatal(err)
		}
		return p.KV
	}
	with := func(key, value string) map[string]string {
		kv := maps.Clone(good.KV)
		kv[key] = value
		return kv
	}
	without := func(key string) map[string]string {
		kv := maps.Clone(good.KV)
		delete(kv, key)
		return kv
	}
	other := hourly()
	other.ID = "another"
	finer := hourly()
	finer.Granularity.N = 2
	fewer := rows[:len(rows)-1]
	x := naive(t, def, rows)
	shifted := slices.Clone(rows)
	for i := range shifted {
		shifted[i].index += hour
	}
	wrongDir := FileIndex{Rows: x.Rows, Directory: slices.Clone(x.Directory), Coverage: x.Coverage}
	wrongDir.Directory[0].Key = "no key"
	// The block of a kind with a sound header around a payload of one's own.
	forged := func(k kind, payload ...byte) string {
		return base64.StdEncoding.EncodeToString(appendBlock(nil, k, originOf(def, x.Rows), payload))
	}
	for name, c := range map[string]struct {
		kv   map[string]string
		want string
	}{
		"no directory":               {without(KeyEntities), KeyEntities + " is missing"},
		"no coverage":                {without(KeyCoverage), KeyCoverage + " is missing"},
		"no base64":                  {with(KeyEntities, "!"), KeyEntities + " is damaged"},
		"empty":                      {with(KeyCoverage, ""), KeyCoverage + " is damaged"},
		"swapped":                    {with(KeyCoverage, good.KV[KeyEntities]), KeyCoverage + " is damaged"},
		"a newer version":            {edit(KeyEntities, func(b []byte) []byte { b[5]++; return b }), KeyEntities + " is of version 2"},
		"a flipped bit":              {edit(KeyEntities, func(b []byte) []byte { b[len(b)-3] ^= 4; return b }), KeyEntities + " is damaged"},
		"cut":                        {edit(KeyCoverage, func(b []byte) []byte { return b[:len(b)-1] }), KeyCoverage + " is damaged"},
		"another table":              {packedAs(other, x), KeyEntities + " is of another table"},
		"another granularity":        {packedAs(finer, naive(t, finer, rows)), KeyEntities + " is made with other keys or another granularity"},
		"another file":               {packedAs(def, naive(t, def, fewer)), KeyEntities + " is of another file"},
		"keys of no table":           {packedAs(def, wrongDir), KeyEntities + " is damaged"},
		"coverage of other rows":     {with(KeyCoverage, packedAs(def, naive(t, def, shifted))[KeyCoverage]), KeyCoverage + " is damaged"},
		"a forged directory":         {with(KeyEntities, forged(kindEntities, 2)), KeyEntities + " is damaged"},
		"a forged coverage":          {with(KeyCoverage, forged(kindCoverage, 0)), KeyCoverage + " is damaged"},
		"a directory of few rows":    {with(KeyEntities, forged(kindEntities, sortedFile, 0)), KeyEntities + " is damaged"},
		"unsorted, empty coverage":   {map[string]string{KeyEntities: forged(kindEntities, unsortedFile), KeyCoverage: forged(kindCoverage, 0)}, KeyCoverage + " is damaged"},
		"unsorted, keys of no table": {map[string]string{KeyEntities: forged(kindEntities, unsortedFile), KeyCoverage: forged(kindCoverage, 1, 0, 1, 'x', 0, 0, 0)}, KeyCoverage + " is damaged"},
	} {
		file := fileOf(t, mem, def, rows, c.kv)
		var reasons []string
		got, err := Load(context.Background(), memstore.New(), file, "f", def, func(reason string) { reasons = append(reasons, reason) })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Equal(reasons, []string{c.want}) {
			t.Errorf("%s: got %q, want %q", name, reasons, c.want)
		}
		checkIndex(t, got, x)
	}
}

func TestWrongSidecar(t *testing.T) {
	ctx := context.Background()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	def, rows := hourly(), sortedRows(8_000, 2, hour)
	want := naive(t, def, rows)
	file, store, p := packedFile(t, mem, def, rows)
	good, err := store.Get(ctx, SidecarPath("f"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"of another file": {p.Sidecar(file.Size() + 1), KeyEntities + " is of another file"},
		"cut":             {good[:len(good)/3], KeyEntities + " is missing"},
		"cut later":       {good[:len(good)-1], KeyCoverage + " is missing"},
		"empty":           {nil, KeyEntities + " is missing"},
		"noise":           {bytes.Repeat([]byte{7, 0, 0, 0}, 99), KeyEntities + " is missing"},
	} {
		if err := store.Put(ctx, SidecarPath("f"), c.data); err != nil {
			t.Fatal(err)
		}
		var reasons []string
		got, err := Load(ctx, store, file, "f", def, func(reason string) { reasons = append(reasons, reason) })
		if err != nil || !slices.Equal(reasons, []string{c.want}) {
			t.Errorf("%s: got %q, %v, want %q", name, reasons, err, c.want)
		}
		checkIndex(t, got, want)
	}
	if got, err := Load(ctx, store, file, "another path", def, nil); err != nil {
		t.Error(err)
	} else {
		checkIndex(t, got, want)
	}
}

func TestLoadErrors(t *testing.T) {
	ctx := context.Background()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	def := hourly()
	file := fileOf(t, mem, def, sortedRows(2, 2, hour), nil)
	var corrupt *tableerr.Corrupt

	noSite := fileOf(t, mem, &tabledef.Definition{Stored: arrow.NewSchema([]arrow.Field{{Name: "at", Type: arrow.PrimitiveTypes.Int64}, {Name: "x", Type: arrow.BinaryTypes.String}, {Name: "y", Type: arrow.PrimitiveTypes.Int64}}, nil)}, []row{{"a", 1, 1}}, nil)
	if _, err := Load(ctx, memstore.New(), noSite, "f", def, nil); !errors.As(err, &corrupt) {
		t.Errorf("a file without key columns: %v", err)
	}
	withNull := definition(arrow.FixedWidthTypes.Timestamp_us, tabledef.Granularity{N: 1, Unit: "h"}, "site", "unit")
	withNull.Stored = arrow.NewSchema([]arrow.Field{{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_us}, {Name: "site", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "unit", Type: arrow.PrimitiveTypes.Int64}}, nil)
	if _, err := Load(ctx, memstore.New(), nullFile(t, mem, withNull), "f", def, nil); !errors.As(err, &corrupt) {
		t.Errorf("a null in a key column: %v", err)
	}
	for at := range 2 { // the sidecar's Open and its ReadAt
		file, store, _ := packedFile(t, mem, def, sortedRows(8_000, 2, hour))
		broken := faultstore.Wrap(store, faultstore.Plan{At: at, Kind: faultstore.Error})
		if _, err := Load(ctx, broken, file, "f", def, func(reason string) { t.Error(reason) }); !errors.Is(err, faultstore.ErrInjected) {
			t.Errorf("a store that fails at operation %d: %v", at, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Load(cancelled, memstore.New(), file, "f", def, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
	if _, err := Load(ctx, memstore.New(), file, "f", &tabledef.Definition{EntityColumns: []string{"site"}}, nil); err == nil {
		t.Error("a table without a schema has an index")
	}
	odd := definition(arrow.FixedWidthTypes.Timestamp_us, tabledef.Granularity{N: 1, Unit: "ns"}, "site")
	if _, err := Load(ctx, memstore.New(), file, "f", odd, nil); err == nil {
		t.Error("a granularity below the unit was taken")
	}
	lost := hourly()
	lost.IndexColumn = "gone"
	if _, err := Load(ctx, memstore.New(), file, "f", lost, nil); err == nil {
		t.Error("a table without its index column has an index")
	}
	if _, err := Pack(def, FileIndex{Rows: -1}); err == nil {
		t.Error("a file of -1 rows was packed")
	}
}

// nullFile is a file with a null in its entity column.
func nullFile(t *testing.T, mem memory.Allocator, def *tabledef.Definition) *datafile.File {
	t.Helper()
	b := array.NewRecordBuilder(mem, tabledef.StorageSchema(def.Stored))
	defer b.Release()
	b.Field(0).(*array.TimestampBuilder).Append(1)
	b.Field(1).(*array.StringBuilder).AppendNull()
	b.Field(2).(*array.Int64Builder).Append(1)
	batch := b.NewRecordBatch()
	defer batch.Release()
	var out bytes.Buffer
	w, err := datafile.NewWriter(&out, batch.Schema(), datafile.WriteOptions{Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, mem, out.Bytes())
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

// TestGoldenBytes holds what is persisted. A change of these bytes needs a new
// version of the block.
func TestGoldenBytes(t *testing.T) {
	def := hourly()
	x := naive(t, def, []row{{"EWR", 1, 0}, {"EWR", 1, hour}, {"EWR", 1, 5 * hour}, {"JFK", -1, 2 * hour}})
	p, err := Pack(def, x)
	if err != nil {
		t.Fatal(err)
	}
	o := originOf(def, x.Rows)
	both := map[kind][]byte{kindCoverage: x.Coverage.AppendEncoded(nil), kindEntities: appendDirectory(nil, x.Directory)}
	got := fmt.Sprintf("%s\n%s\n%x\n%s\n", p.KV[KeyCoverage], p.KV[KeyEntities], sidecar(both, o, 48211), SidecarPath("data/5c/5c0e.parquet"))
	want, err := os.ReadFile("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func FuzzStoredIndex(f *testing.F) {
	def, rows := hourly(), sortedRows(5, 4, hour)
	x := naive(f, def, rows)
	both := map[kind][]byte{kindCoverage: x.Coverage.AppendEncoded(nil), kindEntities: appendDirectory(nil, x.Directory)}
	f.Add(sidecar(both, originOf(def, x.Rows), 9), both[kindEntities])
	f.Add([]byte{}, []byte{unsortedFile})
	f.Add([]byte{1, 0, 0, 0, 'x'}, []byte{sortedFile, 1, 0, 0, 1, 0, 0})
	f.Fuzz(func(t *testing.T, data, directory []byte) {
		want := originOf(def, x.Rows)
		want.size = 9
		for _, k := range []kind{kindCoverage, kindEntities} {
			payload, why := openBlock(sidecarBlock(data, k), k, want)
			if why == "" && k == kindCoverage {
				_, _ = coverage.Decode(payload)
			}
		}
		d, ok := readDirectory(directory, x.Rows)
		if !ok || d == nil {
			return
		}
		again, ok := readDirectory(appendDirectory(nil, d), x.Rows)
		if !ok || !slices.Equal(again, d) {
			t.Fatalf("%v became %v", d, again)
		}
	})
}

func TestReadDirectoryRefuses(t *testing.T) {
	long := []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1}
	for name, data := range map[string][]byte{
		"nothing":          {},
		"unsorted and":     {unsortedFile, 0},
		"another flag":     {2},
		"no number":        {sortedFile},
		"many runs":        {sortedFile, 9},
		"key cut":          {sortedFile, 1, 0, 9, 1, 0, 0},
		"no rows":          {sortedFile, 1, 0, 0, 0, 0, 0},
		"too many rows":    {sortedFile, 1, 0, 0, 4, 0, 0},
		"too few rows":     {sortedFile, 1, 0, 0, 2, 0, 0},
		"rows cut":         {sortedFile, 1, 0, 2, 'a', 'b', 0x80},
		"first cut":        {sortedFile, 1, 0, 1, 'a', 3, 0x80},
		"length cut":       {sortedFile, 1, 0, 1, 'a', 3, 0, 0x80},
		"beyond the index": append([]byte{sortedFile, 1, 0, 1, 'a', 3, 1}, long...),
		"trailing":         {sortedFile, 1, 0, 1, 'a', 3, 0, 0, 0},
		"keys descend":     {sortedFile, 2, 0, 1, 'b', 1, 0, 0, 0, 1, 'a', 2, 0, 0},
	} {
		if d, ok := readDirectory(data, 3); ok {
			t.Errorf("%s: got %v", name, d)
		}
	}
	if d, ok := readDirectory([]byte{sortedFile, 1, 0, 1, 'a', 3, 0, 7}, 3); !ok || len(d) != 1 || d[0] != (Run{"a", 0, 3, 1 << 63, 1<<63 + 7}) {
		t.Errorf("got %v, %v", d, ok)
	}
}
