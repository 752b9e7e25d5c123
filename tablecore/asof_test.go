package tablecore_test

import (
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

func TestAsOf(t *testing.T) {
	start := time.Date(2026, 11, 30, 5, 0, 0, 0, time.UTC)
	now := start
	store := memstore.New()
	house, err := tablecore.Open(t.Context(), tablecore.Options{Store: store, Clock: func() time.Time { return now }, Random: tabletest.Random(1), Maintenance: unmaintained})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { house.Close() })
	if _, err := house.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	table := openWeather(t, house)
	for hour := range 40 { // versions 1 … 40, a minute apart
		now = now.Add(time.Minute)
		batch := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", hour, "1")))
		if _, err := table.Append(t.Context(), tabletest.NewReader(weather, batch), tablecore.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		batch.Release()
	}
	now = now.Add(time.Hour)
	versionAt := func(at time.Time) (int64, error) {
		d, err := table.Describe(t.Context(), tablecore.At{AsOf: &at})
		if err != nil {
			return -1, err
		}
		return d.Version, nil
	}
	for _, c := range []struct {
		after time.Duration
		want  int64
	}{{0, 0}, {59 * time.Second, 0}, {time.Minute, 1}, {time.Minute - time.Nanosecond, 0}, {17*time.Minute + 1, 17}, {40 * time.Minute, 40}, {2 * time.Minute, 2}, {90 * time.Minute, 40}} {
		if got, err := versionAt(start.Add(c.after)); err != nil || got != c.want {
			t.Errorf("after %s: version %d (%v), want %d", c.after, got, err, c.want)
		}
	}
	at := start.Add(3 * time.Minute)
	rows, stats, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{AsOf: &at})
	if err != nil || stats.Version != 3 || len(rows) != 3 {
		t.Errorf("scan as of version 3 gave %d rows of version %d (%v)", len(rows), stats.Version, err)
	}
	if _, err := versionAt(start.Add(-time.Millisecond)); tableerr.TokenOf(err) != tableerr.TokenVersionNotFound {
		t.Errorf("before version 0: %v", err)
	}
	_, err = versionAt(now.Add(time.Second))
	invalidAt(t, err, "as_of")
	_, err = table.PlanScan(t.Context(), tablecore.ScanOptions{AsOf: &at, Version: ptr(int64(1))})
	invalidAt(t, err, "as_of")

	now = start // the clock stepped back, behind the commits
	for minute := range 41 {
		if got, err := versionAt(start.Add(time.Duration(minute) * time.Minute)); err != nil || got != int64(minute) {
			t.Errorf("as of the time of version %d: version %d (%v)", minute, got, err)
		}
	}
	_, err = versionAt(start.Add(40*time.Minute + 1))
	invalidAt(t, err, "as_of")
}

// A log whose first commits were cleaned up behind a checkpoint.
func TestAsOfAndHistoryBehindACheckpoint(t *testing.T) {
	store, clock := memstore.New(), tabletest.NewClock()
	open := func() *tablecore.Table {
		house, err := tablecore.Open(t.Context(), tablecore.Options{Store: store, Clock: clock.Now, Random: tabletest.Random(1), Maintenance: unmaintained})
		if err != nil {
			t.Fatal(err)
		}
		table, err := house.Table(t.Context(), weatherName)
		if tableerr.TokenOf(err) == tableerr.TokenTableNotFound {
			if _, err = house.CreateTable(t.Context(), weatherOptions()); err == nil {
				table, err = house.Table(t.Context(), weatherName)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	table := open()
	add := func(hour int) {
		clock.Advance(time.Minute)
		batch := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", hour, "1")))
		defer batch.Release()
		if _, err := table.Append(t.Context(), tabletest.NewReader(weather, batch), tablecore.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for hour := range 4 {
		add(hour)
	}
	if err := table.WriteCheckpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	add(4) // version 5
	for version := range int64(4) {
		if err := store.Delete(t.Context(), "default/weather/"+deltalog.CommitKey(version)); err != nil {
			t.Fatal(err)
		}
	}
	table = open()
	listing, err := table.History(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	rows := listedRows(t, listing)
	if len(rows) != 2 || rows[0]["version"] != 5.0 || rows[1]["version"] != 4.0 || rows[1]["rows_added"] != 1.0 || rows[0]["operation"] != "append" {
		t.Errorf("history is %v", rows)
	}
	begin := tabletest.NewClock().Now()
	for after, want := range map[int]int64{4: 4, 5: 5} {
		at := begin.Add(time.Duration(after) * time.Minute)
		if d, err := table.Describe(t.Context(), tablecore.At{AsOf: &at}); err != nil || d.Version != want {
			t.Errorf("after %d minutes: %+v, %v", after, d, err)
		}
	}
	at := begin.Add(2 * time.Minute)
	if _, err := table.Describe(t.Context(), tablecore.At{AsOf: &at}); tableerr.TokenOf(err) != tableerr.TokenVersionExpired {
		t.Errorf("as of a version that is gone: %v", err)
	}
}
