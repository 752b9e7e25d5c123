package tablecore_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/bufpool"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// record is what a step answered. Processes hand records to each other as
// JSON.
type record struct {
	Step       int
	Start, End int64  // ns; also comparable between processes
	ID         string // identity of the table it went to
	Token      tableerr.Token
	Detail     string
	Broken     bool   // the stream's own error came back
	Err        string // an error without a token: never right
	Text       string // any error, to be shown
	Expected   *int64 // the version that was demanded
	Asked      *int64 // the version that was asked for
	Version    int64  // that was committed, read, described or dropped
	Starting   int64
	RowCount   int64
	Replaced   int64  // committed rows that an append took away
	Replayed   bool   // the append was the repetition of another
	NoOp       bool   // there was nothing to optimize
	Team       string // the property, as described or as it was set
	Rows       []string
	Summary    tabletest.ModelSummary
	Tables     []string
}

func (r *record) fail(err error) {
	if err == nil {
		return
	}
	r.Broken = errors.Is(err, errBroken)
	if r.Broken {
		return
	}
	r.Token, r.Detail, r.Text = tableerr.TokenOf(err), tabletest.DetailOf(err), err.Error()
	if r.Token == "" {
		r.Err = err.Error()
	}
}

var errBroken = errors.New("the stream broke")

// sharedStore lets several warehouses use a store, which a test closes itself.
type sharedStore struct{ objstore.Store }

func (sharedStore) Close() error { return nil }

// modelRun runs a script's steps on one store.
type modelRun struct {
	store objstore.Store
	mem   memory.Allocator
	clock *tabletest.Clock
}

func (m *modelRun) open() (*tablecore.Warehouse, error) {
	return tablecore.Open(context.Background(), tablecore.Options{Store: sharedStore{m.store}, Allocator: m.mem, Batches: bufpool.Poison(m.mem), Clock: m.clock.Now, Maintenance: unmaintained})
}

// run runs the steps of some of the workers, each worker's in order on a
// goroutine of its own. mine says which workers run here.
func (m *modelRun) run(ctx context.Context, script []step, mine func(worker int) bool) ([]record, error) {
	shared, err := m.open()
	if err != nil {
		return nil, err
	}
	var (
		mu      sync.Mutex
		records []record
		errs    []error
		group   sync.WaitGroup
	)
	workers := map[int]bool{}
	for _, s := range script {
		if workers[s.worker] || !mine(s.worker) {
			continue
		}
		workers[s.worker] = true
		group.Go(func() {
			w := &modelWorker{run: m, number: s.worker, house: shared, known: map[string]int64{}, seen: map[compared]bool{}}
			err := w.runAll(ctx, script)
			mu.Lock()
			defer mu.Unlock()
			records, errs = append(records, w.records...), append(errs, err)
		})
	}
	group.Wait()
	errs = append(errs, shared.Close())
	return records, errors.Join(errs...)
}

// check makes sure that a check of all tables finds nothing. Nobody may be at
// work: a run takes derived data away beside its writers, and what stands between
// two steps of that is rightly told of.
func (m *modelRun) check(ctx context.Context) error {
	w, err := m.open()
	if err != nil {
		return err
	}
	return errors.Join(clean(ctx, w, false), w.Close())
}

// modelWorker is one goroutine of a run.
type modelWorker struct {
	run     *modelRun
	number  int
	house   *tablecore.Warehouse
	own     *tablecore.Warehouse // house, if no other worker has it
	known   map[string]int64     // newest version of each table that it has seen
	seen    map[compared]bool
	records []record
}

func (w *modelWorker) runAll(ctx context.Context, script []step) (err error) {
	at := 0
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("step %d panicked: %v", at, p)
		}
		if w.own != nil {
			err = errors.Join(err, w.own.Close())
		}
	}()
	for i, s := range script {
		if s.worker != w.number {
			continue
		}
		at = i
		r := record{Step: i, Start: time.Now().UnixNano()}
		r.fail(w.do(ctx, &s, &r))
		r.End = time.Now().UnixNano()
		if r.Token == "" && r.ID != "" && s.kind != stepDrop {
			if err := errors.Join(w.compareSeries(ctx, i, &s, r.ID), w.compareSince(ctx, i, &s, r.ID)); err != nil {
				r.Err = err.Error()
			}
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("step %d did not end: %w", i, err)
		}
		w.records = append(w.records, r)
	}
	return nil
}

// do runs a step; what it answers goes into r.
func (w *modelWorker) do(ctx context.Context, s *step, r *record) error {
	switch s.kind {
	case stepReopen:
		return w.reopen()
	case stepList:
		return w.list(ctx, r)
	case stepCreate:
		d, err := w.house.CreateTable(ctx, s.table.createOptions())
		if err == nil {
			r.ID, r.Version = d.TableID, d.Version
		}
		return err
	}
	table, err := w.house.Table(ctx, s.table.name)
	if err != nil {
		return err
	}
	r.ID = table.ID()
	if s.expected != nil {
		v := w.known[r.ID] + *s.expected
		r.Expected = &v
	}
	switch s.kind {
	case stepAppend:
		err = w.append(ctx, table, s, r)
	case stepScan:
		err = w.scan(ctx, table, s, r)
	case stepDescribe:
		err = w.describe(ctx, table, r)
	case stepCheckpoint:
		return table.WriteCheckpoint(ctx)
	case stepAddColumn:
		err = w.addColumn(ctx, table, s, r)
	case stepSetTeam:
		err = w.setTeam(ctx, table, s, r)
	case stepUpdate:
		err = w.update(ctx, table, s, r)
	case stepOptimize:
		err = w.optimize(ctx, table, s, r)
	case stepDrop:
		var report *tablecore.DropReport
		report, err = w.house.DropTable(ctx, s.table.name, tablecore.DropOptions{ExpectedVersion: r.Expected, TableID: r.ID})
		if err == nil {
			r.Version = report.Version
		}
	}
	if err == nil && r.Asked == nil && !r.Replayed {
		w.known[r.ID] = r.Version
	}
	return err
}

// compared is a version whose series were compared in a warehouse.
type compared struct {
	house   *tablecore.Warehouse
	id      string
	version int64
}

// compareSeries compares coverage and newest rows of the newest version that the
// worker knows, or one near it, with all rows of the version. At times it takes
// all derived data that has a place of its own away before.
func (w *modelWorker) compareSeries(ctx context.Context, number int, s *step, id string) error {
	r := rand.New(rand.NewPCG(uint64(number), uint64(w.number)))
	if r.IntN(10) == 0 {
		if err := w.run.deleteDerived(ctx, s.table.name.Dir()); err != nil {
			return err
		}
	}
	table, err := w.house.Table(ctx, s.table.name)
	if err == nil && table.ID() == id {
		version := max(0, w.known[id]-int64(r.IntN(3))*int64(r.IntN(2)))
		key := compared{w.house, id, version}
		if w.seen[key] && r.IntN(8) > 0 { // it knows already
			return nil
		}
		w.seen[key] = true
		var width *big.Int
		if s.table.width > 0 {
			width = new(big.Int).SetUint64(s.table.width)
		}
		var c *seriesCheck
		if c, err = newSeriesCheck(ctx, table, s.table.createOptions(), version, width); err == nil && c != nil {
			err = c.run(ctx, r)
		}
	}
	if tableerr.TokenOf(err) == tableerr.TokenTableNotFound {
		return nil // another worker dropped it
	}
	return err
}

// deleteDerived deletes what lies in a table's directory for derived data, and
// nothing of those who are at work. The head goes last: whoever puts one
// meanwhile then sees that its state file is gone, and puts it back.
func (m *modelRun) deleteDerived(ctx context.Context, dir string) error {
	var keys []string
	for object, err := range m.store.List(ctx, dir+"/_contrail/", "") {
		if err != nil {
			return err
		}
		if !strings.Contains(object.Key, "/_contrail/staged/") && !strings.Contains(object.Key, "/_contrail/claims/") && !strings.HasSuffix(object.Key, "/_contrail/head") {
			keys = append(keys, object.Key)
		}
	}
	for _, key := range append(keys, dir+"/_contrail/head") {
		if err := m.store.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// reopen gives the worker a warehouse that has nothing in memory.
func (w *modelWorker) reopen() error {
	fresh, err := w.run.open()
	if err != nil {
		return err
	}
	if w.own != nil {
		err = w.own.Close()
	}
	w.house, w.own = fresh, fresh
	return err
}

func (w *modelWorker) list(ctx context.Context, r *record) error {
	tables, err := w.house.ListTables(ctx, "")
	for _, t := range tables {
		r.Tables = append(r.Tables, t.Table)
	}
	return err
}

func (w *modelWorker) append(ctx context.Context, table *tablecore.Table, s *step, r *record) error {
	schema, rows := s.stream()
	stream := tabletest.NewReader(schema)
	if s.broken {
		stream.Err = errBroken
	}
	defer func() {
		for _, b := range stream.Batches {
			b.Release()
		}
	}()
	for i := range s.batches {
		b, err := tabletest.BatchOf(w.run.mem, schema, rows[i*len(rows)/s.batches:(i+1)*len(rows)/s.batches])
		if err != nil {
			return err
		}
		stream.Batches = append(stream.Batches, b)
	}
	o := s.options
	o.ExpectedVersion = r.Expected
	if s.pinned {
		o.TableID = r.ID
	}
	put := table.Append
	if s.staged {
		put = w.stage(table, fmt.Sprint("staged ", r.Step))
	}
	report, err := put(ctx, stream, o)
	if err == nil {
		r.Version, r.Starting, r.RowCount, r.Replaced, r.Replayed = report.CommittedVersion, report.StartingVersion, report.Rows, report.RowsReplaced, report.Replayed
	}
	return err
}

// optimize rewrites a table. Nothing is left to do then, unless somebody else
// was there meanwhile.
func (w *modelWorker) optimize(ctx context.Context, table *tablecore.Table, s *step, r *record) error {
	o := tablecore.OptimizeOptions{ExpectedVersion: r.Expected, TableID: r.ID}
	if s.target > 0 {
		o.TargetFileBytes = &s.target
	}
	if s.byEntity {
		o.Layout = tablecore.LayoutEntity
	}
	report, err := table.Optimize(ctx, o)
	if err != nil {
		return err
	}
	r.Version, r.Starting, r.NoOp = report.CommittedVersion, report.StartingVersion, report.NoOp
	if r.NoOp || r.Version-r.Starting > 1 { // others may have come in between
		return nil
	}
	o.ExpectedVersion, o.DryRun = &r.Version, true
	again, err := table.Optimize(ctx, o)
	if err == nil && !again.NoOp {
		return fmt.Errorf("an optimize after an optimize has something to do: %+v after %+v", again, report)
	}
	return nil
}

func (w *modelWorker) update(ctx context.Context, table *tablecore.Table, s *step, r *record) error {
	*r.Expected = max(0, *r.Expected)
	u := s.update(*r.Expected)
	b, err := tabletest.BatchOf(w.run.mem, u.Schema, u.Rows)
	if err != nil {
		return err
	}
	defer b.Release()
	report, err := table.UpdateRows(ctx, tabletest.NewReader(u.Schema, b), tablecore.UpdateOptions{Columns: []string{u.Column}, ExpectedVersion: u.Expected, TableID: r.ID})
	if err == nil {
		r.Version, r.Starting, r.RowCount = report.CommittedVersion, report.StartingVersion, report.RowsUpdated
	}
	return err
}

func (w *modelWorker) addColumn(ctx context.Context, table *tablecore.Table, s *step, r *record) error {
	report, err := table.AddColumns(ctx, tablecore.AddColumnsOptions{Schema: arrow.NewSchema([]arrow.Field{s.table.extra()}, nil),
		ExpectedVersion: r.Expected, TableID: r.ID})
	if err == nil {
		r.Version, r.Starting = report.CommittedVersion, report.StartingVersion
	}
	return err
}

func (w *modelWorker) setTeam(ctx context.Context, table *tablecore.Table, s *step, r *record) error {
	change := map[string]*string{"team": &s.team}
	if s.team == "" {
		change["team"] = nil
	}
	report, err := table.SetProperties(ctx, tablecore.SetPropertiesOptions{Properties: change, ExpectedVersion: r.Expected, TableID: r.ID})
	if err == nil {
		r.Version, r.Starting, r.Team = report.CommittedVersion, report.StartingVersion, report.Properties["team"]
	}
	return err
}

func (w *modelWorker) describe(ctx context.Context, table *tablecore.Table, r *record) error {
	d, err := table.Describe(ctx, tablecore.At{TableID: r.ID})
	if err != nil {
		return err
	}
	r.Version, r.Team = d.Version, d.Properties["team"]
	r.Summary = tabletest.ModelSummary{Version: d.Version, Rows: d.Rows, Entities: d.Entities,
		IndexMin: rawIndex(d.IndexMin, d.Schema, string(d.IndexColumn)), IndexMax: rawIndex(d.IndexMax, d.Schema, string(d.IndexColumn))}
	return nil
}

// rawIndex undoes the rendering of a described index value.
func rawIndex(v any, schema *arrow.Schema, column string) string {
	text := strings.Trim(fmt.Sprint(v), `"`)
	if v == nil {
		return ""
	}
	fields, _ := schema.FieldsByName(column)
	if fields[0].Type.ID() != arrow.TIMESTAMP {
		return text
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return fmt.Sprint(at.UnixMicro())
}
