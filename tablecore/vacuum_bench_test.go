package tablecore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// orphans lays copies of a data file into a table's directory, as if their
// writers had been killed a month ago.
func orphans(t testing.TB, dir, like string, n int) {
	t.Helper()
	data, err := os.ReadFile(like)
	if err != nil {
		t.Fatal(err)
	}
	month := time.Now().Add(-30 * day)
	for i := range n {
		path := filepath.Join(dir, "data", fmt.Sprintf("%02x", i%256), fmt.Sprintf("%08x-abab-abab-abab-abababababab.parquet", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, month, month); err != nil {
			t.Fatal(err)
		}
	}
}

// vacuumMany makes a table with orphans in a directory and returns it with the
// vacuum to be run.
func vacuumMany(t testing.TB, n int) (run func() *tablecore.VacuumReport) {
	t.Helper()
	dir := t.TempDir()
	store, err := localfs.Open(dir, localfs.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w, err := tablecore.Open(t.Context(), tablecore.Options{Store: store, Allocator: memory.DefaultAllocator, Maintenance: unmaintained})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	table, err := w.Table(t.Context(), weatherName)
	if err != nil {
		t.Fatal(err)
	}
	batch := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", 0, "1")))
	defer batch.Release()
	r, err := table.Append(t.Context(), &oneBatch{batch: batch}, tablecore.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "default", "weather")
	orphans(t, root, filepath.Join(root, r.DataFiles[0].Path), n)
	return func() *tablecore.VacuumReport {
		r, err := table.Vacuum(t.Context(), tablecore.VacuumOptions{Apply: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// BenchmarkVacuum removes orphans of a directory.
func BenchmarkVacuum(b *testing.B) {
	for _, files := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				run := vacuumMany(b, files)
				b.StartTimer()
				if r := run(); r.Deleted.Files != int64(files) {
					b.Fatalf("%+v", r)
				}
			}
			b.ReportMetric(float64(files)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
		})
	}
}

// vacuumReplaced makes a table whose files an optimize has replaced by one, and
// returns it, a month later, with the vacuum that expires what was before.
func vacuumReplaced(t testing.TB, n int) (run func() *tablecore.VacuumReport) {
	t.Helper()
	store, err := localfs.Open(t.TempDir(), localfs.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	o := tablecore.Options{Store: sharedStore{store}, Allocator: memory.DefaultAllocator, Maintenance: unmaintained}
	if _, err := fillTrades(t, tabletest.Open(t, o), n, 1000, false).Optimize(t.Context(), tablecore.OptimizeOptions{}); err != nil {
		t.Fatal(err)
	}
	o.Clock = func() time.Time { return time.Now().Add(30 * day) }
	table, err := tabletest.Open(t, o).Table(t.Context(), tabledef.Name{Namespace: "default", Table: "ticks"})
	if err != nil {
		t.Fatal(err)
	}
	return func() *tablecore.VacuumReport {
		r, err := table.Vacuum(t.Context(), tablecore.VacuumOptions{Apply: true, Expire: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// BenchmarkVacuumReplaced removes what an optimize has replaced.
func BenchmarkVacuumReplaced(b *testing.B) {
	const files = 1000
	for b.Loop() {
		b.StopTimer()
		run := vacuumReplaced(b, files)
		b.StartTimer()
		if r := run(); r.Deleted.Files != files {
			b.Fatalf("%+v", r)
		}
	}
	b.ReportMetric(files*float64(b.N)/b.Elapsed().Seconds(), "files/s")
}

// TestVacuumManyFiles: twenty thousand files are told of and removed a thousand at
// a time, with three requests for each and a few for each thousand.
func TestVacuumManyFiles(t *testing.T) {
	const files = 20_000
	clock := tabletest.NewClock()
	inner := memstore.NewWithClock(clock.Now)
	store := meterstore.Wrap(inner)
	a := &aged{t: t, clock: clock, store: store}
	a.house = a.open(store, 1)
	createWeather(t, a.house)
	a.table = openWeather(a.t, a.house)
	for i := range files {
		a.put(fmt.Sprintf("data/%02x/%08x-abab-abab-abab-abababababab.parquet", i%256, i), "")
	}
	clock.Advance(30 * day)
	store.Reset()
	told, messages := 0, 0
	r, err := a.table.Vacuum(t.Context(), tablecore.VacuumOptions{Apply: true, Artifacts: func(list []tablecore.VacuumArtifact) error {
		told, messages = told+len(list), messages+1
		return nil
	}})
	if err != nil || r.Deleted.Files != files || told != files || messages != files/1000 {
		t.Fatalf("%+v, %d told in %d messages, %v", r, told, messages, err)
	}
	c := store.Counts()
	if c.Delete != files || c.Head != files || c.Open != files || c.Requests()-c.ReadAt > 3*files+6*files/1000+100 {
		t.Errorf("it takes %s", c)
	}
}
