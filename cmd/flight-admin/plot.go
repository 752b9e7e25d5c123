package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/cmd/internal/rowfile"
	"contrail/descriptors"
)

// plotWidth is the number of cells of a bar.
const plotWidth = 60

// plot is what is drawn of the entities of a table.
type plot struct {
	start, end json.RawMessage
	from, to   float64
	names      []string // in the order of the service
	ratios     map[string]float64
	bars       map[string]*[plotWidth]float64 // the part of each cell that is covered
}

// plotCoverage draws a bar for each entity.
func (a *app) plotCoverage(ctx context.Context, s *session, r descriptors.Coverage) error {
	p := plot{start: r.Start, end: r.End, ratios: map[string]float64{}, bars: map[string]*[plotWidth]float64{}}
	var okFrom, okTo bool
	p.from, okFrom = position(r.Start)
	p.to, okTo = position(r.End)
	if !okFrom || !okTo || p.from >= p.to {
		return usagef("there is no range to draw: give --start and --end, or fill the table first")
	}
	r.Kind = descriptors.CoverageSummary
	if err := a.coverageRows(ctx, s, r, p.addEntity); err != nil {
		return err
	}
	r.Kind = descriptors.CoverageCovered
	if err := a.coverageRows(ctx, s, r, p.addRun); err != nil {
		return err
	}
	return p.write(a.stdout)
}

// coverageRows calls add for each row of a coverage query. The entity is what
// its columns, those before the first of the query's own, say together.
func (a *app) coverageRows(ctx context.Context, s *session, r descriptors.Coverage, add func(entity string, batch arrow.RecordBatch, row int)) error {
	command, err := r.Encode()
	if err != nil {
		return err
	}
	rows, err := s.Get(ctx, command)
	if err != nil {
		return err
	}
	defer rows.Close()
	own := max(rows.Schema().NumFields()-len(ownColumns[r.Kind]), 0)
	for {
		batch, err := rows.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for row := range int(batch.NumRows()) {
			cells := make([]string, own)
			for i := range cells {
				cells[i] = string(rowfile.AppendCell(nil, batch.Column(i), row))
			}
			add(strings.Join(cells, " "), batch, row)
		}
	}
}

// ownColumns are the columns of a coverage query that stand behind the
// entity's.
var ownColumns = map[string][]string{
	descriptors.CoverageSummary: {"covered_ratio", "covered_intervals", "missing_intervals", "longest_gap_intervals"},
	descriptors.CoverageCovered: {"start", "end", "intervals"},
}

func (p *plot) addEntity(entity string, batch arrow.RecordBatch, row int) {
	p.names = append(p.names, entity)
	p.bars[entity] = new([plotWidth]float64)
	p.ratios[entity], _ = position(valueOf(batch, "covered_ratio", row))
}

func (p *plot) addRun(entity string, batch arrow.RecordBatch, row int) {
	bar := p.bars[entity]
	start, ok := position(valueOf(batch, "start", row))
	if bar == nil || !ok {
		return
	}
	end, ok := position(valueOf(batch, "end", row))
	if !ok { // with the domain
		end = p.to
	}
	scale := plotWidth / (p.to - p.from)
	first, last := max(0, (start-p.from)*scale), min(plotWidth, (end-p.from)*scale)
	for at := first; at < last; {
		cell := min(int(at), plotWidth-1)
		next := min(last, float64(cell+1))
		if next <= at {
			break
		}
		bar[cell] += next - at
		at = next
	}
}

// valueOf is a value as JSON, null where there is no such column.
func valueOf(batch arrow.RecordBatch, column string, row int) json.RawMessage {
	at := batch.Schema().FieldIndices(column)
	if len(at) == 0 {
		return json.RawMessage("null")
	}
	return rowfile.AppendJSON(nil, batch.Column(at[0]), row)
}

// position is where an index value lies, in seconds or as the number that it
// is: exact enough to draw.
func position(value json.RawMessage) (float64, bool) {
	if moment, _, ok := indexTime(value); ok {
		return float64(moment.Unix()) + float64(moment.Nanosecond())/1e9, true
	}
	n, err := strconv.ParseFloat(strings.Trim(string(value), `"`), 64)
	return n, err == nil
}

func (p *plot) write(w io.Writer) error {
	start, end := strings.Trim(string(p.start), `"`), strings.Trim(string(p.end), `"`)
	scale := start + strings.Repeat(" ", max(1, plotWidth-len(start)-len(end))) + end
	t := newTextTable(w, []string{"", scale, ""}, []bool{false, false, true})
	for _, name := range p.names {
		percent := strconv.FormatFloat(math.Floor(p.ratios[name]*1000)/10, 'f', 1, 64) + " %"
		if err := t.add([]string{name, draw(p.bars[name]), percent}); err != nil {
			return err
		}
	}
	return t.Close()
}

// draw is a bar as text. Rounding makes no cell full that is not.
func draw(bar *[plotWidth]float64) string {
	const rounding = 1e-6
	var b strings.Builder
	for _, part := range bar {
		switch {
		case part >= 1-rounding:
			b.WriteRune('█')
		case part > rounding:
			b.WriteRune('▒')
		default:
			b.WriteRune('·')
		}
	}
	return b.String()
}
