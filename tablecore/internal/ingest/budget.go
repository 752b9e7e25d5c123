package ingest

import (
	"sync"
	"sync/atomic"
)

const (
	// budgetStep is in how large pieces appends take memory from a budget.
	budgetStep = 1 << 20
	// budgetSpare is how much an append keeps of what it has stopped to use.
	budgetSpare = 32 << 20
)

// Budget is the memory that appends may hold together. Nobody waits for it, so
// that appends which hold a part each cannot wait for each other: who finds it
// used up puts its rows on disk, or is refused where it has none to put there.
// It is safe for concurrent use.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns a budget of a number of bytes.
func NewBudget(bytes int64) *Budget { return &Budget{limit: bytes} }

// Used returns how many bytes are given away.
func (b *Budget) Used() int64 { return b.used.Load() }

// take gives n bytes, or nothing where less is left.
func (b *Budget) take(n int64) bool {
	for {
		used := b.used.Load()
		if n > b.limit-used {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// grant is one append's part of a budget. It may be used by several goroutines
// at once.
type grant struct {
	mu   sync.Mutex
	size int64
}

// fit makes sure that the part has n bytes, of a budget that is not nil, and
// gives back what is far beyond that.
func (g *grant) fit(b *Budget, n int64) bool {
	if b == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n <= g.size {
		if spare := g.size - n; spare > budgetSpare {
			g.size -= spare
			b.used.Add(-spare)
		}
		return true
	}
	more := n - g.size
	// The last piece of a budget may be smaller than a step.
	if step := (more + budgetStep - 1) / budgetStep * budgetStep; b.take(step) {
		g.size += step
		return true
	}
	if b.take(more) {
		g.size += more
		return true
	}
	return false
}

// bytes returns the part's size.
func (g *grant) bytes() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.size
}

// end gives everything back.
func (g *grant) end(b *Budget) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b != nil {
		b.used.Add(-g.size)
	}
	g.size = 0
}
