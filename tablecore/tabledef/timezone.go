package tabledef

import (
	"regexp"
	"time"
	_ "time/tzdata" // zone names must mean the same on machines without a zone database

	"contrail/tablecore/tableerr"
)

var fixedOffset = regexp.MustCompile(`^[+-](0[0-9]|1[0-4]):?[0-5][0-9]$`)

// CheckTimezone accepts an IANA zone name, "UTC" or a fixed offset such as
// "+05:30". The zone is informative: it is never compared with the column's.
func CheckTimezone(text string, index IndexType) error {
	if text == "" {
		return nil
	}
	if index != IndexTimestamp {
		return tableerr.InvalidField("timezone", "a timezone makes no sense for an index of type %s", index)
	}
	if fixedOffset.MatchString(text) {
		return nil
	}
	if text == "Local" || !knownZone(text) {
		return tableerr.InvalidField("timezone", "timezone %q is neither an IANA name nor an offset such as +05:30", text).WithValue(text)
	}
	return nil
}

func knownZone(text string) bool {
	_, err := time.LoadLocation(text)
	return err == nil
}
