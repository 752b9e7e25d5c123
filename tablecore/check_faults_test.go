package tablecore_test

import (
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
)

// TestCheckFaults: a repair that is cut leaves the table as it was or better,
// and is done again.
func TestCheckFaults(t *testing.T) {
	walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			createWeather(t, w)
			table := openWeather(t, w)
			if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", 0, "1"), rowAt("JFK", 0, "2")); err != nil {
				t.Fatal(err)
			}
			if err := table.WriteCheckpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := table.WriteState(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"_contrail/head", "_delta_log/00000000000000000001.checkpoint.parquet"} {
				if err := table.Spoil(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
		},
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := w.Check(t.Context(), weatherName, tablecore.CheckOptions{Repair: true})
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, _ objstore.Store, _ bool, err error) {
			lines, report := checked(t, w, weatherName, true)
			if !report.OK || err == nil && len(lines) > 0 {
				t.Errorf("after %v the check found %q", err, lines)
			}
			if rows, _, err := scanWeather(t, w); err != nil || len(rows) != 2 {
				t.Errorf("the table holds %q, %v", rows, err)
			}
		},
		write: writeWeather,
	}.all(t)
}
