package tablecore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// days is a weather table of two days far from each other, of two small files
// each, so that with files of one interval's size each day is a group.
func (f *fixture) days() {
	f.t.Helper()
	for i, hour := range []int{0, 1, 100, 101} {
		f.mustAppend(rowsOf(rowAt("EWR", hour, fmt.Sprint(i)), rowAt("JFK", hour+10, "2")))
	}
}

// TestOptimizeConflicts has others commit when an optimize has written the first
// of its two groups: what the matrix says of each.
func TestOptimizeConflicts(t *testing.T) {
	for _, c := range []struct {
		name   string
		pinned bool
		theirs func(f *fixture) error
		token  tableerr.Token
		in     int // files that are taken in all the same
	}{
		{"append", false, func(f *fixture) error {
			_, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("LGA", 5, "3")))
			return err
		}, "", 4},
		{"append, pinned", true, func(f *fixture) error {
			_, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("LGA", 5, "3")))
			return err
		}, tableerr.TokenVersionConflict, 0},
		{"update of a file", false, func(f *fixture) error {
			_, err := f.update(tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 4}, rowsOf(rowAt("EWR", 0, "9")))
			return err
		}, "", 2},
		{"another optimize", false, func(f *fixture) error {
			_, err := f.table.Optimize(f.t.Context(), tablecore.OptimizeOptions{})
			return err
		}, "", 0},
		{"added columns", false, func(f *fixture) error {
			_, err := f.table.AddColumns(f.t.Context(), tablecore.AddColumnsOptions{Schema: arrow.NewSchema([]arrow.Field{{Name: "more", Type: arrow.PrimitiveTypes.Int8, Nullable: true}}, nil)})
			return err
		}, "", 4},
		{"properties", false, func(f *fixture) error {
			_, err := f.table.SetProperties(f.t.Context(), tablecore.SetPropertiesOptions{Properties: map[string]*string{"team": ptr("ops")}})
			return err
		}, "", 4},
		{"rollback", false, func(f *fixture) error {
			_, err := f.table.Rollback(f.t.Context(), tablecore.RollbackOptions{Version: 3, ExpectedVersion: 4})
			return err
		}, tableerr.TokenVersionConflict, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, store := looseTable(t)
			f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), table: table}
			f.days()
			o := tablecore.OptimizeOptions{TargetFileBytes: ptr(int64(4500))}
			if c.pinned {
				o.ExpectedVersion = ptr(int64(4))
			}
			var want []string
			told := 0
			o.Progress = func(tablecore.Progress) {
				if told++; told != 1 {
					return
				}
				if err := c.theirs(f); err != nil {
					t.Error(err)
				}
				want, _ = f.scan(tablecore.ScanOptions{})
			}
			r, err := table.Optimize(t.Context(), o)
			if told != 2 {
				t.Fatalf("%d groups instead of 2: %+v, %v", told, r, err)
			}
			if tableerr.TokenOf(err) != c.token {
				t.Fatalf("got %+v, %v", r, err)
			}
			if err == nil && (r.FilesIn != c.in || r.NoOp != (c.in == 0) || !r.NoOp && (r.StartingVersion != 4 || r.CommittedVersion != 6) || r.NoOp && (r.StartingVersion != 5 || r.CommittedVersion != 5)) {
				t.Errorf("got %+v", r)
			}
			f.wantRows(nil, want...)
			// Nothing is left of what was given up, and what is left is in order.
			if err := clean(t.Context(), tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator), false); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOptimizeTies: of rows with equal index values and insertion times the one
// of the later commit stays the newest and the last in a scan, whether the files
// were rewritten or not.
func TestOptimizeTies(t *testing.T) {
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	o := weatherOptions()
	o.Uniqueness, o.IngestTimeColumn = "none", ptr("")
	if _, err := w.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), table: openWeather(t, w)}
	same := func(temp int) {
		f.mustAppend(rowsOf(rowAt("EWR", 1, fmt.Sprint(temp)), rowAt("EWR", 2, fmt.Sprint(temp))))
	}
	want := func(last int) {
		t.Helper()
		var rows []string
		for hour := 1; hour <= 2; hour++ {
			for temp := range last + 1 {
				rows = append(rows, jsonRow("EWR", hour, fmt.Sprint(temp)))
			}
		}
		for _, table := range []*tablecore.Table{f.table, anotherProcess(t, store)} {
			f := &fixture{t: t, mem: f.mem, table: table}
			f.wantRows(nil, rows...)
			got, err := rowTextsOf(t.Context(), func() (*tablecore.Listing, error) { return table.Latest(t.Context(), tablecore.LatestOptions{}) })
			if err != nil || len(got) != 1 || !strings.HasSuffix(got[0], fmt.Sprintf(" %d)", last)) {
				t.Errorf("the newest row is %v, want %d, %v", got, last, err)
			}
		}
	}
	same(0)
	same(1)
	f.optimize(tablecore.OptimizeOptions{Progress: func(tablecore.Progress) { same(2) }})
	want(2)
	same(3)
	want(3)
	f.optimize(tablecore.OptimizeOptions{})
	want(3)
	f.rollback(2)
	want(1)
	f.rollback(6)
	want(3)
}

// TestUpdateKeepsTies: a row that was corrected does not become a later one.
func TestUpdateKeepsTies(t *testing.T) {
	table, store := looseTable(t)
	f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), table: table}
	f.mustAppend(rowsOf(rowAt("EWR", 1, "0"), rowAt("EWR", 5, "5")))
	f.mustAppend(rowsOf(rowAt("EWR", 1, "1")))
	if _, err := f.update(tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 2}, rowsOf(rowAt("EWR", 5, "6"))); err != nil {
		t.Fatal(err)
	}
	f.table = anotherProcess(t, store)
	f.wantRows(nil, jsonRow("EWR", 1, "0"), jsonRow("EWR", 1, "1"), jsonRow("EWR", 5, "6"))
}

func TestOptimizeFaults(t *testing.T) {
	rows := []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("JFK", 0, "10")}
	walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			createWeather(t, w)
			for _, row := range []string{rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1"), rowAt("JFK", 0, "10")} {
				if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, row); err != nil {
					t.Fatal(err)
				}
			}
		},
		cold: true,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			table, err := w.Table(t.Context(), weatherName)
			if err != nil {
				return err
			}
			_, err = table.Optimize(t.Context(), tablecore.OptimizeOptions{})
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			got, version, scanErr := scanWeather(t, w)
			if scanErr != nil || !slices.Equal(got, rows) {
				t.Fatalf("version %d holds %q, %v", version, got, scanErr)
			}
			unclear := stopped || tableerr.TokenOf(err) == tableerr.TokenCommitUnknown
			files := len(tableFiles(t, store))
			switch {
			case version != 3 && version != 4, err == nil && version != 4:
				t.Fatalf("the table is at version %d after %v", version, err)
			case err != nil && version == 4 && !unclear:
				t.Fatalf("refused with %v and committed", err)
			case !unclear && files != int(version):
				t.Fatalf("%d files at version %d after %v", files, version, err)
			}
		},
		write: writeWeather,
	}.all(t)
}

// TestOptimizeDamage: a file that is missing or damaged is named, and nothing
// changes.
func TestOptimizeDamage(t *testing.T) {
	table, store := looseTable(t)
	f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), table: table}
	f.threeHours()
	lost := f.mustAppend(rowsOf(rowAt("EWR", 7, "0"))).DataFiles[0].Path
	key := "default/weather/" + lost
	data, err := store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/4] ^= 0xff
	refused := func(want tableerr.Token) {
		t.Helper()
		before := len(dataFiles(t, store))
		_, err := anotherProcess(t, store).Optimize(t.Context(), tablecore.OptimizeOptions{})
		if tableerr.TokenOf(err) != want || f.version() != 4 || len(dataFiles(t, store)) != before {
			t.Errorf("got %v at version %d, want %s", err, f.version(), want)
		}
	}
	if err := errors.Join(store.Delete(t.Context(), key)); err != nil {
		t.Fatal(err)
	}
	refused(tableerr.TokenFileMissing)
	if err := store.Put(t.Context(), key, data[:len(data)-7]); err != nil {
		t.Fatal(err)
	}
	refused(tableerr.TokenCorrupt)
}
