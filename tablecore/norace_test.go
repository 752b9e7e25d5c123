//go:build !race

package tablecore_test

const raceDetector = false
