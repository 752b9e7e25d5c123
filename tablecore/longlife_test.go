package tablecore_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tabletest"
)

// lifeCommits is how many commits a long life has: the number in
// CONTRAIL_TEST_LIFE, or else fewer.
func lifeCommits(t testing.TB, hold bool) int {
	full, short := 20_000, 2000
	if hold {
		full = 7 * 24 * 3600
	}
	switch os.Getenv("CONTRAIL_TEST_LIFE") {
	case "":
		if raceDetector {
			return short / 4
		}
		return short
	case "full":
		return full
	}
	n, err := strconv.Atoi(os.Getenv("CONTRAIL_TEST_LIFE"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// longLife is a table that is written for long: each commit replaces a row.
type longLife struct {
	t     testing.TB
	clock *tabletest.Clock
	store *meterstore.Store
	house *tablecore.Warehouse
	table *tablecore.Table
	step  time.Duration // between commits
	done  int
	// inner, where it is set, is what the store wraps: data files lose their bytes
	// there when others have replaced them long ago.
	inner objstore.Store
	files []string // that have not lost them
}

// lifeRetention is how long its versions stay.
const lifeRetention = time.Hour

func newLife(t testing.TB, inner objstore.Store, clock *tabletest.Clock, step time.Duration) *longLife {
	l := &longLife{t: t, clock: clock, store: meterstore.Wrap(inner), step: step}
	l.house = l.open()
	o := weatherOptions()
	o.Uniqueness = "overwrite"
	o.Properties = map[string]string{"contrail.snapshot-retention": "1h", "contrail.maintenance": "off"}
	if _, err := l.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	l.table = openWeather(l.t, l.house)
	return l
}

func (l *longLife) open() *tablecore.Warehouse {
	return tabletest.Open(l.t, tablecore.Options{Store: sharedStore{l.store}, Allocator: memory.DefaultAllocator, Clock: l.clock.Now})
}

// commits makes some commits and returns what one costs on average, with all
// that follows it in the background.
func (l *longLife) commits(n int) (requests, bytes float64) {
	l.t.Helper()
	l.house.WaitForBackground()
	before := l.store.Counts()
	for range n {
		b := tabletest.Batch(l.t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", l.done%20, "1")))
		r, err := l.table.Append(l.t.Context(), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
		b.Release()
		if err != nil || r.CommittedVersion < int64(l.done) {
			l.t.Fatalf("%+v, %v", r, err)
		}
		l.empty(r.DataFiles[0].Path)
		l.done++
		l.clock.Advance(l.step)
	}
	l.house.WaitForBackground()
	after := l.store.Counts()
	return float64(after.Requests()-before.Requests()) / float64(n), float64(after.BytesWritten-before.BytesWritten) / float64(n)
}

// empty takes in a new data file and empties one that nobody reads again: a week
// of them would take more memory than a test may.
func (l *longLife) empty(path string) {
	if l.inner == nil {
		return
	}
	l.files = append(l.files, path)
	if len(l.files) <= 100 {
		return
	}
	if err := l.inner.Put(l.t.Context(), "default/weather/"+l.files[0], nil); err != nil {
		l.t.Fatal(err)
	}
	l.files = l.files[1:]
}

// vacuum expires and removes what it may.
func (l *longLife) vacuum() *tablecore.VacuumReport {
	l.t.Helper()
	old := l.clock.Now().Add(-lifeRetention)
	r, err := l.table.Vacuum(l.t.Context(), tablecore.VacuumOptions{Apply: true, Expire: true, OlderThan: &old})
	if err != nil {
		l.t.Fatal(err)
	}
	l.house.WaitForBackground()
	return r
}

// disk is what the table takes, in objects and bytes.
func (l *longLife) disk() (objects, bytes int64) {
	l.t.Helper()
	for info, err := range l.store.List(l.t.Context(), "", "") {
		if err != nil {
			l.t.Fatal(err)
		}
		objects++
		bytes += info.Size
	}
	return objects, bytes
}

// coldOpen is what it takes to open the table with nothing in memory. Its time is
// told and not judged.
func (l *longLife) coldOpen() (requests, bytes int64) {
	l.t.Helper()
	w := l.open()
	before, began := l.store.Counts(), time.Now()
	openWeather(l.t, w)
	took, after := time.Since(began), l.store.Counts()
	l.t.Logf("after %d commits a cold opening takes %v", l.done, took)
	return after.Requests() - before.Requests(), after.BytesRead - before.BytesRead
}

// flat makes sure that something has not grown by more than half.
func flat[N int64 | float64](t testing.TB, what string, early, late N) {
	t.Helper()
	if float64(late) > 1.5*float64(early) {
		t.Errorf("%s grew from %v to %v", what, early, late)
	}
}

// TestLongLife writes a table for twenty times its retention, with a vacuum that
// expires each hour: a commit costs the same at the end, and the table takes no
// more and opens as fast.
func TestLongLife(t *testing.T) {
	clock := tabletest.NewClock()
	n := lifeCommits(t, false)
	l := newLife(t, memstore.NewWithClock(clock.Now), clock, 20*lifeRetention/time.Duration(n))
	hours := func(n, commits int) (requests, bytes float64, objects, size, opens, read int64) {
		for range n {
			r, b := l.commits(commits)
			requests, bytes = requests+r/float64(n), bytes+b/float64(n)
			o, c := l.coldOpen()
			opens, read = max(opens, o), max(read, c)
			l.vacuum()
			o, c = l.disk()
			objects, size = max(objects, o), max(size, c)
		}
		return requests, bytes, objects, size, opens, read
	}
	hours(4, n/20) // until the first versions have expired
	requests, bytes, objects, size, opens, read := hours(6, n/20)
	hours(4, n/20)
	requests2, bytes2, objects2, size2, opens2, read2 := hours(6, n/20)
	t.Logf("%d commits: %.1f and %.1f requests a commit, %.0f and %.0f bytes; %d and %d objects, %d and %d bytes; opening takes %d and %d requests, %d and %d bytes",
		n, requests, requests2, bytes, bytes2, objects, objects2, size, size2, opens, opens2, read, read2)
	flat(t, "requests a commit", requests, requests2)
	flat(t, "bytes a commit", bytes, bytes2)
	flat(t, "objects", objects, objects2)
	flat(t, "the table's bytes", size, size2)
	flat(t, "requests of a cold opening", opens, opens2)
	flat(t, "bytes of a cold opening", read, read2)
	if rows, _, err := scanWeather(t, l.house); err != nil || len(rows) != 20 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// TestLongHold writes a table once a second while its versions are held: no
// commit is cleaned up, and yet one costs the same at the end, and a cold opening
// too.
func TestLongHold(t *testing.T) {
	clock := tabletest.NewClock()
	n := lifeCommits(t, true)
	store := memstore.NewWithClock(clock.Now)
	l := newLife(t, store, clock, time.Second)
	l.inner = store
	(&aged{t: t, clock: clock, store: store}).hold(clock.Now().Add(100 * day).Format(time.RFC3339))
	l.commits(n / 10)
	requests, bytes := l.commits(3 * n / 10)
	opens, read := l.coldOpen()
	l.commits(3 * n / 10)
	requests2, bytes2 := l.commits(3 * n / 10)
	opens2, read2 := l.coldOpen()
	t.Logf("%d commits: %.1f and %.1f requests a commit, %.0f and %.0f bytes; opening takes %d and %d requests, %d and %d bytes", n, requests, requests2, bytes, bytes2, opens, opens2, read, read2)
	flat(t, "requests a commit", requests, requests2)
	flat(t, "bytes a commit", bytes, bytes2)
	// Up to a thousand commits lie behind the state, so these two differ by luck.
	if opens2 > 1100 || read2 > 8<<20 {
		t.Errorf("a cold opening takes %d requests and %d bytes", opens2, read2)
	}
	if r := l.vacuum(); r.Deleted.Files > 0 || r.CommittedVersion != r.StartingVersion {
		t.Errorf("%+v", r)
	}
}
