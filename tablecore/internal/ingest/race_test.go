//go:build race

package ingest

// raceDetector says that the race detector is on, whose own memory is several
// times that of the program.
const raceDetector = true
