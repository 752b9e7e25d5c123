package deltalog

import (
	"math"
	"testing"
	"time"
)

func TestFormatInterval(t *testing.T) {
	for d, want := range map[time.Duration]string{
		7 * 24 * time.Hour: "interval 7 days", 90 * time.Minute: "interval 90 minutes", 0: "interval 0 nanoseconds", math.MaxInt64: "interval 9223372036854775807 nanoseconds", time.Millisecond: "interval 1 milliseconds",
	} {
		if got := FormatInterval(d); got != want {
			t.Errorf("%v = %q, want %q", d, got, want)
		}
	}
}
