// Package tabletest helps to test code that uses tablecore: it builds Arrow
// batches and row streams, reads scans back as plain rows, and makes
// warehouses in memory with a clock and randomness that a test controls.
package tabletest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/bufpool"
	"contrail/tablecore/objstore"
)

// Clock is a clock that moves only when told to. It is safe for concurrent
// use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at 2026-01-01T00:00:00Z.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock, also backwards.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Warehouse opens a warehouse on a store with a fixed clock and seeded
// randomness, which maintains no table by itself, and closes it with the test.
// Where mem counts what it gives, the batches of scans are poisoned.
func Warehouse(t testing.TB, store objstore.Store, mem memory.Allocator) *tablecore.Warehouse {
	t.Helper()
	return Open(t, tablecore.Options{Store: store, Allocator: mem, Batches: batches(mem), Clock: NewClock().Now, Random: Random(1),
		Maintenance: tablecore.Maintenance{Off: true}})
}

// Open opens a warehouse and closes it with the test.
func Open(t testing.TB, o tablecore.Options) *tablecore.Warehouse {
	t.Helper()
	w, err := tablecore.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// batches returns where the batches of scans live: benchmarks, which count
// nothing, have the pool that a warehouse has by default.
func batches(mem memory.Allocator) memory.Allocator {
	if mem == memory.DefaultAllocator {
		return &bufpool.Pool{}
	}
	return bufpool.Poison(mem)
}

// Random returns a deterministic source of random bytes. It is safe for
// concurrent use.
func Random(seed byte) io.Reader {
	return &random{source: rand.NewChaCha8([32]byte{seed})}
}

type random struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

func (r *random) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(p)
}

// Batch builds a batch from JSON rows, an array of objects; a key that is left
// out is null. The caller releases it.
func Batch(t testing.TB, mem memory.Allocator, schema *arrow.Schema, rows string) arrow.RecordBatch {
	t.Helper()
	batch, _, err := array.RecordFromJSON(mem, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// Reader is a row stream of given batches. Err, when set, takes the place of
// io.EOF.
type Reader struct {
	Batches []arrow.RecordBatch
	Err     error

	schema *arrow.Schema
	next   int
}

// NewReader returns a stream of batches, which it borrows.
func NewReader(schema *arrow.Schema, batches ...arrow.RecordBatch) *Reader {
	return &Reader{Batches: batches, schema: schema}
}

// Schema implements tablecore.RowReader.
func (r *Reader) Schema() *arrow.Schema { return r.schema }

// Next implements tablecore.RowReader.
func (r *Reader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.next == len(r.Batches) {
		if r.Err != nil {
			return nil, r.Err
		}
		return nil, io.EOF
	}
	r.next++
	return r.Batches[r.next-1], nil
}

// Scan runs a scan and returns its rows as text, one JSON object a row, in
// order, with the scan's statistics.
func Scan(ctx context.Context, t *tablecore.Table, o tablecore.ScanOptions) ([]string, tablecore.ScanStats, error) {
	plan, err := t.PlanScan(ctx, o)
	if err != nil {
		return nil, tablecore.ScanStats{}, err
	}
	var rows []string
	stats, err := EachBatch(ctx, plan, func(batch arrow.RecordBatch) error {
		more, err := rowTexts(batch)
		rows = append(rows, more...)
		return err
	})
	if err != nil {
		return nil, tablecore.ScanStats{}, err
	}
	return rows, stats, nil
}

// EachBatch runs a plan to its end, or to the first error of visit, to which a
// batch is lent, and returns the scan's statistics.
func EachBatch(ctx context.Context, plan *tablecore.ScanPlan, visit func(arrow.RecordBatch) error) (tablecore.ScanStats, error) {
	reader, err := plan.Open(ctx)
	if err != nil {
		return tablecore.ScanStats{}, err
	}
	defer reader.Release()
	for {
		batch, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return reader.Stats(), nil
		}
		if err != nil {
			return tablecore.ScanStats{}, err
		}
		if !batch.Schema().Equal(plan.Schema()) {
			return tablecore.ScanStats{}, fmt.Errorf("a batch has schema %s, the plan %s", batch.Schema(), plan.Schema())
		}
		if err := visit(batch); err != nil {
			return tablecore.ScanStats{}, err
		}
	}
}

// rowTexts renders each row of a batch as a JSON object.
func rowTexts(batch arrow.RecordBatch) ([]string, error) {
	var b strings.Builder
	if err := array.RecordToJSON(batch, &b); err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if text == "" {
		return nil, nil
	}
	return strings.Split(text, "\n"), nil
}
