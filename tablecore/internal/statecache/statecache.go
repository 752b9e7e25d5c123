// Package statecache keeps a table's state file and its head: what it takes to
// open a table with few reads, however many files and versions it has.
//
// Neither is ever the truth. A state that was read counts only when the log
// holds, byte for byte, the commit it was made with; the commits behind it come
// from the log. What is missing, damaged, of another table, from another history
// or from newer software is ignored, and the log is read without it. No commit
// refers to them, so they may be deleted at any time.
package statecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/objstore"
)

// Config is what a Cache works with.
type Config struct {
	Store objstore.Store // the table's own
	Log   *deltalog.Log
	Clock func() time.Time
	// Ignored is told why a head that is there was not used. May be nil.
	Ignored func(ctx context.Context, reason string)
}

// Cache is the state file and the head of one table. It is safe for concurrent
// use.
type Cache struct {
	cfg Config

	mu    sync.Mutex
	known *known // the newest state file that this process has read or written, nil for none
}

// known is a state file and what it was made of.
type known struct {
	file  *derived.StateFile
	state *deltalog.State // of its version
}

// version is that of the file, -1 for none.
func (k *known) version() int64 {
	if k == nil {
		return -1
	}
	return k.file.Of.Version
}

// New returns the cache of a table. It reads nothing.
func New(cfg Config) *Cache { return &Cache{cfg: cfg} }

// Load returns the newest state of the table, as deltalog.Log.LoadLatest does
// and with its errors. With a good head it costs the reads of the head, of the
// state file, of the commit it was made with and of each commit behind that, and
// three small requests: the log is not listed, however long it is.
func (c *Cache) Load(ctx context.Context) (*deltalog.State, error) {
	s, k, err := c.resume(ctx)
	if err == nil {
		c.know(k)
		return s, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !errors.Is(err, errNoHead) && c.cfg.Ignored != nil {
		c.cfg.Ignored(ctx, err.Error())
	}
	c.know(nil)
	return c.cfg.Log.LoadLatest(ctx)
}

func (c *Cache) know(k *known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = k
}

func (c *Cache) newest() *known {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

var errNoHead = errors.New("there is no head")

// resume loads the newest state by way of the head.
func (c *Cache) resume(ctx context.Context) (*deltalog.State, *known, error) {
	head, err := c.head(ctx)
	if err != nil {
		return nil, nil, err
	}
	var s *deltalog.State
	k, err := c.files(ctx, head)
	if err == nil {
		s, err = c.cfg.Log.Resume(ctx, k.state, head.Of.Commit)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the head is of version %d: %w", head.Of.Version, err)
	}
	return s, k, nil
}

func (c *Cache) head(ctx context.Context) (derived.Head, error) {
	data, err := c.cfg.Store.Get(ctx, derived.HeadPath)
	if errors.Is(err, objstore.ErrNotExist) {
		return derived.Head{}, errNoHead
	}
	if err != nil {
		return derived.Head{}, fmt.Errorf("reading the head: %w", err)
	}
	head, err := derived.DecodeHead(data)
	if err != nil {
		return derived.Head{}, fmt.Errorf("the head is %w", err)
	}
	return head, nil
}

// files reads the first section of the state file that a head names.
func (c *Cache) files(ctx context.Context, head derived.Head) (*known, error) {
	beginning, err := c.read(ctx, head.Of, 0, head.First)
	if err != nil {
		return nil, err
	}
	k, err := decode(head.Of, beginning)
	if err != nil {
		return nil, fmt.Errorf("its state file: %w", err)
	}
	return k, nil
}

// read reads a part of a state file.
func (c *Cache) read(ctx context.Context, of derived.Of, offset, length int64) ([]byte, error) {
	r, err := c.cfg.Store.Open(ctx, derived.StatePath(of.TableID, of.Version))
	if err != nil {
		return nil, fmt.Errorf("opening its state file: %w", err)
	}
	defer r.Close() // reading is over: nothing to learn from the error
	if length > r.Size() || offset > r.Size()-length {
		return nil, errors.New("its state file is too short")
	}
	data := make([]byte, length)
	if _, err := r.ReadAt(data, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading its state file: %w", err)
	}
	return data, nil
}

func decode(of derived.Of, beginning []byte) (*known, error) {
	f, err := derived.OpenState(beginning)
	if err != nil {
		return nil, err
	}
	if f.Of != of {
		return nil, errors.New("of another version or table")
	}
	offset, length, ok := f.Section(derived.SectionFiles)
	if !ok || offset > int64(len(beginning)) || length > int64(len(beginning))-offset {
		return nil, errors.New("without its first section")
	}
	data, err := f.Unpack(derived.SectionFiles, beginning[offset:offset+length])
	if err != nil {
		return nil, err
	}
	s, err := deltalog.DecodeState(of.Version, string(data))
	if err != nil {
		return nil, err
	}
	if s.Metadata().ID != of.TableID {
		return nil, errors.New("of another table")
	}
	return &known{f, s}, nil
}
