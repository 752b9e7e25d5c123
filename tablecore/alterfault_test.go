package tablecore_test

import (
	"slices"
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// TestAlterationFaults walks add_columns and set_properties: the table is wholly
// changed or not at all, as it was answered, and its rows are the same.
func TestAlterationFaults(t *testing.T) {
	for verb, alter := range alterations {
		t.Run(verb, func(t *testing.T) {
			walk{
				prepare: func(t *testing.T, w *tablecore.Warehouse) {
					createWeather(t, w)
					if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", 0, "0")); err != nil {
						t.Fatal(err)
					}
				},
				run: func(t *testing.T, w *tablecore.Warehouse) error {
					table, err := w.Table(t.Context(), weatherName)
					if err == nil {
						_, err = alter(t.Context(), table, nil)
					}
					return err
				},
				verify: verifyAltered,
				write:  writeWeather,
			}.all(t)
		})
	}
}

// verifyAltered makes sure that the one row is there, with the change or
// without.
func verifyAltered(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
	table, openErr := w.Table(t.Context(), weatherName)
	if openErr != nil {
		t.Fatal(openErr)
	}
	d, describeErr := table.Describe(t.Context(), tablecore.At{})
	if describeErr != nil {
		t.Fatal(describeErr)
	}
	landed := d.Version == 2
	if changed := len(d.Columns) == 4 || d.Properties["team"] == "ops"; changed != landed || d.Version > 2 || d.Rows != 1 {
		t.Fatalf("described %+v", d)
	}
	unclear := stopped || tableerr.TokenOf(err) == tableerr.TokenCommitUnknown
	switch {
	case err == nil && !landed:
		t.Fatal("the change was acknowledged and is lost")
	case err != nil && landed && !unclear:
		t.Fatalf("the change was refused with %v and is there", err)
	}
	if files := tableFiles(t, store); len(files) != 1 {
		t.Fatalf("the table has the files %q", files)
	}
	rows, _, scanErr := scanWeather(t, w)
	want := jsonRow("EWR", 0, "0")
	if len(d.Columns) == 4 {
		want = `{"origin":"EWR","quality":null,"temp":0,"time_hour":"1970-01-01T00:00:00Z"}`
	}
	if scanErr != nil || !slices.Equal(rows, []string{want}) {
		t.Fatalf("the table holds %q, %v", rows, scanErr)
	}
}
