package tablecore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// unmaintained is for tests that tell what their own calls do.
var unmaintained = tablecore.Maintenance{Off: true}

// maintained is a weather table whose small files are merged when there are
// four, in a store.
func maintained(t *testing.T, store objstore.Store, change ...func(*tablecore.Options, *tablecore.CreateOptions)) *fixture {
	t.Helper()
	f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator)}
	t.Cleanup(func() { f.mem.AssertSize(t, 0) })
	o := tablecore.Options{Store: store, Allocator: f.mem, Clock: tabletest.NewClock().Now, Maintenance: tablecore.Maintenance{MergeFiles: 4, Quiet: -1}}
	create := weatherOptions()
	for _, c := range change {
		c(&o, &create)
	}
	var err error
	if f.house, err = tablecore.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.house.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := f.house.CreateTable(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	f.table = openWeather(t, f.house)
	return f
}

// operations counts the versions of a table by their operations.
func (f *fixture) operations() map[string]int {
	f.t.Helper()
	texts, err := rowTextsOf(f.t.Context(), func() (*tablecore.Listing, error) { return f.table.History(f.t.Context(), "") })
	if err != nil {
		f.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, text := range texts {
		for _, op := range []string{"append", "optimize", "retention", "update_rows"} {
			if strings.Contains(text, fmt.Sprintf("%q", op)) {
				counts[op]++
			}
		}
	}
	return counts
}

// files counts the live files.
func (f *fixture) files() int {
	f.t.Helper()
	d, err := f.table.Describe(f.t.Context(), tablecore.At{})
	if err != nil {
		f.t.Fatal(err)
	}
	return int(d.Files)
}

func TestMaintenanceMergesSmallFiles(t *testing.T) {
	var told []map[string]any
	f := maintained(t, memstore.New(), func(o *tablecore.Options, _ *tablecore.CreateOptions) {
		o.Events.Info = func(_ context.Context, event string, fields map[string]any) {
			if event == "small files merged" {
				told = append(told, fields)
			}
		}
	})
	var want []string
	for hour := range 20 {
		f.mustAppend(rowsOf(rowAt("EWR", hour, fmt.Sprint(hour)), rowAt("JFK", hour, "1")))
		f.house.WaitForBackground()
		want = append(want, jsonRow("EWR", hour, fmt.Sprint(hour)))
	}
	for hour := range 20 {
		want = append(want, jsonRow("JFK", hour, "1"))
	}
	f.wantRows(nil, want...)
	if ops := f.operations(); ops["append"] != 20 || ops["optimize"] != 6 || f.files() != 2 {
		t.Errorf("%v, %d files", ops, f.files())
	}
	if len(told) != 6 || told[0]["table"] != "default.weather" || told[0]["files_in"] != 4 || told[0]["files_out"] != 1 || told[0]["rows"] != int64(8) {
		t.Errorf("told %v", told)
	}
	if err := clean(t.Context(), f.house, true); err != nil {
		t.Error(err)
	}
}

// TestMaintenanceIsOff: by the option, by the table's property, and where too
// few files have gathered.
func TestMaintenanceIsOff(t *testing.T) {
	for name, change := range map[string]func(*tablecore.Options, *tablecore.CreateOptions){
		"option": func(o *tablecore.Options, _ *tablecore.CreateOptions) { o.Maintenance.Off = true },
		"property": func(_ *tablecore.Options, c *tablecore.CreateOptions) {
			c.Properties = map[string]string{"contrail.maintenance": "off"}
		},
		"few files": func(o *tablecore.Options, _ *tablecore.CreateOptions) { o.Maintenance.MergeFiles = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			f := maintained(t, memstore.New(), change)
			for hour := range 20 {
				f.mustAppend(rowsOf(rowAt("EWR", hour, "1")))
			}
			f.house.WaitForBackground()
			if f.version() != 20 || f.files() != 20 {
				t.Errorf("version %d, %d files", f.version(), f.files())
			}
		})
	}
}

// asked marks the contexts of a test's own calls.
type asked struct{}

// stuck is a store in which work that nobody has asked for cannot read data
// files: it waits until it is called off, or fails.
type stuck struct {
	objstore.Store
	*stuckState
	table string
}

type stuckState struct {
	fails, hangs atomic.Bool
	reached      chan struct{} // has room for one

	mu      sync.Mutex
	hanging map[string]int // readers by table
}

// hang notes readers of a table that have begun or ended to wait.
func (s *stuckState) hang(table string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hanging[table] += n; s.hanging[table] == 0 {
		delete(s.hanging, table)
	}
}

// tables is how many tables have readers that wait.
func (s *stuckState) tables() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hanging)
}

func newStuck() stuck {
	return stuck{Store: memstore.New(), stuckState: &stuckState{reached: make(chan struct{}, 1), hanging: map[string]int{}}}
}

func (s stuck) Sub(ctx context.Context, prefix string, create bool) (objstore.Store, error) {
	sub, err := s.Store.Sub(ctx, prefix, create)
	if err != nil {
		return nil, err
	}
	return stuck{sub, s.stuckState, prefix}, nil
}

func (s stuck) Open(ctx context.Context, key string) (objstore.Reader, error) {
	if !strings.HasPrefix(key, "data/") || ctx.Value(asked{}) != nil || !s.fails.Load() && !s.hangs.Load() {
		return s.Store.Open(ctx, key)
	}
	select {
	case s.reached <- struct{}{}:
	default:
	}
	if s.hangs.Load() {
		s.hang(s.table, 1)
		defer s.hang(s.table, -1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, errors.New("the store is out of order")
}

// TestMaintenanceNeverHindersAppends: while maintenance hangs or fails appends
// are answered as without it. What hangs ends when the warehouse is closed, and
// what failed is done when it can be.
func TestMaintenanceNeverHindersAppends(t *testing.T) {
	for _, hangs := range []bool{true, false} {
		t.Run(fmt.Sprint("hangs ", hangs), func(t *testing.T) {
			store := newStuck()
			store.hangs.Store(hangs)
			store.fails.Store(!hangs)
			var failures atomic.Int64
			f := maintained(t, store, func(o *tablecore.Options, _ *tablecore.CreateOptions) {
				o.Events.Warning = func(_ context.Context, event string, _ map[string]any) {
					if event == "maintenance failed" {
						failures.Add(1)
					}
				}
			})
			append := func(hour int) *tablecore.AppendReport {
				b := tabletest.Batch(t, f.mem, weather, rowsOf(rowAt("EWR", hour, "1")))
				defer b.Release()
				r, err := f.table.Append(context.WithValue(t.Context(), asked{}, true), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			for hour := range 4 {
				append(hour)
			}
			<-store.reached
			for hour := 4; hour < 60; hour++ {
				if r := append(hour); r.CommittedVersion != int64(hour)+1 || len(r.DataFiles) != 1 || r.Rows != 1 {
					t.Fatalf("got %+v", r)
				}
			}
			if hangs {
				return // the run is called off by Close, else the test never ends
			}
			f.house.WaitForBackground()
			// With each failure twice as much has to happen before the next.
			if n := failures.Load(); n < 1 || n > 6 || f.files() != 60 {
				t.Errorf("%d failures, %d files", n, f.files())
			}
			store.fails.Store(false)
			for hour := 60; hour < 360; hour++ {
				append(hour)
			}
			f.house.WaitForBackground()
			if f.files() > 270 || f.operations()["append"] != 360 {
				t.Errorf("%d files", f.files())
			}
		})
	}
}

// TestMaintenanceFaults fails or stops each store operation of an append and the
// run that follows it.
func TestMaintenanceFaults(t *testing.T) {
	row := func(hour int) string { return rowAt("EWR", hour, fmt.Sprint(hour)) }
	walk{
		maintenance: tablecore.Maintenance{MergeFiles: 4, Quiet: -1},
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			createWeather(t, w)
			for hour := range 3 {
				if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, row(hour)); err != nil {
					t.Fatal(err)
				}
			}
		},
		cold: true,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, row(3))
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			got, version, scanErr := scanWeather(t, w)
			var want []string
			for hour := range min(int(version), 4) {
				want = append(want, jsonRow("EWR", hour, fmt.Sprint(hour)))
			}
			if scanErr != nil || !slices.Equal(got, want) {
				t.Fatalf("version %d holds %q, %v", version, got, scanErr)
			}
			unclear := stopped || tableerr.TokenOf(err) == tableerr.TokenCommitUnknown
			files := len(tableFiles(t, store))
			switch {
			case version < 3 || version > 5, err == nil && version == 3:
				t.Fatalf("the table is at version %d after %v", version, err)
			case err != nil && version > 3 && !unclear:
				t.Fatalf("refused with %v and committed", err)
			case !unclear && files != int(version):
				t.Fatalf("%d files at version %d after %v", files, version, err)
			}
		},
		write: writeWeather,
	}.all(t)
}

// TestMaintenanceBesideWriters: four appenders, one who updates, and readers,
// while files are merged all the time. Nothing is lost or doubled, and who
// updates gets through.
func TestMaintenanceBesideWriters(t *testing.T) {
	const appenders, each, updates = 4, 40, 10
	f := maintained(t, memstore.New(), func(o *tablecore.Options, _ *tablecore.CreateOptions) { o.Maintenance.MergeFiles = 2 })
	var group sync.WaitGroup
	for a := range appenders {
		group.Go(func() {
			for i := range each {
				if _, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt(fmt.Sprint("E", a), i, "0"))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	f.mustAppend(rowsOf(rowAt("X", 0, "0")))
	group.Go(func() {
		for i := range updates {
			for {
				_, err := f.update(tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: f.version()}, rowsOf(rowAt("X", 0, fmt.Sprint(i+1))))
				if err == nil {
					break
				}
				if tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
					t.Error(err)
					return
				}
			}
		}
	})
	group.Go(func() {
		last := 0
		for last < appenders*each {
			rows, _ := f.scan(tablecore.ScanOptions{})
			if len(rows) < last {
				t.Errorf("%d rows became %d", last, len(rows))
				return
			}
			last = len(rows)
		}
	})
	group.Wait()
	// However often maintenance has lost its races, it looks again after so many.
	const alone = 2 << 6
	for hour := range alone {
		f.mustAppend(rowsOf(rowAt("X", hour+1, "0")))
	}
	f.house.WaitForBackground()
	want := []string{}
	for a := range appenders {
		for i := range each {
			want = append(want, briefRow(fmt.Sprint("E", a), i, 0))
		}
	}
	want = append(want, briefRow("X", 0, updates))
	for hour := range alone {
		want = append(want, briefRow("X", hour+1, 0))
	}
	rows, _ := f.scan(tablecore.ScanOptions{})
	for i, text := range rows {
		if i < len(want) && text != want[i] {
			t.Fatalf("row %d is %s, want %s", i, text, want[i])
		}
	}
	if ops := f.operations(); len(rows) != len(want) || ops["append"] != appenders*each+1+alone || ops["update_rows"] != updates || ops["optimize"] == 0 {
		t.Errorf("%d rows instead of %d, %v", len(rows), len(want), ops)
	}
	if err := clean(t.Context(), f.house, true); err != nil {
		t.Error(err)
	}
}

// briefRow is a row of the weather table as a scan gives it, on any day.
func briefRow(origin string, hour, temp int) string {
	return fmt.Sprintf(`{"origin":%q,"temp":%d,"time_hour":"1970-01-%02dT%02d:00:00Z"}`, origin, temp, 1+hour/24, hour%24)
}

// TestMaintenanceKeepsTies appends rows that are equal in entity and index to two
// tables, of which one is maintained: they read the same.
func TestMaintenanceKeepsTies(t *testing.T) {
	ties := func(_ *tablecore.Options, c *tablecore.CreateOptions) {
		c.Uniqueness, c.IngestTimeColumn = "none", ptr("")
	}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 7))
		kept := maintained(t, memstore.New(), ties)
		plain := maintained(t, memstore.New(), ties, func(o *tablecore.Options, _ *tablecore.CreateOptions) { o.Maintenance.Off = true })
		for i := range 60 {
			var rows []string
			for j := range 1 + r.IntN(1+9*(i%3)) {
				rows = append(rows, rowAt("EWR", r.IntN(6), fmt.Sprint(i*100+j)))
			}
			kept.mustAppend(rowsOf(rows...))
			plain.mustAppend(rowsOf(rows...))
			kept.house.WaitForBackground()
		}
		want, _ := plain.scan(tablecore.ScanOptions{})
		got, _ := kept.scan(tablecore.ScanOptions{})
		if !slices.Equal(got, want) || kept.operations()["optimize"] < 5 {
			t.Fatalf("seed %d: %d and %d rows differ, %v", seed, len(got), len(want), kept.operations())
		}
		latest := func(f *fixture) []string {
			rows, err := rowTextsOf(t.Context(), func() (*tablecore.Listing, error) { return f.table.Latest(t.Context(), tablecore.LatestOptions{}) })
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		if got, want := latest(kept), latest(plain); !slices.Equal(got, want) {
			t.Errorf("seed %d: the newest row is %q, want %q", seed, got, want)
		}
	}
}

// TestMaintenanceOfOneTableAtATime: two tables are due, and one run is at work.
func TestMaintenanceOfOneTableAtATime(t *testing.T) {
	mergeOutside(t)
	synctest.Test(t, func(t *testing.T) {
		store := newStuck()
		f := maintained(t, store)
		other := weatherOptions()
		other.Name.Table = "climate"
		if _, err := f.house.CreateTable(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		second, err := f.house.Table(t.Context(), other.Name)
		if err != nil {
			t.Fatal(err)
		}
		store.hangs.Store(true)
		for _, table := range []*tablecore.Table{f.table, second} {
			f.table = table
			for hour := range 4 {
				f.mustAppend(rowsOf(rowAt("EWR", hour, "0")))
			}
		}
		synctest.Wait()
		if n := store.tables(); n != 1 {
			t.Errorf("%d runs are at work", n)
		}
		// The hour that a piece may take goes by, for the second one, too.
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if n := store.tables(); n != 0 {
			t.Errorf("%d runs are at work after hours", n)
		}
	})
}

// TestMaintenanceOfTwoServers: two processes append to one table and both
// maintain it. What one has done in vain leaves nothing behind, and it stops
// trying at the same times.
func TestMaintenanceOfTwoServers(t *testing.T) {
	const rounds = 100
	store := memstore.New()
	var merged atomic.Int64
	count := func(o *tablecore.Options, _ *tablecore.CreateOptions) {
		o.Events.Info = func(_ context.Context, _ string, fields map[string]any) { merged.Add(fields["rows"].(int64)) }
		o.Events.Warning = func(_ context.Context, event string, fields map[string]any) { t.Error(event, fields) }
	}
	f := maintained(t, sharedStore{store}, count)
	house, err := tablecore.Open(t.Context(), tablecore.Options{Store: sharedStore{store}, Allocator: f.mem, Clock: tabletest.NewClock().Now, Maintenance: tablecore.Maintenance{MergeFiles: 4, Quiet: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer house.Close()
	tables := []*tablecore.Table{f.table, openWeather(t, house)}
	var group sync.WaitGroup
	for i, table := range tables {
		group.Go(func() {
			mine := *f
			mine.table = table
			for hour := range rounds {
				if _, err := mine.append(tablecore.AppendOptions{}, rowsOf(rowAt(fmt.Sprint("E", i), hour, "0"))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	f.house.WaitForBackground()
	house.WaitForBackground()
	rows, _ := f.scan(tablecore.ScanOptions{})
	if len(rows) != 2*rounds || f.files() > 40 || merged.Load() > 2*rounds*4 {
		t.Errorf("%d rows in %d files, %d were merged", len(rows), f.files(), merged.Load())
	}
	if err := clean(t.Context(), f.house, true); err != nil {
		t.Error(err)
	}
}
