package wire

import (
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

// Budget bounds the memory that all streams of a server hold together while
// they decode what clients sent. It is safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	limit int64
	used  int64
}

// NewBudget returns a budget of limit bytes.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Used returns the bytes taken and not given back.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// take reports whether n more bytes fit; a negative n gives bytes back.
func (b *Budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 && n > b.limit-b.used {
		return false
	}
	b.used += n
	return true
}

// cappedAllocator is the allocator under one stream's IPC reader. It panics
// with an error where a limit is met: the memory.Allocator interface has no
// other way to refuse, and the reader turns panics into errors.
//
// arrow-go's reader forgets buffers when decompression fails half-way, so what
// is outstanding at the end is given back to the budget by close; the memory
// itself is left to the base allocator's owner, the garbage collector.
type cappedAllocator struct {
	base   memory.Allocator
	budget *Budget

	mu     sync.Mutex
	limit  int64
	used   int64
	closed bool
}

func newCappedAllocator(base memory.Allocator, limit int64, budget *Budget) *cappedAllocator {
	return &cappedAllocator{base: base, limit: limit, budget: budget}
}

// Allocate implements memory.Allocator.
func (a *cappedAllocator) Allocate(size int) []byte {
	a.grow(int64(size))
	return a.base.Allocate(size)
}

// Reallocate implements memory.Allocator.
func (a *cappedAllocator) Reallocate(size int, b []byte) []byte {
	if more := int64(size - len(b)); more > 0 {
		a.grow(more)
	} else {
		a.shrink(-more)
	}
	return a.base.Reallocate(size, b)
}

// Free implements memory.Allocator.
func (a *cappedAllocator) Free(b []byte) {
	a.shrink(int64(len(b)))
	a.base.Free(b)
}

func (a *cappedAllocator) grow(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n < 0 || n > a.limit-a.used {
		panic(&tableerr.MessageTooLarge{LimitBytes: a.limit,
			Msg: fmt.Sprintf("decoding the stream would take more than %d bytes at once; send smaller batches", a.limit)})
	}
	if !a.closed && !a.budget.take(n) {
		panic(&tableerr.QueueTimeout{})
	}
	a.used += n
}

func (a *cappedAllocator) shrink(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used -= n
	if !a.closed {
		a.budget.take(-n)
	}
}

// close gives what is still counted back to the budget. Buffers that are still
// referenced stay valid.
func (a *cappedAllocator) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.closed = true
		a.budget.take(-a.used)
	}
}
