package scan

import (
	"sort"

	"contrail/tablecore/internal/predicate"
)

// cut returns the part of a piece whose index values, which ascend, lie in the
// span.
func cut(p piece, values []uint64, span predicate.Span) piece {
	lo := sort.Search(len(values), func(i int) bool { return values[i] >= span.First })
	hi := sort.Search(len(values), func(i int) bool { return values[i] > span.Last })
	if lo >= hi {
		return piece{file: p.file}
	}
	return piece{p.file, p.start + int64(lo), p.start + int64(hi), values[lo], values[hi-1]}
}
