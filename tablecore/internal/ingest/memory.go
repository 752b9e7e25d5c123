package ingest

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

// DefaultMemoryBudget bounds an append whose Config sets no budget.
const DefaultMemoryBudget = 2 << 30

// heap hands out the memory that holds an append's rows and counts it. It may
// be used by several goroutines at once.
type heap struct {
	mem   memory.Allocator
	limit int64
	used  atomic.Int64

	budget *Budget // shared with other appends, nil without any
	grant  grant   // what it has given
}

// check refuses an append that uses more than its budget, or would with extra
// bytes, or that finds the budget of all appends used up.
func (h *heap) check(extra int64) error {
	need := h.used.Load() + extra
	if need > h.limit {
		return &tableerr.MessageTooLarge{LimitBytes: h.limit, Bytes: need, Msg: fmt.Sprintf(
			"the append needs more than the %d bytes of memory it may use; send it as several appends", h.limit)}
	}
	if !h.grant.fit(h.budget, need) {
		return &tableerr.MessageTooLarge{LimitBytes: h.budget.limit, Bytes: need, Msg: fmt.Sprintf(
			"the appends that are under way use up the %d bytes of memory they may use together; repeat it later, or send it as smaller appends", h.budget.limit)}
	}
	return nil
}

// settle makes the heap's part of the shared budget, of which nothing is in use,
// as large as wanted, or as it can be, and returns what may be used.
func (h *heap) settle(wanted int64) int64 {
	wanted = min(wanted, h.limit)
	if h.grant.fit(h.budget, wanted) {
		return wanted
	}
	return h.grant.bytes()
}

// close gives the heap's part of the shared budget back.
func (h *heap) close() { h.grant.end(h.budget) }

// count adds memory that does not come from the heap's allocator.
func (h *heap) count(bytes int64) { h.used.Add(bytes) }

// word is what fixed-width values are moved as, whatever they mean.
type word interface {
	uint8 | uint16 | uint32 | uint64
}

// view reinterprets bytes as words.
func view[T word](b []byte) []T {
	var t T
	n := len(b) / int(unsafe.Sizeof(t))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// raw is the inverse of view. The slice must have come from view or take.
func raw[T word](w []T) []byte {
	var t T
	if cap(w) == 0 {
		return nil
	}
	w = w[:cap(w)]
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), len(w)*int(unsafe.Sizeof(t)))
}

// take returns n words whose content is undefined.
func take[T word](h *heap, n int) []T {
	var t T
	size := n * int(unsafe.Sizeof(t))
	h.used.Add(int64(size))
	return view[T](h.mem.Allocate(size))[:n:n]
}

// extend returns w with room for n words, keeping its content.
func extend[T word](h *heap, w []T, n int) []T {
	if n <= len(w) {
		return w
	}
	bigger := take[T](h, n)
	copy(bigger, w)
	give(h, w)
	return bigger
}

// give returns words to the heap.
func give[T word](h *heap, w []T) {
	if b := raw(w); b != nil {
		h.used.Add(-int64(len(b)))
		h.mem.Free(b)
	}
}
