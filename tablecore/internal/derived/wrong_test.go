package derived

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

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
