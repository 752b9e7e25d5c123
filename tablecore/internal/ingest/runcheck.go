package ingest

import (
	"math"
	"slices"

	"contrail/tablecore/internal/interval"
	"contrail/tablecore/tabledef"
)

// runChecker finds, in a run that is full, two rows of one entity in one
// interval, so that a long stream is refused when it is known, or so that the
// later row replaces the other, and in any case so that a run never has many
// rows of one entity in one interval.
type runChecker struct {
	domain interval.Domain
	unique bool
	latest bool // the later row replaces the other
}

func newRunChecker(cfg Config) *runChecker {
	return &runChecker{cfg.Domain, cfg.Domain.HasIntervals() && cfg.Def.Uniqueness != tabledef.UniqueNone, cfg.Def.Uniqueness == tabledef.UniqueOverwrite}
}

// run checks the rows of a store, given in the order of their index with their
// ordinals. first is the stream row of the store's first. It returns how many
// rows are left, in front of the others; only where a later row replaces an
// earlier one it is fewer than came. The error is *tableerr.DuplicateInterval
// with the smallest duplicate of the run.
func (c *runChecker) run(s *store, first int64, ordinals []uint64, rows []uint32) (int, error) {
	switch {
	case !c.unique:
		return len(rows), nil
	case c.latest:
		c.repeats(s, ordinals, rows, dropEarlier(rows))
		return closeUp(ordinals, rows), nil
	}
	var found *duplicate
	c.repeats(s, ordinals, rows, func(code uint32, id uint64, before, at int) int {
		d := &duplicate{key: s.entities.Key(code), ordinal: ordinals[before], interval: id, rows: [2]int64{first + int64(rows[before]), first + int64(rows[at])}}
		if found == nil || d.less(found) {
			found = d
		}
		return at
	})
	if found == nil {
		return len(rows), nil
	}
	slices.Sort(found.rows[:])
	return 0, found.refusal(s.entities.Layout(), c.domain)
}

// repeats calls found with the places of each two rows of one entity in one
// interval. Of the two, found returns the one to be compared with the next.
func (c *runChecker) repeats(s *store, ordinals []uint64, rows []uint32, found func(code uint32, id uint64, before, at int) int) {
	// Of an entity's rows only neighbours can share an interval.
	last := make([]uint32, max(1, s.entities.Len())) // by code: place of its latest row + 1
	ids := make([]uint64, min(len(ordinals), spillBatch))
	lastIDs := make([]uint64, len(last))
	code := uint32(0)
	for from := 0; from < len(ordinals); from += len(ids) {
		part := ordinals[from:min(from+len(ids), len(ordinals))]
		c.domain.IDs(ids[:len(part)], part)
		for i, id := range ids[:len(part)] {
			at := from + i
			if len(s.keys) > 0 {
				code = s.codes.at(rows[at])
			}
			if before := last[code]; before > 0 && lastIDs[code] == id {
				at = found(code, id, int(before-1), at)
			}
			last[code], lastIDs[code] = uint32(at+1), id
		}
	}
}

// dropped stands for a row that another has replaced. No store has so many.
const dropped = math.MaxUint32

// dropEarlier returns what repeats is to do where the later row stays.
func dropEarlier(rows []uint32) func(code uint32, id uint64, before, at int) int {
	return func(_ uint32, _ uint64, before, at int) int {
		if rows[before] > rows[at] {
			before, at = at, before
		}
		rows[before] = dropped
		return at
	}
}

// closeUp moves the rows that are left to the front and returns their number.
func closeUp(ordinals []uint64, rows []uint32) int {
	kept := 0
	for i, row := range rows {
		if row != dropped {
			ordinals[kept], rows[kept] = ordinals[i], row
			kept++
		}
	}
	return kept
}
