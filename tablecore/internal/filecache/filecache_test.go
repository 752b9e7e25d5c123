package filecache_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
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

// TestIndexFollowsTheKeys makes sure that what is known of a file under one
// definition of the keys is not used under another one.
func TestIndexFollowsTheKeys(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}, {Name: "b", Type: arrow.PrimitiveTypes.Int64}}, nil)
	define := func(r tabledef.Request) *snapshot.Snapshot {
		t.Helper()
		r.Schema, r.Uniqueness = schema, "none"
		def, err := tabledef.New("id", r)
		if err != nil {
			t.Fatal(err)
		}
		return &snapshot.Snapshot{State: deltalog.NewState(), Def: def}
	}
	store, f := memstore.New(), &snapshot.File{Add: &deltalog.Add{}, Path: "data/aa/x.parquet"}
	var file bytes.Buffer
	w, err := datafile.NewWriter(&file, schema, datafile.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	batch := tabletest.Batch(t, memory.DefaultAllocator, schema, `[{"a":1,"b":30},{"a":2,"b":20},{"a":3,"b":10}]`)
	defer batch.Release()
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), f.Path, file.Bytes()); err != nil {
		t.Fatal(err)
	}
	loads := 0
	files := filecache.New().Files(store, memory.DefaultAllocator, func(context.Context, string, string) { loads++ })
	look := func(s *snapshot.Snapshot, entities int, intervals uint64) *derived.FileIndex {
		t.Helper()
		x, err := files.Index(t.Context(), s, f)
		if err != nil {
			t.Fatal(err)
		}
		if x.Coverage.Entities() != entities || x.Coverage.Total() != intervals {
			t.Errorf("%d entities, %d intervals", x.Coverage.Entities(), x.Coverage.Total())
		}
		return x
	}
	byA, byB := tabledef.Request{IndexColumn: "a", IndexGranularity: "1"}, tabledef.Request{IndexColumn: "b", IndexGranularity: "100"}
	whole := look(define(byA), 1, 3)
	if look(define(byA), 1, 3) != whole || loads != 1 {
		t.Errorf("an equal definition loads again: %d loads", loads)
	}
	byB.EntityColumns = []string{"a"}
	look(define(byB), 3, 3)
	look(define(byB), 3, 3)
	if look(define(byA), 1, 3); loads != 3 {
		t.Errorf("%d loads", loads)
	}
	files.Keep(define(byB).Def, f.Path, &derived.FileIndex{}) // as a writer says
	look(define(byA), 1, 3)
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
