package tablecore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// updateWeather gives rows of the weather table the temperatures of JSON rows.
func updateWeather(ctx context.Context, t *testing.T, w *tablecore.Warehouse, o tablecore.UpdateOptions, rows ...string) (*tablecore.UpdateReport, error) {
	t.Helper()
	table, err := w.Table(ctx, weatherName)
	if err != nil {
		return nil, err
	}
	b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rows...))
	defer b.Release()
	o.Columns = []string{"temp"}
	return table.UpdateRows(ctx, tabletest.NewReader(weather, b), o)
}

// prepareUpdates fills the weather table with two files, at version 2.
func prepareUpdates(t *testing.T, w *tablecore.Warehouse) {
	t.Helper()
	createWeather(t, w)
	for hour := range 2 {
		if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", hour, "0"), rowAt("JFK", hour, "10")); err != nil {
			t.Fatal(err)
		}
	}
}

var updateWalkOutcome = appendOutcome{
	version: 3, files: 2,
	before: []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "0"), jsonRow("JFK", 0, "10"), jsonRow("JFK", 1, "10")},
	after:  []string{jsonRow("EWR", 0, "1"), jsonRow("EWR", 1, "0"), jsonRow("JFK", 0, "10"), jsonRow("JFK", 1, "11")},
}

// TestUpdateFaults walks an update of rows in two files.
func TestUpdateFaults(t *testing.T) {
	for name, cold := range map[string]bool{"warm": false, "cold": true} {
		t.Run(name, func(t *testing.T) {
			walk{
				prepare: prepareUpdates, cold: cold,
				run: func(t *testing.T, w *tablecore.Warehouse) error {
					_, err := updateWeather(t.Context(), t, w, tablecore.UpdateOptions{ExpectedVersion: 2}, rowAt("JFK", 1, "11"), rowAt("EWR", 0, "1"))
					return err
				},
				verify: updateWalkOutcome.verify, write: writeWeather,
			}.all(t)
		})
	}
}

// TestUpdateRequestFaults walks an update with a request id and repeats it
// whatever became of it: it lands once.
func TestUpdateRequestFaults(t *testing.T) {
	o := tablecore.UpdateOptions{ExpectedVersion: 2, RequestID: "fix"}
	rows := []string{rowAt("JFK", 1, "11"), rowAt("EWR", 0, "1")}
	repeated := map[objstore.Store]bool{}
	walk{
		prepare: prepareUpdates,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := updateWeather(t.Context(), t, w, o, rows...)
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			if !repeated[store] {
				updateWalkOutcome.verify(t, w, store, stopped, err)
				repeated[store] = true
			}
			report, err := updateWeather(t.Context(), t, w, o, rows...)
			if err != nil || report.StartingVersion != 2 || report.CommittedVersion != 3 || report.RowsUpdated != 2 || report.SegmentsRewritten != 2 {
				t.Fatalf("the repetition gives %+v, %v", report, err)
			}
			landed := updateWalkOutcome
			landed.before, landed.files = landed.after, 4
			landed.verify(t, w, store, true, nil)
		},
	}.all(t)
}

// TestLostUpdateFaults walks an update that another process's commit outruns:
// whatever happens, it is not there.
func TestLostUpdateFaults(t *testing.T) {
	outcome := appendOutcome{
		version: 4, files: 3,
		before: []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "0"), jsonRow("JFK", 0, "10"), jsonRow("JFK", 1, "10"), jsonRow("LGA", 0, "5")},
	}
	walk{
		prepare: prepareUpdates,
		leaves:  "delete data/",
		contested: func(t *testing.T, w, rival *tablecore.Warehouse) error {
			stream := &hookedReader{}
			overtaken := func() {
				if _, err := appendWeather(t.Context(), t, rival, tablecore.AppendOptions{}, rowAt("LGA", 0, "5")); err != nil {
					t.Error(err)
				}
			}
			defer func() {
				if stream.read == 0 {
					overtaken() // the fault came first
				}
			}()
			table, err := w.Table(t.Context(), weatherName)
			if err != nil {
				return err
			}
			b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("JFK", 1, "11")))
			defer b.Release()
			stream.Reader, stream.before = tabletest.NewReader(weather, b), overtaken
			_, err = table.UpdateRows(t.Context(), stream, tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 2})
			if err == nil {
				return fmt.Errorf("the update followed a commit that it had not seen")
			}
			return err
		},
		verify: outcome.verify, write: writeWeather,
	}.all(t)
}

// TestRacingUpdates lets updates of several processes meet at one version: one
// wins, whether they want the same rows or not, and the others know what beat
// them.
func TestRacingUpdates(t *testing.T) {
	store := walkStore{dir: fastDir(t) + "/race"}
	open := func(seed byte) *tablecore.Warehouse {
		return tabletest.Open(t, tablecore.Options{Store: store.open(t), Clock: tabletest.NewClock().Now, Random: tabletest.Random(seed)})
	}
	first := open(1)
	createWeather(t, first)
	var rows []string
	for hour := range 8 {
		rows = append(rows, rowAt("EWR", hour, "0"))
	}
	if _, err := appendWeather(t.Context(), t, first, tablecore.AppendOptions{}, rows...); err != nil {
		t.Fatal(err)
	}
	houses := []*tablecore.Warehouse{first, open(2), open(3), first}
	for round := range 10 {
		version := int64(1 + round)
		errs := make(chan error, len(houses))
		for i, w := range houses {
			go func() {
				_, err := updateWeather(context.Background(), t, w, tablecore.UpdateOptions{ExpectedVersion: version}, rowAt("EWR", i%2+round%6, fmt.Sprint(round*10+i)))
				errs <- err
			}()
		}
		won := 0
		for range houses {
			switch err := <-errs; {
			case err == nil:
				won++
			case !conflicts(err, tableerr.VersionConflict{Expected: version, Found: version + 1}):
				t.Errorf("round %d: %v", round, err)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d updates won", round, won)
		}
	}
}

// TestUpdateBesideAppends updates while appends go on: each update either
// follows exactly its version or is told another, and no append is lost.
func TestUpdateBesideAppends(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0")))
	done := make(chan error, 1)
	const appends = 30
	go func() {
		defer close(done)
		for i := range appends {
			if _, err := appendWeather(context.Background(), t, f.house, tablecore.AppendOptions{}, rowAt("JFK", i, "1")); err != nil {
				done <- err
				return
			}
		}
	}()
	updated, last := 0, int64(1)
	for i := 0; ; i++ {
		r, err := updateWeather(t.Context(), t, f.house, tablecore.UpdateOptions{ExpectedVersion: last}, rowAt("EWR", 0, fmt.Sprint(i)))
		var conflict *tableerr.VersionConflict
		switch {
		case err == nil:
			updated, last = updated+1, r.CommittedVersion
		case tableerr.TokenOf(err) == tableerr.TokenVersionConflict:
			if !errors.As(err, &conflict) || conflict.Expected != last || conflict.Found <= last {
				t.Fatalf("got %v after version %d", err, last)
			}
			last = conflict.Found
		default:
			t.Fatal(err)
		}
		select {
		case err, open := <-done:
			if open && err != nil {
				t.Fatal(err)
			}
			rows, stats := f.scan(tablecore.ScanOptions{})
			if len(rows) != appends+1 || stats.Version != int64(1+appends+updated) {
				t.Errorf("%d rows in version %d after %d updates", len(rows), stats.Version, updated)
			}
			return
		default:
		}
	}
}
