package tablecore_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tabletest"
)

// askSeries asks for the newest rows and the gaps of a version, the newest with
// nil.
func askSeries(t testing.TB, table *tablecore.Table, version *int64) {
	t.Helper()
	l, err := table.Latest(t.Context(), tablecore.LatestOptions{Version: version})
	rowsIn(t, l, err)
	l, err = table.Coverage(t.Context(), tablecore.CoverageOptions{Kind: tablecore.CoverageMissing, Version: version})
	rowsIn(t, l, err)
}

// TestSeriesCost counts store requests: a warm answer makes none but those of
// the freshness check, one after an append no more, for the process knows the
// file it wrote but for the new row's values; and an append of one row costs the
// same whether or not anybody asks, with 10 entities as with 1,000.
func TestSeriesCost(t *testing.T) {
	var appends []string
	for _, entities := range []int{10, 1000} {
		for _, asked := range []bool{false, true} {
			meter := meterstore.Wrap(memstore.New())
			w := tabletest.Warehouse(t, meter, memory.DefaultAllocator)
			if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
				t.Fatal(err)
			}
			table, err := w.Table(t.Context(), weatherName)
			if err != nil {
				t.Fatal(err)
			}
			appendHour := func(hour, entities int) *tablecore.AppendReport {
				var rows []string
				for e := range entities {
					rows = append(rows, rowAt(fmt.Sprintf("S%04d", e), hour, "1"))
				}
				b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rows...))
				defer b.Release()
				r, err := table.Append(t.Context(), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			for hour := range 5 {
				appendHour(hour, entities)
			}
			if asked {
				askSeries(t, table, nil)
			}
			w.WaitForBackground()
			meter.Reset()
			r := appendHour(10, 1)
			c := meter.Counts()
			appends = append(appends, fmt.Sprintf("%d requests, %d bytes beside the data file", c.Requests(), (c.BytesWritten-r.DataFiles[0].Bytes)/1000))
			if !asked {
				continue
			}
			meter.Reset()
			askSeries(t, table, nil)
			if c := meter.Counts(); c.Open > 1 || c.Requests() > 12 {
				t.Errorf("with %d entities the answers after an append make requests: %s", entities, c)
			}
			meter.Reset()
			askSeries(t, table, nil)
			if c := meter.Counts(); c.Requests() > 4 || c.Open > 0 {
				t.Errorf("with %d entities warm answers make more than two freshness checks: %s", entities, c)
			}
			meter.Reset()
			askSeries(t, table, &r.CommittedVersion)
			if c := meter.Counts(); c.Requests() > 2 {
				t.Errorf("with %d entities warm answers about a version do more than look for newer commits: %s", entities, c)
			}
		}
	}
	for _, text := range appends[1:] {
		if text != appends[0] {
			t.Errorf("an append costs differently: %q", appends)
			break
		}
	}
}

// TestSeriesBesideAppends asks while others append. Each answer is about one
// version and right for it.
func TestSeriesBesideAppends(t *testing.T) {
	f := newFixture(t)
	const writers, readers, rounds = 3, 3, 12
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			for i := range rounds {
				b := tabletest.Batch(t, f.mem, weather, rowsOf(rowAt(fmt.Sprint("W", writer), i*(writer+1), "1"), rowAt("all", i*writers+writer, "2")))
				_, err := f.table.Append(t.Context(), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
				b.Release()
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for reader := range readers {
		group.Go(func() {
			for i := range rounds {
				d, err := f.table.Describe(t.Context(), tablecore.At{})
				if err != nil {
					t.Error(err)
					return
				}
				version := max(0, d.Version-int64(i%(reader+1)))
				c, err := newSeriesCheck(t.Context(), f.table, weatherOptions(), version, bigNumber("3600000000"))
				if err == nil {
					err = c.run(t.Context(), seeded(uint64(i), uint64(reader)))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
