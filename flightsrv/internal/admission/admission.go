// Package admission bounds how much work of one kind runs at a time. What comes
// beyond waits in order of arrival, but not for ever.
package admission

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"contrail/tablecore/tableerr"
)

// Gate lets a bounded number of holders in. It is safe for concurrent use.
type Gate struct {
	places *semaphore.Weighted
	wait   time.Duration
}

// New returns a gate with so many places; who finds none free waits at most
// wait for one.
func New(places int, wait time.Duration) *Gate {
	return &Gate{places: semaphore.NewWeighted(int64(places)), wait: wait}
}

// Enter takes a place and says how long that took. The caller must call leave
// once. The error is QUEUE_TIMEOUT, or that of ctx.
func (g *Gate) Enter(ctx context.Context) (leave func(), waited time.Duration, err error) {
	leave = func() { g.places.Release(1) }
	if g.places.TryAcquire(1) {
		return leave, 0, nil
	}
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, g.wait)
	defer cancel()
	err = g.places.Acquire(limited, 1)
	waited = time.Since(start)
	switch {
	case err == nil:
		return leave, waited, nil
	case ctx.Err() != nil:
		return nil, waited, context.Cause(ctx)
	default:
		return nil, waited, &tableerr.QueueTimeout{WaitMS: g.wait.Milliseconds()}
	}
}
