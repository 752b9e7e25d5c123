//go:build race

package tablecore_test

// raceDetector says that the race detector is on, whose own memory is several
// times that of the program.
const raceDetector = true
