// Package attempt lets writers that are at work be seen, so that nobody takes
// the files away that they have written and not committed yet.
//
// A process knows its own attempts from their beginning. For other processes an
// attempt puts a file into the table's `_contrail/attempts`, when it is a minute
// old and then every minute: before that its files are younger than anything a
// vacuum looks at. The file says how old the attempt was when it was put, so
// that the beginning is known by the store's clock alone, whatever the clocks of
// the processes say. An attempt whose file is older than Life is dead.
//
// What an attempt has written is not listed anywhere. All files that nothing
// refers to and that were modified since the first attempt at work began are
// taken to be of one.
package attempt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"contrail/tablecore/internal/parallel"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// Dir holds the files of attempts in a table's directory.
const Dir = "_contrail/attempts/"

const (
	// Life is how long an attempt counts after it was seen last.
	Life = 15 * time.Minute
	// touchEvery is how often an attempt is seen.
	touchEvery = time.Minute
	// slack is by how much the clock of a process and that of the store may
	// differ, and by how much the time of a file is coarser than either.
	slack = time.Minute
	// storeTimeout bounds one request to the store.
	storeTimeout = 30 * time.Second
	// lookups is how many files are looked for at once.
	lookups = 8
)

// Config is what the attempts on a table work with.
type Config struct {
	Store objstore.Store // the table's own
	Clock func() time.Time
	// NewID returns a name that nobody uses.
	NewID func() (string, error)
	// Failed is told why an attempt could not make itself seen. May be nil.
	Failed func(ctx context.Context, err error)
}

// Running are the attempts of this process on one table. It is safe for
// concurrent use.
type Running struct {
	cfg Config

	mu       sync.Mutex
	attempts map[*Attempt]struct{}
}

// New returns the attempts on a table: none yet.
func New(cfg Config) *Running {
	return &Running{cfg: cfg, attempts: map[*Attempt]struct{}{}}
}

// Attempt is one change to a table that is being written. Whoever begins it
// must end it.
type Attempt struct {
	running *Running
	began   time.Time
	timer   *time.Timer
	old     atomic.Bool // it has been at work for a minute

	mu    sync.Mutex
	key   string // of its file, "" before there is one
	ended bool
}

// Begin begins an attempt. It asks nothing of the store for a minute.
func (r *Running) Begin() *Attempt {
	a := &Attempt{running: r, began: r.cfg.Clock()}
	a.mu.Lock() // until there is a timer to set again
	defer a.mu.Unlock()
	a.timer = time.AfterFunc(touchEvery, a.touch)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts[a] = struct{}{}
	return a
}

// touch puts the attempt's file.
func (a *Attempt) touch() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	a.old.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := a.put(ctx); err != nil && a.running.cfg.Failed != nil {
		a.running.cfg.Failed(ctx, err)
	}
	a.timer.Reset(touchEvery)
}

func (a *Attempt) put(ctx context.Context) error {
	if a.key == "" {
		id, err := a.running.cfg.NewID()
		if err != nil {
			return fmt.Errorf("naming an attempt: %w", err)
		}
		a.key = Dir + id
	}
	data, err := json.Marshal(record{AgeMS: a.running.cfg.Clock().Sub(a.began).Milliseconds()})
	if err != nil {
		return err
	}
	return a.running.cfg.Store.Put(ctx, a.key, data)
}

// End ends the attempt, whose files are committed, removed, or left to vacuum.
// It goes on when ctx is done.
func (a *Attempt) End(ctx context.Context) {
	a.timer.Stop()
	a.mu.Lock() // waits for a touch that is under way
	a.ended = true
	a.mu.Unlock()
	a.running.mu.Lock()
	delete(a.running.attempts, a)
	a.running.mu.Unlock()
	if a.key == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	// A file that stays dies by itself.
	_ = a.running.cfg.Store.Delete(ctx, a.key)
}

// Check makes sure, right before a commit, that the files it is to name are
// still there. It asks the store only where the attempt is so old that they may
// have been taken away: the process may have slept longer than Life.
// *tableerr.StoreUnavailable, after which the attempt may be repeated.
func (a *Attempt) Check(ctx context.Context, keys []string) error {
	if !a.old.Load() {
		return nil
	}
	return parallel.Each(ctx, len(keys), lookups, func(ctx context.Context, i int) error {
		if _, err := a.running.cfg.Store.Head(ctx, keys[i]); err != nil {
			return &tableerr.StoreUnavailable{Cause: fmt.Errorf("looking for %s before its commit: %w", keys[i], err)}
		}
		return nil
	})
}

// InFlight looks which attempts are at work on the table, in this process and in
// others.
func (r *Running) InFlight(ctx context.Context) (Flight, error) {
	f := r.own()
	now := r.cfg.Clock()
	for info, err := range r.cfg.Store.List(ctx, Dir, "") {
		if err != nil {
			return f, err
		}
		if Dead(info, now) {
			continue
		}
		data, err := r.cfg.Store.Get(ctx, info.Key)
		if errors.Is(err, objstore.ErrNotExist) {
			continue // it has ended
		}
		if err != nil {
			return f, err
		}
		rec, err := parse(data)
		if err != nil {
			f.join(time.Time{}) // it may have begun at any time
			continue
		}
		f.join(info.Modified.Add(-time.Duration(rec.AgeMS)*time.Millisecond - slack))
	}
	return f, nil
}

// own returns the attempts of this process.
func (r *Running) own() (f Flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for a := range r.attempts {
		f.join(a.began.Add(-slack))
	}
	return f
}

// Dead says whether a file in Dir is of an attempt that has not been seen for
// too long.
func Dead(info objstore.Info, now time.Time) bool { return now.Sub(info.Modified) >= Life }

// Flight says which files may be those of attempts at work. The zero value is
// none.
type Flight struct {
	any   bool
	since time.Time // the first of them began then
}

func (f *Flight) join(began time.Time) {
	if !f.any || began.Before(f.since) {
		f.any, f.since = true, began
	}
}

// Covers says whether a file that nothing refers to, modified at a time, may be
// of an attempt at work.
func (f Flight) Covers(modified time.Time) bool { return f.any && !modified.Before(f.since) }

// record is what an attempt's file says.
type record struct {
	// AgeMS is how old the attempt was when the file was put.
	AgeMS int64 `json:"age_ms"`
}

// maxAge is the oldest that an attempt may say it is: it keeps the arithmetic
// from overflowing.
const maxAge = 10 * 365 * 24 * time.Hour

// parse reads an attempt's file.
func parse(data []byte) (record, error) {
	var r record
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&r)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there are bytes behind it")
		}
	}
	if err == nil && (r.AgeMS < 0 || r.AgeMS > maxAge.Milliseconds()) {
		err = errors.New("it is of no age")
	}
	if err != nil {
		return record{}, fmt.Errorf("the record of an attempt: %w", err)
	}
	return r, nil
}

// IsFile says whether a key is that of an attempt's file.
func IsFile(key string) bool { return strings.HasPrefix(key, Dir) }
