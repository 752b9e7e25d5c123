//go:build unix && !linux

package ingest

// askHugePages does nothing where the system has no such wish.
func askHugePages([]byte) {}
