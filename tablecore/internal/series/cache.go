package series

import (
	"context"
	"sync"

	"contrail/tablecore/internal/lastvalue"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// keptVersions is how many indexes of a kind a table keeps at most.
const keptVersions = 3

// Cache bounds the indexes of all tables of a warehouse together. It is safe
// for concurrent use.
type Cache struct {
	limit int64

	mu     sync.Mutex
	used   int64 // bytes
	clock  uint64
	tables map[string]*kept // by table id
}

// kept are the indexes of one table.
type kept struct {
	building chan struct{} // holds a token while an index is made
	users    int           // who wait for the token or have it
	entries  []*entry
}

// kind is one of the two indexes.
type kind int

const (
	kindCoverage kind = iota
	kindNewest
)

// index is a *coverage.Merged or a *lastvalue.Index.
type index interface{ Bytes() int64 }

// entry is an index of a set of live files.
type entry struct {
	kind     kind
	identity string
	paths    []string           // of the files, in log order
	snap     *snapshot.Snapshot // the last one that was found to have these files
	index    index
	bytes    int64
	used     uint64
}

// NewCache returns an empty cache that keeps at most limit bytes.
func NewCache(limit int64) *Cache {
	return &Cache{limit: limit, tables: map[string]*kept{}}
}

// valueLimit is how large the values of one table's newest rows may be to be
// kept with the index.
func (c *Cache) valueLimit() int64 { return c.limit / 4 }

// enter waits until nobody makes an index of the table. The caller calls leave.
func (c *Cache) enter(ctx context.Context, table string) (leave func(), err error) {
	c.mu.Lock()
	k := c.tables[table]
	if k == nil {
		k = &kept{building: make(chan struct{}, 1)}
		c.tables[table] = k
	}
	k.users++
	c.mu.Unlock()
	done := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		k.users--
		c.tidy(table)
	}
	select {
	case k.building <- struct{}{}:
		return func() { <-k.building; done() }, nil
	case <-ctx.Done():
		done()
		return nil, ctx.Err()
	}
}

// tidy forgets a table that nobody uses.
func (c *Cache) tidy(table string) {
	if k := c.tables[table]; k != nil && k.users == 0 && len(k.entries) == 0 {
		delete(c.tables, table)
	}
}

// find returns the index of exactly a version's files, nil if it is not there.
func (c *Cache) find(s *snapshot.Snapshot, k kind) index {
	c.mu.Lock()
	defer c.mu.Unlock()
	table := c.tables[s.Def.ID]
	if table == nil {
		return nil
	}
	for _, e := range table.entries {
		if e.kind != k || e.snap != s && !(e.fits(s) && e.has(s.Files)) {
			continue
		}
		c.clock++
		e.used, e.snap = c.clock, s
		return e.index
	}
	return nil
}

// has says whether an entry is about exactly these files.
func (e *entry) has(files []*snapshot.File) bool {
	if len(e.paths) != len(files) {
		return false
	}
	for i := len(files) - 1; i >= 0; i-- { // a difference is likely at the end
		if e.paths[i] != files[i].Path {
			return false
		}
	}
	return true
}

// fits says whether an entry means the same under a version's definition.
func (e *entry) fits(s *snapshot.Snapshot) bool {
	if e.snap != nil && e.snap.Def == s.Def {
		return true
	}
	if e.identity != identity(s.Def) {
		return false
	}
	x, ok := e.index.(*lastvalue.Index)
	return !ok || schemaFits(x, s.Def)
}

// schemaFits says whether kept values have the types of a table's columns, as
// far as both have them.
func schemaFits(x *lastvalue.Index, def *tabledef.Definition) bool {
	for _, f := range tabledef.StorageSchema(def.Stored).Fields() {
		for _, b := range x.Blocks() {
			if b.Values == nil {
				continue
			}
			for _, i := range b.Values.Schema().FieldIndices(f.Name) {
				if !sameType(b.Values.Schema().Field(i), f) {
					return false
				}
			}
		}
	}
	return true
}

// nearest returns the entry of a kind from which the least has changed; nil
// where making the index anew takes no more.
func (c *Cache) nearest(s *snapshot.Snapshot, k kind) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	table := c.tables[s.Def.ID]
	if table == nil {
		return nil
	}
	var best *entry
	least := len(s.Files)
	for _, e := range table.entries {
		if e.kind != k || !e.fits(s) || e.empty() {
			continue
		}
		change := e.since(s)
		if n := len(change.added) + len(change.removed); n < least {
			best, least = e, n
		}
	}
	return best
}

// empty says that an entry is no beginning: whether values are kept was not
// decided yet.
func (e *entry) empty() bool {
	x, ok := e.index.(*lastvalue.Index)
	return ok && len(x.Blocks()[0].Rows) == 0
}

// keep stores an index. One that is larger than the cache is not kept.
func (c *Cache) keep(s *snapshot.Snapshot, k kind, v index) {
	e := &entry{kind: k, identity: identity(s.Def), snap: s, index: v, paths: make([]string, len(s.Files))}
	for i, f := range s.Files {
		e.paths[i] = f.Path
	}
	const pathBytes = 16
	e.bytes = v.Bytes() + int64(pathBytes*len(e.paths)) + 256
	if e.bytes > c.limit {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	table := c.tables[s.Def.ID] // the caller has entered it
	c.clock++
	e.used = c.clock
	table.entries = append(table.entries, e)
	c.used += e.bytes
	c.trim(table, k)
	for c.used > c.limit {
		c.evict()
	}
}

// Forget lets go of all indexes of a table, where what they were made from is
// found to be wrong.
func (t *Table) Forget(tableID string) {
	c := t.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if table := c.tables[tableID]; table != nil {
		for len(table.entries) > 0 {
			c.drop(table, len(table.entries)-1)
		}
		c.tidy(tableID)
	}
}

// trim lets go of a table's longest unused index of a kind if it has too many.
func (c *Cache) trim(table *kept, k kind) {
	n, oldest := 0, -1
	for i, e := range table.entries {
		if e.kind != k {
			continue
		}
		n++
		if oldest < 0 || e.used < table.entries[oldest].used {
			oldest = i
		}
	}
	if n > keptVersions {
		c.drop(table, oldest)
	}
}

// evict lets go of the longest unused index.
func (c *Cache) evict() {
	var table *kept
	at, name := 0, ""
	for id, k := range c.tables {
		for i, e := range k.entries {
			if table == nil || e.used < table.entries[at].used {
				table, at, name = k, i, id
			}
		}
	}
	c.drop(table, at)
	c.tidy(name)
}

func (c *Cache) drop(table *kept, i int) {
	c.used -= table.entries[i].bytes
	table.entries = append(table.entries[:i], table.entries[i+1:]...)
}
