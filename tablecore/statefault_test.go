package tablecore_test

import (
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
)

// sixHours are newest row and covered run of a station with rows in the first
// six hours of 1970, as seriesIn gives them.
const sixHours = `[("EWR", 18000000000, 1)] [("EWR", 0, 21600000000, 6)]`

// prepareStates makes what prepareCheckpoint makes, with a state of versions 4
// and 5, so that the next one removes one.
func prepareStates(t *testing.T, w *tablecore.Warehouse) {
	t.Helper()
	createWeather(t, w)
	for hour := range 6 {
		if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", hour, "1")); err != nil {
			t.Fatal(err)
		}
		if hour < 3 || hour == 5 {
			continue
		}
		if err := writeState(t, w); err != nil {
			t.Fatal(err)
		}
	}
}

func writeState(t *testing.T, w *tablecore.Warehouse) error {
	t.Helper()
	table, err := w.Table(t.Context(), weatherName)
	if err != nil {
		return err
	}
	return table.WriteState(t.Context())
}

// checkSixHoursOfSeries makes sure of rows, newest row and coverage of what
// prepareStates has made.
func checkSixHoursOfSeries(t *testing.T, w *tablecore.Warehouse) {
	t.Helper()
	checkSixHours(t, w)
	if got, err := seriesIn(t, w); err != nil || got != sixHours {
		t.Fatalf("the series are %s, %v", got, err)
	}
}

// TestStateFaults walks the writing of a state and of the head: whatever happens
// to it, the table says the same, and a further one can be written.
func TestStateFaults(t *testing.T) {
	walk{
		prepare: prepareStates,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_ = writeState(t, w) // its failure is an event and nobody's error
			return nil
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, _ bool, _ error) {
			checkSixHoursOfSeries(t, w)
			if err := writeState(t, w); err != nil {
				t.Fatalf("no further state can be written: %v", err)
			}
			checkSixHoursOfSeries(t, w)
			if keys := contrailFiles(t, store); len(keys) != 3 {
				t.Fatalf("left are %q, not the head and two states", keys)
			}
		},
		write: writeWeather,
	}.all(t)
}

// TestStateReadFaults walks the first questions of a process that finds a head:
// answers are right or there are none.
func TestStateReadFaults(t *testing.T) {
	walk{
		prepare: prepareStates,
		cold:    true,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			got, err := seriesIn(t, w)
			if err == nil && got != sixHours {
				t.Fatalf("the series are %s", got)
			}
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, _ objstore.Store, _ bool, _ error) {
			checkSixHoursOfSeries(t, w)
		},
		write: writeWeather,
	}.all(t)
}
