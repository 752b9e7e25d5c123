package tablecore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/tabletest"
)

// seriesCheck compares what a table says of its series with all of its rows, by
// ways that are slow and obviously right.
type seriesCheck struct {
	table    *tablecore.Table
	version  int64
	schema   *arrow.Schema // all columns, the insertion time last if there is one
	entities []string
	index    string
	stamp    string   // the insertion-time column, "" for none
	width    *big.Int // of an interval, nil without a granularity
	rows     []tabletest.Row
}

// newSeriesCheck reads all rows of a version, nil for one without a schema. width
// is in ticks, nil for a table without intervals.
func newSeriesCheck(ctx context.Context, table *tablecore.Table, o tablecore.CreateOptions, version int64, width *big.Int) (*seriesCheck, error) {
	c := &seriesCheck{table: table, version: version, entities: o.EntityColumns, index: o.IndexColumn, width: width}
	plan, err := table.PlanScan(ctx, tablecore.ScanOptions{Version: &version})
	if err != nil || plan.Schema().NumFields() == 0 {
		return nil, err
	}
	var names []string
	for _, f := range plan.Schema().Fields() {
		names = append(names, f.Name)
	}
	if o.IngestTimeColumn == nil {
		c.stamp = "_ingest_ts"
		names = append(names, c.stamp)
	}
	if plan, err = table.PlanScan(ctx, tablecore.ScanOptions{Version: &version, Columns: names}); err != nil {
		return nil, err
	}
	c.schema = plan.Schema()
	c.rows, err = tabletest.ScanRows(ctx, plan)
	return c, err
}

func (c *seriesCheck) cell(row tabletest.Row, column string) any {
	return row[c.schema.FieldIndices(column)[0]]
}

func (c *seriesCheck) indexOf(row tabletest.Row) *big.Int { return bigOf(c.cell(row, c.index)) }

func bigOf(v any) *big.Int {
	if u, ok := v.(uint64); ok {
		return new(big.Int).SetUint64(u)
	}
	return big.NewInt(v.(int64))
}

// entityOf renders the identity of a row.
func (c *seriesCheck) entityOf(row tabletest.Row) string {
	var id tabletest.Row
	for _, name := range c.entities {
		id = append(id, c.cell(row, name))
	}
	return id.String()
}

// groups returns the rows by entity, in the order of a sorted scan.
func (c *seriesCheck) groups() [][]tabletest.Row {
	var groups [][]tabletest.Row
	last := ""
	for i, row := range c.rows {
		if id := c.entityOf(row); i == 0 || id != last {
			groups, last = append(groups, nil), id
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], row)
	}
	return groups
}

// run makes some questions and checks the answers.
func (c *seriesCheck) run(ctx context.Context, r *rand.Rand) error {
	if err := c.checkLatest(ctx, nil); err != nil {
		return err
	}
	if len(c.rows) > 0 {
		at := new(big.Int).Add(c.indexOf(c.rows[r.IntN(len(c.rows))]), big.NewInt(r.Int64N(3)-1))
		if err := c.checkLatest(ctx, at); err != nil {
			return err
		}
	}
	if c.width == nil {
		return nil
	}
	if err := c.checkCoverage(ctx, nil, nil); err != nil {
		return err
	}
	start, end := c.somePlace(r), c.somePlace(r)
	if start != nil && end != nil && start.Cmp(end) >= 0 {
		start, end = end, new(big.Int).Add(start, big.NewInt(1))
	}
	return c.checkCoverage(ctx, start, end)
}

// somePlace is a bound near a row, or none.
func (c *seriesCheck) somePlace(r *rand.Rand) *big.Int {
	if len(c.rows) == 0 || r.IntN(4) == 0 {
		return nil
	}
	steps := new(big.Int).Mul(c.width, big.NewInt(r.Int64N(5)-2))
	return steps.Add(steps, c.indexOf(c.rows[r.IntN(len(c.rows))]))
}

// checkLatest compares the newest rows at or before an index value.
func (c *seriesCheck) checkLatest(ctx context.Context, at *big.Int) error {
	o := tablecore.LatestOptions{Version: &c.version}
	if at != nil {
		o.At = json.RawMessage(at.String())
	}
	for _, f := range c.schema.Fields() {
		o.Columns = append(o.Columns, f.Name)
	}
	got, err := rowTextsOf(ctx, func() (*tablecore.Listing, error) { return c.table.Latest(ctx, o) })
	if err != nil {
		return fmt.Errorf("latest of version %d at %v: %w", c.version, at, err)
	}
	var want []string
	for _, group := range c.groups() {
		var best tabletest.Row
		for _, row := range group {
			if (at == nil || c.indexOf(row).Cmp(at) <= 0) && (best == nil || !c.older(row, best)) {
				best = row
			}
		}
		if best != nil {
			want = append(want, best.String())
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("latest of version %d at %v: got\n%s\nwant\n%s", c.version, at, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return nil
}

// older says whether a row counts as older than one that a scan gives before
// it.
func (c *seriesCheck) older(row, than tabletest.Row) bool {
	if order := c.indexOf(row).Cmp(c.indexOf(than)); order != 0 {
		return order < 0
	}
	return c.stamp != "" && bigOf(c.cell(row, c.stamp)).Cmp(bigOf(c.cell(than, c.stamp))) < 0
}

func rowTextsOf(ctx context.Context, ask func() (*tablecore.Listing, error)) ([]string, error) {
	l, err := ask()
	if err != nil {
		return nil, err
	}
	var texts []string
	err = l.Run(ctx, func(batch arrow.RecordBatch) error {
		if !batch.Schema().Equal(l.Schema()) {
			return fmt.Errorf("a batch has schema %s, the answer %s", batch.Schema(), l.Schema())
		}
		rows, err := tabletest.RowsOf(batch)
		for _, row := range rows {
			texts = append(texts, row.String())
		}
		return err
	})
	return texts, err
}

// domain returns the lowest and the highest index value.
func (c *seriesCheck) domain() (lowest, highest *big.Int) {
	one := big.NewInt(1)
	if c.schema.Field(c.schema.FieldIndices(c.index)[0]).Type.ID() == arrow.UINT64 {
		return big.NewInt(0), new(big.Int).Sub(new(big.Int).Lsh(one, 64), one)
	}
	half := new(big.Int).Lsh(one, 63)
	return new(big.Int).Neg(half), new(big.Int).Sub(half, one)
}

// id is ⌊value / width⌋; Div is Euclidean, which rounds down for a positive
// divisor.
func (c *seriesCheck) id(value *big.Int) *big.Int { return new(big.Int).Div(value, c.width) }

// stretch is a run of intervals, both ends included.
type stretch struct{ first, last *big.Int }

func (s stretch) count() *big.Int {
	n := new(big.Int).Sub(s.last, s.first)
	return n.Add(n, big.NewInt(1))
}

// checkCoverage compares all kinds of coverage over a range.
func (c *seriesCheck) checkCoverage(ctx context.Context, start, end *big.Int) error {
	lowest, highest := c.domain()
	all := stretch{c.id(lowest), c.id(highest)}
	empty := start != nil && start.Cmp(highest) > 0 || end != nil && end.Cmp(lowest) <= 0
	if start != nil && start.Cmp(lowest) > 0 {
		all.first = c.id(start)
	}
	if end != nil && end.Cmp(highest) <= 0 {
		all.last = c.id(new(big.Int).Sub(end, big.NewInt(1)))
	}
	want := map[string][]string{}
	for _, group := range c.groups() {
		id := make(tabletest.Row, 0, len(c.entities)+4)
		for _, name := range c.entities {
			id = append(id, c.cell(group[0], name))
		}
		c.expect(want, id, group, all, empty)
	}
	if len(c.rows) == 0 && len(c.entities) == 0 {
		c.expect(want, nil, nil, all, empty)
	}
	for _, kind := range []string{tablecore.CoverageMissing, tablecore.CoverageCovered, tablecore.CoverageSummary, tablecore.CoverageLastWindow} {
		o := tablecore.CoverageOptions{Kind: kind, Version: &c.version}
		if start != nil {
			o.Start = json.RawMessage(start.String())
		}
		if end != nil {
			o.End = json.RawMessage(end.String())
		}
		if kind == tablecore.CoverageLastWindow {
			n := int64(2)
			o.N = &n
		}
		got, err := rowTextsOf(ctx, func() (*tablecore.Listing, error) { return c.table.Coverage(ctx, o) })
		if err != nil {
			return fmt.Errorf("%s of version %d from %v to %v: %w", kind, c.version, start, end, err)
		}
		if !slices.Equal(got, want[kind]) {
			return fmt.Errorf("%s of version %d from %v to %v: got\n%s\nwant\n%s", kind, c.version, start, end, strings.Join(got, "\n"), strings.Join(want[kind], "\n"))
		}
	}
	return nil
}

// expect adds what is to be said of one entity.
func (c *seriesCheck) expect(want map[string][]string, id tabletest.Row, rows []tabletest.Row, all stretch, empty bool) {
	if empty {
		want[tablecore.CoverageSummary] = append(want[tablecore.CoverageSummary], append(slices.Clone(id), 0.0, uint64(0), uint64(0), uint64(0)).String())
		want[tablecore.CoverageLastWindow] = append(want[tablecore.CoverageLastWindow], append(slices.Clone(id), nil, nil).String())
		return
	}
	var covered, missing []stretch
	one := big.NewInt(1)
	next := all.first
	for _, row := range rows {
		at := c.id(c.indexOf(row))
		if at.Cmp(all.first) < 0 || at.Cmp(all.last) > 0 {
			continue
		}
		switch n := len(covered); {
		case n > 0 && covered[n-1].last.Cmp(at) == 0:
			continue
		case n > 0 && new(big.Int).Add(covered[n-1].last, one).Cmp(at) == 0:
			covered[n-1].last = at
		default:
			covered = append(covered, stretch{at, at})
			if next.Cmp(at) < 0 {
				missing = append(missing, stretch{next, new(big.Int).Sub(at, one)})
			}
		}
		next = new(big.Int).Add(at, one)
	}
	if next.Cmp(all.last) <= 0 {
		missing = append(missing, stretch{next, all.last})
	}
	for _, s := range covered {
		want[tablecore.CoverageCovered] = append(want[tablecore.CoverageCovered], c.runText(id, s))
	}
	for _, s := range missing {
		want[tablecore.CoverageMissing] = append(want[tablecore.CoverageMissing], c.runText(id, s))
	}
	c.expectCounts(want, id, all, covered, missing)
}

func (c *seriesCheck) expectCounts(want map[string][]string, id tabletest.Row, all stretch, covered, missing []stretch) {
	in, out, longest := new(big.Int), new(big.Int), new(big.Int)
	window := append(slices.Clone(id), nil, nil)
	for _, s := range covered {
		in.Add(in, s.count())
		if s.count().Cmp(big.NewInt(2)) >= 0 {
			window = append(slices.Clone(id), c.bounds(stretch{new(big.Int).Sub(s.last, big.NewInt(1)), s.last})...)
		}
	}
	for _, s := range missing {
		out.Add(out, s.count())
		if s.count().Cmp(longest) > 0 {
			longest = s.count()
		}
	}
	ratio, _ := new(big.Rat).SetFrac(in, all.count()).Float64()
	want[tablecore.CoverageSummary] = append(want[tablecore.CoverageSummary], append(slices.Clone(id), ratio, cutCount(in), cutCount(out), cutCount(longest)).String())
	want[tablecore.CoverageLastWindow] = append(want[tablecore.CoverageLastWindow], window.String())
}

// cutCount is a count as it is told.
func cutCount(n *big.Int) uint64 {
	if !n.IsUint64() {
		return ^uint64(0)
	}
	return n.Uint64()
}

// bounds are the index values at which a run of intervals starts and ends.
func (c *seriesCheck) bounds(s stretch) tabletest.Row {
	lowest, highest := c.domain()
	value := func(v *big.Int) any {
		if lowest.Sign() == 0 {
			return v.Uint64()
		}
		return v.Int64()
	}
	start := new(big.Int).Mul(s.first, c.width)
	if start.Cmp(lowest) < 0 {
		start = lowest
	}
	end := new(big.Int).Mul(new(big.Int).Add(s.last, big.NewInt(1)), c.width)
	if end.Cmp(highest) > 0 {
		return tabletest.Row{value(start), nil}
	}
	return tabletest.Row{value(start), value(end)}
}

func (c *seriesCheck) runText(id tabletest.Row, s stretch) string {
	return append(append(slices.Clone(id), c.bounds(s)...), cutCount(s.count())).String()
}
