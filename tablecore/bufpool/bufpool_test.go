package bufpool

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

func TestPool(t *testing.T) {
	p := Pool{Poison: true}
	for _, c := range []struct{ length, capacity int }{
		{0, 4 << 10}, {1, 4 << 10}, {4 << 10, 4 << 10}, {4<<10 + 1, 8 << 10}, {1 << 20, 1 << 20}, {3 << 20, 4 << 20},
		{4<<20 + 1, 4<<20 + 1}, // too large to keep
	} {
		b := p.Get(c.length)
		if len(*b) != c.length || cap(*b) < c.capacity || c.capacity <= 4<<20 && cap(*b) != c.capacity {
			t.Errorf("Get(%d) has length %d, capacity %d", c.length, len(*b), cap(*b))
		}
		data := (*b)[:cap(*b)]
		clear(data)
		p.Put(b)
		if want := c.capacity <= 4<<20; (data[0] == 0xa5) != want {
			t.Errorf("%d bytes that were given back begin with %x", c.length, data[0])
		}
	}
	odd := make([]byte, 5000)
	p.Put(&odd) // not of a size that Get gives: left alone
	if odd[0] != 0 {
		t.Error("foreign memory was kept")
	}
}

func TestPoolAllocates(t *testing.T) {
	var p Pool
	for _, size := range []int{0, 1, 100, 4095, 4096, 100_000, 5 << 20} {
		b := p.Allocate(size)
		if len(b) != size {
			t.Errorf("Allocate(%d) gives %d bytes", size, len(b))
		}
		for i := range b {
			b[i] = byte(i)
		}
		bigger := p.Reallocate(3*size+1, b)
		if len(bigger) != 3*size+1 || !bytes.Equal(bigger[:size], ascending(size)) {
			t.Errorf("Reallocate from %d to %d gives %d bytes, or others", size, 3*size+1, len(bigger))
		}
		smaller := p.Reallocate(size/2, bigger)
		if !bytes.Equal(smaller, ascending(size/2)) {
			t.Errorf("Reallocate to %d gives others", size/2)
		}
		p.Free(smaller)
	}
}

func ascending(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// A buffer of arrow-go comes back to the pool when its last reference goes.
func TestPoolIsUsedAgain(t *testing.T) {
	p := Pool{Poison: true}
	b := memory.NewResizableBuffer(&p)
	b.Resize(10_000)
	data := b.Bytes()
	clear(data)
	b.Resize(100)
	b.Release()
	if data[0] != 0xa5 {
		t.Error("a released buffer was not given back")
	}
}

func TestZeroed(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	z := Zeroed(Poison(mem))
	b := z.Allocate(100)
	if !bytes.Equal(b, make([]byte, 100)) {
		t.Error("memory is not cleared")
	}
	b[99] = 1
	b = z.Reallocate(200, b)
	if want := append(make([]byte, 99), append([]byte{1}, make([]byte, 100)...)...); !bytes.Equal(b, want) {
		t.Error("memory that grew is not cleared, or lost what it held")
	}
	b = z.Reallocate(50, b)
	z.Free(b)
}

func TestPoison(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	p := Poison(mem)
	b := p.Allocate(8)
	if !bytes.Equal(b, bytes.Repeat([]byte{0xa5}, 8)) {
		t.Errorf("fresh memory holds %x", b)
	}
	copy(b, "contents")
	moved := p.Reallocate(12, b)
	if string(moved[:8]) != "contents" || b[0] != 0xa5 {
		t.Errorf("after moving, %q is at the new place and %q at the old", moved, b)
	}
	p.Free(moved)
	if moved[0] != 0xa5 {
		t.Error("freed memory keeps its content")
	}
}

// BenchmarkAllocate shows what clearing and first touch cost.
func BenchmarkAllocate(b *testing.B) {
	const size = 256 << 10
	for name, mem := range map[string]memory.Allocator{"pool": &Pool{}, "heap": memory.NewGoAllocator()} {
		b.Run("bytes=262144/"+name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				buf := memory.NewResizableBuffer(mem)
				buf.Resize(size)
				for i := 0; i < size; i += 64 {
					buf.Bytes()[i] = 1
				}
				buf.Release()
			}
		})
	}
}
