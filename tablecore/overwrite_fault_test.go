package tablecore_test

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// overwriteState is what the table holds at a version of a walk.
type overwriteState struct {
	rows  []string
	files int // data files in the store, if nothing is left over
}

// overwriteOutcome is what a walk of an append that replaces rows expects: the
// states by version, the last of which the append makes.
type overwriteOutcome map[int64]overwriteState

// verify makes sure that the table is as some version, that the append is there
// or not as it was answered, and that nothing of it is left where it is not.
func (o overwriteOutcome) verify(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
	got, version, scanErr := scanWeather(t, w)
	if scanErr != nil {
		t.Fatal(scanErr)
	}
	want, known := o[version]
	if !known || !slices.Equal(got, want.rows) {
		t.Fatalf("version %d holds %q, want %q", version, got, want.rows)
	}
	_, more := o[version+1]
	landed := !more
	unclear := stopped || tableerr.TokenOf(err) == tableerr.TokenCommitUnknown
	switch files := dataFiles(t, store); {
	case err == nil && !landed:
		t.Fatal("the append was acknowledged and is lost")
	case err != nil && landed && !unclear:
		t.Fatalf("the append was refused with %v and is there", err)
	case !unclear && len(files) != want.files:
		t.Fatalf("after %v these files are there: %q, want %d", err, files, want.files)
	}
}

// prepareOverwrite makes a table of three files: one that an append hits, one
// that it hits whole, and one that it leaves alone.
func prepareOverwrite(t *testing.T, w *tablecore.Warehouse) {
	t.Helper()
	if _, err := w.CreateTable(t.Context(), overwriteOptions()); err != nil {
		t.Fatal(err)
	}
	for _, rows := range [][]string{{rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1"), rowAt("JFK", 0, "10")}, {rowAt("JFK", 1, "11")}, {rowAt("LGA", 5, "5")}} {
		if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rows...); err != nil {
			t.Fatal(err)
		}
	}
}

// overwriteStates are the versions of a table after prepareOverwrite.
func overwriteStates() overwriteOutcome {
	return overwriteOutcome{
		3: {[]string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("JFK", 0, "10"), jsonRow("JFK", 1, "11"), jsonRow("LGA", 5, "5")}, 3},
	}
}

// TestOverwriteFaults walks an append that replaces rows, by a process that has
// nothing in memory.
func TestOverwriteFaults(t *testing.T) {
	outcome := overwriteStates()
	outcome[4] = overwriteState{[]string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "2"), jsonRow("JFK", 0, "10"), jsonRow("JFK", 1, "12"), jsonRow("LGA", 1, "3"), jsonRow("LGA", 5, "5")}, 5}
	walk{
		prepare: prepareOverwrite, cold: true,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("JFK", 1, "12"), rowAt("LGA", 1, "3"), rowAt("EWR", 1, "2"))
			return err
		},
		verify: outcome.verify, write: writeWeather,
	}.all(t)
}

// TestReplanFaults walks an append that is planned anew, because another process
// has replaced rows of the same file while it was under way.
func TestReplanFaults(t *testing.T) {
	outcome := overwriteStates()
	outcome[4] = overwriteState{[]string{jsonRow("EWR", 0, "7"), jsonRow("EWR", 1, "1"), jsonRow("JFK", 0, "10"), jsonRow("JFK", 1, "11"), jsonRow("LGA", 5, "5")}, 5}
	outcome[5] = overwriteState{[]string{jsonRow("EWR", 0, "7"), jsonRow("EWR", 1, "2"), jsonRow("JFK", 0, "10"), jsonRow("JFK", 1, "12"), jsonRow("LGA", 5, "5")}, 7}
	walk{
		prepare: prepareOverwrite,
		contested: func(t *testing.T, w, rival *tablecore.Warehouse) error {
			table, err := w.Table(t.Context(), weatherName)
			if err != nil {
				return err
			}
			b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("JFK", 1, "12"), rowAt("EWR", 1, "2")))
			defer b.Release()
			_, err = table.Append(t.Context(), during{tabletest.NewReader(weather, b), func() {
				if _, err := appendWeather(t.Context(), t, rival, tablecore.AppendOptions{}, rowAt("EWR", 0, "7")); err != nil {
					t.Fatal(err)
				}
			}}, tablecore.AppendOptions{})
			return err
		},
		leaves: "delete ", // of the replacement that did not hold
		verify: outcome.verify, write: writeWeather,
	}.all(t)
}
