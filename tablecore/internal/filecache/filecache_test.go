package filecache_test

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// table returns a snapshot with one file that the store may lack or hold in
// damaged form.
func table(t *testing.T) (*snapshot.Snapshot, *snapshot.File) {
	t.Helper()
	def, err := tabledef.New("id", tabledef.Request{IndexColumn: "t", Uniqueness: "none", Schema: arrow.NewSchema([]arrow.Field{
		{Name: "t", Type: arrow.PrimitiveTypes.Int64}}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	return &snapshot.Snapshot{State: deltalog.NewState(), Def: def}, &snapshot.File{Add: &deltalog.Add{}, Path: "data/aa/x.parquet"}
}

func TestMissingFile(t *testing.T) {
	s, f := table(t)
	files := filecache.New().Files(memstore.New(), memory.DefaultAllocator, nil)
	for name, err := range map[string]error{
		"Open":      second(files.Open(t.Context(), s, f)),
		"Index":     second(files.Index(t.Context(), s, f)),
		"RowGroups": second(files.RowGroups(t.Context(), s, f)),
	} {
		if tableerr.TokenOf(err) != tableerr.TokenFileMissing {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	s, f := table(t)
	store := memstore.New()
	if err := store.Put(t.Context(), f.Path, []byte("PAR1 and then nothing of use PAR1")); err != nil {
		t.Fatal(err)
	}
	files := filecache.New().Files(store, memory.DefaultAllocator, nil)
	if _, err := files.Open(t.Context(), s, f); tableerr.TokenOf(err) != tableerr.TokenCorrupt {
		t.Errorf("got %v", err)
	}
	// A failure is not remembered: the file may be whole again.
	if _, err := files.Open(t.Context(), s, f); tableerr.TokenOf(err) != tableerr.TokenCorrupt {
		t.Errorf("got %v", err)
	}
}

// TestLoadOutlivesItsCaller makes sure that a caller that has gone does not
// fail those that wait for the same load.
func TestLoadOutlivesItsCaller(t *testing.T) {
	s, f := table(t)
	meter := meterstore.Wrap(memstore.New())
	files := filecache.New().Files(meter, memory.DefaultAllocator, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := files.Index(ctx, s, f); tableerr.TokenOf(err) != tableerr.TokenFileMissing {
		t.Errorf("got %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
