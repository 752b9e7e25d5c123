package childtest

import (
	"os"
	"testing"
)

func TestRun(t *testing.T) {
	var number int
	if Asked(t, &number) {
		Answer(t, []int{number + 1, os.Getpid()})
		return
	}
	t.Run("of a subtest", func(t *testing.T) {
		var answer []int
		if Run(t, 41, &answer); len(answer) != 2 || answer[0] != 42 || answer[1] == os.Getpid() {
			t.Errorf("got %v", answer)
		}
	})
}

func TestPeakMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err == nil && PeakMemory() < 1<<20 {
		t.Errorf("this process never had more than %d bytes", PeakMemory())
	}
}
