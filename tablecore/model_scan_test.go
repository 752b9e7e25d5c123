package tablecore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

func (s *step) fillScan(r *rand.Rand) {
	k := s.table
	if r.IntN(3) == 0 {
		back := int64(r.IntN(12)) - 1
		s.back, s.byTime = &back, r.IntN(2) == 0
	}
	if r.IntN(4) == 0 {
		for _, i := range r.Perm(k.schema.NumFields())[:1+r.IntN(k.schema.NumFields())] {
			s.query.Columns = append(s.query.Columns, k.schema.Field(i).Name)
		}
		if r.IntN(3) == 0 {
			s.query.Columns = append(s.query.Columns, extraColumn)
		}
	}
	if r.IntN(3) == 0 {
		s.query.Entities = []map[string]any{}
		for range r.IntN(4) {
			id := map[string]any{}
			for i, name := range k.options.EntityColumns {
				if r.IntN(4) > 0 {
					id[name] = k.entity(r.IntN(12))[i]
				}
			}
			s.query.Entities = append(s.query.Entities, id)
		}
	}
	if r.IntN(3) == 0 {
		s.query.First = s.bound(r)
	}
	if r.IntN(3) == 0 {
		s.query.Last = s.bound(r)
	}
	s.backward = s.query.First != nil && s.query.Last != nil && s.query.First.Cmp(s.query.Last) > 0
	if r.IntN(3) == 0 {
		s.query.Filter = append(s.query.Filter, s.condition(r))
		if r.IntN(3) == 0 {
			s.query.Filter = append(s.query.Filter, s.condition(r))
		}
	}
	if r.IntN(4) == 0 {
		limit := []int64{0, 1, 2, 7, 1000}[r.IntN(5)]
		s.limit = &limit
	}
	if r.IntN(12) == 0 {
		s.query.Filter = append(s.query.Filter, tabletest.ModelCondition{Column: extraColumn, Op: []string{"is null", "is not null"}[r.IntN(2)]})
	}
	order := r.IntN(5)
	s.query.NewestFirst, s.any = order == 0, order == 1
	s.batch = []int{0, 0, 1, 3, 100}[r.IntN(5)]
	s.splits = []int{1, 1, 1, 2, 5}[r.IntN(5)]
	s.profile = []string{"", "compat", "exact"}[r.IntN(3)]
}

// condition is one on a column that every form of the table has, with values
// that rows have.
func (s *step) condition(r *rand.Rand) tabletest.ModelCondition {
	fields := s.table.schema.NumFields()
	if s.table.adopts {
		fields-- // the last column may be missing, or of another type
	}
	at := r.IntN(fields)
	c := tabletest.ModelCondition{Column: s.table.schema.Field(at).Name,
		Op: []string{"=", "!=", "<", "<=", ">", ">=", "in", "is null", "is not null"}[r.IntN(9)]}
	count := 1
	switch c.Op {
	case "in":
		count = r.IntN(4)
	case "is null", "is not null":
		return c
	}
	for len(c.Values) < count {
		v := s.row(r, int64(r.IntN(1200))-40, r.IntN(12))[at]
		if f, ok := v.(float64); v == nil || ok && math.IsInf(f, 0) {
			switch s.table.schema.Field(at).Type.ID() { // of a column with nulls or infinities
			case arrow.FLOAT64:
				v = 0.0
			case arrow.STRING:
				v = ""
			default:
				v = int64(0)
			}
		}
		c.Values = append(c.Values, v)
	}
	return c
}

// bound is an index value at, or one tick beside, one that rows have.
func (s *step) bound(r *rand.Rand) *big.Int {
	v := new(big.Int)
	switch x := s.table.index(int64(r.IntN(1200)) - 40).(type) {
	case int64:
		v.SetInt64(x)
	case uint64:
		v.SetUint64(x)
	}
	return v.Add(v, big.NewInt(int64(r.IntN(3))-1))
}

// byTime asks for a version by the time of its commit, which is its alone; where
// there is no such version the scan goes on asking for it by number.
func (w *modelWorker) byTime(ctx context.Context, table *tablecore.Table, o *tablecore.ScanOptions) {
	d, err := table.Describe(ctx, tablecore.At{Version: o.Version, TableID: o.TableID})
	if err == nil {
		o.Version, o.AsOf = nil, &d.CommittedAt.Time
	}
}

func (w *modelWorker) scan(ctx context.Context, table *tablecore.Table, s *step, r *record) error {
	o := tablecore.ScanOptions{Columns: s.query.Columns, BatchRows: s.batch, Profile: s.profile, TableID: r.ID}
	if s.back != nil {
		v := w.known[r.ID] - *s.back
		o.Version, r.Asked = &v, &v
		if s.byTime {
			w.byTime(ctx, table, &o)
		}
	}
	if s.query.Entities != nil {
		o.Entities = []tablecore.EntityFilter{}
		for _, id := range s.query.Entities {
			filter := tablecore.EntityFilter{}
			for name, value := range id {
				filter[name] = jsonOf(value)
			}
			o.Entities = append(o.Entities, filter)
		}
	}
	if s.query.First != nil {
		o.Start = json.RawMessage(s.query.First.String())
	}
	if s.query.Last != nil {
		o.End = json.RawMessage(new(big.Int).Add(s.query.Last, big.NewInt(1)).String())
	}
	for _, c := range s.query.Filter {
		o.Filter = append(o.Filter, conditionOf(c))
	}
	o.Limit, o.NewestFirst = s.limit, s.query.NewestFirst
	if s.any {
		o.Order = "unordered"
	}
	plan, err := table.PlanScan(ctx, o)
	if err != nil {
		return err
	}
	r.Version, r.RowCount = plan.Version(), plan.Rows()
	rows, err := scanInParts(ctx, table, plan, o, s.splits)
	for _, row := range rows {
		r.Rows = append(r.Rows, row.String())
	}
	return err
}

// conditionOf writes a condition as a caller does.
func conditionOf(c tabletest.ModelCondition) tablecore.Condition {
	out := tablecore.Condition{Column: c.Column, Op: c.Op}
	texts := []json.RawMessage{}
	for _, v := range c.Values {
		texts = append(texts, jsonOf(v))
	}
	switch {
	case c.Op == "in":
		out.Value = jsonOf(texts)
	case len(texts) == 1:
		out.Value = texts[0]
	}
	return out
}

func jsonOf(v any) json.RawMessage {
	if f, ok := v.(float64); ok && math.IsNaN(f) {
		return json.RawMessage(`"NaN"`)
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and finite numbers always marshal
	}
	return text
}

// scanInParts runs a plan, or the parts it is divided into one after another.
func scanInParts(ctx context.Context, table *tablecore.Table, plan *tablecore.ScanPlan, o tablecore.ScanOptions, parts int) ([]tabletest.Row, error) {
	if parts <= 1 {
		return tabletest.ScanRows(ctx, plan)
	}
	splits, err := plan.Splits(ctx, parts)
	if err != nil {
		return nil, err
	}
	version := plan.Version()
	o.Version, o.AsOf = &version, nil
	var all []tabletest.Row
	for i, info := range splits {
		o.Split = &tablecore.Split{Index: i, Count: len(splits)}
		part, err := table.PlanScan(ctx, o)
		if err != nil {
			return nil, err
		}
		rows, err := tabletest.ScanRows(ctx, part)
		if err != nil {
			return nil, err
		}
		if info.Rows >= 0 && int64(len(rows)) != info.Rows && o.Filter == nil {
			return nil, fmt.Errorf("part %d of %d has %d rows, %d were promised", i, len(splits), len(rows), info.Rows)
		}
		all = append(all, rows...)
	}
	return all, nil
}

func (c *checker) checkScan(r *record, l *life, s *step) {
	lo, hi := l.window(r)
	version := r.Version
	switch {
	case r.Token == tableerr.TokenVersionNotFound:
		if r.Asked == nil || *r.Asked >= 0 && *r.Asked <= lo {
			c.report(r, "version %v is there", *r.Asked)
		}
		return
	case r.Token != "" && r.Asked == nil: // about whatever was current
		version = lo
	case r.Asked != nil:
		version = *r.Asked
		if r.Token == "" && r.Version != version || version > hi || version < 0 {
			c.report(r, "read version %d instead of %d in %s", r.Version, version, windowText(l, r))
			return
		}
	case !l.within(r, version):
		c.report(r, "read version %d of %s", version, windowText(l, r))
		return
	}
	invalid := c.invalidScan(l, s, version)
	if r.Token == tableerr.TokenInvalid && (invalid || r.Asked == nil && c.invalidScan(l, s, hi)) {
		return
	}
	if r.Token != "" || invalid {
		c.report(r, "answered %q, invalid is %t", r.Token, invalid)
		return
	}
	var want []string
	for _, row := range l.model.Scan(s.query, version) {
		want = append(want, row.String())
	}
	if s.limit != nil && !s.any {
		want = want[:min(len(want), int(*s.limit))]
	}
	if !slices.Equal(r.Rows, want) && !(s.any && sameRows(r.Rows, want, s.limit)) {
		c.report(r, "version %d of %s holds\n  %s\nthe scan gave\n  %s", version, l.table.name, strings.Join(want, "\n  "), strings.Join(r.Rows, "\n  "))
	}
	if r.RowCount >= 0 && r.RowCount != int64(len(r.Rows)) {
		c.report(r, "the plan promised %d rows, there are %d", r.RowCount, len(want))
	}
}

// sameRows says whether an unordered scan gave the rows that are wanted, or as
// many of them as its limit allows.
func sameRows(got, want []string, limit *int64) bool {
	if limit != nil && int(*limit) < len(want) && len(got) != int(*limit) || limit == nil && len(got) != len(want) {
		return false
	}
	left := map[string]int{}
	for _, row := range want {
		left[row]++
	}
	for _, row := range got {
		if left[row]--; left[row] < 0 {
			return false
		}
	}
	return limit == nil || len(got) == min(len(want), int(*limit))
}

// invalidScan says whether the scan names columns that the version lacks, or asks
// for a range that ends before it begins.
func (c *checker) invalidScan(l *life, s *step, version int64) bool {
	schema := l.model.Schema(version)
	for _, name := range s.query.Columns {
		if schema == nil || !schema.HasField(name) {
			return true
		}
	}
	for _, condition := range s.query.Filter {
		if schema != nil && !schema.HasField(condition.Column) {
			return true
		}
	}
	return schema != nil && s.backward
}
