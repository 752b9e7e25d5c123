package tablecore_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// overwritten is an append to a table that overwrites, with what it was told.
type overwritten struct {
	Version, Stored, Replaced int64
	Rows                      []weatherRow
}

// weatherRow is a row of the weather table.
type weatherRow struct {
	Origin string
	Hour   int
	Temp   int
}

func (r weatherRow) json() string { return rowAt(r.Origin, r.Hour, strconv.Itoa(r.Temp)) }

func (r weatherRow) model() tabletest.Row {
	return tabletest.Row{r.Origin, int64(r.Hour) * 3600e6, float64(r.Temp)}
}

// overwriteOften has some goroutines make appends of random rows, most of them
// in the same few intervals, and here and there an update of one row.
func overwriteOften(table *tablecore.Table, writers, appends int, seed uint64) ([]overwritten, error) {
	var (
		mu    sync.Mutex
		all   []overwritten
		first error
		group sync.WaitGroup
	)
	for g := range writers {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			for i := range appends {
				value := int(seed)*10_000 + g*1000 + 2*i
				updated, failed := updateOnce(table, rng, value)
				o, err := overwriteOnce(table, rng, value+1)
				mu.Lock()
				all = append(append(all, updated...), o)
				first = cmp.Or(first, failed, err)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return all, first
}

// overwriteOnce appends some rows, all with one value.
func overwriteOnce(table *tablecore.Table, rng *rand.Rand, value int) (overwritten, error) {
	var o overwritten
	var rows []string
	for range 1 + rng.IntN(6) {
		r := weatherRow{[]string{"EWR", "JFK", "LGA"}[rng.IntN(3)], rng.IntN(8), value}
		if rng.IntN(4) == 0 {
			r.Hour = 100 + value // which nobody else has
		}
		o.Rows = append(o.Rows, r)
		rows = append(rows, r.json())
	}
	r, err := appendJSON(table, rowsOf(rows...), tablecore.AppendOptions{})
	if err == nil {
		o.Version, o.Stored, o.Replaced = r.CommittedVersion, r.Rows, r.RowsReplaced
	}
	return o, err
}

// updateOnce tries now and then to update a row of the newest version, if it is
// there and nobody is faster. A row that was updated is, for the reference, one
// that was overwritten.
func updateOnce(table *tablecore.Table, rng *rand.Rand, value int) ([]overwritten, error) {
	if rng.IntN(3) > 0 {
		return nil, nil
	}
	d, err := table.Describe(context.Background(), tablecore.At{})
	if err != nil {
		return nil, err
	}
	row := weatherRow{[]string{"EWR", "JFK", "LGA"}[rng.IntN(3)], rng.IntN(8), value}
	b, err := tabletest.BatchOf(memory.DefaultAllocator, weather, []tabletest.Row{row.model()})
	if err != nil {
		return nil, err
	}
	defer b.Release()
	r, err := table.UpdateRows(context.Background(), tabletest.NewReader(weather, b), tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: d.Version})
	switch tableerr.TokenOf(err) {
	case tableerr.TokenVersionConflict, tableerr.TokenUnmatchedSourceKey:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []overwritten{{Version: r.CommittedVersion, Stored: 1, Replaced: r.RowsUpdated, Rows: []weatherRow{row}}}, nil
}

// overwrites is what a child process does with a line of its input, the seed. It
// answers with what its appends were told, as JSON.
func overwrites(table *tablecore.Table, text string) string {
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return err.Error()
	}
	all, err := overwriteOften(table, writersEach, appendsEach, seed)
	if err != nil {
		return err.Error()
	}
	answer, err := json.Marshal(all)
	if err != nil {
		return err.Error()
	}
	return string(answer)
}

// checkSerial makes sure that every version is what the appends give one after
// the other, in the order of their versions, and that each was told so.
func checkSerial(t *testing.T, table *tablecore.Table, all []overwritten) {
	t.Helper()
	slices.SortFunc(all, func(a, b overwritten) int { return cmp.Compare(a.Version, b.Version) })
	model := &tabletest.Model{Index: "time_hour", Entities: []string{"origin"}, Width: 3600e6, Overwrite: true, Timestamps: true}
	model.SetSchema(weather)
	for i, o := range all {
		if o.Version != int64(i+1) {
			t.Fatalf("version %d follows %d", o.Version, i)
		}
		a := tabletest.ModelAppend{Schema: weather}
		for _, r := range o.Rows {
			a.Rows = append(a.Rows, r.model())
		}
		if stored, replaced := model.Commit(a); o.Stored != int64(stored) || o.Replaced != int64(replaced) {
			t.Errorf("version %d was told of %d rows for %d, want %d for %d", o.Version, o.Stored, o.Replaced, stored, replaced)
		}
	}
	for version := range model.Version() + 1 {
		if version%7 != 0 && version != model.Version() {
			continue
		}
		plan, err := table.PlanScan(t.Context(), tablecore.ScanOptions{Version: &version, Columns: []string{"origin", "time_hour", "temp"}})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := tabletest.ScanRows(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(rows), fmt.Sprint(model.Scan(tabletest.ModelScan{}, version)); got != want {
			t.Fatalf("version %d holds\n%s\nwant\n%s", version, got, want)
		}
	}
}

// checkNothingLeft makes sure that every data file in the store is one of some
// version.
func checkNothingLeft(t *testing.T, table *tablecore.Table, store objstore.Store, versions int64) {
	t.Helper()
	known := map[string]bool{}
	for version := range versions + 1 {
		listing, err := table.Files(t.Context(), tablecore.At{Version: &version})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range listedRows(t, listing) {
			known["default/weather/"+row["path"].(string)] = true
		}
	}
	for _, path := range dataFiles(t, store) {
		if !known[path] {
			t.Errorf("%s is left", path)
		}
	}
}

// TestOverwriteTogether has many goroutines of one process overwrite the same
// rows: each version is right, and no replacement that was given up is left.
func TestOverwriteTogether(t *testing.T) {
	f, store := newOverwriting(t)
	all, err := overwriteOften(f.table, 16, 12, 1)
	if err != nil {
		t.Fatal(err)
	}
	checkSerial(t, f.table, all)
	checkNothingLeft(t, f.table, store, int64(len(all)))
}

// TestOverwriteProcesses has 8 writers in four processes overwrite the same
// rows: the table is what they give in the order of their versions.
func TestOverwriteProcesses(t *testing.T) {
	dir, w := localWarehouse(t, overwriteOptions())
	children := startChildren(t, "overwrite", dir)
	for i, c := range children {
		c.write(t, fmt.Sprint(i+1))
	}
	var all []overwritten
	for _, c := range children {
		var some []overwritten
		if answer := c.read(t); json.Unmarshal([]byte(answer), &some) != nil {
			t.Fatal(answer)
		}
		all = append(all, some...)
	}
	if len(all) < processes*writersEach*appendsEach {
		t.Fatalf("%d changes were made", len(all))
	}
	checkSerial(t, openWeather(t, w), all)
}

// otherProcess opens the weather table of a store as another process does.
func otherProcess(t *testing.T, store objstore.Store) *tablecore.Table {
	t.Helper()
	w := tabletest.Open(t, tablecore.Options{Store: sharedStore{store}, Clock: tabletest.NewClock().Now, Random: tabletest.Random(9), Maintenance: unmaintained})
	return openWeather(t, w)
}

// updateAs gives rows at version 1 other temperatures.
func updateAs(t *testing.T, table *tablecore.Table, rows ...string) {
	t.Helper()
	b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rows...))
	defer b.Release()
	if _, err := table.UpdateRows(t.Context(), tabletest.NewReader(weather, b), tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 1}); err != nil {
		t.Error(err)
	}
}

// TestOverwriteMeets has others commit while an append that overwrites is under
// way: it is planned anew where they touched its rows, and only its own rows and
// theirs are there in the end.
func TestOverwriteMeets(t *testing.T) {
	for _, c := range []struct {
		name     string
		theirs   []string // rows of another append, or of an update
		update   bool
		change   func(newest map[string]action) []action
		token    tableerr.Token
		replaced int64
		want     []string
	}{
		{"rows elsewhere", []string{rowAt("LGA", 7, "9")}, false, nil, "", 1, []string{"EWR 01 5", "EWR 02 6", "JFK 01 3", "LGA 07 9"}},
		{"rows in its intervals", []string{rowAt("EWR", 2, "9")}, false, nil, "", 2, []string{"EWR 01 5", "EWR 02 6", "JFK 01 3"}},
		{"the rows that it replaces", []string{rowAt("EWR", 1, "9")}, false, nil, "", 1, []string{"EWR 01 5", "EWR 02 6", "JFK 01 3"}},
		{"other rows of the file that it replaces", []string{rowAt("JFK", 1, "9")}, false, nil, "", 1, []string{"EWR 01 5", "EWR 02 6", "JFK 01 9"}},
		{"the whole file that it replaces", []string{rowAt("JFK", 1, "8"), rowAt("EWR", 1, "9")}, false, nil, "", 1, []string{"EWR 01 5", "EWR 02 6", "JFK 01 8"}},
		{"an update of other rows of the file that it replaces", []string{rowAt("JFK", 1, "9")}, true, nil, "", 1, []string{"EWR 01 5", "EWR 02 6", "JFK 01 9"}},
		{"an update of the rows that it replaces", []string{rowAt("EWR", 1, "9")}, true, nil, "", 1, []string{"EWR 01 5", "EWR 02 6", "JFK 01 3"}},
		{"a property", nil, false, set("team", "ops"), "", 1, []string{"EWR 01 5", "EWR 02 6", "JFK 01 3"}},
		{"a column", nil, false, schema(columns(`,{"name":"more","type":"long","nullable":true,"metadata":{}}`)), "", 1, []string{"EWR 01 5", "EWR 02 6", "JFK 01 3"}},
		{"delta.appendOnly", nil, false, set("delta.appendOnly", "true"), tableerr.TokenUnsupported, 0, []string{"EWR 01 1", "JFK 01 3"}},
		{"another rule", nil, false, set("contrail.uniqueness", "reject"), tableerr.TokenVersionConflict, 0, []string{"EWR 01 1", "JFK 01 3"}},
		{"another format", nil, false, set("contrail.format-version", "0.3.1"), tableerr.TokenVersionConflict, 0, []string{"EWR 01 1", "JFK 01 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, store := newOverwriting(t)
			f.mustAppend(rowsOf(rowAt("EWR", 1, "1"), rowAt("JFK", 1, "3")))
			rival := otherProcess(t, store)
			b := tabletest.Batch(t, f.mem, weather, rowsOf(rowAt("EWR", 1, "5"), rowAt("EWR", 2, "6")))
			defer b.Release()
			r, err := f.table.Append(context.Background(), during{tabletest.NewReader(weather, b), func() {
				switch {
				case c.change != nil:
					rewrite(t, store, c.change)
				case c.update:
					updateAs(t, rival, c.theirs...)
				default:
					if _, err := appendJSON(rival, rowsOf(c.theirs...), tablecore.AppendOptions{}); err != nil {
						t.Error(err)
					}
				}
			}}, tablecore.AppendOptions{})
			if tableerr.TokenOf(err) != c.token || err == nil && (r.RowsReplaced != c.replaced || r.Rows != 2 || r.StartingVersion != 1 || r.CommittedVersion != 3) {
				t.Fatalf("got %+v, %v", r, err)
			}
			rows, _ := f.scan(tablecore.ScanOptions{Columns: []string{"origin", "time_hour", "temp"}})
			if got := brief(t, rows); !slices.Equal(got, c.want) {
				t.Errorf("the table holds %q, want %q", got, c.want)
			}
			d, err := f.table.Describe(t.Context(), tablecore.At{})
			if err != nil {
				t.Fatal(err)
			}
			checkNothingLeft(t, f.table, store, d.Version)
		})
	}
}
