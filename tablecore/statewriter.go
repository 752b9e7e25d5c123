package tablecore

import (
	"context"
	"errors"
	"sync"
	"time"

	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/series"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/statecache"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// stateTimeout bounds the writing of one state file and its head.
const stateTimeout = 5 * time.Minute

// stateWriter writes a table's state files and head in the background, one at a
// time. One that fails costs later openings time and nothing else.
type stateWriter struct {
	table *Table

	mu      sync.Mutex
	running bool
}

// consider starts the writing of a state when the tail behind the last one has
// become long enough.
func (w *stateWriter) consider(s *snapshot.Snapshot) {
	if w.table.states.Wants(s) {
		w.start(s, w.table.states.Bulk(s))
	}
}

// considerWhole starts the writing of a whole state of a version whose series took
// many files to make, if it is the newest and has none, so that the next process
// need not do that again.
func (w *stateWriter) considerWhole(s *snapshot.Snapshot) {
	if s.Version() >= w.table.txn.Current().Version() && w.table.states.Behind(s) {
		w.start(s, true)
	}
}

func (w *stateWriter) start(s *snapshot.Snapshot, whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running {
		return
	}
	w.running = w.table.warehouse.runInBackground(func() {
		defer w.done()
		ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
		defer cancel()
		if err := w.write(ctx, s, whole); err != nil {
			w.table.warehouse.opts.Events.warn(ctx, "state cache failed", map[string]any{
				"table": w.table.name.String(), "version": s.Version(), "error": err.Error()})
		}
	})
}

func (w *stateWriter) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
}

// write writes the state of a snapshot, with what is known of its series as far
// as that is there, or with all of it.
func (w *stateWriter) write(ctx context.Context, s *snapshot.Snapshot, whole bool) error {
	sections, err := w.sections(ctx, s, whole)
	return errors.Join(err, w.table.states.Write(ctx, s, sections))
}

// sections returns what a state holds of the table's series: that which somebody
// has asked for, or which the last state had, so that who only appends does not
// make it; but all of it for a whole one, when much data has come or many files
// had to be read, which a state saves others.
func (w *stateWriter) sections(ctx context.Context, s *snapshot.Snapshot, whole bool) (sections []derived.Section, err error) {
	if s.Layout == nil || len(s.Files) == 0 {
		return nil, nil
	}
	coverage, newest := w.table.series.Holds(s)
	last := w.table.states.Stored(s.Def.ID, s.Version())
	wants := func(held bool, kind derived.SectionKind) bool {
		return held || whole || last != nil && last.Has(kind)
	}
	var errs []error
	add := func(kind derived.SectionKind, encode func() ([]byte, error)) {
		data, err := encode()
		if err != nil && tableerr.TokenOf(err) != tableerr.TokenUnsupported { // files that are not sorted
			errs = append(errs, err)
		}
		if err == nil && data != nil {
			sections = append(sections, derived.Section{Kind: kind, Data: data})
		}
	}
	if s.Domain.HasIntervals() && wants(coverage, derived.SectionCoverage) {
		add(derived.SectionCoverage, func() ([]byte, error) {
			m, err := w.table.series.Coverage(ctx, s)
			if err != nil {
				return nil, err
			}
			return series.EncodeCoverage(m)
		})
	}
	if wants(newest, derived.SectionNewest) {
		add(derived.SectionNewest, func() ([]byte, error) {
			x, err := w.table.series.Newest(ctx, s)
			if err != nil {
				return nil, err
			}
			return series.EncodeNewest(s, x)
		})
	}
	return sections, errors.Join(errs...)
}

// storedSeries gives back what the last state file at or below a snapshot holds
// of the table's series.
func (t *Table) storedSeries(_ context.Context, s *snapshot.Snapshot) *series.Stored {
	last := t.states.Stored(s.Def.ID, s.Version())
	if last == nil {
		return nil
	}
	m := last.State.Metadata()
	def, err := tabledef.FromMetadata(m.ID, m.SchemaString, m.Configuration)
	if err != nil {
		return nil
	}
	stored := &series.Stored{Def: def,
		Coverage: func(ctx context.Context) []byte { return last.Read(ctx, derived.SectionCoverage) },
		Newest:   func(ctx context.Context) []byte { return last.Read(ctx, derived.SectionNewest) }}
	for _, a := range last.State.Files() {
		path, err := a.File()
		if err != nil {
			return nil
		}
		stored.Paths = append(stored.Paths, path)
	}
	return stored
}

// openStates returns the table's state files and head.
func (t *Table) openStates() *statecache.Cache {
	return statecache.New(statecache.Config{Store: t.store, Log: t.log, Clock: t.warehouse.opts.Clock,
		Ignored: func(ctx context.Context, reason string) {
			t.warehouse.opts.Events.warn(ctx, "head ignored", map[string]any{"table": t.name.String(), "reason": reason})
		}})
}
