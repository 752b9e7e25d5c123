package tablecore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// retained makes the weather table keep the last ten hours alone. It is looked at
// after every other commit.
func retained(o *tablecore.Options, c *tablecore.CreateOptions) {
	c.Properties = map[string]string{"contrail.retention": "10h"}
	o.Maintenance.MergeFiles = 2
}

// newest asks for the newest rows.
func (f *fixture) newest() []string {
	f.t.Helper()
	rows, err := rowTextsOf(f.t.Context(), func() (*tablecore.Listing, error) {
		return f.table.Latest(f.t.Context(), tablecore.LatestOptions{})
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return rows
}

// TestRetention drops files wholly older than the newest row minus ten hours.
// What is read in different ways agrees, an entity that has gone is gone, and
// earlier versions have it still.
func TestRetention(t *testing.T) {
	var told []map[string]any
	f := maintained(t, memstore.New(), retained, func(o *tablecore.Options, _ *tablecore.CreateOptions) {
		o.Events.Info = func(_ context.Context, event string, fields map[string]any) {
			if event == "old rows dropped" {
				told = append(told, fields)
			}
		}
	})
	add := func(rows ...string) {
		f.mustAppend(rowsOf(rows...))
		f.house.WaitForBackground()
	}
	add(rowAt("LGA", 2, "1"), rowAt("EWR", 1, "1"))
	add(rowAt("LGA", 11, "1")) // from now on 1 o'clock is kept
	kept, _ := f.scan(tablecore.ScanOptions{})
	first := f.version()
	if len(kept) != 3 || len(told) != 0 || len(f.newest()) != 2 {
		t.Fatalf("%q at version %d, told %v", kept, first, told)
	}
	add(rowAt("JFK", 30, "2"))
	add(rowAt("JFK", 31, "2"))
	add(rowAt("JFK", 32, "2"))
	if rows, _ := f.scan(tablecore.ScanOptions{}); len(rows) != 3 {
		t.Errorf("left %q", rows)
	}
	if got := f.newest(); len(got) != 1 {
		t.Errorf("the newest rows are %q", got)
	}
	f.wantRows(&first, kept...)
	if len(told) != 1 || told[0]["rows"] != int64(3) || f.operations()["retention"] != 1 {
		t.Errorf("told %v, %v", told, f.operations())
	}
	// The place is free, and rows that are too old again go again.
	for hour := range 3 {
		add(rowAt("EWR", hour, "1"))
	}
	if rows, _ := f.scan(tablecore.ScanOptions{}); len(rows) > 4 || f.operations()["retention"] < 2 {
		t.Errorf("left %q, %v", rows, f.operations())
	}
	if err := clean(t.Context(), f.house, true); err != nil {
		t.Error(err)
	}
}

// TestRetentionIsOff: by the switch for all maintenance, and in a table that
// takes appends only. A table of integers refuses it.
func TestRetentionIsOff(t *testing.T) {
	for _, property := range []string{"contrail.maintenance=off", "delta.appendOnly=true"} {
		t.Run(property, func(t *testing.T) {
			f := maintained(t, memstore.New(), retained, func(_ *tablecore.Options, c *tablecore.CreateOptions) {
				key, value, _ := strings.Cut(property, "=")
				c.Properties[key] = value
			})
			for hour := range 5 {
				f.mustAppend(rowsOf(rowAt("EWR", hour*20, "1")))
				f.house.WaitForBackground()
			}
			if rows, _ := f.scan(tablecore.ScanOptions{}); len(rows) != 5 || f.operations()["retention"] != 0 {
				t.Errorf("%d rows, %v", len(rows), f.operations())
			}
		})
	}
	f := newFixture(t)
	_, err := f.house.CreateTable(t.Context(), tablecore.CreateOptions{Name: tabledef.Name{Namespace: "default", Table: "numbers"}, IndexColumn: "n", IndexGranularity: "5",
		Schema: arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil), Properties: map[string]string{"contrail.retention": "1d"}})
	if tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("got %v", err)
	}
}

// TestRetentionFaults fails or stops each store operation of an append and the
// dropping of old rows that follows it.
func TestRetentionFaults(t *testing.T) {
	walk{
		maintenance: tablecore.Maintenance{MergeFiles: 2, Quiet: -1},
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			o := weatherOptions()
			o.Properties = map[string]string{"contrail.retention": "10h"}
			if _, err := w.CreateTable(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", 0, "0")); err != nil {
				t.Fatal(err)
			}
		},
		cold: true,
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", 11, "1"))
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, _ objstore.Store, _ bool, err error) {
			got, version, scanErr := scanWeather(t, w)
			want := map[int64][]string{1: {jsonRow("EWR", 0, "0")}, 2: {jsonRow("EWR", 0, "0"), jsonRow("EWR", 11, "1")}, 3: {jsonRow("EWR", 11, "1")}}[version]
			if scanErr != nil || !slices.Equal(got, want) || want == nil {
				t.Fatalf("version %d holds %q, %v", version, got, scanErr)
			}
			table := openWeather(t, w)
			newest, latestErr := rowTextsOf(t.Context(), func() (*tablecore.Listing, error) { return table.Latest(t.Context(), tablecore.LatestOptions{}) })
			if latestErr != nil || len(newest) != 1 {
				t.Fatalf("version %d: the newest row is %q, %v", version, newest, latestErr)
			}
			if err == nil && version == 1 {
				t.Fatal("the append was acknowledged and is lost")
			}
		},
		write: writeWeather,
	}.all(t)
}

// TestRetentionBesideOthers: old rows are dropped from what others have made of
// the table meanwhile.
func TestRetentionBesideOthers(t *testing.T) {
	store := memstore.New()
	f := maintained(t, sharedStore{store}, retained)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0")))
	f.house.WaitForBackground()
	f.table = anotherProcess(t, store)
	if _, err := f.update(tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 1}, rowsOf(rowAt("EWR", 0, "9"))); err != nil {
		t.Fatal(err)
	}
	f.mustAppend(rowsOf(rowAt("EWR", 1, "1")))
	f.table = openWeather(t, f.house)
	for hour := 20; hour < 22; hour++ {
		f.mustAppend(rowsOf(rowAt("EWR", hour, fmt.Sprint(hour))))
	}
	f.house.WaitForBackground()
	f.wantRows(nil, jsonRow("EWR", 20, "20"), jsonRow("EWR", 21, "21"))
}
