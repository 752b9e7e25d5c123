package localfs

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or, in a process that a test has started, the part of the test that happens there.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(runChild(role, os.Getenv(dirVariable)))
	}
	goleak.VerifyTestMain(m)
}
