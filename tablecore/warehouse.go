package tablecore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"

	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/ingest"
	"contrail/tablecore/internal/series"
	"contrail/tablecore/internal/staging"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Warehouse is a directory of tables. It is safe for concurrent use, also by
// several processes on one store.
type Warehouse struct {
	opts   Options
	cache  *filecache.Cache
	series *series.Cache
	budget *ingest.Budget   // of all appends
	rows   memory.Allocator // of what appends buffer

	mu     sync.Mutex
	tables map[tabledef.Name]*Table
	closed bool

	random      sync.Mutex // guards opts.Random
	signing     sync.Mutex // guards signingKey
	signingKey  *staging.Key
	background  sync.WaitGroup
	closing     chan struct{} // closed when the warehouse is
	maintaining chan struct{} // holds the turn of whoever maintains a table
}

// Open returns the warehouse in opts.Store. It reads nothing.
func Open(ctx context.Context, opts Options) (*Warehouse, error) {
	if opts.Store == nil {
		return nil, errors.New("tablecore: Options.Store is missing")
	}
	rows := opts.Allocator
	if rows == nil {
		rows = ingest.OffHeap()
	}
	opts = opts.withDefaults()
	if opts.StagedLifetime > MaxStagedLifetime {
		return nil, fmt.Errorf("tablecore: Options.StagedLifetime is %v, more than %v", opts.StagedLifetime, MaxStagedLifetime)
	}
	return &Warehouse{opts: opts, rows: rows, cache: filecache.New(), series: series.NewCache(opts.SeriesMemory), budget: ingest.NewBudget(opts.MemoryBudget), tables: map[tabledef.Name]*Table{},
		closing: make(chan struct{}), maintaining: make(chan struct{}, 1)}, ctx.Err()
}

// Close ends maintenance, waits for other background work and gives the store
// back. Tables and plans must not be used any more.
func (w *Warehouse) Close() error {
	w.mu.Lock()
	if !w.closed {
		close(w.closing)
	}
	w.closed = true
	tables := w.tables
	w.tables = nil
	w.mu.Unlock()
	w.background.Wait()
	var errs []error
	for _, t := range tables {
		errs = append(errs, t.store.Close())
	}
	return errors.Join(append(errs, w.opts.Store.Close())...)
}

// Table returns the handle of a table, shared by all callers. It looks whether
// the name still leads to the table it knows. TABLE_NOT_FOUND when there is
// none.
func (w *Warehouse) Table(ctx context.Context, name tabledef.Name) (*Table, error) {
	w.mu.Lock()
	t := w.tables[name]
	w.mu.Unlock()
	if t != nil {
		current, err := t.store.Current(ctx)
		if err != nil {
			return nil, t.wrap(storeError(err))
		}
		if current {
			return t, nil
		}
		w.forget(t)
	}
	return w.open(ctx, name)
}

// forget drops a handle whose name leads elsewhere now. Its store stays open
// for the scans that go on; it is given back with the last of them.
func (w *Warehouse) forget(t *Table) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tables[t.name] == t {
		delete(w.tables, t.name)
	}
}

// open opens a table and makes its handle the shared one.
func (w *Warehouse) open(ctx context.Context, name tabledef.Name) (*Table, error) {
	store, err := w.opts.Store.Sub(ctx, name.Dir(), false)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, notFound(name)
	}
	if err != nil {
		return nil, tableerr.WithTable(storeError(err), name.String())
	}
	t, err := newTable(ctx, w, name, store)
	if err != nil {
		return nil, errors.Join(tableerr.WithTable(err, name.String()), store.Close())
	}
	return w.share(t)
}

// share registers a handle, unless another one came first.
func (w *Warehouse) share(t *Table) (*Table, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errors.Join(errors.New("tablecore: the warehouse is closed"), t.store.Close())
	}
	if first := w.tables[t.name]; first != nil {
		return first, t.store.Close()
	}
	w.tables[t.name] = t
	return t, nil
}

// TableNames lists the tables of a namespace, or of all with "", by name. It
// opens none of them.
func (w *Warehouse) TableNames(ctx context.Context, namespace string) ([]tabledef.Name, error) {
	namespaces := []string{namespace}
	if namespace == "" {
		var err error
		if namespaces, err = w.opts.Store.ListDirs(ctx, ""); err != nil {
			return nil, storeError(err)
		}
	}
	var names []tabledef.Name
	for _, ns := range namespaces {
		if tabledef.CheckNamePart("namespace", ns) != nil {
			continue // _trash and whatever else lies there
		}
		dirs, err := w.opts.Store.ListDirs(ctx, ns)
		if err != nil {
			return nil, storeError(err)
		}
		for _, dir := range dirs {
			name, err := tabledef.NameFromParts([]string{ns, dir})
			if err != nil {
				continue
			}
			if is, err := w.isTable(ctx, name); err != nil {
				return nil, err
			} else if is {
				names = append(names, name)
			}
		}
	}
	slices.SortFunc(names, func(a, b tabledef.Name) int { return strings.Compare(a.String(), b.String()) })
	return names, nil
}

// isTable says whether a directory holds a log.
func (w *Warehouse) isTable(ctx context.Context, name tabledef.Name) (bool, error) {
	for _, err := range w.opts.Store.List(ctx, name.Dir()+"/_delta_log/", "") {
		if err != nil {
			return false, storeError(err)
		}
		return true, nil
	}
	return false, nil
}

// ListTables describes the tables of a namespace, or of all with "", in one
// line each. A table that cannot be opened has its name alone.
func (w *Warehouse) ListTables(ctx context.Context, namespace string) ([]TableSummary, error) {
	names, err := w.TableNames(ctx, namespace)
	if err != nil {
		return nil, err
	}
	summaries := make([]TableSummary, 0, len(names))
	for _, name := range names {
		s, err := w.summary(ctx, name)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if tableerr.TokenOf(err) == tableerr.TokenTableNotFound {
			continue // dropped meanwhile
		}
		summaries = append(summaries, s)
	}
	return summaries, nil
}

func (w *Warehouse) summary(ctx context.Context, name tabledef.Name) (TableSummary, error) {
	s := TableSummary{Table: name.String()}
	t, err := w.Table(ctx, name)
	if err != nil {
		return s, err
	}
	snap, err := t.txn.Refresh(ctx)
	if err != nil {
		return s, err
	}
	version, files, format, bytes := snap.Version(), int64(len(snap.Files)), snap.Def.Format.String(), snap.Bytes
	committed := committedAt(snap)
	s.Version, s.CommittedAt, s.FormatVersion, s.Files, s.Bytes = &version, &committed, &format, &files, &bytes
	if snap.Rows >= 0 {
		rows := snap.Rows
		s.Rows = &rows
	}
	return s, nil
}

func notFound(name tabledef.Name) error {
	return &tableerr.TableNotFound{About: tableerr.About{Table: name.String()}}
}

// newUUID returns a random UUID from the warehouse's source.
func (w *Warehouse) newUUID() (string, error) {
	w.random.Lock()
	defer w.random.Unlock()
	id, err := uuid.NewRandomFromReader(w.opts.Random)
	if err != nil {
		return "", fmt.Errorf("reading random bytes: %w", err)
	}
	return id.String(), nil
}
