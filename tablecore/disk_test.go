package tablecore_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// smallDisk mounts a file system of a megabyte, or says why it cannot.
func smallDisk(t *testing.T) (string, error) {
	t.Helper()
	if os.Getuid() != 0 {
		return "", errors.New("only root may mount a file system")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("mount: %w: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir, nil
}

// TestDiskFull fills a small file system: an append is told STORAGE_FULL and
// leaves nothing, the table is read, and is written again once there is space.
// Where no file system can be mounted TestFullStore stands for it.
func TestDiskFull(t *testing.T) {
	dir, err := smallDisk(t)
	if err != nil {
		t.Logf("no small file system, so the store that plays a full one must do: %v", err)
		testFullStore(t)
		return
	}
	store, err := localfs.Open(filepath.Join(dir, "warehouse"), localfs.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
	createWeather(t, w)
	ballast := filepath.Join(dir, "ballast")
	version := int64(0)
	// From an empty disk to one without a byte: each amount of space left is
	// the end of another step.
	for free := 64 << 10; free >= 0; free -= 4 << 10 {
		fill(t, ballast, free)
		var rows []string
		for i := range 400 {
			rows = append(rows, rowAt(fmt.Sprintf("station %d", i), int(version), fmt.Sprint(float64(i)/7)))
		}
		r, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rows...)
		switch {
		case err == nil:
			version = r.CommittedVersion
		case tableerr.TokenOf(err) != tableerr.TokenStorageFull:
			t.Fatalf("with %d bytes free: %v", free, err)
		}
		noTemporaries(t, walkStore{dir: filepath.Join(dir, "warehouse")})
		if files := dataFiles(t, store); len(files) != int(version) {
			t.Fatalf("with %d bytes free: version %d and the files %q", free, version, files)
		}
		if got, at, err := scanWeather(t, w); err != nil || at != version || len(got) != int(version)*400 {
			t.Fatalf("with %d bytes free: %d rows at version %d, %v", free, len(got), at, err)
		}
		if free == 0 && err == nil {
			t.Fatal("the disk was never full")
		}
	}
	checkFullVerbs(t, w)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := writeWeather(t, w); err != nil {
		t.Fatalf("with space again: %v", err)
	}
}

// checkFullVerbs makes sure that nothing else half succeeds on a full disk.
func checkFullVerbs(t *testing.T, w *tablecore.Warehouse) {
	t.Helper()
	o := weatherOptions()
	o.Name.Table = "other"
	if _, err := w.CreateTable(t.Context(), o); tableerr.TokenOf(err) != tableerr.TokenStorageFull {
		t.Errorf("a create on a full disk: %v", err)
	}
	if _, err := w.Table(t.Context(), o.Name); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Errorf("after it the table: %v", err)
	}
	table := openWeather(t, w)
	if err := table.WriteCheckpoint(t.Context()); tableerr.TokenOf(err) != tableerr.TokenStorageFull {
		t.Errorf("a checkpoint on a full disk: %v", err)
	}
	if _, err := table.Vacuum(t.Context(), tablecore.VacuumOptions{Apply: true, Expire: true}); err != nil {
		t.Errorf("a vacuum, which makes room, on a full disk: %v", err)
	}
	if _, _, err := scanWeather(t, w); err != nil {
		t.Error(err)
	}
}

// fill writes a file that leaves so many bytes of its file system free.
func fill(t *testing.T, path string, free int) {
	t.Helper()
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4<<10)
	size := int64(0)
	for err == nil {
		var n int
		n, err = f.Write(block)
		size += int64(n)
	}
	if err := f.Truncate(max(0, size-int64(free))); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFullStore lets each write of an append find no space.
func TestFullStore(t *testing.T) { testFullStore(t) }

func testFullStore(t *testing.T) {
	inner := memstore.New()
	store := faultstore.Wrap(inner, faultstore.Plan{})
	w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
	createWeather(t, w)
	full := 0
	for at := 0; ; at++ {
		store.Arm(faultstore.Plan{At: at, Kind: faultstore.Error, Err: objstore.ErrNoSpace, Match: needsRoom})
		_, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", at, "1"))
		store.Arm(faultstore.Plan{})
		rows, version, scanErr := scanWeather(t, w)
		if err == nil {
			if version != 1 || len(rows) != 1 || scanErr != nil || full < 3 {
				t.Fatalf("after %d failures: %q at version %d, %v", full, rows, version, scanErr)
			}
			break
		}
		full++
		if tableerr.TokenOf(err) != tableerr.TokenStorageFull {
			t.Fatalf("write %d: %v", at, err)
		}
		if files := tableFiles(t, inner); version != 0 || len(rows) != 0 || len(files) != 0 || scanErr != nil {
			t.Fatalf("write %d: %q at version %d, files %q, %v", at, rows, version, files, scanErr)
		}
	}
}

// needsRoom are the operations that a full store refuses.
func needsRoom(op objstore.Op, _ string) bool {
	switch op {
	case objstore.OpPut, objstore.OpPutIfAbsent, objstore.OpPutAllIfAbsent, objstore.OpCreate, objstore.OpWrite, objstore.OpCommit:
		return true
	}
	return false
}

// TestUpdateFullStore lets each write of an update find no space: it is told
// STORAGE_FULL, the rows stay as they were and nothing is left.
func TestUpdateFullStore(t *testing.T) {
	inner := memstore.New()
	store := faultstore.Wrap(inner, faultstore.Plan{})
	w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
	prepareUpdates(t, w)
	before, files := updateWalkOutcome.before, len(tableFiles(t, inner))
	for at := 0; ; at++ {
		store.Arm(faultstore.Plan{At: at, Kind: faultstore.Error, Err: objstore.ErrNoSpace, Match: needsRoom})
		_, err := updateWeather(t.Context(), t, w, tablecore.UpdateOptions{ExpectedVersion: 2}, rowAt("JFK", 1, "11"), rowAt("EWR", 0, "1"))
		store.Arm(faultstore.Plan{})
		rows, version, scanErr := scanWeather(t, w)
		if err == nil {
			if at < 3 || version != 3 || !slices.Equal(rows, updateWalkOutcome.after) || scanErr != nil {
				t.Fatalf("after %d failures: %q at version %d, %v", at, rows, version, scanErr)
			}
			return
		}
		if tableerr.TokenOf(err) != tableerr.TokenStorageFull || version != 2 || !slices.Equal(rows, before) || len(tableFiles(t, inner)) != files || scanErr != nil {
			t.Fatalf("write %d: %v: %q at version %d, files %q, %v", at, err, rows, version, tableFiles(t, inner), scanErr)
		}
	}
}
