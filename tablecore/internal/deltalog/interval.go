package deltalog

import (
	"fmt"
	"time"
)

// intervalUnits are units that Delta's interval properties take, from the
// largest down. Months and years have no fixed length and are refused there.
var intervalUnits = []struct {
	name   string
	length time.Duration
}{
	{"days", 24 * time.Hour}, {"hours", time.Hour}, {"minutes", time.Minute}, {"seconds", time.Second},
	{"milliseconds", time.Millisecond}, {"microseconds", time.Microsecond},
}

// FormatInterval returns the value of a Delta property such as
// delta.deletedFileRetentionDuration for a duration, in the largest unit that
// gives a whole number: "interval 7 days".
func FormatInterval(d time.Duration) string {
	for _, unit := range intervalUnits {
		if n := d / unit.length; n > 0 && d%unit.length == 0 {
			return fmt.Sprintf("interval %d %s", n, unit.name)
		}
	}
	return fmt.Sprintf("interval %d nanoseconds", d)
}
