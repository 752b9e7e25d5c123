package ingest

import (
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/bufpool"
)

// offHeapBytes is the least size that is worth pages of its own.
const offHeapBytes = 64 << 10

// OffHeap returns an allocator for the rows of appends (Config.Rows). Large
// memory comes from the system and goes back to it when it is freed: what an
// append may use is what it uses, not twice that until Go's collector has been
// there, whose own heap stays small. Small memory is kept for the next append.
// All of it must be freed, and what it holds at first is undefined. It may be
// used by several goroutines.
func OffHeap() memory.Allocator { return offHeap{&bufpool.Pool{}, offHeapBytes} }

// offHeap takes memory of less than least bytes, and what the system does not
// give, from another allocator.
type offHeap struct {
	small memory.Allocator
	least int
}

// Allocate implements memory.Allocator.
func (o offHeap) Allocate(size int) []byte {
	if size >= o.least {
		if b := mapPages(size); b != nil {
			return b
		}
	}
	return o.small.Allocate(size)
}

// Reallocate implements memory.Allocator.
func (o offHeap) Reallocate(size int, b []byte) []byte {
	switch {
	case max(size, cap(b)) < o.least:
		return o.small.Reallocate(size, b)
	case size <= cap(b):
		return b[:size]
	}
	bigger := o.Allocate(size)
	copy(bigger, b)
	o.Free(b)
	return bigger
}

// Free implements memory.Allocator.
func (o offHeap) Free(b []byte) {
	if cap(b) < o.least || !unmapPages(b[:cap(b)]) {
		o.small.Free(b)
	}
}
