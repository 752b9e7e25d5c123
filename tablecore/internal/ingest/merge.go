package ingest

import (
	"context"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/parallel"
)

// mergeFloor is the memory that a merge may use even where the budget, or what
// is left of it, is less: files much smaller than this serve nobody.
const mergeFloor = 32 << 20

// merger writes the rows of runs as data files: it cuts them by ranges of the
// index, as a planner does, and brings the rows of one file after another from
// all runs into a store, which is then sorted and written like that of an
// append in memory.
type merger struct {
	cfg      Config
	runs     *runs
	planner  planner // for the sizes of files; it has no store
	capacity int64   // memory for the stores of the files being made
	newStore func(*heap) (*store, error)
	out      *newfile.Writer
	unique   bool // rows of one interval are compared with each other

	mu    sync.Mutex
	worst *duplicate // the smallest as yet
	made  int        // files
}

// run writes all rows.
func (m *merger) run(ctx context.Context) (*Result, error) {
	result, err := m.files(ctx)
	if err == nil && m.worst != nil {
		var layout *entitykey.Layout
		if layout, err = entitykey.LayoutOf(m.cfg.Def); err == nil {
			err = m.worst.refusal(layout, m.cfg.Domain)
		}
	}
	if err != nil {
		m.out.Discard(ctx)
		return nil, err
	}
	return result, nil
}

// files writes the files in the order of their ranges, until there is a
// duplicate: then it only looks for a smaller one.
func (m *merger) files(ctx context.Context) (*Result, error) {
	parts, err := m.plan(ctx)
	if err != nil {
		return nil, storeError(err)
	}
	atOnce := writers
	for _, p := range parts {
		if m.need(p.rows)*writers > m.capacity {
			atOnce = 1
		}
	}
	files := make([][]newfile.File, len(parts))
	err = parallel.Each(ctx, len(parts), atOnce, func(ctx context.Context, i int) error {
		var err error
		files[i], err = m.part(ctx, parts[i])
		return err
	})
	if err != nil || m.worst != nil {
		return nil, err
	}
	result := &Result{Files: slices.Concat(files...)}
	result.count()
	if !m.cfg.Domain.HasIntervals() {
		return result, nil
	}
	sets := make([]*coverage.Set, len(result.Files))
	for i := range result.Files {
		sets[i] = result.Files[i].Index.Coverage
	}
	result.Coverage, err = coverage.Union(sets...)
	return result, err
}

// need estimates the memory that a store of rows takes, with their order.
func (m *merger) need(rows int64) int64 { return rows * (m.planner.rowBytes + 16) }

// part makes the files of a part.
func (m *merger) part(ctx context.Context, p indexRange) ([]newfile.File, error) {
	if m.need(p.rows) <= m.capacity || len(m.cfg.Def.EntityColumns) == 0 {
		return m.build(ctx, p, nil)
	}
	cuts, err := m.keyCuts(ctx, p)
	if err != nil {
		return nil, err
	}
	var all []newfile.File
	for i := range len(cuts) + 1 {
		only := &keyRange{}
		if i > 0 {
			only.low = cuts[i-1]
		}
		if i < len(cuts) {
			only.high = &cuts[i]
		}
		files, err := m.build(ctx, p, only)
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// build brings the rows of a part together, all or those of some entities, sorts
// and writes them.
func (m *merger) build(ctx context.Context, p indexRange, only *keyRange) ([]newfile.File, error) {
	// What it takes was accounted for when the parts were cut.
	s, err := m.newStore(&heap{mem: m.cfg.Rows, limit: 1 << 62})
	if err != nil {
		return nil, err
	}
	defer s.free()
	if only == nil {
		err = m.load(ctx, s, p)
	} else {
		err = m.loadSome(ctx, s, p, only)
	}
	if err != nil || s.rows == 0 {
		return nil, err
	}
	w := &fileWriter{cfg: m.cfg, s: s, out: m.out}
	w.pool.mem = m.cfg.Rows
	defer w.pool.close()
	prep := newPreparer(s, m.cfg, &w.pool)
	defer prep.free()
	prep.taken = make([][]uint32, 1)
	files, found, err := prep.prepare(s.whole(), &prep.taken[0])
	if err != nil {
		return nil, err
	}
	if found != nil {
		return nil, m.report(found, p, only)
	}
	if m.refused() {
		return nil, nil
	}
	if err := m.count(len(files)); err != nil {
		return nil, err
	}
	s.codes.free(s.heap)
	return w.writeAll(ctx, files, 1)
}

// count adds files, unless they become too many.
func (m *merger) count(files int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made += files
	return m.cfg.Shape.check(m.made)
}

func (m *merger) refused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.worst != nil
}

// report keeps a duplicate of a part if it is the smallest as yet.
func (m *merger) report(d *duplicate, p indexRange, only *keyRange) error {
	for i, row := range d.rows {
		if only != nil {
			row = only.places[row]
		}
		var err error
		if d.rows[i], err = m.runs.streamRow(p, row); err != nil {
			return storeError(err)
		}
	}
	slices.Sort(d.rows[:])
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.worst == nil || d.less(m.worst) {
		m.worst = d
	}
	return nil
}

// load brings the rows of a part into a store, run by run: rows with the same
// index value come in the order of their arrival.
func (m *merger) load(ctx context.Context, s *store, p indexRange) error {
	return m.runs.scan(ctx, p, func(rec arrow.RecordBatch, from, to int64) error {
		b := s.batchOf(rec, from, to)
		defer b.Release()
		return s.add(b)
	})
}

// batchOf returns rows [from, to) of a run's batch as the store takes them.
func (s *store) batchOf(rec arrow.RecordBatch, from, to int64) *convert.Batch {
	b := &convert.Batch{Rows: int(to - from), Columns: make([]arrow.Array, len(s.columns))}
	column := 0
	for i, c := range s.columns {
		if hasRows(c) {
			b.Columns[i] = array.NewSlice(rec.Column(column), from, to)
			column++
		}
	}
	return b
}

// newMerger returns the merger of an append's runs.
func newMerger(cfg Config, runs *runs, out *newfile.Writer) *merger {
	return &merger{cfg: cfg, runs: runs, out: out, unique: newRunChecker(cfg).unique,
		planner: planner{domain: cfg.Domain, rowBytes: runs.bytes / max(1, runs.rows), limits: cfg.limits, byEntity: cfg.Shape.ByEntity}}
}

// wanted is the memory that makes writers files at once, as large as they get.
func (m *merger) wanted() int64 {
	if m.planner.byEntity {
		return m.need(m.runs.rows) // each reading of the runs makes as many files as find memory
	}
	largest := min(m.runs.rows, m.cfg.limits.maxRows, m.cfg.limits.maxBytes/max(1, m.planner.rowBytes))
	return writers * m.need(largest)
}
