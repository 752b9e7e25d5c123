package maintain

import (
	"cmp"
	"slices"
	"sort"

	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// DefaultMergeFiles is how many small files of about one size PlanTiers lets
// gather before it merges them.
const DefaultMergeFiles = 32

// scattered times the files that are merged, all of one class, are so many that
// they are merged wherever they lie.
const scattered = 4

// TierConfig says which small files are merged. The zero value means the
// defaults.
type TierConfig struct {
	// MergeFiles is how many files of one class are merged, at least 2.
	MergeFiles int
	// MaxBytes is how much is rewritten at about the most, at least one group; 0
	// means all.
	MaxBytes int64
}

// PlanTiers plans to merge small files that are neighbours, for a table to which
// more are being added all the time: total rewriting grows with the logarithm of
// the data. Small files have a class, the logarithm of their rows to the base
// MergeFiles. As many of one class, or as many as fill a file, become one of a
// higher class, so a row is rewritten once for each class at most. Smaller files
// between them are taken along. Files that are not small, and those that an
// optimize has cut to a size or by entity, are left alone, however they lie: that
// is for PlanOptimize. It reads and writes nothing.
//
// Neighbours follow each other in the index without a large file between them.
// Where there are many times MergeFiles of a class they need not be, so that
// late rows here and there do not leave small files for ever. Where rows may be
// equal (uniqueness none) neighbours follow each other in the order of their
// commits, and no other file between them overlaps: the later row stays the
// later one.
func PlanTiers(s *snapshot.Snapshot, cfg TierConfig) *Optimize {
	cfg.MergeFiles = max(2, cmp.Or(cfg.MergeFiles, DefaultMergeFiles))
	of := OptimizeConfig{TargetBytes: s.Def.TargetFileBytes(), MaxFiles: DefaultMaxFiles}
	o := &Optimize{base: s, cfg: of, auto: true}
	if s.Layout == nil || len(s.Files) < 2 {
		return o
	}
	p := newTierPlanner(s, cfg, newOptimizePlanner(s, of))
	for class := p.highest; class >= 0; class-- {
		p.merge(class)
	}
	o.groups = p.groups
	o.inLogOrder()
	return o
}

// tierPlanner finds small files to merge.
type tierPlanner struct {
	*optimizePlanner
	cfg     TierConfig
	ordered bool // in the order of the commits, because rows may be equal
	highest int  // class of a small file
	// files are all that the planner goes through: in the order of the commits
	// all of them, otherwise the small ones in the order of the index.
	files []tiered
	// large are, in the order of the index, those that are not small, and lowest
	// for each of them the least end of it and those behind it.
	large  []*snapshot.File
	lowest []uint64

	groups []*group
	bytes  int64
}

// tiered is a file with its class, −1 for one that is not small.
type tiered struct {
	*snapshot.File
	class int
	taken bool
}

func newTierPlanner(s *snapshot.Snapshot, cfg TierConfig, sizes *optimizePlanner) *tierPlanner {
	p := &tierPlanner{optimizePlanner: sizes, cfg: cfg, ordered: s.Def.Uniqueness == tabledef.UniqueNone, highest: -1}
	for _, f := range s.Files {
		class := -1
		if _, asked := f.Add.Tags[tabledef.TagTarget]; !asked && sorted(f) && p.small(f) {
			class = classOf(f.Rows, cfg.MergeFiles)
			p.highest = max(p.highest, class)
		}
		if class >= 0 || p.ordered {
			p.files = append(p.files, tiered{File: f, class: class})
		} else {
			p.large = append(p.large, f)
		}
	}
	if p.ordered {
		return p
	}
	slices.SortStableFunc(p.files, func(a, b tiered) int { return cmp.Compare(a.Min, b.Min) })
	slices.SortFunc(p.large, func(a, b *snapshot.File) int { return cmp.Compare(a.Min, b.Min) })
	p.lowest = make([]uint64, len(p.large))
	least := ^uint64(0)
	for i := len(p.large) - 1; i >= 0; i-- {
		least = min(least, p.large[i].Max)
		p.lowest[i] = least
	}
	return p
}

// classOf is the logarithm of a number of rows.
func classOf(rows int64, base int) int {
	class := 0
	for rows >= int64(base) {
		rows /= int64(base)
		class++
	}
	return class
}

// merge groups the files of a class that are neighbours, with the smaller ones
// between them.
func (p *tierPlanner) merge(class int) {
	anywhere := !p.ordered && p.count(class) >= scattered*p.cfg.MergeFiles
	var run tierRun
	for i := range p.files {
		f := &p.files[i]
		if f.taken || f.class < 0 || f.class > class {
			if p.ordered && run.meets(f.File) {
				p.end(&run)
			}
			continue
		}
		switch {
		case !p.ordered && !anywhere && len(run.files) > 0 && p.between(run.max, f.Min):
			p.end(&run)
		case run.bytes+f.Add.Size > p.target || run.rows+f.Rows > p.maxRows:
			run.full = true
			p.end(&run)
		}
		run.add(f, class)
	}
	p.end(&run)
}

// count counts the files of a class that are in no group.
func (p *tierPlanner) count(class int) (n int) {
	for i := range p.files {
		if p.files[i].class == class && !p.files[i].taken {
			n++
		}
	}
	return n
}

// between says whether a large file lies wholly behind one place in the index
// and before another.
func (p *tierPlanner) between(after, before uint64) bool {
	i := sort.Search(len(p.large), func(i int) bool { return p.large[i].Min > after })
	return i < len(p.large) && p.lowest[i] < before
}

// end makes a group of a run that is worth it, and empties it.
func (p *tierPlanner) end(run *tierRun) {
	worth := run.members >= p.cfg.MergeFiles || run.full && len(run.files) > 1
	if worth && (p.cfg.MaxBytes == 0 || p.bytes < p.cfg.MaxBytes) {
		g := &group{bytes: run.bytes, rows: run.rows, settled: run.full}
		for _, f := range run.files {
			f.taken = true
			g.files = append(g.files, f.File)
		}
		p.groups = append(p.groups, g)
		p.bytes += g.bytes
	}
	*run = tierRun{}
}

// tierRun is some files that may become a group.
type tierRun struct {
	files    []*tiered
	members  int // of the class
	bytes    int64
	rows     int64
	min, max uint64
	full     bool // one more would make it too large for a file
}

func (r *tierRun) add(f *tiered, class int) {
	if len(r.files) == 0 {
		r.min, r.max = f.Min, f.Max
	}
	r.min, r.max = min(r.min, f.Min), max(r.max, f.Max)
	r.files = append(r.files, f)
	r.bytes += f.Add.Size
	r.rows += f.Rows
	if f.class == class {
		r.members++
	}
}

// meets says whether a file overlaps the run in the index.
func (r *tierRun) meets(f *snapshot.File) bool {
	return len(r.files) > 0 && f.Meets(r.min, r.max)
}
