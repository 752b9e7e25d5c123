package main

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// TestLeaveRoom: a collection finds the room alive, so the next one waits for as
// much garbage at least.
func TestLeaveRoom(t *testing.T) {
	defer leaveRoom()()
	debug.FreeOSMemory() // a collection
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if live := sample[0].Value.Uint64(); live < roomBytes {
		t.Errorf("%d bytes are alive", live)
	}
}
