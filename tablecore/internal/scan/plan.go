package scan

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/interval"
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
	files []*snapshot.File // those that bounds and entities do not rule out

	once sync.Once
	all  []unit // of all splits
	err  error
}

// NewPlan resolves a request and prunes files by what the log says about them.
// It reads nothing from the store.
func NewPlan(snap *snapshot.Snapshot, data *filecache.Files, mem memory.Allocator, r Request) (*Plan, error) {
	q, err := resolve(snap, r)
	if err != nil {
		return nil, err
	}
	p := &Plan{snap: snap, query: q, data: data, mem: mem}
	if q.span.Empty || q.entities.None() {
		return p, nil
	}
	for _, f := range snap.Files {
		if f.Rows != 0 && f.Meets(q.span.First, q.span.Last) && (!f.Single || q.entities.Match(f.Entity)) {
			p.files = append(p.files, f)
		}
	}
	return p, nil
}

// Schema is the schema of every batch.
func (p *Plan) Schema() *arrow.Schema { return p.query.output }

// Version is the version that is read.
func (p *Plan) Version() int64 { return p.snap.Version() }

// Rows is the number of rows the scan gives, −1 when it is not known without
// reading.
func (p *Plan) Rows() int64 {
	if p.query.entities != nil {
		return -1
	}
	rows := int64(0)
	for _, f := range p.files {
		if f.Rows < 0 || !p.query.span.Covers(f.Min, f.Max) {
			return -1
		}
		rows += f.Rows
	}
	return rows
}

// SplitInfo describes one part of a scan.
type SplitInfo struct {
	Rows  int64 // exact
	Bytes int64 // of the data files, an estimate
}

// Splits divides the scan into at most max parts that are about equal by bytes.
// Their order is the scan's order. It reads the entity directories of the
// files.
func (p *Plan) Splits(ctx context.Context, max int) ([]SplitInfo, error) {
	units, err := p.units(ctx)
	if err != nil {
		return nil, err
	}
	count := min(max, len(units))
	if count == 0 {
		return []SplitInfo{{}}, nil
	}
	infos := make([]SplitInfo, count)
	for i := range infos {
		for _, u := range split(units, i, count, p.rowBytes) {
			for _, piece := range u.pieces {
				infos[i].Rows += piece.rows()
				infos[i].Bytes += int64(float64(piece.rows()) * p.rowBytes(piece.file))
			}
		}
	}
	return infos, nil
}

// rowBytes is what one row of a file weighs on disk.
func (p *Plan) rowBytes(file int) float64 {
	f := p.files[file]
	return float64(f.Add.Size) / float64(max(f.Rows, 1))
}

// units returns the units of the whole scan. They are made once.
func (p *Plan) units(ctx context.Context) ([]unit, error) {
	p.once.Do(func() { p.all, p.err = p.makeUnits(ctx) })
	return p.all, p.err
}

func (p *Plan) makeUnits(ctx context.Context) ([]unit, error) {
	var pieces []keyed
	for i, f := range p.files {
		index, err := p.data.Index(ctx, p.snap, f)
		if err != nil {
			return nil, err
		}
		before := len(pieces)
		partial := false
		for _, run := range index.Directory {
			if !p.query.span.Meets(run.First, run.Last) || !p.query.entities.Match(run.Key) {
				continue
			}
			partial = partial || !p.query.span.Covers(run.First, run.Last)
			pieces = append(pieces, keyed{run.Key, piece{i, run.Start, run.End, run.First, run.Last}})
		}
		if partial {
			kept, err := p.refine(ctx, f, pieces[before:])
			if err != nil {
				return nil, err
			}
			pieces = pieces[:before+kept]
		}
	}
	return unitsOf(pieces), nil
}

// refine cuts the pieces of a file that lie partly outside the span down to
// the rows inside, by their index values, drops those that have none, and
// returns how many are left.
func (p *Plan) refine(ctx context.Context, f *snapshot.File, pieces []keyed) (int, error) {
	c := p.indexCursor(f, nil)
	defer c.close()
	for _, piece := range pieces {
		if !p.query.span.Covers(piece.first, piece.last) {
			c.ranges = append(c.ranges, datafile.RowRange{Start: piece.start, End: piece.end})
		}
	}
	kept := 0
	var values []uint64
	for _, piece := range pieces {
		if !p.query.span.Covers(piece.first, piece.last) {
			var err error
			if values, err = c.ordinals(ctx, p.snap.Domain, piece.rows(), values[:0]); err != nil {
				return 0, err
			}
			piece.piece = cut(piece.piece, values, p.query.span)
		}
		if piece.rows() > 0 {
			pieces[kept] = piece
			kept++
		}
	}
	return kept, nil
}

// indexCursor reads the index column of a file.
func (p *Plan) indexCursor(f *snapshot.File, ranges []datafile.RowRange) *cursor {
	return p.cursor(f, []string{p.snap.Def.IndexColumn}, ranges, indexRows)
}

// cursor reads columns of a file.
func (p *Plan) cursor(f *snapshot.File, columns []string, ranges []datafile.RowRange, batch int) *cursor {
	return &cursor{
		open:   func(ctx context.Context) (*filecache.File, error) { return p.data.Open(ctx, p.snap, f) },
		fields: snapshot.StorageFields(p.snap.Def, columns),
		batch:  batch, ranges: ranges,
	}
}

// ordinals appends the index ordinals of the next n wanted rows of a cursor
// over an index column.
func (c *cursor) ordinals(ctx context.Context, domain interval.Domain, n int64, dst []uint64) ([]uint64, error) {
	segments, err := c.take(ctx, n)
	defer release(segments)
	if err != nil {
		return dst, err
	}
	for _, s := range segments {
		column := s.column(0)
		dst, err = domain.AppendOrdinals(dst, column)
		column.Release()
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}
