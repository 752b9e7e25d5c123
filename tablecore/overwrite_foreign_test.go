package tablecore_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// addForeign makes rows, in the order given, a data file of the weather table as
// other software would: nothing in it or in the log says more than it must.
func addForeign(t *testing.T, store objstore.Store, path string, rows ...string) {
	t.Helper()
	b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rows...))
	defer b.Release()
	var data bytes.Buffer
	w, err := datafile.NewWriter(&data, weather, datafile.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), "default/weather/"+path, data.Bytes()); err != nil {
		t.Fatal(err)
	}
	rewrite(t, store, func(map[string]action) []action {
		return []action{{"add": action{"path": path, "size": data.Len(), "modificationTime": 0, "dataChange": true, "partitionValues": action{}}}}
	})
}

// TestOverwriteForeignFile replaces rows of a file that is not sorted and of
// which nothing is known but the rows.
func TestOverwriteForeignFile(t *testing.T) {
	f, store := newOverwriting(t)
	addForeign(t, store, "part-0.parquet", rowAt("LGA", 3, "1"), rowAt("EWR", 2, "2"), rowAt("EWR", 1, "3"), rowAt("JFK", 5, "4"), rowAt("EWR", 4, "5"), rowAt("EWR", 2, "6"))
	r := f.mustAppend(rowsOf(rowAt("JFK", 5, "40"), rowAt("EWR", 2, "20"), rowAt("ABE", 2, "7")))
	if r.RowsReplaced != 3 || r.Rows != 3 || r.CommittedVersion != 2 {
		t.Errorf("got %+v", r)
	}
	rows, _ := f.scan(tablecore.ScanOptions{Order: "unordered"})
	want := []string{"ABE 02 7", "EWR 01 3", "EWR 02 20", "EWR 04 5", "JFK 05 40", "LGA 03 1"}
	if got := brief(t, rows); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("the table holds %q, want %q", got, want)
	}
	r = f.mustAppend(rowsOf(rowAt("LGA", 3, "8"), rowAt("EWR", 1, "9"), rowAt("EWR", 4, "9")))
	if live := liveFiles(t, f.table); r.RowsReplaced != 3 || len(live) != 2 || slices.Contains(live, "part-0.parquet") {
		t.Errorf("got %+v, the files are %q", r, live)
	}
	rows, _ = f.scan(tablecore.ScanOptions{})
	want = []string{"ABE 02 7", "EWR 01 9", "EWR 02 20", "EWR 04 9", "JFK 05 40", "LGA 03 8"}
	if got := brief(t, rows); !slices.Equal(got, want) {
		t.Errorf("in the end the table holds %q, want %q", got, want)
	}
}

// TestOverwriteDamagedFile makes sure that rows are replaced only where the file
// that holds them can be read: else the append is refused and leaves nothing,
// and one that hits other files goes on.
func TestOverwriteDamagedFile(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, store objstore.Store, path string)
		token tableerr.Token
	}{
		"gone": {func(t *testing.T, store objstore.Store, path string) {
			if err := store.Delete(t.Context(), path); err != nil {
				t.Fatal(err)
			}
		}, tableerr.TokenFileMissing},
		"changed": {func(t *testing.T, store objstore.Store, path string) {
			data, err := store.Get(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			data = bytes.Clone(data)
			for i := 4; i < 200; i++ {
				data[i] ^= 0x55
			}
			if err := store.Put(t.Context(), path, data); err != nil {
				t.Fatal(err)
			}
		}, tableerr.TokenCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			f, store := newOverwriting(t)
			r := f.mustAppend(rowsOf(rowAt("EWR", 1, "1"), rowAt("EWR", 2, "2")))
			f.mustAppend(rowsOf(rowAt("JFK", 1, "3")))
			c.spoil(t, store, "default/weather/"+r.DataFiles[0].Path)
			before := len(tableFiles(t, store))
			if _, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 1, "4"), rowAt("JFK", 1, "5"))); tableerr.TokenOf(err) != c.token {
				t.Fatalf("got %v", err)
			}
			if left := tableFiles(t, store); len(left) != before {
				t.Errorf("these files are left: %q", left)
			}
			if r, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("JFK", 1, "6"))); err != nil || r.RowsReplaced != 1 {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}
