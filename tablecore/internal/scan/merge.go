package scan

import (
	"container/heap"
	"context"

	"contrail/tablecore/internal/interval"
)

// mergeRun says: the next n rows come from the pieces' file.
type mergeRun struct {
	file int
	n    int64
}

// merger yields the order of the rows of a unit whose pieces overlap, as runs.
// It reads index columns as it goes, so memory depends on the number of
// pieces. Rows with equal index values come in the order of the files, which
// is that of their commits, and inside a file in its own order.
type merger struct {
	domain  interval.Domain
	heads   heads
	crowded bool // more pieces than files that are kept open
}

// head is the front of one piece.
type head struct {
	file   int
	index  *cursor  // over the index column of the piece
	values []uint64 // ordinals that are decoded and not yet taken
	left   int64    // rows that are not decoded yet
}

// heads is a heap of fronts by (ordinal, file).
type heads []*head

func (h heads) Len() int      { return len(h) }
func (h heads) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)   { *h = append(*h, x.(*head)) }
func (h *heads) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
func (h heads) Less(i, j int) bool {
	if h[i].values[0] != h[j].values[0] {
		return h[i].values[0] < h[j].values[0]
	}
	return h[i].file < h[j].file
}

// indexRows is how many index values of a piece are decoded at once.
const indexRows = 4096

// newMerger opens the index columns of a unit's pieces.
func newMerger(ctx context.Context, domain interval.Domain, u unit, open func(p piece) *cursor) (*merger, error) {
	m := &merger{domain: domain, crowded: len(u.pieces) > maxOpenFiles}
	for _, p := range u.pieces {
		h := &head{file: p.file, index: open(p), left: p.rows()}
		m.heads = append(m.heads, h)
		if err := m.fill(ctx, h); err != nil {
			m.close()
			return nil, err
		}
	}
	heap.Init(&m.heads)
	return m, nil
}

// fill decodes the next index values of a piece.
func (m *merger) fill(ctx context.Context, h *head) error {
	n := min(h.left, indexRows)
	var err error
	if h.values, err = h.index.ordinals(ctx, m.domain, n, h.values[:0]); err != nil {
		return err
	}
	h.left -= n
	if m.crowded {
		h.index.close() // it opens again where it stopped
	}
	return nil
}

// next returns the next run, at most limit rows long; n is 0 at the end.
func (m *merger) next(ctx context.Context, limit int64) (mergeRun, error) {
	if len(m.heads) == 0 {
		return mergeRun{}, nil
	}
	h := m.heads[0]
	run := mergeRun{file: h.file, n: int64(m.leading(limit))}
	h.values = h.values[run.n:]
	if len(h.values) == 0 && h.left > 0 {
		if err := m.fill(ctx, h); err != nil {
			return mergeRun{}, err
		}
	}
	if len(h.values) == 0 {
		h.index.close()
		heap.Pop(&m.heads)
	} else {
		heap.Fix(&m.heads, 0)
	}
	return run, nil
}

// leading counts the decoded rows of the first head that come before every
// other head.
func (m *merger) leading(limit int64) int {
	h := m.heads[0]
	most := int(min(limit, int64(len(h.values))))
	var rival *head
	for i := 1; i < min(3, len(m.heads)); i++ { // the runner-up is one of the root's children
		if rival == nil || m.heads.Less(i, 1) {
			rival = m.heads[i]
		}
	}
	if rival == nil {
		return most
	}
	n := 1
	for n < most && (h.values[n] < rival.values[0] || h.values[n] == rival.values[0] && h.file < rival.file) {
		n++
	}
	return n
}

func (m *merger) close() {
	for _, h := range m.heads {
		h.index.close()
	}
	m.heads = nil
}

// release gives segments back.
func release(segments []segment) {
	for _, s := range segments {
		s.batch.Release()
	}
}
