package ingest

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

func TestRecycler(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	r := &recycler{mem: mem}
	r.Free(nil)
	a := r.Allocate(100)
	if len(a) != 100 || cap(a) != 128 {
		t.Fatalf("got %d of %d bytes", len(a), cap(a))
	}
	a[0] = 7
	r.Free(a)
	b := r.Allocate(128)
	if &a[0] != &b[0] || mem.CurrentAlloc() != 128 {
		t.Error("memory of the same class is not used again")
	}
	if c := r.Reallocate(10, b); &c[0] != &b[0] || len(c) != 10 {
		t.Error("memory that suffices was moved")
	}
	d := r.Reallocate(1000, b)
	if len(d) != 1000 || d[0] != 7 || mem.CurrentAlloc() != 128+1024 {
		t.Errorf("got %d bytes that begin with %d", len(d), d[0])
	}
	r.Free(d)
	r.Free(r.Allocate(0))
	r.close()
}
