package update

import (
	"errors"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/internal/datafile"
)

// replacer makes the new values of the addressed rows of one file.
type replacer struct {
	spool   *spool
	matches []match // ascending by the file's rows
}

// batchTarget is about how many bytes of new values one batch may have.
const batchTarget = 16 << 20

// replaced counts the addressed rows of some.
func (r *replacer) replaced(rows datafile.RowRange) int64 {
	return int64(len(r.within(rows)))
}

// replace returns the chosen columns of rows, or of the first of them where more
// would take too much memory. old are their present values, nil where all rows
// are addressed.
func (r *replacer) replace(rows datafile.RowRange, old []arrow.Array) ([]arrow.Array, error) {
	addressed := r.within(rows)
	bytes := int64(0)
	for i, m := range addressed {
		b := r.spool.blockOf(m.source)
		if bytes += b.bytes / b.rows; bytes > batchTarget && i > 0 {
			rows.End, addressed = int64(m.row), addressed[:i]
			break
		}
	}
	for {
		columns, err := r.columns(rows, old, addressed)
		n := rows.End - rows.Start
		if !errors.Is(err, assemble.ErrTooLarge) || n == 1 {
			return columns, err
		}
		rows.End = rows.Start + n/2
		addressed = r.within(rows)
	}
}

// within returns the matches of some rows of the file.
func (r *replacer) within(rows datafile.RowRange) []match {
	start := sort.Search(len(r.matches), func(i int) bool { return int64(r.matches[i].row) >= rows.Start })
	n := sort.Search(len(r.matches)-start, func(i int) bool { return int64(r.matches[start+i].row) >= rows.End })
	return r.matches[start : start+n]
}

// columns puts the values of addressed rows in the place of old ones, and leaves
// the other rows as they are.
func (r *replacer) columns(rows datafile.RowRange, old []arrow.Array, addressed []match) ([]arrow.Array, error) {
	fresh, err := r.spool.gather(addressed)
	if err != nil {
		return nil, err
	}
	defer fresh.release()
	runs := mixed(rows, addressed, fresh)
	columns := make([]arrow.Array, 0, r.spool.schema.NumFields())
	sources := make([]arrow.Array, len(fresh.batches), len(fresh.batches)+1)
	if old != nil {
		sources = sources[:cap(sources)]
	}
	for i := range r.spool.schema.NumFields() {
		for k, b := range fresh.batches {
			sources[k] = b.Column(i)
		}
		if old != nil {
			sources[len(fresh.batches)] = old[i]
		}
		column, err := assemble.Array(r.spool.mem, sources, runs)
		if err != nil {
			for _, c := range columns {
				c.Release()
			}
			return nil, err
		}
		columns = append(columns, column)
	}
	return columns, nil
}

// mixed returns where the values of rows come from: those of addressed ones from
// the gathered batches, those of the others from the source after them.
func mixed(rows datafile.RowRange, addressed []match, fresh *gathered) []assemble.Run {
	runs := make([]assemble.Run, 0, 2*len(addressed)+1)
	kept := rows.Start // next old row
	keep := func(end int64) {
		if end > kept {
			runs = append(runs, assemble.Run{Source: len(fresh.batches), Start: int(kept - rows.Start), Len: int(end - kept)})
		}
	}
	for i, m := range addressed {
		keep(int64(m.row))
		at := fresh.places[i]
		if n := len(runs); n > 0 && runs[n-1].Source == at.batch && runs[n-1].Start+runs[n-1].Len == at.row {
			runs[n-1].Len++
		} else {
			runs = append(runs, assemble.Run{Source: at.batch, Start: at.row, Len: 1})
		}
		kept = int64(m.row) + 1
	}
	keep(rows.End)
	return runs
}

// blockOf returns the block that holds a row of the source.
func (s *spool) blockOf(row uint32) *block { return &s.blocks[s.blockAt(row)] }

func (s *spool) blockAt(row uint32) int {
	return sort.Search(len(s.blocks), func(i int) bool { return s.blocks[i].first > int64(row) }) - 1
}

// gathered are rows of the source in memory.
type gathered struct {
	batches []arrow.RecordBatch
	places  []place // of the rows asked for, in their order
}

// place is where a row lies in gathered batches.
type place struct{ batch, row int }

func (g *gathered) release() {
	for _, b := range g.batches {
		b.Release()
	}
}

// gather brings rows of the source into memory. Of a block on disk most rows of
// which nobody wants only the others stay there.
func (s *spool) gather(wanted []match) (*gathered, error) {
	g := &gathered{places: make([]place, len(wanted))}
	order := make([]int, len(wanted))
	for i := range order {
		order[i] = i
	}
	bySource := func(a, b int) int { return int(int64(wanted[a].source) - int64(wanted[b].source)) }
	if !slices.IsSortedFunc(order, bySource) {
		slices.SortFunc(order, bySource)
	}
	for len(order) > 0 {
		b := s.blockOf(wanted[order[0]].source)
		n := sort.Search(len(order), func(i int) bool { return int64(wanted[order[i]].source) >= b.first+b.rows })
		if err := s.gatherBlock(g, b, wanted, order[:n]); err != nil {
			g.release()
			return nil, err
		}
		order = order[n:]
	}
	return g, nil
}

// gatherBlock adds the wanted rows of a block, which order lists.
func (s *spool) gatherBlock(g *gathered, b *block, wanted []match, order []int) error {
	batch, err := b.load()
	if err != nil {
		return err
	}
	at := len(g.batches)
	if b.batch != nil || int64(len(order)) >= b.rows/2 {
		g.batches = append(g.batches, batch)
		for _, i := range order {
			g.places[i] = place{at, int(int64(wanted[i].source) - b.first)}
		}
		return nil
	}
	defer batch.Release()
	rows := make([]uint32, len(order))
	for k, i := range order {
		rows[k] = uint32(int64(wanted[i].source) - b.first)
		g.places[i] = place{at, k}
	}
	some, err := s.assemble([]arrow.RecordBatch{batch}, runsOf(rows, []int64{0, b.rows}))
	if err == nil {
		g.batches = append(g.batches, some)
	}
	return err
}
