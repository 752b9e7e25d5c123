package ingest

import (
	"fmt"
	"math"
	"slices"

	"contrail/tablecore/internal/interval"
)

// An append is cut into files by ranges of the index, at the starts of
// intervals (design/performance.md says why). A range is one file up to
// maxFileRows and maxFileBytes; beyond that it is cut into pieces of about
// fileRows or fileBytes.
const (
	fileRows     = 1_250_000
	maxFileRows  = 2_000_000
	fileBytes    = 128 << 20
	maxFileBytes = 192 << 20
	sampleRows   = 1 << 16
	maxPieces    = 1 << 15 // of one cut; a piece that is still too large is cut again
)

// segment is a part of one chunk: all rows of it, or those at the given
// positions, ascending.
type segment struct {
	chunk int
	all   bool
	rows  []uint16
}

// part is the rows of one range of the index, in the order of their arrival.
type part struct {
	segments []segment
	rows     int
	min, max uint64 // ordinals
}

// planner cuts a store into parts.
type planner struct {
	s        *store
	domain   interval.Domain
	rowBytes int64
	limits   limits
	byEntity bool // rows are cut by entity only
}

// limits are the sizes of files; tests make them small.
type limits struct {
	rows, maxRows, bytes, maxBytes int64
	runRows                        int64 // rows after which a test wants a run, 0 for no such limit
	mergeBytes                     int64 // memory that a test lets a merge have, 0 for what there is
	blockRows                      int64 // rows that a test merges at once, 0 for what suits them
}

// Shape says how rows are cut into files. The zero value is what suits an append.
type Shape struct {
	// FileRows is about how many rows a file has, 0 for what the rows' size in
	// memory suggests.
	FileRows int64
	// ByEntity gives each entity files of its own. More of them than MaxFiles
	// altogether are refused, *TooManyFilesError, unless it is 0.
	ByEntity bool
	MaxFiles int
}

// limits returns the sizes of files.
func (s Shape) limits() limits {
	if s.FileRows == 0 {
		return defaultLimits
	}
	const any = 1 << 62
	rows := min(s.FileRows, any/2)
	return limits{rows: rows, maxRows: rows + rows/2, bytes: any, maxBytes: any}
}

// TooManyFilesError says that the rows would make more files than Shape allows.
type TooManyFilesError struct{ Files, Limit int }

func (e *TooManyFilesError) Error() string {
	return fmt.Sprintf("the rows make %d files or more, more than %d", e.Files, e.Limit)
}

// check refuses more files of one entity than allowed.
func (s Shape) check(files int) error {
	if s.ByEntity && s.MaxFiles > 0 && files > s.MaxFiles {
		return &TooManyFilesError{Files: files, Limit: s.MaxFiles}
	}
	return nil
}

var defaultLimits = limits{rows: fileRows, maxRows: maxFileRows, bytes: fileBytes, maxBytes: maxFileBytes}

// plan returns the parts in the order of their ranges.
func (p *planner) plan() []part {
	if p.byEntity {
		return []part{p.s.whole()}
	}
	return p.split(nil, p.s.whole())
}

// whole returns all rows of a store.
func (s *store) whole() part {
	whole := part{rows: int(s.rows), min: math.MaxUint64}
	for i, c := range s.chunks {
		whole.segments = append(whole.segments, segment{chunk: i, all: true})
		whole.min, whole.max = min(whole.min, c.min), max(whole.max, c.max)
	}
	return whole
}

// split appends a part's files to done. A range of one interval stays whole,
// however large; it is cut by entity later.
func (p *planner) split(done []part, whole part) []part {
	n := p.pieces(int64(whole.rows))
	if n == 1 || p.domain.ID(whole.min) == p.domain.ID(whole.max) {
		return append(done, whole)
	}
	for _, piece := range p.cut(whole, p.cuts(whole, n)) {
		if piece.rows > 0 {
			done = p.split(done, piece)
		}
	}
	return done
}

// pieces returns how many files rows are worth, an even number beyond one, so
// that two writers end together.
func (p *planner) pieces(rows int64) int {
	bytes := rows * p.rowBytes
	if rows <= p.limits.maxRows && bytes <= p.limits.maxBytes {
		return 1
	}
	n := max((rows+p.limits.rows-1)/p.limits.rows, (bytes+p.limits.bytes-1)/p.limits.bytes, 2)
	return int(min(n+n%2, maxPieces))
}

// cuts returns the ordinals at which a part is cut into about n pieces of
// equal rows: ascending starts of intervals, each above the part's first
// interval. The part spans at least two intervals, and there is always a cut.
func (p *planner) cuts(whole part, n int) []uint64 {
	return p.cutsOf(p.sample(whole), whole.min, n)
}

// cutsOf chooses cuts by a sample, which it sorts, of rows whose first ordinal
// is low.
func (p *planner) cutsOf(sample []uint64, low uint64, n int) []uint64 {
	slices.Sort(sample)
	var cuts []uint64
	last := p.start(low)
	for i := 1; i < n; i++ {
		if c := p.start(sample[i*len(sample)/n]); c > last {
			cuts = append(cuts, c)
			last = c
		}
	}
	if cuts == nil { // most rows lie in the first interval: it becomes a piece of its own
		_, end := p.domain.Bounds(p.domain.ID(low))
		cuts = []uint64{end + 1}
	}
	return cuts
}

// start returns the first ordinal of the interval that holds one.
func (p *planner) start(ordinal uint64) uint64 {
	first, _ := p.domain.Bounds(p.domain.ID(ordinal))
	return first
}

// sample returns ordinals taken at equal steps over a part.
func (p *planner) sample(whole part) []uint64 {
	step := max(1, whole.rows/sampleRows)
	sample := make([]uint64, 0, whole.rows/step+1)
	skip := 0
	for _, seg := range whole.segments {
		values := p.s.index.values.chunks[seg.chunk]
		n := p.length(seg)
		i := skip
		for ; i < n; i += step {
			sample = append(sample, values[seg.position(i)]^p.s.flip)
		}
		skip = i - n
	}
	return sample
}

// length returns the number of rows of a segment.
func (p *planner) length(seg segment) int {
	if seg.all {
		return p.s.chunkLen(seg.chunk)
	}
	return len(seg.rows)
}

// position returns the place in its chunk of a segment's i-th row.
func (s segment) position(i int) int {
	if s.all {
		return i
	}
	return int(s.rows[i])
}

// cut distributes a part's rows among the ranges between the cuts.
func (p *planner) cut(whole part, cuts []uint64) []part {
	pieces := make([]part, len(cuts)+1)
	for i := range pieces {
		pieces[i].min = math.MaxUint64
	}
	ranges := make([]uint16, chunkRows)
	counts := make([]int, len(pieces))
	for _, seg := range whole.segments {
		c := p.s.chunks[seg.chunk]
		if first := rangeOf(cuts, c.min); seg.all && first == rangeOf(cuts, c.max) {
			pieces[first].take(seg, p.length(seg), c.min, c.max)
			continue
		}
		p.cutSegment(pieces, seg, cuts, ranges, counts)
	}
	return pieces
}

// take adds a segment whose ordinals lie within the given bounds.
func (t *part) take(seg segment, rows int, low, high uint64) {
	t.segments = append(t.segments, seg)
	t.rows += rows
	t.min, t.max = min(t.min, low), max(t.max, high)
}

// cutSegment cuts one segment. ranges and counts are working space.
func (p *planner) cutSegment(pieces []part, seg segment, cuts []uint64, ranges []uint16, counts []int) {
	values := p.s.index.values.chunks[seg.chunk]
	n := p.length(seg)
	clear(counts)
	for i := range n {
		v := values[seg.position(i)] ^ p.s.flip
		r := rangeOf(cuts, v)
		ranges[i] = uint16(r)
		counts[r]++
		pieces[r].min, pieces[r].max = min(pieces[r].min, v), max(pieces[r].max, v)
	}
	lists := make([][]uint16, len(pieces))
	for r, count := range counts {
		if count > 0 {
			lists[r] = make([]uint16, 0, count)
		}
	}
	for i := range n {
		r := ranges[i]
		lists[r] = append(lists[r], uint16(seg.position(i)))
	}
	for r, rows := range lists {
		if len(rows) > 0 {
			pieces[r].take(segment{chunk: seg.chunk, rows: rows}, len(rows), pieces[r].min, pieces[r].max)
		}
	}
}

// rangeOf returns which range between the cuts an ordinal lies in.
func rangeOf(cuts []uint64, ordinal uint64) int {
	if len(cuts) > 16 {
		at, found := slices.BinarySearch(cuts, ordinal)
		if found {
			at++
		}
		return at
	}
	r := 0
	for _, c := range cuts {
		if ordinal >= c {
			r++
		}
	}
	return r
}
