package scan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/snapshot"
)

// depth is the greatest number of files that the scan reads side by side: those
// that it has begun and not finished.
func (p *Plan) depth() int {
	if p.query.unordered {
		return 1
	}
	var starts, ends []*derived.Run
	for _, runs := range p.runs {
		if len(runs) > 0 {
			starts, ends = append(starts, &runs[0]), append(ends, &runs[len(runs)-1])
		}
	}
	slices.SortFunc(starts, func(a, b *derived.Run) int { return compareAt(a.Key, a.First, b.Key, b.First) })
	slices.SortFunc(ends, func(a, b *derived.Run) int { return compareAt(a.Key, a.Last, b.Key, b.Last) })
	depth, open := 0, 0
	for _, s := range starts {
		for ; compareAt(ends[0].Key, ends[0].Last, s.Key, s.First) < 0; ends = ends[1:] {
			open--
		}
		open++
		depth = max(depth, open)
	}
	return depth
}

func compareAt(keyA string, a uint64, keyB string, b uint64) int {
	return cmp.Or(strings.Compare(keyA, keyB), cmp.Compare(a, b))
}

// rowWidth estimates the memory a decoded row of the columns takes.
func (p *Plan) rowWidth(columns []string) int64 {
	stored := 0.0
	for i := range p.files {
		stored = max(stored, p.rowBytes(i))
	}
	return p.widthOf(columns, stored)
}

// widthOf is rowWidth for rows of so many bytes on disk.
func (p *Plan) widthOf(columns []string, stored float64) int64 {
	const textBytes = 16
	width := int64(8) // for the ordinal of a row that is merged
	for _, f := range snapshot.StorageFields(p.snap.Def, columns) {
		if t, ok := f.Type.(arrow.FixedWidthDataType); ok {
			width += int64(t.BitWidth()+7) / 8
		} else {
			width += textBytes
		}
	}
	return max(width, int64(stored))
}
