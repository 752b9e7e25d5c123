package tablecore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tabletest"
)

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
	table := openWeather(t, w)
	for hour := range 20 {
		if hour == 19 {
			if err := table.WriteState(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", hour, "1"), rowAt("JFK", 2*hour, "2")); err != nil {
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
	table := openWeather(t, w)
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
		table := openWeather(t, cold)
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
