package tablecore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// TestOptimizeEveryType rewrites columns of every type, with the metadata of
// their fields and the bits of their values.
func TestOptimizeEveryType(t *testing.T) {
	f := newTypesTable(t, 1, true, typeCases()...)
	f.append(40, 13)
	f.append(1)
	f.append(25, 30)
	options := []tablecore.OptimizeOptions{{}, {Layout: tablecore.LayoutEntity}, {TargetFileBytes: ptr(int64(1))}}
	if raceDetector {
		options = options[:1]
	}
	for _, o := range options {
		r, err := f.table.Optimize(t.Context(), o)
		if err != nil || r.NoOp {
			t.Fatalf("got %+v, %v", r, err)
		}
		f.check("exact", f.exact)
		f.check("compat", f.plain)
	}
}

// layout describes a file: what it holds and how.
type layoutOf struct {
	single   bool
	sorted   bool
	min, max int64
	rows     int64
}

// layout lists the table's files.
func layout(t *testing.T, table *tablecore.Table) []layoutOf {
	t.Helper()
	l, err := table.Files(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	var files []layoutOf
	err = l.Run(t.Context(), func(b arrow.RecordBatch) error {
		column := func(name string) arrow.Array { return b.Column(b.Schema().FieldIndices(name)[0]) }
		for i := range int(b.NumRows()) {
			files = append(files, layoutOf{column("layout").(*array.String).Value(i) == tabledef.LayoutSingle, column("sorted").(*array.Boolean).Value(i),
				column("index_min").(*array.Int64).Value(i), column("index_max").(*array.Int64).Value(i), column("rows").(*array.Int64).Value(i)})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// spread is a table with an int64 index that appends and optimizes beyond its
// memory.
func spread(t *testing.T, memory int64, mem memory.Allocator, entities, files, rows int) *tablecore.Table {
	t.Helper()
	store := memstore.New()
	w := tabletest.Open(t, tablecore.Options{Store: store, MemoryBudget: memory, Allocator: mem, Scratch: t.TempDir(), Clock: tabletest.NewClock().Now, Random: tabletest.Random(1)})
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "e", Type: arrow.BinaryTypes.String}, {Name: "v", Type: arrow.PrimitiveTypes.Float64}}, nil)
	name := tabledef.Name{Namespace: "default", Table: "spread"}
	if _, err := w.CreateTable(t.Context(), tablecore.CreateOptions{Name: name, IndexColumn: "k", IndexGranularity: "1", EntityColumns: []string{"e"}, Schema: schema}); err != nil {
		t.Fatal(err)
	}
	table, err := w.Table(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 7))
	for file := range files {
		b := array.NewRecordBuilder(mem, schema)
		for i := range rows {
			// Each file has every so many of the index values: all overlap.
			b.Field(0).(*array.Int64Builder).Append(int64((i*files + file) / entities))
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("entity ", (i*files+file)%entities))
			b.Field(2).(*array.Float64Builder).Append(r.NormFloat64())
		}
		batch := b.NewRecordBatch()
		b.Release()
		_, err := table.Append(t.Context(), tabletest.NewReader(schema, batch), tablecore.AppendOptions{})
		batch.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	return table
}

// TestOptimizeLayouts cuts overlapping files by ranges of the index, and then by
// entity, in memory and beyond it.
func TestOptimizeLayouts(t *testing.T) {
	for _, budget := range []int64{0, 1 << 20} {
		t.Run(fmt.Sprint("memory ", budget), func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			const entities, files = 7, 6
			rows := 20_000
			if raceDetector {
				rows = 8000
			}
			table := spread(t, budget, mem, entities, files, rows)
			before := mustScan(t, table)
			bytes := int64(0)
			optimize := func(o tablecore.OptimizeOptions) *tablecore.OptimizeReport {
				t.Helper()
				r, err := table.Optimize(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if got := mustScan(t, table); !slices.Equal(got, before) {
					t.Fatal("the rows have changed")
				}
				o.ExpectedVersion = &r.CommittedVersion
				if again, err := table.Optimize(t.Context(), o); err != nil || !again.NoOp {
					t.Fatalf("a second time it gives %+v, %v", again, err)
				}
				bytes = r.BytesOut
				return r
			}
			// Only files of one entity each are limited in number.
			r := optimize(tablecore.OptimizeOptions{TargetFileBytes: ptr(int64(200_000)), MaxFiles: ptr(int64(1))})
			if r.FilesIn != files || r.FilesOut < 4 || r.Rows != int64(files*rows) || r.Entities != entities {
				t.Errorf("got %+v", r)
			}
			all := layout(t, table)
			slices.SortFunc(all, func(a, b layoutOf) int { return int(a.min - b.min) })
			for i, f := range all {
				if f.single || !f.sorted || i > 0 && f.min <= all[i-1].max {
					t.Errorf("file %d of %+v", i, all)
				}
			}
			for _, dry := range []bool{false, true} {
				if _, err := table.Optimize(t.Context(), tablecore.OptimizeOptions{Layout: tablecore.LayoutEntity, MaxFiles: ptr(int64(entities - 1)), DryRun: dry}); tableerr.TokenOf(err) != tableerr.TokenInvalid {
					t.Errorf("dry %t: too many files give %v", dry, err)
				}
			}
			dry, err := table.Optimize(t.Context(), tablecore.OptimizeOptions{Layout: tablecore.LayoutEntity, MaxFiles: ptr(int64(entities)), DryRun: true})
			if err != nil || dry.FilesOut != entities || dry.Entities != entities {
				t.Errorf("a dry run gives %+v, %v", dry, err)
			}
			if r = optimize(tablecore.OptimizeOptions{Layout: tablecore.LayoutEntity}); r.FilesOut != entities {
				t.Errorf("got %+v", r)
			}
			for _, f := range layout(t, table) {
				if !f.single || f.rows < int64(files*rows/entities) {
					t.Errorf("%+v is no file of one entity", f)
				}
			}
			if r = optimize(tablecore.OptimizeOptions{Layout: tablecore.LayoutEntity, TargetFileBytes: ptr(bytes / 40)}); r.FilesOut < 2*entities {
				t.Errorf("got %+v", r)
			}
			if r = optimize(tablecore.OptimizeOptions{}); r.FilesOut != 1 {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// TestOptimizeWithoutEntities sorts and merges by the index.
func TestOptimizeWithoutEntities(t *testing.T) {
	f := newFixture(t)
	o := weatherOptions()
	o.Name.Table, o.EntityColumns = "series", nil
	if _, err := f.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.table, err = f.house.Table(t.Context(), o.Name); err != nil {
		t.Fatal(err)
	}
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0"), rowAt("JFK", 9, "9")))
	f.mustAppend(rowsOf(rowAt("LGA", 4, "4"), rowAt("EWR", 5, "5")))
	if r := f.optimize(tablecore.OptimizeOptions{Layout: tablecore.LayoutEntity, MaxFiles: ptr(int64(1))}); r.FilesIn != 2 || r.FilesOut != 1 || r.Entities != 1 {
		t.Errorf("got %+v", r)
	}
	f.wantRows(nil, jsonRow("EWR", 0, "0"), jsonRow("LGA", 4, "4"), jsonRow("EWR", 5, "5"), jsonRow("JFK", 9, "9"))
}

func TestOptimizeRefusals(t *testing.T) {
	f := newFixture(t)
	f.threeHours()
	for what, c := range map[string]struct {
		o    tablecore.OptimizeOptions
		want tableerr.Token
	}{
		"another layout":       {tablecore.OptimizeOptions{Layout: "tall"}, tableerr.TokenInvalid},
		"no size":              {tablecore.OptimizeOptions{TargetFileBytes: ptr(int64(0))}, tableerr.TokenInvalid},
		"no files":             {tablecore.OptimizeOptions{MaxFiles: ptr(int64(-1))}, tableerr.TokenInvalid},
		"another table":        {tablecore.OptimizeOptions{TableID: "other"}, tableerr.TokenTableNotFound},
		"another version, dry": {tablecore.OptimizeOptions{DryRun: true, ExpectedVersion: ptr(int64(2))}, tableerr.TokenVersionConflict},
	} {
		if _, err := f.table.Optimize(t.Context(), c.o); tableerr.TokenOf(err) != c.want {
			t.Errorf("%s: got %v, want %s", what, err, c.want)
		}
	}
	o := weatherOptions()
	o.Name.Table, o.Schema, o.IndexType = "bare", nil, "timestamp"
	if _, err := f.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	bare, err := f.house.Table(t.Context(), o.Name)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := bare.Optimize(t.Context(), tablecore.OptimizeOptions{}); err != nil || !r.NoOp {
		t.Errorf("a table without a schema gives %+v, %v", r, err)
	}
}

// TestOptimizeDiskFull optimizes with less and less space: it is told
// STORAGE_FULL, leaves nothing, and the table stays as it was.
func TestOptimizeDiskFull(t *testing.T) {
	dir, err := smallDisk(t)
	if err != nil {
		t.Logf("no small file system, so only the fault walk shows it: %v", err)
		return
	}
	store, err := localfs.Open(filepath.Join(dir, "warehouse"), localfs.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
	createWeather(t, w)
	for hour := range 3 {
		var rows []string
		for i := range 1000 {
			rows = append(rows, rowAt(fmt.Sprintf("station %d", i), hour, fmt.Sprint(float64(i)/7)))
		}
		if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rows...); err != nil {
			t.Fatal(err)
		}
	}
	before, _, err := scanWeather(t, w)
	if err != nil {
		t.Fatal(err)
	}
	files, table, ballast := len(tableFiles(t, store)), openWeather(t, w), filepath.Join(dir, "ballast")
	for _, free := range []int{0, 8 << 10, 16 << 10} {
		fill(t, ballast, free)
		_, err := table.Optimize(t.Context(), tablecore.OptimizeOptions{})
		if tableerr.TokenOf(err) != tableerr.TokenStorageFull {
			t.Errorf("with %d bytes free: %v", free, err)
		}
		if got, version, err := scanWeather(t, w); err != nil || version != 3 || !slices.Equal(got, before) || len(tableFiles(t, store)) != files {
			t.Errorf("with %d bytes free: version %d, %v, %d files", free, version, err, len(tableFiles(t, store)))
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if r, err := table.Optimize(t.Context(), tablecore.OptimizeOptions{}); err != nil || r.FilesOut != 1 {
		t.Errorf("with space again: %+v, %v", r, err)
	}
	if got, _, err := scanWeather(t, w); err != nil || !slices.Equal(got, before) {
		t.Error("the rows have changed", err)
	}
}
