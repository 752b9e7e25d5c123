package ingest

import (
	"math/bits"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// recycler is an allocator that keeps freed memory for the next allocation of
// about the same size, without clearing it: the batches of one append all look
// alike, and the first touch of fresh memory costs as much as filling it. It is
// for buffers that are filled whole. It may be used by several goroutines.
type recycler struct {
	mem  memory.Allocator
	mu   sync.Mutex
	free [bits.UintSize][][]byte // by the logarithm of their size
}

// smallest is the logarithm of the least size that is handed out.
const smallest = 6

// Allocate returns size bytes whose content is undefined.
func (r *recycler) Allocate(size int) []byte {
	class := max(smallest, bits.Len(uint(max(size, 1)-1)))
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free[class]); n > 0 {
		b := r.free[class][n-1]
		r.free[class] = r.free[class][:n-1]
		return b[:size]
	}
	return r.mem.Allocate(1 << class)[: size : 1<<class]
}

// Reallocate returns b with another size, moved where it has to be.
func (r *recycler) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	bigger := r.Allocate(size)
	copy(bigger, b)
	r.Free(b)
	return bigger
}

// Free takes back memory that Allocate or Reallocate gave.
func (r *recycler) Free(b []byte) {
	if cap(b) == 0 {
		return
	}
	class := bits.Len(uint(cap(b) - 1))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free[class] = append(r.free[class], b[:cap(b)])
}

// close returns all free memory to the allocator behind.
func (r *recycler) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, list := range r.free {
		for _, b := range list {
			r.mem.Free(b)
		}
		r.free[i] = nil
	}
}
