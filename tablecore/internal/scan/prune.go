package scan

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/predicate"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// live returns the ranges of rows of a file that may pass the filter, by the
// statistics of its row groups and pages.
func (p *Plan) live(ctx context.Context, f *datafile.File) ([]datafile.RowRange, error) {
	fields := snapshot.StorageFields(p.snap.Def, p.query.filter.Columns())
	var live []datafile.RowRange
	for i, g := range f.RowGroups() {
		if g.Rows == 0 || !p.groupMayMatch(f, i, fields) {
			continue
		}
		rows := []datafile.RowRange{{Start: g.FirstRow, End: g.FirstRow + g.Rows}}
		for _, field := range fields {
			kept, err := p.pages(ctx, f, i, field)
			if err != nil {
				return nil, err
			}
			if kept != nil {
				rows = intersect(rows, kept)
			}
		}
		live = append(live, rows...)
	}
	return live, nil
}

func boundsOf(z datafile.Zone) predicate.Bounds {
	return predicate.Bounds{Rows: z.Rows.End - z.Rows.Start, Nulls: z.Nulls, Min: z.Min, Max: z.Max}
}

func (p *Plan) groupMayMatch(f *datafile.File, group int, fields []arrow.Field) bool {
	return p.query.filter.MayMatch(func(column string) (predicate.Bounds, bool) {
		for _, field := range fields {
			if field.Name == column {
				z, ok := f.GroupZone(group, column, field.Type)
				return boundsOf(z), ok
			}
		}
		return predicate.Bounds{}, false
	})
}

// pages returns the rows of a row group that may pass what the filter says
// about one column; nil where the pages tell nothing.
func (p *Plan) pages(ctx context.Context, f *datafile.File, group int, field arrow.Field) ([]datafile.RowRange, error) {
	zones, err := f.PageZones(ctx, group, field.Name, field.Type)
	if err != nil || zones == nil {
		return nil, err
	}
	kept := []datafile.RowRange{}
	for _, z := range zones {
		may := p.query.filter.MayMatch(func(column string) (predicate.Bounds, bool) { return boundsOf(z), column == field.Name })
		switch n := len(kept); {
		case !may:
		case n > 0 && kept[n-1].End == z.Rows.Start:
			kept[n-1].End = z.Rows.End
		default:
			kept = append(kept, z.Rows)
		}
	}
	return kept, nil
}

// indexZone bounds the index ordinals of a page's rows.
type indexZone struct {
	rows        datafile.RowRange
	first, last uint64
}

// indexZones returns the bounds of the index in all pages of a file, in order.
func (p *Plan) indexZones(ctx context.Context, f *snapshot.File) (zones []indexZone, err error) {
	file, err := p.data.Open(ctx, p.snap, f)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	field := snapshot.StorageFields(p.snap.Def, []string{p.snap.Def.IndexColumn})[0]
	for i, g := range file.RowGroups() {
		pages, err := file.PageZones(ctx, i, field.Name, field.Type)
		if err != nil {
			return nil, err
		}
		if pages == nil {
			pages = []datafile.Zone{{Rows: datafile.RowRange{Start: g.FirstRow, End: g.FirstRow + g.Rows}}}
			if z, ok := file.GroupZone(i, field.Name, field.Type); ok {
				pages[0] = z
			}
		}
		for _, z := range pages {
			first, last := p.ordinalBounds(z)
			zones = append(zones, indexZone{z.Rows, first, last})
		}
	}
	return zones, nil
}

// ordinalBounds turns the stored bounds of an index column into ordinals; the
// whole domain where there are none.
func (p *Plan) ordinalBounds(z datafile.Zone) (first, last uint64) {
	switch low := z.Min.(type) {
	case int64:
		if high, ok := z.Max.(int64); ok && low <= high {
			ticks := int64(1)
			declared := p.snap.IndexField().Type
			if stored, ok := tabledef.StorageType(declared).(*arrow.TimestampType); ok {
				ticks = int64(declared.(*arrow.TimestampType).Unit.Multiplier() / stored.Unit.Multiplier())
			}
			// Dividing towards zero may move a bound of damaged values inwards,
			// never that of whole ticks, and others cannot be read at all.
			return uint64(low/ticks) ^ 1<<63, uint64(high/ticks) ^ 1<<63
		}
	case decimal128.Num:
		if high, ok := z.Max.(decimal128.Num); ok && low.HighBits() == 0 && high.HighBits() == 0 && low.LowBits() <= high.LowBits() {
			return low.LowBits(), high.LowBits()
		}
	}
	return 0, ^uint64(0)
}
