package series

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/internal/lastvalue"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// testSnapshot is a version of a table of ticks, of which only what the table is
// counts.
func testSnapshot(t testing.TB, uniqueness tabledef.Uniqueness) *snapshot.Snapshot {
	t.Helper()
	def := &tabledef.Definition{ID: "1d", IndexColumn: "t", IndexType: tabledef.IndexTimestamp, Granularity: tabledef.Granularity{N: 1, Unit: "s"},
		EntityColumns: []string{"e", "n"}, Uniqueness: uniqueness, IngestTimeColumn: "_ingest_ts",
		Stored: arrow.NewSchema([]arrow.Field{
			{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Second}},
			{Name: "e", Type: arrow.BinaryTypes.String},
			{Name: "n", Type: arrow.PrimitiveTypes.Uint64},
			{Name: "v", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64), Nullable: true},
			{Name: "_ingest_ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
		}, nil)}
	s := &snapshot.Snapshot{Def: def}
	var err error
	if s.Domain, err = interval.New(def.IndexType, def.IndexUnit(), def.Granularity); err != nil {
		t.Fatal(err)
	}
	if s.Layout, err = entitykey.LayoutOf(def); err != nil {
		t.Fatal(err)
	}
	return s
}

// testBlock makes the newest rows of entities from JSON with storage types.
func testBlock(t testing.TB, s *snapshot.Snapshot, path string, texts ...string) *lastvalue.Block {
	t.Helper()
	values, _, err := array.RecordFromJSON(memory.DefaultAllocator, tabledef.StorageSchema(s.Def.Stored), strings.NewReader("["+strings.Join(texts, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	b := &lastvalue.Block{Rows: make([]lastvalue.Row, len(texts)), Values: values}
	for i := range b.Rows {
		b.Rows[i].Path, b.Rows[i].At = path, int64(100*i)
	}
	if err := setKeys(s, b.Rows, values); err != nil {
		t.Fatal(err)
	}
	return b
}

// stored is a row as it lies in a data file; times are in microseconds there.
func stored(e string, n, second, stamp int, v string) string {
	return fmt.Sprintf(`{"t":%d,"e":%q,"n":"%d","v":%s,"_ingest_ts":%d}`, second*1e6, e, n, v, stamp)
}

func testIndex(t testing.TB, s *snapshot.Snapshot) *lastvalue.Index {
	t.Helper()
	x := lastvalue.NewIndex(testBlock(t, s, "data/00/a.parquet", stored("", 1, -5, 9, "null"), stored("a", 2, 7, 8, "[1,2.5]"), stored("z", 0, 3, 3, "[]")))
	x, err := x.Advance(testBlock(t, s, "data/00/b.parquet", stored("a", 2, 8, 1, "[null]"), stored("b", 1<<40, 1, 1, "null")), nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// contents are the rows of an index with their values.
func contents(t testing.TB, x *lastvalue.Index) []string {
	t.Helper()
	var out []string
	for r := range x.All() {
		row := x.Blocks()[r.Block].Values.NewSlice(int64(r.Place), int64(r.Place+1))
		var text bytes.Buffer
		if err := array.RecordToJSON(row, &text); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%+v %s", *r.Row, text.String()))
	}
	return out
}

func TestNewestSurvivesItsEncoding(t *testing.T) {
	for _, uniqueness := range []tabledef.Uniqueness{tabledef.UniqueReject, tabledef.UniqueNone} {
		s := testSnapshot(t, uniqueness)
		x := testIndex(t, s)
		data, err := EncodeNewest(s, x)
		if err != nil || data == nil {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
		got, err := DecodeNewest(t.Context(), s, data)
		if err != nil {
			t.Fatal(err)
		}
		if want := contents(t, x); !reflect.DeepEqual(contents(t, got), want) || len(want) != 4 {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(contents(t, got), ""), strings.Join(want, ""))
		}
		again, err := EncodeNewest(s, got)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("encoded again it differs: %v", err)
		}
	}
}

func TestBareNewestHasNoEncoding(t *testing.T) {
	s := testSnapshot(t, tabledef.UniqueReject)
	if data, err := EncodeNewest(s, testIndex(t, s).WithoutValues()); data != nil || err != nil {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// TestColumnsAddedSince reads an encoding that was made before the table got a
// column.
func TestColumnsAddedSince(t *testing.T) {
	s := testSnapshot(t, tabledef.UniqueReject)
	data, err := EncodeNewest(s, testIndex(t, s))
	if err != nil {
		t.Fatal(err)
	}
	later := testSnapshot(t, tabledef.UniqueReject)
	later.Def.Stored = arrow.NewSchema(append(later.Def.Stored.Fields(), arrow.Field{Name: "new", Type: arrow.PrimitiveTypes.Int8, Nullable: true}), nil)
	x, err := DecodeNewest(t.Context(), later, data)
	if err != nil || !strings.Contains(contents(t, x)[0], `"new":null`) {
		t.Errorf("%v", err)
	}
}

func TestDamagedNewestIsAnError(t *testing.T) {
	s := testSnapshot(t, tabledef.UniqueNone)
	data, err := EncodeNewest(s, testIndex(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) - 8 {
		if _, err := DecodeNewest(t.Context(), s, data[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are taken", n, len(data))
		}
	}
	unsorted := lastvalue.NewIndex(testBlock(t, s, "a", stored("a", 1, 1, 1, "null"), stored("b", 1, 1, 1, "null")))
	rows := unsorted.Blocks()[0]
	rows.Rows[0], rows.Rows[1] = rows.Rows[1], rows.Rows[0]
	swapped, err := lastvalue.Gather([]arrow.RecordBatch{nil, rows.Values}, lastvalue.AppendRun(lastvalue.AppendRun(nil, 1, 1), 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	rows.Values = swapped
	if data, err = EncodeNewest(s, unsorted); err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeNewest(t.Context(), s, data); err == nil {
		t.Error("rows that do not ascend are taken")
	}
	other := testSnapshot(t, tabledef.UniqueNone)
	other.Def.Stored = arrow.NewSchema(append(other.Def.Stored.Fields()[:3:3], arrow.Field{Name: "w", Type: arrow.PrimitiveTypes.Int8}), nil)
	if _, err := DecodeNewest(t.Context(), other, data); err == nil {
		t.Error("values without a column that has no nulls are taken")
	}
}

func TestCoverageSurvivesItsEncoding(t *testing.T) {
	s := testSnapshot(t, tabledef.UniqueReject)
	set := func(key string, first, last uint64) *coverage.Set {
		b := coverage.NewBuilder()
		b.Entity(key)
		b.AddRun(first, last)
		out, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	key, err := s.Layout.Key("a", uint64(1))
	if err != nil {
		t.Fatal(err)
	}
	data, err := EncodeCoverage(coverage.NewMerged(set(key, 5, 9), set(key, 10, 12)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := DecodeCoverage(s, data)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := EncodeCoverage(m); err != nil || !bytes.Equal(again, data) {
		t.Errorf("encoded again it differs: %v", err)
	}
	if _, err := DecodeCoverage(s, data[:len(data)-1]); err == nil {
		t.Error("half a coverage is taken")
	}
	for _, bad := range []*coverage.Set{set("\x00", 5, 9), set(key, 0, ^uint64(0))} {
		narrow := testSnapshot(t, tabledef.UniqueReject)
		if narrow.Domain, err = interval.New(tabledef.IndexTimestamp, arrow.Second, tabledef.Granularity{N: 2, Unit: "s"}); err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeCoverage(narrow, bad.AppendEncoded(nil)); err == nil {
			t.Error("a coverage of another table is taken")
		}
	}
}

func FuzzDecodeNewest(f *testing.F) {
	s := testSnapshot(f, tabledef.UniqueNone)
	data, err := EncodeNewest(s, testIndex(f, s))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte{1, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := DecodeNewest(t.Context(), s, data)
		if err != nil {
			return
		}
		again, err := EncodeNewest(s, x)
		if err != nil {
			t.Fatal(err)
		}
		y, err := DecodeNewest(t.Context(), s, again)
		if err != nil || !reflect.DeepEqual(contents(t, x), contents(t, y)) {
			t.Fatalf("encoded again it differs: %v", err)
		}
	})
}

func FuzzDecodeCoverage(f *testing.F) {
	s := testSnapshot(f, tabledef.UniqueReject)
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeCoverage(s, data)
		if err != nil {
			return
		}
		if _, err := EncodeCoverage(m); err != nil {
			t.Fatal(err)
		}
		for e := range m.Entities() {
			all := coverage.Window{Last: ^uint64(0)}
			coverage.Summarize(m.Runs(e, all), all)
		}
	})
}
