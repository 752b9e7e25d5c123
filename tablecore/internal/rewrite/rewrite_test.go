package rewrite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// fixture is a table in memory with one data file of two entities, 50 rows each.
type fixture struct {
	t     *testing.T
	mem   *memory.CheckedAllocator
	store objstore.Store
	snap  *snapshot.Snapshot
	files *filecache.Files
	old   *snapshot.File
	ids   int
	warns []string
}

var fields = []arrow.Field{
	{Name: "e", Type: arrow.BinaryTypes.String}, {Name: "k", Type: arrow.PrimitiveTypes.Int64},
	{Name: "v", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "w", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
}

// odd is a NaN with a payload.
var odd = math.Float64frombits(0x7FF8_0000_0000_0ABC)

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), store: memstore.New()}
	t.Cleanup(func() { f.mem.AssertSize(t, 0) })
	f.define(fields)
	f.files = filecache.New().Files(f.store, f.mem, func(_ context.Context, _, reason string) { f.warns = append(f.warns, reason) })
	b := array.NewRecordBuilder(f.mem, arrow.NewSchema(fields, nil))
	defer b.Release()
	for row := range 100 {
		b.Field(0).(*array.StringBuilder).Append([]string{"a", "b"}[row/50])
		b.Field(1).(*array.Int64Builder).Append(int64(row%50) * 2)
		b.Field(2).(*array.Float64Builder).Append(float64(row))
		b.Field(3).(*array.Float64Builder).Append([]float64{odd, math.Copysign(0, -1), float64(row)}[row%3])
		b.Field(4).(*array.StringBuilder).Append(fmt.Sprint("text ", row))
	}
	rows := b.NewRecordBatch()
	defer rows.Release()
	out := f.out(datafile.WriteOptions{MaxRowsPerRowGroup: 30})
	path, err := out.NewPath()
	if err != nil {
		t.Fatal(err)
	}
	k, err := newKeys(f.snap.Def, out.Schema())
	if err != nil {
		t.Fatal(err)
	}
	written, err := out.Write(t.Context(), path, func(to *datafile.Writer) (newfile.Contents, error) {
		if err := k.add(rows); err != nil {
			return newfile.Contents{}, err
		}
		if err := to.Write(rows); err != nil {
			return newfile.Contents{}, err
		}
		return k.contents(100)
	})
	if err != nil {
		t.Fatal(err)
	}
	f.old = live(&written)
	return f
}

// live is a file as the log has it.
func live(f *newfile.File) *snapshot.File {
	return &snapshot.File{Add: f.Add, Path: f.Path, Rows: f.Rows, Min: f.MinIndex, Max: f.MaxIndex, Bounded: true}
}

func (f *fixture) define(fields []arrow.Field) {
	f.t.Helper()
	def := &tabledef.Definition{ID: "id", IndexColumn: "k", IndexType: tabledef.IndexInt64, Granularity: tabledef.Granularity{N: 2}, EntityColumns: []string{"e"},
		Stored: arrow.NewSchema(fields, nil)}
	f.snap = &snapshot.Snapshot{Def: def, State: deltalog.NewState()}
	var err error
	if f.snap.Layout, err = entitykey.LayoutOf(def); err != nil {
		f.t.Fatal(err)
	}
	if f.snap.Domain, err = interval.New(def.IndexType, 0, def.Granularity); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) out(write datafile.WriteOptions) *newfile.Writer {
	f.t.Helper()
	write.Mem = f.mem
	out, err := newfile.NewWriter(newfile.Config{Store: f.store, Def: f.snap.Def, Write: write, Software: "test", Modified: time.UnixMilli(5),
		NewID: func() (string, error) { f.ids++; return fmt.Sprintf("%08d", f.ids), nil }})
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

func (f *fixture) write(change Change) (File, error) {
	f.t.Helper()
	return Write(f.t.Context(), Config{Snapshot: f.snap, Files: f.files, Out: f.out(datafile.WriteOptions{})}, f.old, change)
}

// constant gives every row of a column one value.
func (f *fixture) constant(value float64, most int) func(datafile.RowRange, []arrow.Array) ([]arrow.Array, error) {
	return func(rows datafile.RowRange, _ []arrow.Array) ([]arrow.Array, error) {
		b := array.NewFloat64Builder(f.mem)
		defer b.Release()
		for range min(int64(most), rows.End-rows.Start) {
			b.Append(value)
		}
		return []arrow.Array{b.NewArray()}, nil
	}
}

// rows reads a file: its texts, one a row.
func (f *fixture) rows(file *snapshot.File) []string {
	f.t.Helper()
	open, err := f.files.Open(f.t.Context(), f.snap, file)
	if err != nil {
		f.t.Fatal(err)
	}
	defer open.Close()
	rows, err := open.Read(f.t.Context(), datafile.ReadRequest{Fields: tabledef.StorageSchema(f.snap.Def.Stored).Fields()})
	if err != nil {
		f.t.Fatal(err)
	}
	defer rows.Release()
	var texts []string
	for {
		batch, err := rows.Next(f.t.Context())
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			f.t.Fatal(err)
		}
		for row := range int(batch.NumRows()) {
			text := ""
			for _, c := range batch.Columns() {
				if v, ok := c.(*array.Float64); ok && c.IsValid(row) {
					text += fmt.Sprintf("%x ", math.Float64bits(v.Value(row)))
				} else {
					text += c.ValueStr(row) + " "
				}
			}
			texts = append(texts, text)
		}
	}
}

// check compares the derived data that lies with a file with its rows, and what
// the log says of it with the given statistics and NaN columns.
func (f *fixture) check(got *File, stats, nan string) {
	f.t.Helper()
	file := live(&got.File)
	stored, err := f.files.Index(f.t.Context(), f.snap, file)
	if err != nil || len(f.warns) > 0 {
		f.t.Fatal(err, f.warns)
	}
	open, err := f.files.Open(f.t.Context(), f.snap, file)
	if err != nil {
		f.t.Fatal(err)
	}
	defer open.Close()
	other := *f.snap.Def
	other.ID = "another table" // so that nothing stored is believed
	fresh, err := derived.Load(f.t.Context(), f.store, open.File, file.Path, &other, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if !slices.Equal(stored.Directory, fresh.Directory) || string(stored.Coverage.AppendEncoded(nil)) != string(fresh.Coverage.AppendEncoded(nil)) {
		f.t.Errorf("the index is %v, its rows say %v", stored.Directory, fresh.Directory)
	}
	if got.Add.Stats != stats || got.Add.Tags[tabledef.TagNaN] != nan || got.Add.Tags[tabledef.TagSorted] != "true" {
		f.t.Errorf("the log says %s, %v", got.Add.Stats, got.Add.Tags)
	}
}

const statsHead = `{"numRecords":100,"minValues":{"e":"a","k":0,`

func TestReplace(t *testing.T) {
	f := newFixture(t)
	before := f.rows(f.old)
	got, err := f.write(Change{Columns: []string{"v"}, Replace: f.constant(7, 11)})
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(before)
	for i := range want {
		want[i] = fmt.Sprintf("%s %d %x %s", []string{"a", "b"}[i/50], i%50*2, math.Float64bits(7), want[i][len(fmt.Sprintf("%s %d %x ", "a", i%50*2, math.Float64bits(float64(i)))):])
	}
	if after := f.rows(live(&got.File)); !slices.Equal(after, want) {
		t.Errorf("got %q, want %q", after, want)
	}
	if got.Rows != 100 || got.RowGroups != 4 || got.SourceBytes != f.old.Add.Size || got.Remove.Path != f.old.Add.Path || *got.Remove.Size != f.old.Add.Size {
		t.Errorf("got %+v", got)
	}
	f.check(&got, statsHead+`"v":7,"s":"text 0"},"maxValues":{"e":"b","k":98,"v":7,"s":"text 99"},"nullCount":{"e":0,"k":0,"v":0,"w":0,"s":0}}`, `["w"]`)
	// The other way round the NaN goes.
	if got, err = f.write(Change{Columns: []string{"w"}, Replace: f.constant(-1, 1000)}); err != nil {
		t.Fatal(err)
	}
	f.check(&got, statsHead+`"w":-1,"s":"text 0"},"maxValues":{"e":"b","k":98,"v":99,"w":-1,"s":"text 99"},"nullCount":{"e":0,"k":0,"v":0,"w":0,"s":0}}`, `[]`)
}

// TestReplaceSome replaces all values of one row group, without being given the
// old ones, some of another's, and none of the rest, whose values are copied.
func TestReplaceSome(t *testing.T) {
	for _, column := range []string{"v", "w"} {
		f := newFixture(t)
		before := f.rows(f.old)
		replaces := func(row int64) bool { return row < 30 || row%2 == 0 && row < 60 }
		var asked []int64
		change := Change{Columns: []string{column},
			Replaced: func(rows datafile.RowRange) (n int64) {
				for row := rows.Start; row < rows.End; row++ {
					if replaces(row) {
						n++
					}
				}
				return n
			},
			Replace: func(rows datafile.RowRange, old []arrow.Array) ([]arrow.Array, error) {
				asked = append(asked, rows.Start)
				if (old == nil) != (rows.Start < 30) {
					t.Errorf("rows %v come with %v", rows, old)
				}
				b := array.NewFloat64Builder(f.mem)
				defer b.Release()
				for row := rows.Start; row < min(rows.End, rows.Start+20); row++ {
					if replaces(row) {
						b.Append(7)
					} else {
						b.Append(old[0].(*array.Float64).Value(int(row - rows.Start)))
					}
				}
				return []arrow.Array{b.NewArray()}, nil
			}}
		got, err := f.write(change)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(asked, []int64{0, 20, 30, 50}) {
			t.Errorf("asked for rows from %v on", asked)
		}
		at := map[string]int{"v": 2, "w": 3}[column]
		want := slices.Clone(before)
		for i := range want {
			if values := strings.Split(want[i], " "); replaces(int64(i)) {
				values[at] = fmt.Sprintf("%x", math.Float64bits(7))
				want[i] = strings.Join(values, " ")
			}
		}
		if after := f.rows(live(&got.File)); !slices.Equal(after, want) {
			t.Errorf("got %q, want %q", after, want)
		}
		stats := map[string]string{
			"v": statsHead + `"v":7,"s":"text 0"},"maxValues":{"e":"b","k":98,"v":99,"s":"text 99"},"nullCount":{"e":0,"k":0,"v":0,"w":0,"s":0}}`,
			"w": statsHead + `"s":"text 0"},"maxValues":{"e":"b","k":98,"v":99,"s":"text 99"},"nullCount":{"e":0,"k":0,"v":0,"w":0,"s":0}}`,
		}
		f.check(&got, stats[column], `["w"]`)
	}
}

// TestReplaceTooMuch gives a row group values that find no room in one: it is
// cut into several.
func TestReplaceTooMuch(t *testing.T) {
	f := newFixture(t)
	before := f.rows(f.old)
	long := strings.Repeat("x", datafile.DefaultBytesPerRowGroup/24)
	got, err := f.write(Change{Columns: []string{"s"}, Replaced: func(rows datafile.RowRange) int64 { return min(rows.End, 30) - min(rows.Start, 30) },
		Replace: func(rows datafile.RowRange, old []arrow.Array) ([]arrow.Array, error) {
			b := array.NewStringBuilder(f.mem)
			defer b.Release()
			if rows.Start < 30 {
				b.Append(long)
			} else {
				for i := range old[0].Len() {
					b.Append(old[0].(*array.String).Value(i))
				}
			}
			return []arrow.Array{b.NewArray()}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Rows != 100 || got.RowGroups < 5 {
		t.Errorf("%d rows in %d row groups", got.Rows, got.RowGroups)
	}
	after := f.rows(live(&got.File))
	if !slices.Equal(after[30:], before[30:]) {
		t.Errorf("got %q, want %q", after[30:], before[30:])
	}
	for i := range 30 {
		if want := before[i][:strings.Index(before[i], "text")] + long + " "; after[i] != want {
			t.Errorf("row %d has %d bytes, want %d", i, len(after[i]), len(want))
		}
	}
}

// TestReplaceWithoutCopies rewrites a file whose action says nothing: all values
// are decoded, and keep their bits as well.
func TestReplaceWithoutCopies(t *testing.T) {
	f := newFixture(t)
	before := f.rows(f.old)
	f.old = &snapshot.File{Add: &deltalog.Add{Path: f.old.Add.Path, Size: f.old.Add.Size}, Path: f.old.Path, Rows: -1, Max: math.MaxUint64}
	got, err := f.write(Change{})
	if err != nil {
		t.Fatal(err)
	}
	if after := f.rows(live(&got.File)); !slices.Equal(after, before) {
		t.Errorf("got %q, want %q", after, before)
	}
	f.check(&got, statsHead+`"s":"text 0"},"maxValues":{"e":"b","k":98,"v":99,"s":"text 99"},"nullCount":{"e":0,"k":0,"v":0,"w":0,"s":0}}`, `["w"]`)
}

func TestKeep(t *testing.T) {
	f := newFixture(t)
	before := f.rows(f.old)
	got, err := f.write(Change{Keep: []datafile.RowRange{{Start: 3, End: 5}, {Start: 29, End: 31}, {Start: 49, End: 50}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{before[3], before[4], before[29], before[30], before[49]}
	if after := f.rows(live(&got.File)); !slices.Equal(after, want) {
		t.Errorf("got %q, want %q", after, want)
	}
	if tag := got.Add.Tags[tabledef.TagLayout]; tag != tabledef.LayoutSingle || got.Add.Tags[tabledef.TagIndexMin] != "6" || got.Add.Tags[tabledef.TagIndexMax] != "98" {
		t.Errorf("tags %v", got.Add.Tags)
	}
	f.check(&got, got.Add.Stats, got.Add.Tags[tabledef.TagNaN])
}

// TestColumnAddedSince rewrites a file that lacks a column.
func TestColumnAddedSince(t *testing.T) {
	f := newFixture(t)
	f.define(append(slices.Clone(fields), arrow.Field{Name: "new", Type: arrow.PrimitiveTypes.Float64, Nullable: true}))
	got, err := f.write(Change{Columns: []string{"new"}, Replace: f.constant(3, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	f.check(&got, statsHead+`"s":"text 0","new":3},"maxValues":{"e":"b","k":98,"v":99,"s":"text 99","new":3},"nullCount":{"e":0,"k":0,"v":0,"w":0,"s":0,"new":0}}`, `["w"]`)
}

func TestWriteErrors(t *testing.T) {
	f := newFixture(t)
	if _, err := f.write(Change{Columns: []string{"nope"}}); err == nil {
		t.Error("an unknown column was written")
	}
	wrong := errors.New("no values")
	if _, err := f.write(Change{Columns: []string{"v"}, Replace: func(datafile.RowRange, []arrow.Array) ([]arrow.Array, error) { return nil, wrong }}); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(cancelled, Config{Snapshot: f.snap, Files: f.files, Out: f.out(datafile.WriteOptions{})}, f.old, Change{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	data, err := f.store.Get(t.Context(), f.old.Path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/3] ^= 1
	if err := f.store.Put(t.Context(), f.old.Path, data); err != nil {
		t.Fatal(err)
	}
	_, err = f.write(Change{Columns: []string{"v"}, Replace: f.constant(1, 1000)})
	var corrupt *tableerr.Corrupt
	if !errors.As(err, &corrupt) || corrupt.Path != f.old.Path {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestWithin(t *testing.T) {
	ranges := []datafile.RowRange{{Start: 2, End: 4}, {Start: 6, End: 20}, {Start: 30, End: 31}}
	for _, c := range []struct{ from, to, n int64 }{{0, 2, 0}, {0, 3, 1}, {4, 6, 0}, {7, 8, 1}, {3, 31, 3}, {31, 40, 0}} {
		got := within(ranges, datafile.RowRange{Start: c.from, End: c.to})
		if int64(len(got)) != c.n || len(got) > 0 && (got[0].Start < c.from || got[len(got)-1].End > c.to) {
			t.Errorf("[%d, %d): %v", c.from, c.to, got)
		}
	}
}
