package scan

import (
	"context"
	"sort"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/snapshot"
)

// chunkRows is how many rows of an unordered scan are one unit.
const chunkRows = 128 << 10

// loadRuns finds the wanted runs of every file. Where all of a file's runs are
// wanted its directory is shared, not copied.
func (p *Plan) loadRuns(ctx context.Context) error {
	p.runs = make([][]derived.Run, len(p.files))
	for i, f := range p.files {
		var err error
		if p.runs[i], err = p.fileRuns(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) fileRuns(ctx context.Context, f *snapshot.File) ([]derived.Run, error) {
	q := p.query
	if q.unordered && q.entities == nil && q.span.Covers(f.Min, f.Max) {
		rows, err := p.rowsOf(ctx, f)
		return wholeFile(rows), err
	}
	index, err := p.data.Index(ctx, p.snap, f)
	if err != nil {
		return nil, err
	}
	directory := index.Directory
	if !index.Sorted() {
		v, err := p.viewOf(ctx, f)
		if err != nil {
			return nil, err
		}
		directory = v.directory
	}
	runs, partial := p.pick(directory)
	if !partial {
		return runs, nil
	}
	return p.refine(ctx, f, runs)
}

// rowsOf is the number of rows of a file, from its footer where the log does not
// say.
func (p *Plan) rowsOf(ctx context.Context, f *snapshot.File) (int64, error) {
	if f.Rows >= 0 {
		return f.Rows, nil
	}
	groups, err := p.data.RowGroups(ctx, p.snap, f)
	rows := int64(0)
	for _, g := range groups {
		rows += g.Rows
	}
	return rows, err
}

// wholeFile cuts a file of so many rows into pieces.
func wholeFile(rows int64) []derived.Run {
	var runs []derived.Run
	for at := int64(0); at < rows; at += chunkRows {
		runs = append(runs, derived.Run{Start: at, End: min(rows, at+chunkRows), Last: ^uint64(0)})
	}
	return runs
}

// pick returns the runs of the wanted entities that meet the span; partial says
// that one of them reaches beyond it.
func (p *Plan) pick(d derived.Directory) (runs []derived.Run, partial bool) {
	q := p.query
	if q.keyed && len(q.keys) < len(d) {
		for _, key := range q.keys {
			if r, found := d.Find(key); found && q.span.Meets(r.First, r.Last) {
				runs = append(runs, r)
				partial = partial || !q.span.Covers(r.First, r.Last)
			}
		}
		return runs, partial
	}
	all := true
	for i := range d {
		r := &d[i]
		if !q.span.Meets(r.First, r.Last) || !q.entities.Match(r.Key) {
			if all {
				runs, all = append(runs, d[:i]...), false
			}
			continue
		}
		partial = partial || !q.span.Covers(r.First, r.Last)
		if !all {
			runs = append(runs, *r)
		}
	}
	if !all {
		return runs, partial
	}
	if partial {
		return append(runs, d...), true // refine changes them
	}
	return d, false
}

// refine cuts the runs of a file that lie partly outside the span down to the
// rows inside, by their index values, and drops those that have none.
func (p *Plan) refine(ctx context.Context, f *snapshot.File, runs []derived.Run) ([]derived.Run, error) {
	c := p.newCursor(f, []string{p.snap.Def.IndexColumn}, indexRows, true)
	defer c.close()
	if err := p.narrow(ctx, f, c, runs); err != nil {
		return nil, err
	}
	kept := runs[:0]
	var values []uint64
	for _, run := range runs {
		if !p.query.span.Covers(run.First, run.Last) && run.Start < run.End {
			var err error
			if values, err = c.ordinals(ctx, p.snap.Domain, run.End, values[:0]); err != nil {
				return nil, err
			}
			run = p.cut(run, values)
		}
		if run.Start < run.End {
			kept = append(kept, run)
		}
	}
	return kept, nil
}

// narrow drops the pages at either end of the partial runs whose bounds lie
// outside the span, and makes the cursor want what is left. Those of a view are
// in no page.
func (p *Plan) narrow(ctx context.Context, f *snapshot.File, c *cursor, runs []derived.Run) error {
	var zones []indexZone
	if c.view == nil {
		var err error
		if zones, err = p.indexZones(ctx, f); err != nil {
			return err
		}
	}
	for i := range runs {
		r := &runs[i]
		if p.query.span.Covers(r.First, r.Last) {
			continue
		}
		at := sort.Search(len(zones), func(i int) bool { return zones[i].rows.End > r.Start })
		for ; at < len(zones) && zones[at].last < p.query.span.First; at++ {
			r.Start = min(r.End, zones[at].rows.End)
		}
		at = sort.Search(len(zones), func(i int) bool { return zones[i].rows.End >= r.End })
		for ; at >= 0 && at < len(zones) && zones[at].first > p.query.span.Last && r.Start < r.End; at-- {
			r.End = max(r.Start, zones[at].rows.Start)
		}
		if r.Start < r.End {
			c.want(datafile.RowRange{Start: r.Start, End: r.End})
		}
	}
	return nil
}

// cut returns the part of a run whose index values, which ascend, lie in the
// span.
func (p *Plan) cut(run derived.Run, values []uint64) derived.Run {
	span := p.query.span
	lo := sort.Search(len(values), func(i int) bool { return values[i] >= span.First })
	hi := sort.Search(len(values), func(i int) bool { return values[i] > span.Last })
	if lo >= hi {
		return derived.Run{Key: run.Key}
	}
	return derived.Run{Key: run.Key, Start: run.Start + int64(lo), End: run.Start + int64(hi), First: values[lo], Last: values[hi-1]}
}
