package tablecore_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// weatherKey is the key of a file of the weather table in the warehouse's store.
func weatherKey(file string) string { return path.Join(weatherName.Dir(), file) }

// manyFiles makes a weather table of so many files, all but the last hundred of
// which are in the log alone, and whose head is of the newest version.
func manyFiles(t *testing.T, store objstore.Store, files int) {
	t.Helper()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", 0, "1")); err != nil {
		t.Fatal(err)
	}
	w.WaitForBackground()
	copyFiles(t, store, files-100)
	w = tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	for hour := 1; ; hour++ {
		if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", hour, "1")); err != nil {
			t.Fatal(err)
		}
		w.WaitForBackground()
		if _, err := store.Head(t.Context(), weatherKey(derived.HeadPath)); err == nil {
			return
		}
		if hour > 1000 {
			t.Fatal("no head is written")
		}
	}
}

// copyFiles commits version 2 of the weather table: files like that of version
// 1, of later hours, which exist in the log only.
func copyFiles(t *testing.T, store objstore.Store, files int) {
	t.Helper()
	data, err := store.Get(t.Context(), weatherKey(deltalog.CommitKey(1)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := deltalog.ParseCommit(1, data)
	if err != nil {
		t.Fatal(err)
	}
	first, next := c.Adds[0], &deltalog.Commit{Info: c.Info}
	*next.Info.InCommitTimestamp++
	for i := range files {
		a := *first
		a.Path = fmt.Sprintf("data/%02x/00000000-0000-4000-8000-%012x.parquet", i%256, i)
		a.Tags = maps.Clone(first.Tags)
		at := fmt.Sprint(int64(100_000+i) * 3600e6)
		a.Tags[tabledef.TagIndexMin], a.Tags[tabledef.TagIndexMax] = at, at
		next.Adds = append(next.Adds, &a)
	}
	if data, err = deltalog.EncodeCommit(next); err != nil {
		t.Fatal(err)
	}
	if err := store.PutIfAbsent(t.Context(), weatherKey(deltalog.CommitKey(2)), data); err != nil {
		t.Fatal(err)
	}
}

// TestColdOpenCost counts what it takes to open a table of 10,000 files: six
// requests, and no listing.
func TestColdOpenCost(t *testing.T) {
	store := meterstore.Wrap(memstore.New())
	manyFiles(t, store, 10_000)
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	store.Reset()
	table, err := w.Table(t.Context(), weatherName)
	if err != nil {
		t.Fatal(err)
	}
	// Sub opens the directory. Open and ReadAt are one read of the state file.
	c := store.Counts()
	if c.Get != 4 || c.Head != 1 || c.Open != 1 || c.ReadAt != 1 || c.Requests() != 7+c.Sub+c.Current {
		t.Errorf("a cold opening takes %s", c)
	}
	store.Reset()
	plan, err := table.PlanScan(t.Context(), tablecore.ScanOptions{Start: []byte(fmt.Sprint(int64(105_000) * 3600e6)), End: []byte(fmt.Sprint(int64(105_001) * 3600e6))})
	if err != nil || plan.Rows() != 1 {
		t.Fatalf("%v, %v", plan, err)
	}
	if c := store.Counts(); c.Requests() > 2 {
		t.Errorf("the first plan takes %s", c)
	}
}

// tableView is what a process that comes anew sees of the weather table.
func tableView(t *testing.T, store objstore.Store) string {
	t.Helper()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	table, err := w.Table(t.Context(), weatherName)
	if err != nil {
		t.Fatal(err)
	}
	d, err := table.Describe(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	rows, stats, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%+v %+v %q", *d, stats, rows)
}

// TestHeadNeverMatters opens and scans a table with its head, without it, with
// a head and states of another table, and with each of them cut.
func TestHeadNeverMatters(t *testing.T) {
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	for hour := range 105 {
		if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", hour, "1")); err != nil {
			t.Fatal(err)
		}
		w.WaitForBackground()
	}
	keys := contrailFiles(t, store)
	if len(keys) != 2 {
		t.Fatalf("behind 105 versions there are %q", keys)
	}
	want := tableView(t, store)
	for _, key := range keys {
		whole, err := store.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{"none": nil, "cut": whole[:len(whole)-1], "longer": append(slices.Clone(whole), 0)} {
			if err := store.Put(t.Context(), key, data); err != nil {
				t.Fatal(err)
			}
			if got := tableView(t, store); got != want {
				t.Errorf("%s of %s:\n%s\nwant\n%s", name, key, got, want)
			}
		}
		if err := store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if got := tableView(t, store); got != want {
			t.Errorf("without %s:\n%s\nwant\n%s", key, got, want)
		}
	}
}

// contrailFiles lists the weather table's head and state files.
func contrailFiles(t *testing.T, store objstore.Store) []string {
	t.Helper()
	var keys []string
	for info, err := range store.List(t.Context(), weatherKey("_contrail")+"/", "") {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(info.Key, "_contrail/files/") {
			keys = append(keys, info.Key)
		}
	}
	return keys
}

// TestHeadOfTwoProcesses lets two processes append to a table in a directory,
// each writing states and heads when it thinks it is time.
func TestHeadOfTwoProcesses(t *testing.T) {
	dir := fastDir(t)
	open := func() *tablecore.Warehouse {
		store, err := localfs.Open(dir, localfs.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		w, err := tablecore.Open(t.Context(), tablecore.Options{Store: store, Clock: tabletest.NewClock().Now, Maintenance: unmaintained})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	houses := []*tablecore.Warehouse{open(), open()}
	if _, err := houses[0].CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	for hour := range 230 {
		if _, err := appendWeather(t.Context(), t, houses[hour%2], tablecore.AppendOptions{}, rowAt("EWR", hour, "1")); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range houses {
		if err := w.Close(); err != nil { // which waits for what is under way
			t.Fatal(err)
		}
	}
	store, err := localfs.Open(dir, localfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys := contrailFiles(t, store)
	if len(keys) < 2 || len(keys) > 4 {
		t.Errorf("there are %q", keys)
	}
	want := tableView(t, store)
	if err := store.Delete(t.Context(), weatherKey(derived.HeadPath)); err != nil {
		t.Fatal(err)
	}
	if got := tableView(t, store); got != want {
		t.Errorf("without the head:\n%s\nwith it\n%s", got, want)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHeadWarnings: a head that is ignored is reported, and a state that cannot
// be written fails no append.
func TestHeadWarnings(t *testing.T) {
	store := memstore.New()
	var events []string
	var mu sync.Mutex
	open := func(inner objstore.Store) *tablecore.Warehouse {
		w, err := tablecore.Open(t.Context(), tablecore.Options{Store: inner, Clock: tabletest.NewClock().Now, Maintenance: unmaintained,
			Events: tablecore.Events{Warning: func(_ context.Context, event string, fields map[string]any) {
				mu.Lock()
				defer mu.Unlock()
				events = append(events, fmt.Sprint(event, " ", fields["reason"]))
			}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
		return w
	}
	w := open(faultstore.Wrap(sharedStore{store}, faultstore.Plan{Kind: faultstore.Error, Match: func(op objstore.Op, key string) bool {
		return op == objstore.OpPut && strings.Contains(key, "_contrail/state/")
	}}))
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	for hour := range 101 {
		if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", hour, "1")); err != nil {
			t.Fatal(err)
		}
		w.WaitForBackground()
	}
	if len(events) == 0 || !strings.HasPrefix(events[0], "state cache failed") {
		t.Errorf("events %q", events)
	}
	if err := store.Put(t.Context(), weatherKey(derived.HeadPath), []byte("no head")); err != nil {
		t.Fatal(err)
	}
	events = nil
	if _, err := open(sharedStore{store}).Table(t.Context(), weatherName); err != nil {
		t.Fatal(err)
	}
	if want := []string{"head ignored the head is damaged"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}

// TestStatesAgainstRows appends random rows to tables of all kinds, writes their
// states now and then, and compares what processes that come anew say of their
// series with all rows.
func TestStatesAgainstRows(t *testing.T) {
	for i, k := range seriesKinds {
		for seed := range max(1, numberFrom(t, "SEEDS", modelSeeds)/20) {
			t.Run(fmt.Sprint(i, "/", seed), func(t *testing.T) {
				t.Parallel()
				k.compareStates(t, rand.New(rand.NewPCG(seed, uint64(i))))
			})
		}
	}
}

func (k seriesKind) compareStates(t *testing.T, r *rand.Rand) {
	store := sharedStore{memstore.New()}
	w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
	if _, err := w.CreateTable(t.Context(), k.options()); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		k.appendSome(t, w, memory.DefaultAllocator, r)
		writer := w
		if r.IntN(3) == 0 {
			writer = tabletest.Warehouse(t, store, memory.DefaultAllocator)
		}
		table, err := writer.Table(t.Context(), k.options().Name)
		if err == nil && r.IntN(2) == 0 {
			err = table.WriteState(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if table, err = tabletest.Warehouse(t, store, memory.DefaultAllocator).Table(t.Context(), k.options().Name); err != nil {
			t.Fatal(err)
		}
		d, err := table.Describe(t.Context(), tablecore.At{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := newSeriesCheck(t.Context(), table, k.options(), d.Version, k.width)
		if err == nil {
			err = c.run(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// seriesOf asks a process that comes anew for the weather table's newest rows
// and coverage.
func seriesOf(t *testing.T, store objstore.Store) string {
	t.Helper()
	series, err := seriesIn(t, tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator))
	if err != nil {
		t.Fatal(err)
	}
	return series
}

// seriesIn asks for the weather table's newest rows and coverage.
func seriesIn(t *testing.T, w *tablecore.Warehouse) (string, error) {
	t.Helper()
	table, err := w.Table(t.Context(), weatherName)
	if err != nil {
		return "", err
	}
	latest, err := rowTextsOf(t.Context(), func() (*tablecore.Listing, error) {
		return table.Latest(t.Context(), tablecore.LatestOptions{})
	})
	if err != nil {
		return "", err
	}
	covered, err := rowTextsOf(t.Context(), func() (*tablecore.Listing, error) {
		return table.Coverage(t.Context(), tablecore.CoverageOptions{Kind: tablecore.CoverageCovered})
	})
	return fmt.Sprint(latest, covered), err
}

// weatherWithState makes a weather table of a few files with a state of all
// sections, and a file behind it.
func weatherWithState(t *testing.T, store objstore.Store) {
	t.Helper()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	table, err := w.Table(t.Context(), weatherName)
	if err != nil {
		t.Fatal(err)
	}
	for hour := range 20 {
		if hour == 19 {
			err = table.WriteState(t.Context())
		}
		if err == nil {
			_, err = appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", hour, "1"), rowAt("JFK", 2*hour, "2"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestColdSeriesCost counts the reads of the first questions about the series of
// a table: its section and the one file behind the state, not the nineteen
// before it.
func TestColdSeriesCost(t *testing.T) {
	store := meterstore.Wrap(memstore.New())
	weatherWithState(t, store)
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	table, err := w.Table(t.Context(), weatherName)
	if err != nil {
		t.Fatal(err)
	}
	store.Reset()
	rows, err := rowTextsOf(t.Context(), func() (*tablecore.Listing, error) {
		return table.Latest(t.Context(), tablecore.LatestOptions{})
	})
	if err != nil || len(rows) != 2 {
		t.Fatalf("%q, %v", rows, err)
	}
	if c := store.Counts(); c.Open > 3 || c.Get > 2 {
		t.Errorf("the first newest rows take %s", c)
	}
	store.Reset()
	if rows, err = rowTextsOf(t.Context(), func() (*tablecore.Listing, error) {
		return table.Coverage(t.Context(), tablecore.CoverageOptions{Kind: tablecore.CoverageCovered})
	}); err != nil || len(rows) == 0 {
		t.Fatalf("%q, %v", rows, err)
	}
	if c := store.Counts(); c.Open > 2 || c.Get > 2 {
		t.Errorf("the first coverage takes %s", c)
	}
}

// TestColdQuestionLeavesState: who had to read many files for an answer leaves a
// state, so that the next process reads none; appends do not make anybody write
// another one soon, and neither does a question about an old version.
func TestColdQuestionLeavesState(t *testing.T) {
	store := meterstore.Wrap(memstore.New())
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	createWeather(t, w)
	hour := 0
	appendHours := func(n int) {
		for range n {
			if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", hour, "1"), rowAt("JFK", hour, "2")); err != nil {
				t.Fatal(err)
			}
			hour++
		}
	}
	// ask has a new process answer and returns what that took it, and how many
	// states it has written.
	ask := func(version *int64) (c meterstore.Counts, states int64) {
		t.Helper()
		cold := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
		table, err := cold.Table(t.Context(), weatherName)
		if err != nil {
			t.Fatal(err)
		}
		store.Reset()
		askSeries(t, table, version)
		c = store.Counts()
		cold.WaitForBackground()
		return c, store.Counts().Put / 2 // and a head each
	}
	appendHours(7)
	if _, states := ask(nil); states != 0 {
		t.Errorf("seven files are worth %d states", states)
	}
	appendHours(25)
	if _, states := ask(ptr(int64(20))); states != 0 {
		t.Errorf("an old version is worth %d states", states)
	}
	if _, states := ask(nil); states != 1 {
		t.Errorf("32 files are worth %d states", states)
	}
	if c, states := ask(nil); states != 0 || c.Open > 2 {
		t.Errorf("after a state of 32 files the answers take %s and are worth %d states", c, states)
	}
	appendHours(7)
	if _, states := ask(nil); states != 0 {
		t.Errorf("seven files behind a state are worth %d states", states)
	}
	appendHours(3)
	if _, states := ask(nil); states != 1 {
		t.Errorf("ten files behind a state are worth %d states", states)
	}
	if want := seriesOf(t, store); strings.Count(want, "JFK") != 2 {
		t.Errorf("the answers are %s", want)
	}
}

// TestDamagedSections alters the bytes of a state file one after the other, and
// cuts it: newest rows and coverage are what they are without it.
func TestDamagedSections(t *testing.T) {
	store := memstore.New()
	weatherWithState(t, store)
	keys := contrailFiles(t, store)
	key := keys[len(keys)-1]
	whole, err := store.Get(t.Context(), key)
	if err != nil || !strings.Contains(key, "/state/") {
		t.Fatal(key, err)
	}
	want := seriesOf(t, store)
	if err := store.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if got := seriesOf(t, store); got != want {
		t.Fatalf("without the state\n%s\nwith it\n%s", got, want)
	}
	for i := 0; i < len(whole); i += 11 {
		damaged := slices.Clone(whole)
		damaged[i] ^= byte(1 << (i % 8))
		if err := store.Put(t.Context(), key, damaged); err != nil {
			t.Fatal(err)
		}
		if got := seriesOf(t, store); got != want {
			t.Fatalf("with another byte %d\n%s\nwant\n%s", i, got, want)
		}
		if i%33 > 0 {
			continue
		}
		if err := store.Put(t.Context(), key, whole[:i]); err != nil {
			t.Fatal(err)
		}
		if got := seriesOf(t, store); got != want {
			t.Fatalf("cut at %d\n%s\nwant\n%s", i, got, want)
		}
	}
}

// TestBulkState: one append of many rows is worth a state with all that it can
// hold, so that the first question of the next process reads no data file.
func TestBulkState(t *testing.T) {
	store := meterstore.Wrap(memstore.New())
	table := pointTableOn(t, sharedStore{store}, memory.DefaultAllocator)
	const rows, entities = 600_000, 500
	b := array.NewRecordBuilder(memory.DefaultAllocator, pointSchema)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		b.Field(0).(*array.StringBuilder).Append("a")
		b.Field(1).(*array.Int64Builder).Append(int64(i % entities))
		b.Field(2).(*array.Int64Builder).Append(int64(i))
		b.Field(3).(*array.Int64Builder).Append(r.Int64())
	}
	batch := b.NewRecordBatch()
	b.Release()
	defer batch.Release()
	if _, err := table.Append(t.Context(), tabletest.NewReader(pointSchema, batch), tablecore.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	table.WaitForBackground()
	ask := func(table *tablecore.Table) []string {
		rows, err := rowTextsOf(t.Context(), func() (*tablecore.Listing, error) { return table.Latest(t.Context(), tablecore.LatestOptions{}) })
		if err != nil || len(rows) != entities {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		return rows
	}
	want := ask(table)
	cold, err := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator).Table(t.Context(), table.Name())
	if err != nil {
		t.Fatal(err)
	}
	store.Reset()
	if got := ask(cold); !slices.Equal(got, want) {
		t.Error("the next process finds other rows")
	}
	if c := store.Counts(); c.Open != 1 || c.ReadAt != 1 || c.Get > 2 {
		t.Errorf("the first newest rows take %s", c)
	}
}
