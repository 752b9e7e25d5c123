package scan

import (
	"cmp"
	"strings"

	"contrail/tablecore/internal/derived"
)

// piece is a run of consecutive rows of one file that belong to one entity,
// ordered by the index. In an unordered scan it is any run of rows.
type piece struct {
	file        int // index into the plan's files
	start, end  int64
	first, last uint64 // index ordinals of the first and the last row
}

func (p piece) rows() int64 { return p.end - p.start }

// unit is what a scan cannot cut further: one piece, or several pieces of one
// entity whose index ranges overlap and must be merged.
type unit struct {
	key    string
	pieces []piece
}

func (u unit) rows() int64 {
	n := int64(0)
	for _, p := range u.pieces {
		n += p.rows()
	}
	return n
}

// unitStream yields the units of a scan in its order. It walks the directories
// of all files side by side, so that its memory depends on the number of files
// and not on that of their runs. Each run of next overwrites unit.
type unitStream struct {
	runs      [][]derived.Run
	unordered bool
	heap      []spot // of files by their next run: key, first ordinal, file
	unit      unit
}

// spot is a place in a file's runs.
type spot struct{ file, run int }

// stream begins a walk over the plan's units.
func (p *Plan) stream() *unitStream {
	s := &unitStream{runs: p.runs, unordered: p.query.unordered}
	for file, runs := range p.runs {
		if len(runs) > 0 {
			s.heap = append(s.heap, spot{file, 0})
		}
	}
	if !s.unordered {
		for i := len(s.heap)/2 - 1; i >= 0; i-- {
			s.sink(i)
		}
	}
	return s
}

func (s *unitStream) run(at spot) *derived.Run { return &s.runs[at.file][at.run] }

func (s *unitStream) less(a, b spot) bool {
	x, y := s.run(a), s.run(b)
	return cmp.Or(strings.Compare(x.Key, y.Key), cmp.Compare(x.First, y.First), cmp.Compare(a.file, b.file)) < 0
}

func (s *unitStream) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s.heap); child++ {
			if s.less(s.heap[child], s.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		s.heap[i], s.heap[least] = s.heap[least], s.heap[i]
		i = least
	}
}

// take returns the first run and moves on.
func (s *unitStream) take() piece {
	at := s.heap[0]
	r := s.run(at)
	if at.run+1 < len(s.runs[at.file]) {
		s.heap[0].run++
	} else if s.unordered {
		s.heap = s.heap[1:]
	} else {
		s.heap[0] = s.heap[len(s.heap)-1]
		s.heap = s.heap[:len(s.heap)-1]
	}
	if !s.unordered {
		s.sink(0)
	}
	return piece{at.file, r.Start, r.End, r.First, r.Last}
}

// next makes the next unit; false at the end.
func (s *unitStream) next() bool {
	if len(s.heap) == 0 {
		return false
	}
	s.unit.key = s.run(s.heap[0]).Key
	p := s.take()
	s.unit.pieces = append(s.unit.pieces[:0], p)
	for last := p.last; !s.unordered && len(s.heap) > 0; {
		r := s.run(s.heap[0])
		if r.First > last || r.Key != s.unit.key {
			break
		}
		s.unit.pieces = append(s.unit.pieces, s.take())
		last = max(last, r.Last)
	}
	return true
}

// partStream yields the units of one of several parts.
type partStream struct {
	*unitStream
	plan    *Plan
	divider divider
	index   int
}

// part begins a walk over the units of the plan's split.
func (p *Plan) part() *partStream {
	return &partStream{p.stream(), p, divider{total: p.bytes, count: p.query.split.Count}, p.query.split.Index}
}

func (s *partStream) next() bool {
	for s.unitStream.next() {
		if s.divider.count == 1 {
			return true
		}
		switch part := s.divider.part(s.plan.weight(s.unit)); {
		case part == s.index:
			return true
		case part > s.index:
			return false
		}
	}
	return false
}
