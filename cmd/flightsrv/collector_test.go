package main

import (
	"runtime/debug"
	"testing"
)

func TestGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 400, 1 << 20: 400, 4 << 20: 400, 6 << 20: 200, 9 << 20: 100, 16 << 20: 100, 1 << 40: 100,
	} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d bytes alive: %d, want %d", live, got, want)
		}
	}
}

// What the environment says is left alone.
func TestPaceCollectorGivenGOGC(t *testing.T) {
	before := debug.SetGCPercent(123)
	defer debug.SetGCPercent(before)
	paceCollector("123")
	if got := debug.SetGCPercent(123); got != 123 {
		t.Errorf("GOGC is %d", got)
	}
}

func TestLiveBytes(t *testing.T) {
	debug.FreeOSMemory() // a collection
	if live := liveBytes(); live == 0 {
		t.Error("nothing is alive")
	}
}

// TestCollectorPace sets what is found, once: adjusting again finds the same.
func TestCollectorPace(t *testing.T) {
	before := debug.SetGCPercent(defaultPercent)
	defer debug.SetGCPercent(before)
	p := &collectorPace{percent: defaultPercent, live: func() uint64 { return 4 << 20 }}
	for range 2 {
		p.set()
		if got := debug.SetGCPercent(400); got != 400 || p.percent != 400 {
			t.Errorf("GOGC is %d, noted as %d", got, p.percent)
		}
	}
}
