package bufpool

import "github.com/apache/arrow-go/v18/arrow/memory"

// Zeroed returns an allocator that clears what mem hands out, for code that
// relies on it, as arrow-go does in places.
func Zeroed(mem memory.Allocator) memory.Allocator { return zeroed{mem} }

type zeroed struct{ memory.Allocator }

// Allocate implements memory.Allocator.
func (z zeroed) Allocate(size int) []byte {
	b := z.Allocator.Allocate(size)
	clear(b)
	return b
}

// Reallocate implements memory.Allocator.
func (z zeroed) Reallocate(size int, b []byte) []byte {
	used := len(b)
	b = z.Allocator.Reallocate(size, b)
	if size > used {
		clear(b[used:])
	}
	return b
}

// Poison returns an allocator whose memory holds no zeros when it is handed
// out, and not its old content when it was freed: whoever relies on either
// gets wrong values where a Pool would give wrong values now and then. mem may
// be a checked allocator.
func Poison(mem memory.Allocator) memory.Allocator { return poisoned{mem} }

type poisoned struct{ memory.Allocator }

// Allocate implements memory.Allocator.
func (p poisoned) Allocate(size int) []byte {
	b := p.Allocator.Allocate(size)
	poison(b)
	return b
}

// Reallocate implements memory.Allocator. It always moves, so that who holds on
// to the old place is found out.
func (p poisoned) Reallocate(size int, b []byte) []byte {
	moved := p.Allocate(size)
	copy(moved, b)
	p.Free(b)
	return moved
}

// Free implements memory.Allocator.
func (p poisoned) Free(b []byte) {
	poison(b)
	p.Allocator.Free(b)
}

func poison(b []byte) {
	for i := range b {
		b[i] = 0xa5
	}
}
