package tablecore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/tabletest"
)

// The kinds of step.
const (
	stepAppend     = "append"
	stepScan       = "scan"
	stepDescribe   = "describe"
	stepReopen     = "reopen"
	stepCheckpoint = "checkpoint"
	stepAddColumn  = "add_columns"
	stepSetTeam    = "set_properties"
	stepUpdate     = "update_rows"
	stepOptimize   = "optimize"
	stepCreate     = "create"
	stepDrop       = "drop"
	stepList       = "list"
)

// step is one operation of a script. Nothing in it depends on what steps
// before it answer, so any selection of a script's steps is a script. Versions
// are told relative to the newest one that the worker knows.
type step struct {
	worker int
	kind   string
	table  *modelTable

	// An append. form is what is odd about the stream's schema.
	rows     []tabletest.Row // by the table's schema
	form     string
	batches  int
	expected *int64
	options  tablecore.AppendOptions
	bad      bool
	broken   bool
	pinned   bool // names the table's identity
	staged   bool // stages the rows and commits them

	// column is the one that an update changes; it has rows like an append.
	column string

	// team is the value that set_properties gives the one property, "" to remove
	// it.
	team string

	// An optimize aims at a size, 0 for the table's.
	target   int64
	byEntity bool

	// A scan. back says how far behind the newest version.
	back     *int64
	byTime   bool // asks for the version by its commit's time
	query    tabletest.ModelScan
	backward bool // the range ends before it begins
	limit    *int64
	any      bool // unordered
	batch    int
	splits   int
	profile  string
}

// The forms of a stream's schema.
const (
	formReversed = "columns reversed"
	formNarrow   = "narrower types"
	formMissing  = "last column missing"
	formExtra    = "extra column"
	formTwice    = "first column twice"
	formOther    = "last column a double"
)

func (s step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "worker %d: %s", s.worker, s.kind)
	if s.table != nil {
		fmt.Fprintf(&b, " %s", s.table.name)
	}
	if s.kind == stepUpdate {
		fmt.Fprintf(&b, " of %q rows %v", s.column, s.rows)
	}
	if s.kind == stepAppend {
		fmt.Fprintf(&b, " in %d batches rows %v", s.batches, s.rows)
		for _, word := range []struct {
			on   bool
			text string
		}{{s.form != "", s.form}, {s.bad, "bad setting"}, {s.broken, "broken stream"}, {s.pinned, "pinned"}, {s.staged, "staged"},
			{s.options.Compression != "", s.options.Compression}, {s.options.RequestID != "", "request id " + s.options.RequestID}, {s.options.MaxRowsPerRowGroup != nil, "row groups of 2"}} {
			if word.on {
				fmt.Fprintf(&b, ", %s", word.text)
			}
		}
	}
	if s.expected != nil {
		fmt.Fprintf(&b, ", expected version newest%+d", *s.expected)
	}
	if s.kind == stepSetTeam {
		fmt.Fprintf(&b, " to %q", s.team)
	}
	if s.kind == stepOptimize {
		fmt.Fprintf(&b, " for files of %d bytes, by entity %t", s.target, s.byEntity)
	}
	if s.kind == stepScan {
		fmt.Fprintf(&b, " columns %q entities %v range [%v, %v] filter %v newest first %t unordered %t batch %d splits %d profile %q",
			s.query.Columns, s.query.Entities, s.query.First, s.query.Last, s.query.Filter, s.query.NewestFirst, s.any, s.batch, s.splits, s.profile)
		if s.limit != nil {
			fmt.Fprintf(&b, " limit %d", *s.limit)
		}
		if s.back != nil {
			fmt.Fprintf(&b, " version newest%+d, by time %t", -*s.back, s.byTime)
		}
	}
	return b.String()
}

// newScript makes a script of n steps for a number of workers.
func newScript(seed uint64, n, workers int) []step {
	r := rand.New(rand.NewPCG(seed, 0))
	var script []step
	for i := range modelTables {
		script = append(script, step{worker: r.IntN(workers), kind: stepCreate, table: &modelTables[i]})
	}
	for len(script) < n {
		s := step{worker: r.IntN(workers), table: &modelTables[r.IntN(len(modelTables))]}
		switch k := r.IntN(100); {
		case k < 48:
			s.kind = stepAppend
			s.fillAppend(r, int64(len(script)))
			s.fillRequest(r, script)
			s.staged = s.options.RequestID == "" && s.expected == nil && r.IntN(4) == 0
		case k < 54:
			s.kind = stepUpdate
			s.fillUpdate(r, script, int64(len(script)))
		case k < 58:
			s.kind, s.byEntity = stepOptimize, r.IntN(3) == 0
			s.target = []int64{0, 0, 1, 4000, 20_000}[r.IntN(5)]
			s.expected = someVersion(r, 4)
		case k < 78:
			s.kind = stepScan
			s.fillScan(r)
		case k < 80:
			s.kind = stepAddColumn
			s.expected = someVersion(r, 3)
		case k < 82:
			s.kind, s.team = stepSetTeam, []string{"", "ops", "dev"}[r.IntN(3)]
			s.expected = someVersion(r, 3)
		case k < 88:
			s.kind = stepDescribe
		case k < 91:
			s.kind, s.table = stepReopen, nil
		case k < 94:
			s.kind = stepCheckpoint
		case k < 96:
			s.kind, s.table = stepList, nil
		case k < 99:
			s.kind = stepCreate
		default:
			s.kind = stepDrop
			s.expected = someVersion(r, 2)
		}
		script = append(script, s)
	}
	return script
}

// someVersion is absent, the newest known version, or one near it.
func someVersion(r *rand.Rand, rarely int) *int64 {
	if r.IntN(rarely) > 0 {
		return nil
	}
	v := []int64{0, 0, 0, -1, 1}[r.IntN(5)]
	return &v
}

// fillUpdate takes the keys of rows that an earlier step appends, or seldom such
// as no step does, in a table whose rows have keys of their own. Most updates
// follow the version that the worker knows.
func (s *step) fillUpdate(r *rand.Rand, script []step, number int64) {
	for s.table.options.Uniqueness == "none" {
		s.table = &modelTables[r.IntN(len(modelTables))]
	}
	near := []int64{0, 0, 0, 0, 0, -1, 1}[r.IntN(7)]
	s.expected = &near
	s.column = s.table.schema.Field(s.table.schema.NumFields() - 1).Name
	if r.IntN(8) == 0 {
		s.column = extraColumn
	}
	for back := range 60 {
		from := len(script) - 1 - back
		if from < 0 || len(s.rows) >= 6 {
			break
		}
		if t := &script[from]; t.kind == stepAppend && t.table == s.table && r.IntN(3) > 0 {
			for _, row := range t.rows {
				if !slices.Contains(row[:s.table.schema.NumFields()-1], nil) && r.IntN(2) == 0 {
					row = slices.Clone(row)
					payload := s.table.payload(r)
					row[len(row)-1] = payload[len(payload)-1]
					s.rows = append(s.rows, row)
				}
			}
		}
	}
	if r.IntN(10) == 0 {
		s.rows = append(s.rows, s.row(r, number*12, 1))
	}
}

// update returns what an update sends: the key columns and the one that changes.
func (s *step) update(expected int64) tabletest.ModelUpdate {
	u := tabletest.ModelUpdate{Column: s.column, Expected: expected}
	var fields []arrow.Field
	var places []int
	last := s.table.schema.NumFields() - 1
	for i, f := range s.table.schema.Fields() {
		if f.Name == s.table.options.IndexColumn || slices.Contains(s.table.options.EntityColumns, f.Name) {
			fields, places = append(fields, f), append(places, i)
		}
	}
	changed := s.table.schema.Field(last)
	changed.Name = s.column
	u.Schema = arrow.NewSchema(append([]arrow.Field{changed}, fields...), nil)
	for _, row := range s.rows {
		out := tabletest.Row{row[last]}
		for _, at := range places {
			out = append(out, row[at])
		}
		u.Rows = append(u.Rows, out)
	}
	return u
}

// fillAppend makes rows that are new more often than not: number is what no
// other step has.
func (s *step) fillAppend(r *rand.Rand, number int64) {
	fresh := r.IntN(5) > 1
	count := []int{0, 1, 1, 2, 3, 5, 8, 12}[r.IntN(8)]
	for i := range count {
		interval := number*12 + int64(i)
		if !fresh {
			interval = int64(r.IntN(400)) - 40
		}
		s.rows = append(s.rows, s.row(r, interval, r.IntN(12)))
	}
	switch {
	case count > 1 && r.IntN(12) == 0: // a duplicate
		s.rows[r.IntN(count)] = slices.Clone(s.rows[r.IntN(count)])
	case count > 0 && r.IntN(16) == 0: // a null, where one may be or not
		s.rows[r.IntN(count)][r.IntN(s.table.schema.NumFields())] = nil
	}
	s.batches = 1 + r.IntN(3)
	s.expected = someVersion(r, 4)
	s.pinned = r.IntN(2) == 0
	if r.IntN(8) == 0 {
		s.form = []string{formReversed, formNarrow, formMissing, formExtra, formTwice, formOther}[r.IntN(6)]
	}
	switch r.IntN(12) {
	case 0:
		s.options.Compression = []string{"zstd", "SNAPPY", "lz4_raw", "uncompressed"}[r.IntN(4)]
	case 1:
		two := int64(2)
		s.options.MaxRowsPerRowGroup = &two
	case 2:
		s.broken = r.IntN(2) == 0
	case 3:
		if r.IntN(2) == 0 {
			s.bad, s.options.Compression = true, "rar"
		}
	}
}

// fillRequest gives some appends a request id, and makes some a repetition of
// one before, or of its id with other rows.
func (s *step) fillRequest(r *rand.Rand, script []step) {
	switch r.IntN(8) {
	case 0:
		s.options.RequestID = fmt.Sprint("request ", len(script))
	case 1:
		var before []step
		for _, other := range script {
			if other.table == s.table && other.options.RequestID != "" {
				before = append(before, other)
			}
		}
		if len(before) == 0 {
			return
		}
		first := before[r.IntN(len(before))]
		s.options.RequestID = first.options.RequestID
		if r.IntN(4) > 0 {
			s.rows = first.rows
		}
	}
}

// row makes a row in the order of the table's schema, in which the index column
// and the entity columns may stand anywhere.
func (s *step) row(r *rand.Rand, interval int64, entity int) tabletest.Row {
	k := s.table
	entities, payload := k.entity(entity), k.payload(r)
	var row tabletest.Row
	for _, f := range k.schema.Fields() {
		at := slices.Index(k.options.EntityColumns, f.Name)
		switch {
		case f.Name == k.options.IndexColumn:
			row = append(row, k.index(interval))
		case at >= 0:
			row = append(row, entities[at])
		default:
			row, payload = append(row, payload[0]), payload[1:]
		}
	}
	return row
}

// stream returns the append's stream: its schema in the form asked for, and
// its rows.
func (s *step) stream() (*arrow.Schema, []tabletest.Row) {
	fields := slices.Clone(s.table.schema.Fields())
	last := len(fields) - 1
	order := make([]int, len(fields)) // columns of the table's schema
	for i := range order {
		order[i] = i
		fields[i].Nullable = true // as pyarrow sends everything
	}
	cast := func(v any) any { return v }
	switch s.form {
	case formReversed:
		slices.Reverse(fields)
		slices.Reverse(order)
	case formNarrow:
		for i, f := range fields {
			if f.Type.ID() == arrow.STRING {
				fields[i].Type = arrow.BinaryTypes.LargeString
			}
		}
	case formMissing:
		fields, order = fields[:last], order[:last]
	case formExtra:
		fields, order = append(fields, s.table.extra()), append(order, last)
	case formTwice:
		fields, order = append(fields, fields[0]), append(order, 0)
	case formOther:
		fields[last].Type = arrow.PrimitiveTypes.Float64
		if s.table.schema.Field(last).Type.ID() == arrow.FLOAT64 {
			fields[last].Type = arrow.PrimitiveTypes.Int64
		}
		cast = func(any) any { return nil }
	}
	var rows []tabletest.Row
	for _, from := range s.rows {
		var row tabletest.Row
		for i, column := range order {
			v := from[column]
			if i == last {
				v = cast(v)
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	return arrow.NewSchema(fields, nil), rows
}
