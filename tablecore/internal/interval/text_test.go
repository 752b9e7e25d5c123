package interval

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tabledef"
)

func TestTimestampText(t *testing.T) {
	for _, c := range []struct {
		v    int64
		unit arrow.TimeUnit
		want string
	}{
		{0, arrow.Second, "1970-01-01T00:00:00Z"},
		{-1, arrow.Nanosecond, "1969-12-31T23:59:59.999999999Z"},
		{1357020000000000, arrow.Microsecond, "2013-01-01T06:00:00Z"},
		{1357020000204518, arrow.Microsecond, "2013-01-01T06:00:00.204518Z"},
		{1357020000200, arrow.Millisecond, "2013-01-01T06:00:00.2Z"},
		{1357020000010000, arrow.Microsecond, "2013-01-01T06:00:00.01Z"},
		{253402300799, arrow.Second, "9999-12-31T23:59:59Z"},
		{253402300800, arrow.Second, "+010000-01-01T00:00:00Z"},
		{-62135596801, arrow.Second, "0000-12-31T23:59:59Z"},
		{-62167219200, arrow.Second, "0000-01-01T00:00:00Z"},
		{-62167219201, arrow.Second, "-000001-12-31T23:59:59Z"},
		{math.MaxInt64, arrow.Second, "+292277026596-12-04T15:30:07Z"},
		{math.MinInt64, arrow.Second, "-292277022657-01-27T08:29:52Z"},
		{math.MaxInt64, arrow.Millisecond, "+292278994-08-17T07:12:55.807Z"},
		{math.MinInt64, arrow.Microsecond, "-290308-12-21T19:59:05.224192Z"},
		{math.MinInt64, arrow.Nanosecond, "1677-09-21T00:12:43.145224192Z"},
		{951782400, arrow.Second, "2000-02-29T00:00:00Z"},
		{-2203891200, arrow.Second, "1900-03-01T00:00:00Z"},
	} {
		d := mustNew(t, tabledef.IndexTimestamp, c.unit, tabledef.Granularity{})
		if got := d.ValueText(SignedOrdinal(c.v)); got != c.want {
			t.Errorf("%d in %s reads %s, want %s", c.v, c.unit, got, c.want)
		}
	}
}

func TestTimestampTextIsGosWithinFourDigits(t *testing.T) {
	d := mustNew(t, tabledef.IndexTimestamp, arrow.Microsecond, tabledef.Granularity{})
	rng := rand.New(rand.NewPCG(5, 6))
	lo, hi := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).UnixMicro()
	for range 20000 {
		v := lo + rng.Int64N(hi-lo)
		if got, want := d.ValueText(SignedOrdinal(v)), time.UnixMicro(v).UTC().Format(time.RFC3339Nano); got != want {
			t.Fatalf("%d reads %s, want %s", v, got, want)
		}
	}
}

func TestIntervalText(t *testing.T) {
	hour := mustNew(t, tabledef.IndexTimestamp, arrow.Microsecond, tabledef.Granularity{N: 1, Unit: "h"})
	signed := mustNew(t, tabledef.IndexInt64, 0, tabledef.Granularity{N: 10})
	unsigned := mustNew(t, tabledef.IndexUint64, 0, tabledef.Granularity{N: 10})
	one := mustNew(t, tabledef.IndexUint64, 0, tabledef.Granularity{N: 1})
	for _, c := range []struct{ got, want string }{
		{hour.Text(hour.ID(SignedOrdinal(1357020000000001))), "[2013-01-01T06:00:00Z, 2013-01-01T07:00:00Z)"},
		{hour.Text(hour.ID(SignedOrdinal(-1))), "[1969-12-31T23:00:00Z, 1970-01-01T00:00:00Z)"},
		{hour.Text(hour.MaxID()), "[+294247-01-10T04:00:00Z, +294247-01-10T04:00:54.775807Z]"},
		{hour.Text(hour.MinID()), "[-290308-12-21T19:59:05.224192Z, -290308-12-21T20:00:00Z)"},
		{signed.Text(signed.ID(SignedOrdinal(-1))), "[-10, 0)"},
		{signed.Text(signed.MinID()), "[-9223372036854775808, -9223372036854775800)"},
		{signed.Text(signed.MaxID()), "[9223372036854775800, 9223372036854775807]"},
		{unsigned.Text(0), "[0, 10)"},
		{unsigned.Text(unsigned.MaxID()), "[18446744073709551610, 18446744073709551615]"},
		{one.Text(math.MaxUint64 - 1), "[18446744073709551614, 18446744073709551615)"},
		{one.Text(math.MaxUint64), "[18446744073709551615, 18446744073709551615]"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}
