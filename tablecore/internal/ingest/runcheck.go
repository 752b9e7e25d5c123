package ingest

import (
	"slices"

	"contrail/tablecore/internal/interval"
	"contrail/tablecore/tabledef"
)

// runChecker finds, in a run that is full, two rows of one entity in one
// interval, so that a long stream is refused when it is known, and so that a
// run never has many rows of one entity in one interval.
type runChecker struct {
	domain interval.Domain
	unique bool
}

func newRunChecker(cfg Config) *runChecker {
	return &runChecker{cfg.Domain, cfg.Domain.HasIntervals() && cfg.Def.Uniqueness != tabledef.UniqueNone}
}

// run checks the rows of a store, given in the order of their index with their
// ordinals. first is the stream row of the store's first. The error is
// *tableerr.DuplicateInterval with the smallest duplicate of the run.
func (c *runChecker) run(s *store, first int64, ordinals []uint64, rows []uint32) error {
	if !c.unique {
		return nil
	}
	// Of an entity's rows only neighbours can share an interval.
	last := make([]uint32, max(1, s.entities.Len())) // by code: place of its latest row + 1
	ids := make([]uint64, min(len(ordinals), spillBatch))
	lastIDs := make([]uint64, len(last))
	code := uint32(0)
	var found *duplicate
	for from := 0; from < len(ordinals); from += len(ids) {
		part := ordinals[from:min(from+len(ids), len(ordinals))]
		c.domain.IDs(ids[:len(part)], part)
		for i, id := range ids[:len(part)] {
			at := from + i
			if len(s.keys) > 0 {
				code = s.codes.at(rows[at])
			}
			if before := last[code]; before > 0 && lastIDs[code] == id {
				d := &duplicate{key: s.entities.Key(code), ordinal: ordinals[before-1], interval: id,
					rows: [2]int64{first + int64(rows[before-1]), first + int64(rows[at])}}
				if found == nil || d.less(found) {
					found = d
				}
			}
			last[code], lastIDs[code] = uint32(at+1), id
		}
	}
	if found == nil {
		return nil
	}
	slices.Sort(found.rows[:])
	return found.refusal(s.entities.Layout(), c.domain)
}
