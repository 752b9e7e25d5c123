package ingest

import (
	"context"
	"strings"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/internal/parallel"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// outFile is the rows of one file in their order, with what is known of them
// before they are written.
type outFile struct {
	rows     []uint32 // stream rows
	runs     []run    // positions count from the file's first row
	min, max uint64   // ordinals
	index    derived.FileIndex
}

// preparer sorts parts and derives what their rows cover.
type preparer struct {
	sorter
	domain interval.Domain
	limits limits
	shape  Shape
	unique bool       // a second row in an interval is refused
	latest bool       // of an entity's rows in an interval the last to come stays
	taken  [][]uint32 // memory of the heap, one a part
}

func newPreparer(s *store, cfg Config, pool *recycler) *preparer {
	p := &preparer{sorter: sorter{s: s, pool: pool}, domain: cfg.Domain, limits: cfg.limits, shape: cfg.Shape,
		unique: cfg.Def.Uniqueness == tabledef.UniqueReject, latest: cfg.Def.Uniqueness == tabledef.UniqueOverwrite}
	if len(s.keys) > 0 {
		p.order = s.entities.Order()
	}
	return p
}

// free returns the memory of the files' rows.
func (o *preparer) free() {
	for _, rows := range o.taken {
		give(o.s.heap, rows)
	}
}

// prepareAll sorts all parts, with memory that store.add has seen to, and
// returns their files. A duplicate anywhere is the smallest one by (entity,
// index) of all parts, so that the same batches give the same answer.
func (o *preparer) prepareAll(ctx context.Context, parts []part) ([]outFile, error) {
	files := make([][]outFile, len(parts))
	found := make([]*duplicate, len(parts))
	o.taken = make([][]uint32, len(parts))
	err := parallel.Each(ctx, len(parts), writers, func(_ context.Context, i int) error {
		var err error
		files[i], found[i], err = o.prepare(parts[i], &o.taken[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	var worst *duplicate
	for _, d := range found {
		if d != nil && (worst == nil || d.less(worst)) {
			worst = d
		}
	}
	if worst != nil {
		return nil, worst.refusal(o.s.entities.Layout(), o.domain)
	}
	var all []outFile
	for _, some := range files {
		all = append(all, some...)
	}
	return all, nil
}

// prepare sorts a part and cuts it into files. taken receives the memory that
// the files' rows lie in.
func (o *preparer) prepare(p part, taken *[]uint32) ([]outFile, *duplicate, error) {
	space := o.pool.Allocate(8 * p.rows)
	defer o.pool.Free(space)
	values := view[uint64](space)
	sorted := o.arrange(p, values)
	*taken = sorted.rows
	if o.latest {
		sorted = keepLatest(o.domain, sorted, values)
	}
	var found *duplicate
	var files []outFile
	if o.shape.ByEntity {
		files = o.fileByEntity(sorted, values)
	} else {
		files = o.cutByEntity(sorted)
	}
	for i := range files {
		n := len(files[i].rows)
		d, err := o.describe(&files[i], values[:n])
		if err != nil {
			return nil, nil, err
		}
		if found == nil { // files ascend by entity
			found = d
		}
		values = values[n:]
	}
	return files, found, nil
}

// cutByEntity makes one file of a part, or several where it is one interval
// that holds too many rows: then it is cut between entities.
func (o *preparer) cutByEntity(p sortedPart) []outFile {
	if int64(len(p.rows)) <= o.limits.maxRows {
		return []outFile{{rows: p.rows, runs: p.runs}}
	}
	var files []outFile
	start, first := 0, 0
	for i, r := range p.runs {
		if last := i == len(p.runs)-1; !last && int64(r.end-start) < o.limits.rows {
			continue
		}
		runs := p.runs[first : i+1]
		for j := range runs {
			runs[j].start -= start
			runs[j].end -= start
		}
		files = append(files, outFile{rows: p.rows[start:r.end], runs: runs})
		start, first = r.end, i+1
	}
	return files
}

// fileByEntity makes files of one entity each from a part and its ordinals. One
// with too many rows has several, cut at the starts of intervals.
func (o *preparer) fileByEntity(p sortedPart, ordinals []uint64) []outFile {
	var files []outFile
	for _, r := range p.runs {
		for start := r.start; start < r.end; {
			end := r.end
			if int64(end-start) > o.limits.maxRows {
				end = start + int(o.limits.rows)
				for end < r.end && o.domain.ID(ordinals[end]) == o.domain.ID(ordinals[end-1]) {
					end++
				}
			}
			files = append(files, outFile{rows: p.rows[start:end], runs: []run{{r.entity, 0, end - start}}})
			start = end
		}
	}
	return files
}

// describe fills in what a file's rows cover, from their index ordinals in
// file order, which it overwrites with interval ids. It returns the file's
// first duplicate.
func (o *preparer) describe(f *outFile, ordinals []uint64) (*duplicate, error) {
	f.min, f.max = ^uint64(0), 0
	f.index.Rows = int64(len(f.rows))
	f.index.Directory = make(derived.Directory, len(f.runs))
	for i, r := range f.runs {
		first, last := ordinals[r.start], ordinals[r.end-1]
		f.min, f.max = min(f.min, first), max(f.max, last)
		f.index.Directory[i] = derived.Run{Key: o.s.entities.Key(r.entity), Start: int64(r.start), End: int64(r.end), First: first, Last: last}
	}
	if !o.domain.HasIntervals() {
		return nil, nil
	}
	o.domain.IDs(ordinals, ordinals)
	b := coverage.NewBuilder()
	for i, r := range f.runs {
		ids := ordinals[r.start:r.end]
		if o.unique {
			if at := firstRepeat(ids); at >= 0 {
				return o.duplicate(f, r, at, ids[at]), nil
			}
		}
		b.Entity(f.index.Directory[i].Key)
		b.AddIDs(ids)
	}
	var err error
	f.index.Coverage, err = b.Finish()
	return nil, err
}

// firstRepeat returns the position of the first id that equals the one before
// it, or -1.
func firstRepeat(ids []uint64) int {
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			return i
		}
	}
	return -1
}

// duplicate is two rows of one entity in one interval.
type duplicate struct {
	key      string
	ordinal  uint64 // of the row with the smaller index
	interval uint64
	rows     [2]int64
}

func (o *preparer) duplicate(f *outFile, r run, at int, id uint64) *duplicate {
	a, b := f.rows[r.start+at-1], f.rows[r.start+at]
	return &duplicate{key: o.s.entities.Key(r.entity), ordinal: o.s.ordinal(a), interval: id,
		rows: [2]int64{int64(min(a, b)), int64(max(a, b))}}
}

// less orders duplicates by (entity, index).
func (d *duplicate) less(other *duplicate) bool {
	if c := strings.Compare(d.key, other.key); c != 0 {
		return c < 0
	}
	return d.ordinal < other.ordinal
}

// refusal returns the error that names the duplicate.
func (d *duplicate) refusal(layout *entitykey.Layout, domain interval.Domain) error {
	return &tableerr.DuplicateInterval{Entity: layout.Values(d.key), Interval: domain.Text(d.interval), Rows: d.rows}
}

// covered returns what all files cover together, nil without intervals.
func (o *preparer) covered(files []outFile) (*coverage.Set, error) {
	if !o.domain.HasIntervals() || len(files) == 1 {
		return files[0].index.Coverage, nil
	}
	sets := make([]*coverage.Set, len(files))
	for i := range files {
		sets[i] = files[i].index.Coverage
	}
	return coverage.Union(sets...)
}
