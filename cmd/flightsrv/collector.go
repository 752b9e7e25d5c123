package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The collector of a server with little in memory would run after every few MB
// of garbage, which is each eighth small append, and take a quarter of their
// time. So it lets roomBytes of garbage gather however little is alive; where
// more than that is alive it keeps to Go's default and costs no more memory.
const (
	roomBytes      = 16 << 20
	defaultPercent = 100 // of GOGC
	mostPercent    = 400 // with which the runtime waits for 16 MB, too
)

// gcPercent is the GOGC for a number of living bytes, in steps, as each change
// stops the world.
func gcPercent(live uint64) int {
	percent := roomBytes * 100 / max(live, 1)
	return int(min(max(percent-percent%defaultPercent, defaultPercent), mostPercent))
}

// collectorPace sets the process's GOGC anew after each collection.
type collectorPace struct {
	percent int           // that is in force
	live    func() uint64 // what the last collection has found alive, in bytes
}

// paceCollector begins to set the process's GOGC, unless gogc, the variable of
// that name, says what it is to be.
func paceCollector(gogc string) {
	if gogc != "" {
		return
	}
	(&collectorPace{percent: defaultPercent, live: liveBytes}).follow()
}

// follow sets what the last collection calls for, and comes again with the next
// one: the runtime finalizes what nobody refers to.
func (p *collectorPace) follow() {
	p.set()
	runtime.SetFinalizer(&collection{p}, func(c *collection) { c.pace.follow() })
}

func (p *collectorPace) set() {
	if percent := gcPercent(p.live()); percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
}

// collection is garbage from the beginning.
type collection struct{ pace *collectorPace }

// liveBytes is what the last collection has found alive.
func liveBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return roomBytes // a runtime that does not tell: as if there were nothing to gain
	}
	return sample[0].Value.Uint64()
}
