package ingest

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/objstore/memstore"
)

// TestOffHeap appends with rows in pages, which a use of freed memory would
// kill.
func TestOffHeap(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 17))
		m := newModel(rng, 1+int(seed)*20)
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		small := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer small.AssertSize(t, 0)
		input := m.fill(rng, memory.DefaultAllocator)
		cfg := testConfig(t, m.def, mem)
		cfg.limits, cfg.Write.MaxRowsPerRowGroup, cfg.Store, cfg.Rows = m.limits, m.group, memstore.New(), offHeap{small, 64}
		if seed%2 == 0 {
			cfg = spilling(t, cfg, 1+rng.Int64N(int64(m.rows)))
		}
		result, err := Run(context.Background(), cfg, &batches{m.stream, input})
		if err != nil {
			t.Fatal(err)
		}
		m.check(t, cfg.Store, result, m.reference(t, input), cfg.Domain)
	}
}

// TestOffHeapMemory checks the allocator by itself.
func TestOffHeapMemory(t *testing.T) {
	small := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer small.AssertSize(t, 0)
	o := offHeap{small, 100}
	for _, size := range []int{0, 1, 99, 100, 5000, 1 << 20} {
		b := o.Allocate(size)
		if len(b) != size {
			t.Fatalf("%d bytes, want %d", len(b), size)
		}
		for i := range b {
			b[i] = byte(i)
		}
		b = o.Reallocate(2*size+1, b)
		for i := range size {
			if b[i] != byte(i) {
				t.Fatalf("byte %d of %d was lost", i, size)
			}
		}
		b = o.Reallocate(size, b)
		if len(b) != size || small.CurrentAlloc() > 2*100 {
			t.Fatalf("%d bytes, %d of them small", len(b), small.CurrentAlloc())
		}
		o.Free(b)
	}
	b := o.small.Allocate(1000) // as when the system has no pages
	o.Free(b)
}
