package tablecore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// mergeOutside merges files, so that what the process makes once for that, channels
// among it, is not made in a synctest bubble, whose channels nobody else may use.
func mergeOutside(t *testing.T) {
	t.Helper()
	f := maintained(t, memstore.New())
	for hour := range 4 {
		f.mustAppend(rowsOf(rowAt("EWR", hour, "0")))
	}
	f.house.WaitForBackground()
	f.wantRows(nil, jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "0"), jsonRow("EWR", 2, "0"), jsonRow("EWR", 3, "0"))
	if f.files() != 1 {
		t.Fatalf("%d files", f.files())
	}
}

// TestMaintenanceWaitsForQuiet: nothing comes between the commits of somebody who
// makes one after the other, unless he never pauses.
func TestMaintenanceWaitsForQuiet(t *testing.T) {
	mergeOutside(t)
	synctest.Test(t, func(t *testing.T) {
		f := maintained(t, memstore.New(), func(o *tablecore.Options, _ *tablecore.CreateOptions) { o.Maintenance.Quiet = 0 })
		for hour := range 30 {
			f.mustAppend(rowsOf(rowAt("EWR", hour, "0")))
			time.Sleep(1900 * time.Millisecond)
		}
		if f.version() != 30 {
			t.Errorf("maintenance came between appends: version %d", f.version())
		}
		time.Sleep(2 * time.Second)
		f.house.WaitForBackground()
		merged := f.version()
		if merged == 30 || f.files() >= 30 {
			t.Errorf("version %d, %d files after a pause", merged, f.files())
		}
		for hour := range 40 {
			f.mustAppend(rowsOf(rowAt("EWR", 30+hour, "0")))
			time.Sleep(1900 * time.Millisecond)
		}
		synctest.Wait()
		if f.version() == merged+40 {
			t.Errorf("nothing was merged in a minute: version %d", f.version())
		}
	})
}

// TestMaintenanceWaitsForUpdates: files are not committed while an update is
// under way that this would fail.
func TestMaintenanceWaitsForUpdates(t *testing.T) {
	mergeOutside(t)
	synctest.Test(t, func(t *testing.T) {
		f := maintained(t, memstore.New())
		for hour := range 3 {
			f.mustAppend(rowsOf(rowAt("EWR", hour, "0")))
		}
		rows := make(chan struct{})
		b := tabletest.Batch(t, f.mem, weather, rowsOf(rowAt("EWR", 0, "1")))
		defer b.Release()
		updated := make(chan error)
		go func() {
			reader := tabletest.NewReader(weather, b)
			_, err := f.table.UpdateRows(t.Context(), &toldReader{reader, rows}, tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: 3})
			updated <- err
		}()
		synctest.Wait()
		f.mustAppend(rowsOf(rowAt("EWR", 3, "0")))
		synctest.Wait()
		if f.version() != 4 {
			t.Errorf("maintenance has committed version %d beside an update", f.version())
		}
		close(rows)
		if err := <-updated; tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
			t.Errorf("the update got %v", err)
		}
		f.house.WaitForBackground()
		if f.version() != 5 || f.files() != 1 {
			t.Errorf("version %d, %d files", f.version(), f.files())
		}
	})
}

// toldReader gives its rows when it is told.
type toldReader struct {
	tablecore.RowReader
	now chan struct{}
}

// Next implements tablecore.RowReader.
func (r *toldReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	<-r.now
	return r.RowReader.Next(ctx)
}
