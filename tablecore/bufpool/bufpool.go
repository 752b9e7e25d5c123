// Package bufpool keeps large buffers for reuse without clearing them.
//
// First touch of fresh memory costs as much as a hop over the network: the
// runtime clears it, and the system maps its pages. A [Pool] hands out what was
// given back, as it is. So it is for buffers that their users fill whole, and
// who reads one after it was given back reads another's bytes without an
// error. [Poison] is the debug mode that shows both mistakes; the tests run
// under it.
package bufpool

import (
	"math/bits"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

const (
	minPooled = 12 // exponent of the smallest buffers that are kept: 4 KiB
	maxPooled = 22 // of the largest: 4 MiB
)

// Pool keeps buffers for reuse, in sizes of powers of two. What is idle for two
// runs of the garbage collector is left to it. The zero value is ready for
// use, which may be concurrent. A Pool is a memory.Allocator, and a BufferPool
// of gRPC.
type Pool struct {
	// Poison overwrites what is given back, so that a test sees it when
	// somebody still reads it.
	Poison  bool
	classes [maxPooled + 1]sync.Pool
}

// Get returns length bytes whose content is undefined.
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

// Put takes back what Get returned. Any other memory is left to the garbage
// collector.
func (p *Pool) Put(b *[]byte) {
	class := bits.Len(uint(cap(*b))) - 1
	if class < minPooled || class > maxPooled || cap(*b) != 1<<class {
		return
	}
	if p.Poison {
		poison((*b)[:cap(*b)])
	}
	p.classes[class].Put(b)
}

// Allocate implements memory.Allocator. Small memory is not worth keeping.
func (p *Pool) Allocate(size int) []byte {
	if size < 1<<minPooled {
		return memory.DefaultAllocator.Allocate(size)
	}
	return *p.Get(size)
}

// Reallocate implements memory.Allocator.
func (p *Pool) Reallocate(size int, b []byte) []byte { return reallocate(p, size, b) }

// Free implements memory.Allocator.
func (p *Pool) Free(b []byte) { p.Put(&b) }

// reallocate moves b to memory of a allocator where it has no room.
func reallocate(a memory.Allocator, size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	bigger := a.Allocate(size)
	copy(bigger, b)
	a.Free(b)
	return bigger
}
