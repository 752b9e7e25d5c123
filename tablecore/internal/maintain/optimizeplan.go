package maintain

import (
	"cmp"
	"slices"
	"strconv"

	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// optimizePlanner finds the files to rewrite.
type optimizePlanner struct {
	s       *snapshot.Snapshot
	target  int64
	maxRows int64
	mark    string // the tag of files that were cut for the same target
}

func newOptimizePlanner(s *snapshot.Snapshot, cfg OptimizeConfig) *optimizePlanner {
	return &optimizePlanner{s: s, target: cfg.TargetBytes, maxRows: maxFileRows(cfg.TargetBytes), mark: strconv.FormatInt(cfg.TargetBytes, 10)}
}

// cluster is some files whose ranges of the index overlap, and which no other
// file overlaps.
type cluster struct {
	files    []*snapshot.File
	bytes    int64
	rows     int64 // −1 when the log does not say
	min, max uint64
}

func (c *cluster) add(f *snapshot.File) {
	c.files = append(c.files, f)
	c.bytes += f.Add.Size
	if f.Rows < 0 || c.rows < 0 {
		c.rows = -1
	} else {
		c.rows += f.Rows
	}
	c.max = max(c.max, f.Max)
}

func (p *optimizePlanner) all() []*snapshot.File { return slices.Clone(p.s.Files) }

// byIndex plans for files that hold any entities. It changes the order of
// files.
func (p *optimizePlanner) byIndex(files []*snapshot.File) []*group {
	var groups []*group
	open := &group{}
	end := func(full bool) {
		if len(open.files) > 1 || len(open.files) == 1 && !p.sound(open.files[0]) {
			open.settled = full || open.bytes >= p.target/2
			groups = append(groups, open)
		}
		open = &group{}
	}
	for _, c := range clusters(files) {
		rewrite := p.mustRewrite(c)
		switch {
		case !rewrite && !p.small(c.files[0]):
			end(false)
			continue
		case len(open.files) > 0 && (open.bytes+c.bytes > p.target || open.rows+max(0, c.rows) > p.maxRows):
			end(true)
		}
		open.take(c)
		if open.bytes >= p.target || open.rows >= p.maxRows {
			end(true)
		}
	}
	end(false)
	return groups
}

func (g *group) take(c *cluster) {
	g.files = append(g.files, c.files...)
	g.bytes += c.bytes
	g.rows += max(0, c.rows)
}

// clusters puts files that overlap together, in the order of the index.
func clusters(files []*snapshot.File) []*cluster {
	slices.SortStableFunc(files, func(a, b *snapshot.File) int { return cmp.Compare(a.Min, b.Min) })
	var all []*cluster
	for i, f := range files {
		if i == 0 || f.Min > all[len(all)-1].max {
			all = append(all, &cluster{min: f.Min})
		}
		all[len(all)-1].add(f)
	}
	return all
}

// mustRewrite says whether a cluster is not as it should be, but for being
// small.
func (p *optimizePlanner) mustRewrite(c *cluster) bool {
	if slices.ContainsFunc(c.files, func(f *snapshot.File) bool { return !p.sound(f) }) {
		return true
	}
	return len(c.files) > 1 && !p.apart(c)
}

// sound says whether a file by itself needs no rewriting, but for being small.
func (p *optimizePlanner) sound(f *snapshot.File) bool {
	return sorted(f) && (!p.large(f) || p.cut(f))
}

// sorted says whether a file is in order and has all that Contrail says of its
// own files.
func sorted(f *snapshot.File) bool {
	return f.Add.Tags[tabledef.TagSorted] == "true" && f.Bounded && f.Rows >= 0
}

// cut says whether a file was cut for the target: it is as it can be, whatever
// its size.
func (p *optimizePlanner) cut(f *snapshot.File) bool { return f.Add.Tags[tabledef.TagTarget] == p.mark }

func (p *optimizePlanner) small(f *snapshot.File) bool {
	return !p.cut(f) && f.Add.Size < p.target/smallShare && f.Rows < p.maxRows/2
}

// large says whether a file ought to be several.
func (p *optimizePlanner) large(f *snapshot.File) bool {
	if f.Single && p.s.Domain.ID(f.Min) == p.s.Domain.ID(f.Max) {
		return false // it cannot be cut
	}
	return f.Add.Size > largeShare*p.target || f.Rows > largeShare*p.maxRows
}

// apart says whether files overlap in the index although they are as they should
// be: they have different entities and are not small, or were made from one
// interval that is too large for a file.
func (p *optimizePlanner) apart(c *cluster) bool {
	if p.s.Domain.ID(c.min) == p.s.Domain.ID(c.max) && !slices.ContainsFunc(c.files, func(f *snapshot.File) bool { return !p.cut(f) }) {
		return true
	}
	if slices.ContainsFunc(c.files, func(f *snapshot.File) bool { return !f.Single || p.small(f) }) {
		return false
	}
	return !slices.ContainsFunc(p.entities(c.files), func(own []*snapshot.File) bool { return len(clusters(own)) < len(own) })
}

// entities divides files of one entity each by their entities.
func (p *optimizePlanner) entities(files []*snapshot.File) [][]*snapshot.File {
	places := map[string]int{}
	var all [][]*snapshot.File
	for _, f := range files {
		at, known := places[f.Entity]
		if !known {
			at = len(all)
			places[f.Entity] = at
			all = append(all, nil)
		}
		all[at] = append(all[at], f)
	}
	return all
}

// byEntity plans for files of one entity each. What has several entities, or is
// not in order, is divided together with the files that its rows may have to be
// joined with.
func (p *optimizePlanner) byEntity() []*group {
	mixed := &group{byEntity: true}
	low, high := ^uint64(0), uint64(0)
	right := p.all()
	take := func(which func(f *snapshot.File) bool) {
		right = slices.DeleteFunc(right, func(f *snapshot.File) bool {
			taken := which(f)
			if taken {
				mixed.take(&cluster{files: []*snapshot.File{f}, bytes: f.Add.Size, rows: f.Rows})
				low, high = min(low, f.Min), max(high, f.Max)
			}
			return taken
		})
	}
	take(func(f *snapshot.File) bool { return !f.Single || !sorted(f) })
	var groups []*group
	if len(mixed.files) > 0 {
		for before := -1; before < len(mixed.files); {
			before = len(mixed.files)
			take(func(f *snapshot.File) bool { return p.small(f) || f.Meets(low, high) })
		}
		groups = append(groups, mixed)
	}
	for _, own := range p.entities(right) {
		groups = append(groups, p.byIndex(own)...)
	}
	return groups
}
