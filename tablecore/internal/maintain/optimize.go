package maintain

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// OpOptimize is the operation of an optimize, in the log and the history.
const OpOptimize = "optimize"

// DefaultMaxFiles is how many files of one entity each an optimize makes at most
// where it is not told.
const DefaultMaxFiles = 10_000

// OptimizeConfig says what the files of a table are to be like. The zero value
// means the defaults.
type OptimizeConfig struct {
	// TargetBytes is the size that files aim at; 0 means the table's own.
	TargetBytes int64
	// ByEntity asks for files of one entity each. It means nothing in a table
	// without entity columns.
	ByEntity bool
	// MaxFiles is how many files ByEntity may make; 0 means DefaultMaxFiles.
	MaxFiles int
}

// Optimize is the rewriting of some live files into others that hold the same
// rows, cut by ranges of the index, sorted by (entity, index) inside and near
// the target size. It is a list of groups of files. Each group becomes files of
// its own and is given up by itself when another writer replaces one of its
// files.
//
// Its steps are PlanOptimize, Write, Revalidate and Commit (both again after a
// lost race) and Discard. It belongs to one goroutine at a time.
type Optimize struct {
	base   *snapshot.Snapshot
	cfg    OptimizeConfig
	auto   bool // nobody asked for it
	groups []*group
	lost   map[*group]bool // those that the last commit left out
}

// group is some files that are rewritten together.
type group struct {
	files []*snapshot.File // in the order of the snapshot
	bytes int64
	rows  int64 // −1 when the log does not say
	// settled says that files cut from it are not to be joined with others: it
	// is not small.
	settled  bool
	byEntity bool
	out      []newfile.File
}

// Counts tell what an optimize takes and makes.
type Counts struct {
	FilesIn, FilesOut int
	BytesIn, BytesOut int64
	Rows              int64
	Entities          int
}

// Sizes that decide which files are rewritten.
const (
	// smallShare of the target is what makes a file small: it is joined with
	// its neighbours. Well below the target, so that files which come out
	// smaller than their sources were are left alone.
	smallShare = 4
	// largeShare times the target makes a file too large.
	largeShare = 2
	// targetRows is how many rows make a file of the default target size full,
	// however small it is: it is sorted in memory (performance.md).
	targetRows = 1_250_000
)

// PlanOptimize plans to rewrite the files of a version that are small, too
// large, not sorted, or overlap each other in the index. It reads and writes
// nothing. A plan of no groups means that the table is as it should be.
func PlanOptimize(s *snapshot.Snapshot, cfg OptimizeConfig) *Optimize {
	cfg.TargetBytes = cmp.Or(cfg.TargetBytes, s.Def.TargetFileBytes())
	cfg.MaxFiles = cmp.Or(cfg.MaxFiles, DefaultMaxFiles)
	if len(s.Def.EntityColumns) == 0 {
		cfg.ByEntity = false
	}
	o := &Optimize{base: s, cfg: cfg}
	if s.Layout == nil {
		return o // no schema, so there is nothing to sort by
	}
	p := newOptimizePlanner(s, cfg)
	if cfg.ByEntity {
		o.groups = p.byEntity()
	} else {
		o.groups = p.byIndex(p.all())
	}
	o.inLogOrder()
	return o
}

// inLogOrder puts the files of each group into the order of the snapshot, so that
// later rows stay behind earlier ones.
func (o *Optimize) inLogOrder() {
	place := make(map[*snapshot.File]int, len(o.base.Files))
	for i, f := range o.base.Files {
		place[f] = i
	}
	for _, g := range o.groups {
		slices.SortFunc(g.files, func(a, b *snapshot.File) int { return cmp.Compare(place[a], place[b]) })
	}
}

// Empty says that there is nothing to rewrite.
func (o *Optimize) Empty() bool { return len(o.groups) == 0 }

// Base is the snapshot that the plan was made for.
func (o *Optimize) Base() *snapshot.Snapshot { return o.base }

// Planned tells what is to be rewritten. What comes out is estimated; Entities
// is 0.
func (o *Optimize) Planned() Counts {
	var c Counts
	for _, g := range o.groups {
		c.add(g)
		c.BytesOut += g.bytes
		c.FilesOut += o.filesOut(g)
	}
	return c
}

// filesOut estimates how many files a group makes, as far as sizes tell.
func (o *Optimize) filesOut(g *group) int {
	return max(1, int((g.bytes+o.cfg.TargetBytes-1)/o.cfg.TargetBytes), int(g.rows/o.maxRows()))
}

// add counts what goes into a group.
func (c *Counts) add(g *group) {
	c.FilesIn += len(g.files)
	c.BytesIn += g.bytes
	c.Rows += max(0, g.rows)
}

// maxRows is about how many rows a file has at most.
func (o *Optimize) maxRows() int64 { return maxFileRows(o.cfg.TargetBytes) }

// maxFileRows is how many rows make a file full that aims at a size: more than
// targetRows only where the target is above the default.
func maxFileRows(target int64) int64 {
	times := float64(target) / float64(tabledef.DefaultTargetFileBytes)
	return int64(min(float64(targetRows)*max(1, times), math.MaxInt64/4))
}

// Foresee is Planned with the entities of the files that are to be rewritten. It
// reads what is known of them, and their keys where nothing is. divided is how
// many files those with several entities make at least, 0 unless each file is to
// have one, which MaxFiles limits.
func (o *Optimize) Foresee(ctx context.Context, files *filecache.Files) (c Counts, divided int, err error) {
	c = o.Planned()
	all := map[string]struct{}{}
	for _, g := range o.groups {
		own := map[string]struct{}{}
		for _, f := range g.files {
			if err := addEntities(ctx, own, files, o.base, f); err != nil {
				return Counts{}, 0, err
			}
		}
		maps.Copy(all, own)
		if g.byEntity {
			divided = len(own)
			c.FilesOut += max(0, divided-o.filesOut(g))
		}
	}
	c.Entities = len(all)
	return c, divided, nil
}

// addEntities adds the keys of a file's entities.
func addEntities(ctx context.Context, keys map[string]struct{}, files *filecache.Files, s *snapshot.Snapshot, f *snapshot.File) error {
	index, err := files.Index(ctx, s, f)
	if err != nil {
		return err
	}
	for _, r := range index.Directory {
		keys[r.Key] = struct{}{}
	}
	if index.Directory == nil && index.Coverage != nil {
		for i := range index.Coverage.Entities() {
			keys[index.Coverage.Key(i)] = struct{}{}
		}
	}
	return nil
}

// MaxFiles is how many files those with several entities may make.
func (o *Optimize) MaxFiles() int { return o.cfg.MaxFiles }
