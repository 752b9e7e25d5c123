package predicate

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"time"

	"contrail/tablecore/tableerr"
)

// timeText is RFC 3339 with years of four digits or signed six, up to nine
// digits of fraction, and an optional zone.
var timeText = regexp.MustCompile(`^(\d{4}|[+-]\d{6})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|z|[+-]\d\d:\d\d)?$`)

// parseTime reads a time's text and returns nanoseconds since the epoch. Zoned
// says whether the column holds instants: then the text needs a zone, else it
// must have none.
func parseTime(field, text string, zoned bool) (*big.Int, error) {
	m := timeText.FindStringSubmatch(text)
	if m == nil {
		return nil, badTime(field, text, `a time such as "2013-01-01T06:00:00Z"`)
	}
	if zoned && m[8] == "" {
		return nil, badTime(field, text, `a time with its zone, such as "2013-01-01T06:00:00Z"; this one has none`)
	}
	if !zoned && m[8] != "" {
		return nil, badTime(field, text, `a time without a zone, such as "2013-01-01T06:00:00", because the column has none`)
	}
	part := func(i int) int { n, _ := strconv.Atoi(m[i]); return n }
	year, month, day, hour, minute, second := part(1), part(2), part(3), part(4), part(5), part(6)
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if t.Year() != year || int(t.Month()) != month || t.Day() != day || t.Hour() != hour || t.Minute() != minute || t.Second() != second {
		return nil, badTime(field, text, "a time that exists")
	}
	offset, ok := zoneSeconds(m[8])
	if !ok {
		return nil, badTime(field, text, "a zone offset below 24 hours")
	}
	nanos, _ := strconv.Atoi((m[7] + "000000000")[:9])
	ns := new(big.Int).Mul(big.NewInt(t.Unix()-offset), big.NewInt(int64(time.Second)))
	return ns.Add(ns, big.NewInt(int64(nanos))), nil
}

// zoneSeconds returns the offset east of UTC that a zone's text says.
func zoneSeconds(zone string) (int64, bool) {
	if len(zone) < 6 {
		return 0, true
	}
	hours, _ := strconv.Atoi(zone[1:3])
	minutes, _ := strconv.Atoi(zone[4:6])
	seconds := int64(hours)*3600 + int64(minutes)*60
	if zone[0] == '-' {
		seconds = -seconds
	}
	return seconds, hours < 24 && minutes < 60
}

func badTime(field, text, want string) error {
	raw, err := json.Marshal(text)
	if err != nil {
		return tableerr.InvalidField(field, "%s is no time", field)
	}
	return notA(field, raw, want)
}
