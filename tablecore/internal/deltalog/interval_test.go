package deltalog

import (
	"math"
	"testing"
	"time"
)

func TestParseInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"interval 7 days": 7 * 24 * time.Hour, "INTERVAL 1 Week": 7 * 24 * time.Hour, "interval 36500 days": 36500 * 24 * time.Hour,
		" 1 week  12 hours ": 180 * time.Hour, "interval 0 seconds": 0, "interval 5 microseconds": 5 * time.Microsecond,
	} {
		got, err := ParseInterval(text)
		if err != nil || got != want {
			t.Errorf("%q = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "interval", "interval 7", "7", "interval x days", "interval 1 month", "interval -1 days", "interval 1.5 days", "interval 99999999999999 weeks", "interval 15000 weeks 15000 weeks", "interval 1 day 2"} {
		if got, err := ParseInterval(text); err == nil {
			t.Errorf("%q = %v", text, got)
		}
	}
}

func TestFormatInterval(t *testing.T) {
	for d, want := range map[time.Duration]string{
		7 * 24 * time.Hour: "interval 7 days", 90 * time.Minute: "interval 90 minutes", 0: "interval 0 nanoseconds", math.MaxInt64: "interval 9223372036854775807 nanoseconds", time.Millisecond: "interval 1 milliseconds",
	} {
		got := FormatInterval(d)
		if got != want {
			t.Errorf("%v = %q, want %q", d, got, want)
		}
		if back, err := ParseInterval(got); err != nil || back != d {
			t.Errorf("%q = %v, %v", got, back, err)
		}
	}
}

func FuzzParseInterval(f *testing.F) {
	f.Add("interval 1 week 2 days")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ParseInterval(text); err == nil && d < 0 {
			t.Fatal(d)
		}
	})
}
