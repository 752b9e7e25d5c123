package tablecore_test

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

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
	table := openWeather(t, w)
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
	table := openWeather(t, w)
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
		w := tabletest.Open(t, tablecore.Options{Store: inner, Clock: tabletest.NewClock().Now, Maintenance: unmaintained,
			Events: tablecore.Events{Warning: func(_ context.Context, event string, fields map[string]any) {
				mu.Lock()
				defer mu.Unlock()
				events = append(events, fmt.Sprint(event, " ", fields["reason"]))
			}}})
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
