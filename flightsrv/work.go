package flightsrv

import (
	"sync"

	"contrail/tablecore/tableerr"
)

// work counts what is under way, so that a drain knows when nothing is. It is
// safe for concurrent use.
type work struct {
	mu       sync.Mutex
	running  int
	draining bool
	idle     chan struct{} // closed when draining and nothing runs
}

func newWork() *work { return &work{idle: make(chan struct{})} }

// begin counts a new call, or refuses it with DRAINING.
func (w *work) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining {
		return &tableerr.Draining{}
	}
	w.running++
	return nil
}

// extend counts a part of a call under way that may outlive its handler.
func (w *work) extend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running++
}

// end takes back one begin or extend.
func (w *work) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	if w.draining && w.running == 0 {
		close(w.idle)
	}
}

// drain refuses new calls from now on and returns what is closed when the last
// one has ended. It may be called again.
func (w *work) drain() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.draining {
		w.draining = true
		if w.running == 0 {
			close(w.idle)
		}
	}
	return w.idle
}
