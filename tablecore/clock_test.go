package tablecore_test

import (
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabletest"
)

// TestClockSteps: a clock that is set back an hour or ahead ten years blocks no
// read and no write and reorders nothing, in a process that goes on and in one
// that starts anew.
func TestClockSteps(t *testing.T) {
	for name, step := range map[string]time.Duration{"back an hour": -time.Hour, "ahead ten years": 10 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) { testClockStep(t, step) })
	}
}

func testClockStep(t *testing.T, step time.Duration) {
	clock, store := tabletest.NewClock(), memstore.New()
	open := func() *tablecore.Warehouse {
		w := tabletest.Open(t, tablecore.Options{Store: sharedStore{store}, Allocator: memory.DefaultAllocator, Clock: clock.Now})
		return w
	}
	w := open()
	createWeather(t, w)
	hour := 0
	last := time.Time{}
	write := func(w *tablecore.Warehouse) {
		t.Helper()
		r, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", hour, "1"))
		if err != nil {
			t.Fatal(err)
		}
		hour++
		if r.CommittedVersion != int64(hour) {
			t.Fatalf("append %d has version %d", hour, r.CommittedVersion)
		}
		table := openWeather(t, w)
		d, err := table.Describe(t.Context(), tablecore.At{})
		if err != nil || d.Version != r.CommittedVersion || !d.CommittedAt.After(last) {
			t.Fatalf("version %d was committed at %s, the one before at %s; %v", d.Version, d.CommittedAt, last, err)
		}
		last = d.CommittedAt.Time
		if rows, version, err := scanWeather(t, w); err != nil || len(rows) != hour || version != d.Version {
			t.Fatalf("%d rows at version %d, %v", len(rows), version, err)
		}
	}
	checkpoint := func(w *tablecore.Warehouse) {
		t.Helper()
		table, err := w.Table(t.Context(), weatherName)
		if err == nil {
			err = table.WriteCheckpoint(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []time.Duration{0, step, -step, step, time.Minute} {
		clock.Advance(d)
		write(w)
		write(open())
		write(w)
		checkpoint(w)
	}
	if _, err := w.DropTable(t.Context(), weatherName, tablecore.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.Advance(-step)
	if _, err := w.SweepTrash(t.Context()); err != nil {
		t.Fatal(err)
	}
	hour, last = 0, time.Time{}
	createWeather(t, w)
	write(w)
}
