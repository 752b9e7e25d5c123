package ingest

import "contrail/tablecore/internal/interval"

// idBlock is how many interval ids are computed at once.
const idBlock = 1024

// keepLatest leaves of each entity's rows in one interval the one that came
// last, in place: the append is one to a table that overwrites. ordinals are the
// index ordinals of the rows. Rows of a store stand for their arrival: in one
// that was filled from runs the rows of a later run came later, and a run has
// but one row of an entity in an interval (runChecker).
func keepLatest(domain interval.Domain, p sortedPart, ordinals []uint64) sortedPart {
	var block [idBlock]uint64
	kept := 0
	for i := range p.runs {
		r := &p.runs[i]
		start, last := kept, uint64(0)
		for from := r.start; from < r.end; from += idBlock {
			ids := block[:min(idBlock, r.end-from)]
			domain.IDs(ids, ordinals[from:from+len(ids)])
			for k, id := range ids {
				at := from + k
				switch {
				case kept == start || id != last:
					last = id
					kept++
				case p.rows[at] < p.rows[kept-1]:
					continue
				}
				ordinals[kept-1], p.rows[kept-1] = ordinals[at], p.rows[at]
			}
		}
		r.start, r.end = start, kept
	}
	p.rows = p.rows[:kept]
	return p
}
