package tablecore

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/maintain"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/tableerr"
)

const (
	// maintenanceTimeout bounds one piece of a run, so that a store that hangs
	// does not keep other tables waiting for ever.
	maintenanceTimeout = time.Hour
	// maintenanceEvery is how long a table that is written to goes at most without
	// a look at it.
	maintenanceEvery = time.Hour
	// maintenanceTargets times the target size is about how much is merged in one
	// commit: what a process that ends loses.
	maintenanceTargets = 4
	// defaultQuiet is how long nobody must have committed before a run begins, and
	// maxDisturbances how often that long is waited for at most.
	defaultQuiet    = 2 * time.Second
	maxDisturbances = 30
	// maxPatience times 2 is by how much more than usual a process lets happen
	// between two looks when its runs come to nothing.
	maxPatience = 6
)

// Maintenance says how the tables of a warehouse are kept in order in the
// background: small files are merged, and rows beyond contrail.retention
// dropped. The zero value means the defaults.
type Maintenance struct {
	// Off switches it off. A table's own property contrail.maintenance does so for
	// one table.
	Off bool
	// MergeFiles is how many small files of about one size gather before they are
	// merged; default 32, at least 2.
	MergeFiles int
	// Quiet is how long nothing must have been committed to a table before a run
	// begins, so that it does not come between the commits of a writer who counts
	// on being alone; one who never pauses puts it off by thirty times that.
	// Default 2 s; below 0 it begins at once.
	Quiet time.Duration
}

// maintainer keeps one table in order, in the background. A run begins after a
// commit of this process and goes on while there is something to do; the commit's
// answer does not wait for it. Only one runs at a time on a table, and in a
// warehouse only one works on rows at a time. A run that fails costs readers time
// and nothing else.
type maintainer struct {
	table *Table

	mu      sync.Mutex
	running bool
	looked  bool
	version int64     // that was looked at last
	at      time.Time // when
	// patience grows with the runs in a row that came to nothing, because they
	// failed or because another process did the same and was quicker.
	patience int
}

// consider starts a run where so much has been committed since the last one that
// there may be something to do.
func (m *maintainer) consider(s *snapshot.Snapshot) {
	if !m.wanted(s) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running || !m.due(s.Version()) {
		return
	}
	m.running = m.table.warehouse.runInBackground(func() {
		defer m.done()
		if m.settled() {
			m.run()
		}
	})
}

// settled waits until the table is left alone. It is false when the warehouse was
// closed meanwhile.
func (m *maintainer) settled() bool {
	quiet := m.table.warehouse.opts.Maintenance.Quiet
	for range maxDisturbances {
		before := m.table.txn.Current().Version()
		select {
		case <-time.After(quiet):
		case <-m.table.warehouse.closing:
			return false
		}
		if m.table.txn.Current().Version() == before {
			break
		}
	}
	return true
}

// wanted says whether a version is one of a table that is maintained, and may
// need it. It is asked before a commit is answered.
func (m *maintainer) wanted(s *snapshot.Snapshot) bool {
	o := m.table.warehouse.opts.Maintenance
	if o.Off || s.Layout == nil || len(s.Files) < o.MergeFiles && s.Def.RetentionTicks() == 0 {
		return false
	}
	return s.Def.Maintained() && s.CheckWritable() == nil
}

func (m *maintainer) due(version int64) bool {
	every := int64(m.table.warehouse.opts.Maintenance.MergeFiles) << m.patience
	return !m.looked || version >= m.version+every || m.now().Sub(m.at) >= maintenanceEvery<<m.patience
}

func (m *maintainer) now() time.Time { return m.table.warehouse.opts.Clock() }

func (m *maintainer) done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = false
}

// look notes that a version has been looked at.
func (m *maintainer) look(s *snapshot.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looked, m.version, m.at = true, s.Version(), m.now()
}

// came notes whether a piece of a run came to something.
func (m *maintainer) came(toSomething bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if toSomething {
		m.patience = 0
	} else {
		m.patience = min(m.patience+1, maxPatience)
	}
}

// run does what is to be done, piece by piece.
func (m *maintainer) run() {
	for {
		ctx, cancel := m.table.warehouse.untilClosed(maintenanceTimeout)
		more, err := m.piece(ctx)
		closed := context.Cause(ctx) == errClosed
		cancel()
		switch {
		case closed, tableerr.TokenOf(err) == tableerr.TokenTableNotFound:
			return
		case errors.Is(err, maintain.ErrNothingLeft):
			m.came(false)
			return
		case err != nil:
			m.came(false)
			m.table.warehouse.opts.Events.warn(context.Background(), "maintenance failed", map[string]any{
				"table": m.table.name.String(), "error": err.Error()})
			return
		case !more:
			return
		}
		m.came(true)
	}
}

// piece makes one commit, or finds that there is nothing to do. The newest
// version in memory is enough to find that out.
func (m *maintainer) piece(ctx context.Context) (more bool, err error) {
	s := m.table.txn.Current()
	m.look(s)
	if m.plan(s) == nil {
		return false, nil
	}
	leave, err := m.table.warehouse.enterMaintenance(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	if s, err = m.table.txn.Refresh(ctx); err != nil {
		return false, err
	}
	m.look(s)
	if !m.wanted(s) {
		return false, nil
	}
	step := m.plan(s)
	if step == nil {
		return false, nil
	}
	return true, step(ctx, leave)
}

// step makes a commit. It calls written when it is done with the table's rows.
type step func(ctx context.Context, written func()) error

// plan returns what is to be done first in a version, nil for nothing.
func (m *maintainer) plan(s *snapshot.Snapshot) step {
	if drop := maintain.PlanRetention(s); !drop.Empty() {
		return func(ctx context.Context, written func()) error { return m.retain(ctx, drop, written) }
	}
	tiers := maintain.PlanTiers(s, maintain.TierConfig{MergeFiles: m.table.warehouse.opts.Maintenance.MergeFiles,
		MaxBytes: maintenanceTargets * s.Def.TargetFileBytes()})
	if tiers.Empty() {
		return nil
	}
	return func(ctx context.Context, written func()) error { return m.merge(ctx, tiers, written) }
}

// merge writes and commits merged files.
func (m *maintainer) merge(ctx context.Context, plan *maintain.Optimize, written func()) error {
	t := m.table
	report := &OptimizeReport{StartingVersion: plan.Base().Version()}
	err := t.rewriteFiles(ctx, plan, t.rewriter(), rewriting{operation: maintain.OpOptimize,
		written: func() {
			written()
			t.delicate.wait(ctx)
		},
		report: func(s *snapshot.Snapshot) any {
			report.CommittedVersion = s.Version() + 1
			report.count(plan.Counts(s))
			return report
		}})
	if err != nil {
		return err
	}
	t.warehouse.opts.Events.info(ctx, "small files merged", map[string]any{"table": t.name.String(), "version": report.CommittedVersion,
		"files_in": report.FilesIn, "files_out": report.FilesOut, "bytes_in": report.BytesIn, "bytes_out": report.BytesOut, "rows": report.Rows})
	return nil
}

// RetentionReport is what a commit that drops old rows says in the history.
type RetentionReport struct {
	StartingVersion  int64 `json:"starting_version"`
	CommittedVersion int64 `json:"committed_version"`
	FilesRemoved     int   `json:"files_removed"`
	RowsRemoved      int64 `json:"rows_removed"`
	BytesRemoved     int64 `json:"bytes_removed"`
	// Before is the index value that all the rows lay before.
	Before any `json:"before"`
}

// retain commits a version without the rows that are too old.
func (m *maintainer) retain(ctx context.Context, plan *maintain.Retention, written func()) error {
	t := m.table
	id, err := t.warehouse.newUUID()
	if err != nil {
		return err
	}
	written()
	t.delicate.wait(ctx)
	report := &RetentionReport{StartingVersion: plan.Base().Version()}
	_, err = t.txn.Publish(ctx, &txn.Edit{ID: id, Operation: maintain.OpRetention, RequestID: id, Base: plan.Base(),
		Row: txn.RowRewrite, Revalidate: plan.Revalidate,
		Commit: func(s *snapshot.Snapshot) (*deltalog.Commit, error) {
			d := plan.Dropped(s)
			report.CommittedVersion = s.Version() + 1
			report.FilesRemoved, report.RowsRemoved, report.BytesRemoved, report.Before = d.Files, d.Rows, d.Bytes, d.Before
			text, err := json.Marshal(report)
			if err != nil {
				return nil, err
			}
			return plan.Commit(txn.Extra(maintain.OpRetention, id, text)), nil
		}})
	if err != nil {
		return err
	}
	t.warehouse.opts.Events.info(ctx, "old rows dropped", map[string]any{"table": t.name.String(), "version": report.CommittedVersion,
		"files": report.FilesRemoved, "rows": report.RowsRemoved, "bytes": report.BytesRemoved, "before": report.Before})
	return nil
}

// errClosed is the cause of a context that ended because the warehouse was
// closed.
var errClosed = errors.New("the warehouse is closed")

// untilClosed returns a context that ends when the warehouse is closed.
func (w *Warehouse) untilClosed(timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	ctx, cancelWith := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-w.closing:
			cancelWith(errClosed)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// enterMaintenance waits for the turn to work on a table's rows. leave, which may
// be called twice, gives it back.
func (w *Warehouse) enterMaintenance(ctx context.Context) (leave func(), err error) {
	select {
	case w.maintaining <- struct{}{}:
		return sync.OnceFunc(func() { <-w.maintaining }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// undisturbed notes a call that may follow one version only, if there is one, until end
// is called.
func (t *Table) undisturbed(expected *int64) (end func()) {
	if expected == nil {
		return func() {}
	}
	return t.delicate.begin()
}

// calls are those under way that fail when anything is committed meanwhile. It
// is safe for concurrent use.
type calls struct {
	mu    sync.Mutex
	under map[chan struct{}]struct{}
}

// begin notes a call until end is called.
func (c *calls) begin() (end func()) {
	done := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.under == nil {
		c.under = map[chan struct{}]struct{}{}
	}
	c.under[done] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.under, done)
		close(done)
	}
}

// wait returns when all calls that were under way have ended, or ctx has. It
// does not wait for later ones, which may never leave a gap.
func (c *calls) wait(ctx context.Context) {
	c.mu.Lock()
	var under []chan struct{}
	for done := range c.under {
		under = append(under, done)
	}
	c.mu.Unlock()
	for _, done := range under {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}
