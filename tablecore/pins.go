package tablecore

import (
	"sync"
	"time"
)

// pins are the versions of a table that readers of this process rely on, so
// that nobody in it expires them: scans that are under way, and tickets.
type pins struct {
	mu      sync.Mutex
	readers map[int64]int // how many are reading a version
	// tickets has the oldest version of the tickets that run out at a time. The
	// times are whole minutes, so that there are few, however many tickets.
	tickets map[time.Time]int64
}

// read pins a version until the returned function is called.
func (p *pins) read(version int64) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers == nil {
		p.readers = map[int64]int{}
	}
	p.readers[version]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.readers[version]--; p.readers[version] == 0 {
			delete(p.readers, version)
		}
	})
}

// hold pins a version until a moment, or up to a minute longer.
func (p *pins) hold(version int64, until, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tickets == nil {
		p.tickets = map[time.Time]int64{}
	}
	until = until.UTC().Truncate(time.Minute).Add(time.Minute)
	if oldest, ok := p.tickets[until]; !ok || version < oldest {
		p.tickets[until] = version
	}
	for end := range p.tickets {
		if end.Before(now) {
			delete(p.tickets, end)
		}
	}
}

// oldest returns the oldest version that is pinned, at most a given one.
func (p *pins) oldest(atMost int64, now time.Time) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for version := range p.readers {
		atMost = min(atMost, version)
	}
	for end, version := range p.tickets {
		if !end.Before(now) {
			atMost = min(atMost, version)
		}
	}
	return atMost
}

// Pin keeps the plan's version from being expired by this process until a
// moment: somebody has a ticket for it.
func (p *ScanPlan) Pin(until time.Time) { p.table.pin(p.Version(), until) }

// Pin is ScanPlan.Pin for a listing.
func (l *Listing) Pin(until time.Time) {
	if l.table != nil {
		l.table.pin(l.version, until)
	}
}

func (t *Table) pin(version int64, until time.Time) {
	t.pins.hold(version, until, t.warehouse.opts.Clock())
}
