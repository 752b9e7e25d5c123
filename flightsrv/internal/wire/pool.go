package wire

import (
	"math/bits"
	"sync"
)

const (
	minPooled = 12 // exponent of the smallest buffers that are kept: 4 KiB
	maxPooled = 22 // of the largest: 4 MiB, more than a message may have
)

// Pool keeps transport buffers for reuse, in sizes of powers of two. Unlike
// gRPC's own it does not clear them: whoever gets one overwrites it. First
// touch of fresh memory costs as much as the network hop. The zero value is
// ready for use, which may be concurrent.
type Pool struct {
	// Poison overwrites what is given back, so that a test sees it when
	// somebody still reads it.
	Poison  bool
	classes [maxPooled + 1]sync.Pool
}

// Get implements mem.BufferPool.
func (p *Pool) Get(length int) *[]byte {
	class := max(minPooled, bits.Len(uint(max(length, 1)-1)))
	if class > maxPooled {
		b := make([]byte, length)
		return &b
	}
	if b, ok := p.classes[class].Get().(*[]byte); ok {
		*b = (*b)[:length]
		return b
	}
	b := make([]byte, length, 1<<class)
	return &b
}

// Put implements mem.BufferPool.
func (p *Pool) Put(b *[]byte) {
	class := bits.Len(uint(cap(*b))) - 1
	if class < minPooled || class > maxPooled || cap(*b) != 1<<class {
		return
	}
	if p.Poison {
		for i := range (*b)[:cap(*b)] {
			(*b)[:cap(*b)][i] = 0xa5
		}
	}
	p.classes[class].Put(b)
}

// poolAllocator frees buffers into a pool. It allocates nothing.
type poolAllocator struct{ pool *Pool }

// Allocate implements memory.Allocator; it is not called.
func (poolAllocator) Allocate(size int) []byte { return make([]byte, size) }

// Reallocate implements memory.Allocator; it is not called.
func (poolAllocator) Reallocate(size int, b []byte) []byte {
	return append(make([]byte, 0, size), b...)[:size]
}

// Free implements memory.Allocator.
func (a poolAllocator) Free(b []byte) { a.pool.Put(&b) }
