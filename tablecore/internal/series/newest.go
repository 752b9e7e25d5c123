package series

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/lastvalue"
	"contrail/tablecore/internal/snapshot"
)

// buildNewest brings the newest rows to a version.
func (t *Table) buildNewest(ctx context.Context, s *snapshot.Snapshot, c *change) (index, error) {
	n := newNewest(t, s)
	from, _ := c.from.(*lastvalue.Index)
	orphans := map[string]struct{}{} // entities whose newest row lay in a removed file
	if from != nil && len(c.removed) > 0 {
		for r := range from.All() {
			if _, removed := c.removed[r.Path]; removed {
				orphans[r.Key] = struct{}{}
			}
		}
	}
	for _, f := range c.added {
		if err := n.look(ctx, f, nil); err != nil {
			return nil, err
		}
	}
	if err := n.lookFor(ctx, orphans, c.kept); err != nil {
		return nil, err
	}
	rows, err := n.settle(ctx)
	if err != nil {
		return nil, err
	}
	if from == nil {
		block, err := t.block(ctx, s, rows, t.cache.valueLimit())
		if err != nil {
			return nil, err
		}
		return lastvalue.NewIndex(block), nil
	}
	for _, r := range rows {
		delete(orphans, r.Key)
	}
	return t.advanceNewest(ctx, s, from, c, rows, orphans)
}

// advanceNewest puts rows into an index where they are newer than what it has,
// and takes out the entities in gone.
func (t *Table) advanceNewest(ctx context.Context, s *snapshot.Snapshot, from *lastvalue.Index, c *change, rows []lastvalue.Row, gone map[string]struct{}) (index, error) {
	later := laterIn(s)
	rows = slices.DeleteFunc(rows, func(r lastvalue.Row) bool {
		old, known := from.Find(r.Key)
		if !known {
			return false
		}
		_, removed := c.removed[old.Path]
		return !removed && !r.Newer(old.Row, later)
	})
	limit := int64(0)
	if !from.Bare() {
		limit = t.cache.valueLimit()
	}
	block, err := t.block(ctx, s, rows, limit)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 && block.Values == nil && !from.Bare() {
		from = from.WithoutValues()
	}
	return from.Advance(block, gone)
}

// laterIn says of two files of a version whether the first was committed after
// the second.
func laterIn(s *snapshot.Snapshot) func(a, b string) bool {
	var place map[string]int // made when it is needed
	return func(a, b string) bool {
		if place == nil {
			place = make(map[string]int, len(s.Files))
			for i, f := range s.Files {
				place[f.Path] = i
			}
		}
		return place[a] > place[b]
	}
}

// newest looks for the newest rows of entities.
type newest struct {
	t    *Table
	snap *snapshot.Snapshot

	found map[string]int // by key, place in best
	best  []leader
}

func newNewest(t *Table, s *snapshot.Snapshot) *newest {
	return &newest{t: t, snap: s, found: map[string]int{}}
}

// leader are the runs of an entity that end with the highest index value found
// so far: one, but for tables that may hold equal values.
type leader struct {
	key     string
	ordinal uint64
	runs    []contender
}

// contender is a run whose last row may be the newest.
type contender struct {
	file *snapshot.File
	run  derived.Run
}

// look enters the runs of a file, those of the entities in only unless it is
// nil.
func (n *newest) look(ctx context.Context, f *snapshot.File, only map[string]struct{}) error {
	return n.each(ctx, f, only, func(run derived.Run) { n.enter(f, run) })
}

// each goes through the runs of a file, those of the entities in only unless it
// is nil.
func (n *newest) each(ctx context.Context, f *snapshot.File, only map[string]struct{}, visit func(derived.Run)) error {
	if err := ctx.Err(); err != nil || f.Rows == 0 {
		return err
	}
	if _, wanted := only[f.Entity]; only != nil && f.Single && !wanted {
		return nil
	}
	x, err := n.t.files.Index(ctx, n.snap, f)
	if err != nil {
		return err
	}
	if !x.Sorted() {
		return unsorted(f.Path)
	}
	if only != nil && len(only) < len(x.Directory)/8 {
		for key := range only {
			if run, ok := x.Directory.Find(key); ok {
				visit(run)
			}
		}
		return nil
	}
	for _, run := range x.Directory {
		if _, wanted := only[run.Key]; wanted || only == nil {
			visit(run)
		}
	}
	return nil
}

func (n *newest) enter(f *snapshot.File, run derived.Run) {
	i, known := n.found[run.Key]
	if !known {
		n.found[run.Key] = len(n.best)
		n.best = append(n.best, leader{key: run.Key, ordinal: run.Last, runs: []contender{{f, run}}})
		return
	}
	switch l := &n.best[i]; {
	case run.Last > l.ordinal:
		l.ordinal, l.runs = run.Last, append(l.runs[:0], contender{f, run})
	case run.Last == l.ordinal:
		l.runs = append(l.runs, contender{f, run})
	}
}

// lookFor looks for the newest rows of entities in files, those with the highest
// index values first. A file below what each of the entities has already is
// not opened.
func (n *newest) lookFor(ctx context.Context, keys map[string]struct{}, files []*snapshot.File) error {
	if len(keys) == 0 {
		return nil
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b *snapshot.File) int { return cmp.Compare(b.Max, a.Max) })
	floor := uint64(0)
	for i, f := range files {
		if i&(i-1) == 0 { // now and then; it costs as many steps as there are entities
			floor = n.floor(keys)
		}
		if f.Max < floor {
			return nil
		}
		if err := n.look(ctx, f, keys); err != nil {
			return err
		}
	}
	return nil
}

// floor is the lowest ordinal that one of the entities has reached.
func (n *newest) floor(keys map[string]struct{}) uint64 {
	low := ^uint64(0)
	for key := range keys {
		i, known := n.found[key]
		if !known {
			return 0
		}
		low = min(low, n.best[i].ordinal)
	}
	return low
}

// settle returns the newest rows by key.
func (n *newest) settle(ctx context.Context) ([]lastvalue.Row, error) {
	slices.SortFunc(n.best, func(a, b leader) int { return strings.Compare(a.key, b.key) })
	rows := make([]lastvalue.Row, 0, len(n.best))
	var keys strings.Builder // in one piece, so that no directory stays for its keys' sake
	for i := range n.best {
		keys.WriteString(n.best[i].key)
	}
	rest := keys.String()
	stamps, err := n.stamps(ctx)
	if err != nil {
		return nil, err
	}
	later := laterIn(n.snap)
	for i := range n.best {
		l := &n.best[i]
		key := rest[:len(l.key)]
		rest = rest[len(l.key):]
		var newest lastvalue.Row
		for k, c := range l.runs {
			r := lastvalue.Row{Key: key, Path: c.file.Path, At: c.run.End - 1, Ordinal: c.run.Last}
			if stamps != nil {
				r.At, r.Stamp = stamps[c].at, stamps[c].stamp
			}
			if k == 0 || r.Newer(&newest, later) {
				newest = r
			}
		}
		rows = append(rows, newest)
	}
	return rows, nil
}
