package scan

import (
	"context"
	"sort"

	"contrail/tablecore/internal/interval"
)

// merger yields the rows of a unit whose pieces overlap, in order, as runs of
// single files. Rows with equal index values come in the order of the files,
// which is that of their commits, and inside a file in its own order.
//
// A piece is opened only when the merge has come to where it begins, so that a
// long chain of pieces that overlap their neighbours takes few at a time.
type merger struct {
	domain   interval.Domain
	index    int     // of the index column in the cursors' batches
	waiting  []piece // not begun yet, by their first ordinal and file
	heads    []*head // a heap by the next row
	cursorOf func(file int) *cursor
}

// head is the front of one piece.
type head struct {
	file   int
	cursor *cursor
	end    int64    // of the piece
	at     int      // place in the cursor's batch of
	values []uint64 // these ordinals, which are next
}

func (h *head) before(g *head) bool {
	if h.values[0] != g.values[0] {
		return h.values[0] < g.values[0]
	}
	return h.file < g.file
}

// fill looks for the next rows of the piece; false at its end.
func (m *merger) fill(ctx context.Context, h *head) (bool, error) {
	at, n, err := h.cursor.peek(ctx, h.end)
	if err != nil || n == 0 {
		return false, err
	}
	h.at = at
	h.values, err = appendOrdinals(h.values[:0], m.domain, h.cursor.batch.Column(m.index), at, n)
	return err == nil, err
}

// admit begins the pieces that may hold the next row.
func (m *merger) admit(ctx context.Context) error {
	for len(m.waiting) > 0 && (len(m.heads) == 0 || m.waiting[0].first <= m.heads[0].values[0]) {
		p := m.waiting[0]
		m.waiting = m.waiting[1:]
		h := &head{file: p.file, cursor: m.cursorOf(p.file), end: p.end}
		more, err := m.fill(ctx, h)
		if err != nil {
			return err
		}
		if more {
			m.heads = append(m.heads, h)
			m.rise(len(m.heads) - 1)
		}
	}
	return nil
}

func (m *merger) rise(i int) {
	for i > 0 && m.heads[i].before(m.heads[(i-1)/2]) {
		m.heads[i], m.heads[(i-1)/2] = m.heads[(i-1)/2], m.heads[i]
		i = (i - 1) / 2
	}
}

func (m *merger) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.heads); child++ {
			if m.heads[child].before(m.heads[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heads[i], m.heads[least] = m.heads[least], m.heads[i]
		i = least
	}
}

// next returns the next run: a place in the batch of the cursor and at most
// limit rows. They must be used before the next call. n is 0 at the end.
func (m *merger) next(limit int) (c *cursor, at, n int) {
	if len(m.heads) == 0 {
		return nil, 0, 0
	}
	h := m.heads[0]
	return h.cursor, h.at, m.leading(limit)
}

// take moves past the n rows that next gave.
func (m *merger) take(ctx context.Context, n int) error {
	h := m.heads[0]
	h.cursor.take(n)
	h.at, h.values = h.at+n, h.values[n:]
	if len(h.values) == 0 {
		more, err := m.fill(ctx, h)
		if err != nil {
			return err
		}
		if !more {
			last := len(m.heads) - 1
			m.heads[0] = m.heads[last]
			m.heads = m.heads[:last]
		}
	}
	m.sink(0)
	return m.admit(ctx)
}

// leading counts the rows of the first head that come before every other head.
func (m *merger) leading(limit int) int {
	h := m.heads[0]
	most := min(limit, len(h.values))
	bound, file, any := uint64(0), 0, false
	rival := func(v uint64, f int) {
		if !any || v < bound || v == bound && f < file {
			bound, file, any = v, f, true
		}
	}
	for _, g := range m.heads[1:min(3, len(m.heads))] { // the runner-up is one of the root's children
		rival(g.values[0], g.file)
	}
	if len(m.waiting) > 0 {
		rival(m.waiting[0].first, m.waiting[0].file)
	}
	if !any {
		return most
	}
	goesFirst := func(v uint64) bool { return v < bound || v == bound && h.file < file }
	if most > 1 && !goesFirst(h.values[1]) {
		return 1 // the first one does, being the root
	}
	return max(min(1, most), sort.Search(most, func(i int) bool { return !goesFirst(h.values[i]) }))
}
