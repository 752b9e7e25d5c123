package scan

import (
	"cmp"
	"slices"
	"strings"
)

// piece is a run of consecutive rows of one file that belong to one entity,
// ordered by the index.
type piece struct {
	file        int // index into the plan's files
	start, end  int64
	first, last uint64 // index ordinals of the first and the last row
}

func (p piece) rows() int64 { return p.end - p.start }

// unit is what a sorted scan cannot cut further by the index: one piece, or
// several pieces of one entity whose index ranges overlap and must be merged.
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

// keyed is a piece with the entity it belongs to.
type keyed struct {
	key string
	piece
}

// unitsOf orders pieces by entity and index and gathers those that overlap.
// The units follow one another in the scan's order.
func unitsOf(pieces []keyed) []unit {
	slices.SortFunc(pieces, func(a, b keyed) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.first, b.first), cmp.Compare(a.file, b.file))
	})
	backing := make([]piece, len(pieces))
	var units []unit
	last := uint64(0)
	for i, p := range pieces {
		backing[i] = p.piece
		if n := len(units); n > 0 && units[n-1].key == p.key && p.first <= last {
			u := &units[n-1]
			u.pieces = backing[i-len(u.pieces) : i+1]
			last = max(last, p.last)
			continue
		}
		units = append(units, unit{p.key, backing[i : i+1 : i+1]})
		last = p.last
	}
	return units
}

// split returns part index of count parts of units that are about equal by the
// bytes their rows weigh; weight is the bytes of one row of a file. Every unit
// is in exactly one part, and the parts keep the order.
func split(units []unit, index, count int, weight func(file int) float64) []unit {
	if count <= 1 {
		return units
	}
	total := 0.0
	bytes := make([]float64, len(units))
	for i, u := range units {
		for _, p := range u.pieces {
			bytes[i] += float64(p.rows()) * weight(p.file)
		}
		total += bytes[i]
	}
	lo, hi := total*float64(index)/float64(count), total*float64(index+1)/float64(count)
	// A unit belongs to the part in which its middle lies.
	var part []unit
	before := 0.0
	for i, u := range units {
		middle := before + bytes[i]/2
		before += bytes[i]
		if middle >= lo && (middle < hi || index == count-1) {
			part = append(part, u)
		}
	}
	return part
}
