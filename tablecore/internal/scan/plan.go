package scan

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/predicate"
	"contrail/tablecore/internal/snapshot"
)

// Plan is a scan of one version, ready to run. It is deterministic: the same
// request on the same version gives the same plan in every process. It is safe
// for concurrent use.
type Plan struct {
	snap  *snapshot.Snapshot
	query *query
	data  *filecache.Files
	mem   memory.Allocator
	files []*snapshot.File // those that the log does not rule out

	once  sync.Once
	runs  [][]derived.Run // of each file, the wanted ones
	units int             // of the whole scan
	bytes float64         // that the units' rows weigh
	err   error

	viewing sync.Mutex
	views   map[*snapshot.File]*view // of files that are not sorted
	viewed  int64                    // bytes that their rows take
}

// NewPlan resolves a request and prunes files by what the log says about them.
// It reads nothing from the store.
func NewPlan(snap *snapshot.Snapshot, data *filecache.Files, mem memory.Allocator, r Request) (*Plan, error) {
	q, err := resolve(snap, r)
	if err != nil {
		return nil, err
	}
	p := &Plan{snap: snap, query: q, data: data, mem: mem}
	if q.span.Empty || q.entities.None() || q.limit == 0 {
		return p, nil
	}
	v := p.judge()
	for _, f := range snap.Files {
		if f.Rows != 0 && v.reason(f) == ReasonKept {
			p.files = append(p.files, f)
		}
	}
	return p, nil
}

// Reasons why a file is read or not.
const (
	ReasonKept   = "kept"
	ReasonEntity = "entity"
	ReasonRange  = "range"
	ReasonFilter = "filter"
)

// judge decides about files by what the log says. It is used by one goroutine.
type judge struct {
	p      *Plan
	file   *snapshot.File
	bounds func(column string) (predicate.Bounds, bool)
}

func (p *Plan) judge() *judge {
	j := &judge{p: p}
	j.bounds = func(column string) (predicate.Bounds, bool) { return p.snap.Bounds(j.file, column) }
	return j
}

func (j *judge) reason(f *snapshot.File) string {
	q := j.p.query
	switch {
	case q.span.Empty || !f.Meets(q.span.First, q.span.Last):
		return ReasonRange
	case q.entities.None() || f.Single && !q.entities.Match(f.Entity):
		return ReasonEntity
	case q.filter == nil || q.unpruned:
		return ReasonKept
	}
	if j.file = f; !q.hull.Meets(f.Min, f.Max) || !q.filter.MayMatch(j.bounds) {
		return ReasonFilter
	}
	return ReasonKept
}

// Schema is the schema of every batch.
func (p *Plan) Schema() *arrow.Schema { return p.query.output }

// Version is the version that is read.
func (p *Plan) Version() int64 { return p.snap.Version() }

// Ordered says whether the scan gives its rows in an order that was asked for.
func (p *Plan) Ordered() bool { return !p.query.unordered }

// Rows is the number of rows the scan gives, −1 when it is not known without
// reading.
func (p *Plan) Rows() int64 {
	if p.query.limit == 0 {
		return 0
	}
	if p.query.entities != nil && !p.query.entities.None() || p.query.filter != nil && len(p.files) > 0 {
		return -1
	}
	rows := int64(0)
	for _, f := range p.files {
		if f.Rows < 0 || !p.query.span.Covers(f.Min, f.Max) {
			return -1
		}
		rows += f.Rows
	}
	if p.query.limit > 0 {
		rows = min(rows, p.query.limit)
	}
	return rows
}

// SplitInfo describes one part of a scan.
type SplitInfo struct {
	Rows  int64 // exact; with a filter those it is applied to; −1 when it is not known without reading
	Bytes int64 // of the data files, an estimate; −1 when unknown
}

// Splits divides the scan into at most max parts that are about equal by bytes.
// Their order is the scan's order. It reads the entity directories of the
// files. A scan with a limit, or with the newest rows first, has one part.
func (p *Plan) Splits(ctx context.Context, max int) ([]SplitInfo, error) {
	if !p.query.divisible() {
		return []SplitInfo{{Rows: p.Rows(), Bytes: -1}}, nil
	}
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	count := min(max, p.units)
	if count == 0 {
		return []SplitInfo{{}}, nil
	}
	infos := make([]SplitInfo, count)
	s := p.stream()
	for d := (divider{total: p.bytes, count: count}); s.next(); {
		bytes := p.weight(s.unit)
		info := &infos[d.part(bytes)]
		info.Rows += s.unit.rows()
		info.Bytes += int64(bytes)
	}
	return infos, nil
}

// rowBytes is what one row of a file weighs on disk.
func (p *Plan) rowBytes(file int) float64 {
	f := p.files[file]
	return float64(f.Add.Size) / float64(max(f.Rows, 1))
}

// weight is what the rows of a unit weigh on disk.
func (p *Plan) weight(u unit) float64 {
	bytes := 0.0
	for _, piece := range u.pieces {
		bytes += float64(piece.rows()) * p.rowBytes(piece.file)
	}
	return bytes
}

// load reads which runs of rows the scan wants, once.
func (p *Plan) load(ctx context.Context) error {
	p.once.Do(func() {
		if p.err = p.loadRuns(ctx); p.err != nil || p.query.newest {
			return
		}
		for s := p.stream(); s.next(); p.units++ {
			p.bytes += p.weight(s.unit)
		}
	})
	return p.err
}

// divider assigns units, in order, to parts of about equal weight: a unit
// belongs to the part in which its middle lies.
type divider struct {
	total, before float64
	count         int
}

func (d *divider) part(bytes float64) int {
	middle := d.before + bytes/2
	d.before += bytes
	if d.total <= 0 {
		return 0
	}
	return max(0, min(d.count-1, int(middle/d.total*float64(d.count))))
}

// Snapshot is what the plan reads.
func (p *Plan) Snapshot() *snapshot.Snapshot { return p.snap }
