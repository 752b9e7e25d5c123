package tablecore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// littleMemory opens a warehouse whose appends spill after some ten thousand
// rows.
func littleMemory(t *testing.T, store objstore.Store, dir string) *tablecore.Warehouse {
	t.Helper()
	w := tabletest.Open(t, tablecore.Options{Store: store, MemoryBudget: 1 << 20, Scratch: dir,
		Clock: tabletest.NewClock().Now, Random: tabletest.Random(1)})
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestAppendBeyondMemory appends more rows than memory holds, backwards, and
// looks that all are there, once, and nothing else.
func TestAppendBeyondMemory(t *testing.T) {
	const many = 150_000
	dir := filepath.Join(t.TempDir(), "scratch")
	w := littleMemory(t, memstore.New(), dir)
	table := openWeather(t, w)
	rows := manyRows("EWR", many)
	defer rows.Release()
	const piece = 10_000
	for _, want := range []tableerr.Token{"", tableerr.TokenIntervalOverlap} {
		var parts []arrow.RecordBatch
		for end := int64(many); end > 0; end -= piece {
			parts = append(parts, rows.NewSlice(end-piece, end))
		}
		report, err := table.Append(t.Context(), tabletest.NewReader(weather, parts...), tablecore.AppendOptions{})
		for _, p := range parts {
			p.Release()
		}
		if tableerr.TokenOf(err) != want || err == nil && report.Rows != many {
			t.Fatalf("got %+v, %v", report, err)
		}
		got, _, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
		if err != nil || len(got) != many {
			t.Fatalf("%d rows, %v", len(got), err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("scratch holds %v, %v", left, err)
		}
	}
}

// TestScratchFull spills to a small file system: the append is told
// STORAGE_FULL and leaves nothing, on that disk or in the table.
func TestScratchFull(t *testing.T) {
	dir, err := smallDisk(t)
	if err != nil {
		t.Logf("no small file system; package ingest fails scratch files by a double: %v", err)
		return
	}
	store := memstore.New()
	w := littleMemory(t, store, dir)
	table := openWeather(t, w)
	rows := manyRows("EWR", 150_000)
	defer rows.Release()
	_, err = table.Append(t.Context(), tabletest.NewReader(weather, rows), tablecore.AppendOptions{})
	if tableerr.TokenOf(err) != tableerr.TokenStorageFull {
		t.Fatalf("got %v", err)
	}
	if files := dataFiles(t, store); len(files) > 0 {
		t.Errorf("left are %q", files)
	}
	few := manyRows("EWR", 100)
	defer few.Release()
	if _, err := table.Append(t.Context(), tabletest.NewReader(weather, few), tablecore.AppendOptions{}); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestSpillingAllocations makes sure that an append with runs frees what it
// takes from an allocator of the embedder's.
func TestSpillingAllocations(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	w, err := tablecore.Open(t.Context(), tablecore.Options{Store: memstore.New(), Allocator: mem, MemoryBudget: 1 << 20, Scratch: t.TempDir(),
		Clock: tabletest.NewClock().Now, Random: tabletest.Random(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	rows := manyRows("EWR", 100_000)
	defer rows.Release()
	if _, err := openWeather(t, w).Append(t.Context(), tabletest.NewReader(weather, rows), tablecore.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
}
