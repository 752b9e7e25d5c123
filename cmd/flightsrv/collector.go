package main

import "runtime"

// The collector of a server with little in memory would run after every few MB
// of garbage, which is each eighth small append, and take a quarter of their
// time: it waits for as much garbage as it found alive. So roomBytes more are
// alive, which nobody touches: the system never gives them, and a server with
// much in memory does not notice them. GOGC means what it always means.
const roomBytes = 12 << 20

// leaveRoom lets about roomBytes of garbage more gather before each collection,
// until end is called.
func leaveRoom() (end func()) {
	room := make([]byte, roomBytes)
	return func() { runtime.KeepAlive(room) }
}
