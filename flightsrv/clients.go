package flightsrv

import (
	"context"
	"sync"

	"contrail/flightsrv/internal/wire"
)

// clients holds the progress of each connection that reads scans. It is safe
// for concurrent use; the zero value is ready.
type clients struct {
	mu      sync.Mutex
	reading map[string]*client
}

type client struct {
	wire.Progress
	streams int
}

// join returns the progress of a call's connection; leave must be called once.
func (c *clients) join(ctx context.Context) (progress *wire.Progress, leave func()) {
	key := connectionOf(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading == nil {
		c.reading = map[string]*client{}
	}
	one := c.reading[key]
	if one == nil {
		one = &client{}
		c.reading[key] = one
	}
	one.streams++
	return &one.Progress, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if one.streams--; one.streams == 0 {
			delete(c.reading, key)
		}
	}
}
