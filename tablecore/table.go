package tablecore

import (
	"context"
	"sync/atomic"
	"time"

	"contrail/tablecore/internal/attempt"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/series"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/statecache"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Table is the handle of an open table, shared by all its users and safe for
// concurrent use. It holds the table's directory, not its name: after a drop
// what is under way goes on.
type Table struct {
	warehouse *Warehouse
	name      tabledef.Name
	store     objstore.Store
	log       *deltalog.Log
	txn       *txn.Table
	files     *filecache.Files
	series    *series.Table
	attempts  *attempt.Running
	pins      pins

	lastSpan    atomic.Pointer[spanFiles] // of incremental scans
	checkpoints checkpointer
	states      *statecache.Cache
	stateWriter stateWriter
	maintainer  maintainer
	delicate    calls
}

// At says which version of a table is meant. The zero value is the newest.
type At struct {
	Version *int64
	// AsOf means the newest version that was committed at or before it. It does
	// not go together with Version.
	AsOf *time.Time
	// TableID, when not empty, must be the table's identity: a table that was
	// dropped and made again is TABLE_NOT_FOUND.
	TableID string
}

func newTable(ctx context.Context, w *Warehouse, name tabledef.Name, store objstore.Store) (*Table, error) {
	t := &Table{warehouse: w, name: name, store: store}
	t.log = deltalog.New(store, deltalog.Options{AllowExternalPaths: w.opts.AllowExternalPaths, Allocator: w.opts.Allocator,
		CheckProperties: checkFormat})
	t.files = w.cache.Files(store, w.opts.Batches, t.damaged)
	t.series = w.series.Table(t.files, t.storedSeries, t.stateWriter.considerWhole)
	t.attempts = attempt.New(attempt.Config{Store: store, Clock: w.opts.Clock, NewID: w.newUUID, Failed: t.unseen})
	t.checkpoints.table = t
	t.states = t.openStates()
	t.stateWriter.table = t
	t.maintainer.table = t
	var err error
	t.txn, err = txn.Open(ctx, txn.Config{Store: store, Log: t.log, Clock: w.opts.Clock, Software: w.opts.Software, Committed: t.committed,
		Load: t.states.Load})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// checkFormat refuses a table whose format this software cannot read, whatever
// else it may not understand of it.
func checkFormat(configuration map[string]string) error {
	_, err := tabledef.ReadableFormat(configuration)
	return err
}

// Name returns the name the table was opened by.
func (t *Table) Name() tabledef.Name { return t.name }

// committed runs after each commit of this process, before it is acknowledged.
func (t *Table) committed(s *snapshot.Snapshot, operation string) {
	t.warehouse.opts.Events.committed(context.Background(), t.name.String(), s.Version(), operation)
	t.checkpoints.consider(s)
	t.stateWriter.consider(s)
	t.maintainer.consider(s)
}

// damaged reports derived data that had to be computed again.
func (t *Table) damaged(ctx context.Context, path, reason string) {
	t.warehouse.opts.Events.warn(ctx, "derived data recomputed", map[string]any{"table": t.name.String(), "path": path, "reason": reason})
}

// unseen reports an attempt that could not make itself seen by other processes.
func (t *Table) unseen(ctx context.Context, err error) {
	t.warehouse.opts.Events.warn(ctx, "attempt not noted", map[string]any{"table": t.name.String(), "error": err.Error()})
}

// wrap puts the table's name into an error.
func (t *Table) wrap(err error) error { return tableerr.WithTable(err, t.name.String()) }

// at returns the snapshot that is asked for; the newest after a look into the
// store.
func (t *Table) at(ctx context.Context, at At) (*snapshot.Snapshot, error) {
	var s *snapshot.Snapshot
	var err error
	switch {
	case at.AsOf != nil && at.Version != nil:
		return nil, tableerr.InvalidField("as_of", "as_of and version do not go together")
	case at.AsOf != nil:
		s, err = t.asOf(ctx, *at.AsOf)
	case at.Version != nil:
		s, err = t.txn.At(ctx, *at.Version)
	default:
		s, err = t.txn.Refresh(ctx)
	}
	if err != nil {
		// A table that took the name of a dropped one may lack the version too:
		// that it is another table is the better answer.
		if newest, failed := t.txn.Refresh(ctx); failed == nil && checkID(newest, at.TableID) != nil {
			return nil, checkID(newest, at.TableID)
		}
		return nil, err
	}
	return s, checkID(s, at.TableID)
}

// checkID refuses a request that is meant for another table of this name.
func checkID(s *snapshot.Snapshot, id string) error {
	if id != "" && id != s.Def.ID {
		return &tableerr.TableNotFound{}
	}
	return nil
}

// checkExpected refuses a request that expects another version.
func checkExpected(s *snapshot.Snapshot, expected *int64) error {
	if expected != nil && *expected != s.Version() {
		return &tableerr.VersionConflict{Expected: *expected, Found: s.Version()}
	}
	return nil
}

// newestWritable returns the newest version, for a request that will write on it
// and means the table of an identity, where that is not empty.
func (t *Table) newestWritable(ctx context.Context, id string) (*snapshot.Snapshot, error) {
	s, err := t.txn.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.CheckWritable(); err != nil {
		return nil, err
	}
	return s, checkID(s, id)
}

// committedAt is the time of a snapshot's commit.
func committedAt(s *snapshot.Snapshot) Time {
	ms, ok := s.State.Timestamp()
	if !ok {
		return Time{}
	}
	return Time{time.UnixMilli(ms)}
}
