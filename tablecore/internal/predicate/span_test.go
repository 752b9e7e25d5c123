package predicate

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

var (
	usUTC   = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	sUTC    = &arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}
	msNaive = &arrow.TimestampType{Unit: arrow.Millisecond}
	nsUTC   = &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Asia/Kolkata"}
	i64     = arrow.PrimitiveTypes.Int64
	u64     = arrow.PrimitiveTypes.Uint64
)

func signed(v int64) uint64 { return uint64(v) ^ 1<<63 }

func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

func TestParseSpan(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end string
		index      arrow.DataType
		want       Span
	}{
		{"open", "", "", usUTC, All},
		{"times", `"1970-01-01T00:00:01Z"`, `"1970-01-01T00:00:02Z"`, usUTC, Span{signed(1e6), signed(2e6 - 1), false}},
		{"offset", `"1970-01-01T05:30:01+05:30"`, "", usUTC, Span{signed(1e6), ^uint64(0), false}},
		{"finer start rounds up", `"1970-01-01T00:00:00.5Z"`, "", sUTC, Span{signed(1), ^uint64(0), false}},
		{"finer end keeps the second", "", `"1970-01-01T00:00:00.5Z"`, sUTC, Span{0, signed(0), false}},
		{"inside one tick", `"1970-01-01T00:00:00.1Z"`, `"1970-01-01T00:00:00.9Z"`, sUTC, Span{signed(1), signed(0), true}},
		{"before the epoch", `"1969-12-31T23:59:59.9995Z"`, "", usUTC, Span{signed(-500), ^uint64(0), false}},
		{"naive", `"1970-01-01T00:00:00.001"`, "", msNaive, Span{signed(1), ^uint64(0), false}},
		{"integer in the unit", `5`, `"7"`, msNaive, Span{signed(5), signed(6), false}},
		{"beyond ns", `"1600-01-01T00:00:00Z"`, `"2300-01-01T00:00:00Z"`, nsUTC, Span{0, ^uint64(0), false}},
		{"after ns", `"2300-01-01T00:00:00Z"`, "", nsUTC, Span{0, ^uint64(0), true}},
		{"signed six-digit year", `"-000044-03-15T00:00:00Z"`, "", usUTC, Span{signed(-63549360000000000), ^uint64(0), false}},
		{"int64", `-5`, `5`, i64, Span{signed(-5), signed(4), false}},
		{"int64 ends", `-9223372036854775808`, `9223372036854775807`, i64, Span{0, ^uint64(0) - 1, false}},
		{"int64 beyond", `-99999999999999999999`, `99999999999999999999`, i64, Span{0, ^uint64(0), false}},
		{"uint64", `"18446744073709551615"`, "", u64, Span{^uint64(0), ^uint64(0), false}},
		{"uint64 below", "", `-1`, u64, Span{0, 0, true}},
		{"uint64 zero end", "", `0`, u64, Span{0, 0, true}},
		{"uint64 above", `18446744073709551616`, "", u64, Span{0, ^uint64(0), true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseSpan(raw(c.start), raw(c.end), c.index)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestParseSpanRefusals(t *testing.T) {
	for _, c := range []struct {
		start, end string
		index      arrow.DataType
		field      string
	}{
		{`"2013-01-01T00:00:00"`, "", usUTC, "start"},
		{`"2013-01-01T00:00:00Z"`, "", msNaive, "start"},
		{`"yesterday"`, "", usUTC, "start"},
		{`"2013-02-30T00:00:00Z"`, "", usUTC, "start"},
		{`"2013-01-01T24:00:00Z"`, "", usUTC, "start"},
		{`"2013-01-01T00:00:00+99:00"`, "", usUTC, "start"},
		{"", `true`, usUTC, "end"},
		{"", `1.5`, usUTC, "end"},
		{"", `1e3`, i64, "end"},
		{"", `{}`, i64, "end"},
		{`5`, `5`, i64, "start"},
		{`6`, `5`, i64, "start"},
		{`"2013-01-02T00:00:00Z"`, `"2013-01-01T00:00:00Z"`, usUTC, "start"},
	} {
		_, err := ParseSpan(raw(c.start), raw(c.end), c.index)
		var invalid *tableerr.Invalid
		if !errors.As(err, &invalid) || invalid.Field != c.field {
			t.Errorf("[%s, %s): got %v, want INVALID about %s", c.start, c.end, err, c.field)
		}
	}
}

func TestSpanRelations(t *testing.T) {
	s := Span{First: 10, Last: 20}
	if !s.Contains(10) || !s.Contains(20) || s.Contains(21) || s.Contains(9) {
		t.Error("Contains is wrong at the ends")
	}
	if !s.Meets(20, 30) || s.Meets(21, 30) || !s.Meets(0, 10) || (Span{Empty: true}).Meets(0, ^uint64(0)) {
		t.Error("Meets is wrong at the ends")
	}
	if !s.Covers(10, 20) || s.Covers(9, 20) || s.Covers(10, 21) {
		t.Error("Covers is wrong at the ends")
	}
}

func FuzzParseSpan(f *testing.F) {
	f.Add(`"2013-01-01T00:00:00Z"`, `5`)
	f.Add(`"-000044-03-15T00:00:00.123456789+01:00"`, `"18446744073709551615"`)
	f.Fuzz(func(t *testing.T, start, end string) {
		for _, index := range []arrow.DataType{usUTC, msNaive, nsUTC, i64, u64} {
			span, err := ParseSpan(raw(start), raw(end), index)
			if err == nil && !span.Empty && span.First > span.Last {
				t.Fatalf("span %+v has its ends reversed", span)
			}
		}
	})
}

func TestParseTouched(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end string
		index      arrow.DataType
		want       Span
	}{
		{"open", "", "", usUTC, All},
		{"whole ticks as a span", `"1970-01-01T00:00:01Z"`, `"1970-01-01T00:00:02Z"`, sUTC, Span{signed(1), signed(1), false}},
		{"inside one tick", `"1970-01-01T00:00:00.1Z"`, `"1970-01-01T00:00:00.9Z"`, sUTC, Span{signed(0), signed(0), false}},
		{"before the epoch", `"1969-12-31T23:59:59.5Z"`, "", sUTC, Span{signed(-1), ^uint64(0), false}},
		{"behind the domain", `"2300-01-01T00:00:00Z"`, "", nsUTC, Span{0, ^uint64(0), true}},
		{"before the domain", "", `"1600-01-01T00:00:00Z"`, nsUTC, Span{0, 0, true}},
		{"wholly before", `-9`, `-5`, u64, Span{0, 0, true}},
		{"around the domain's end", `18446744073709551615`, `18446744073709551617`, u64, Span{^uint64(0), ^uint64(0), false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := ParseTouched(raw(c.start), raw(c.end), c.index); err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
	if _, err := ParseTouched(raw("5"), raw("5"), i64); err == nil {
		t.Error("an empty range is taken")
	}
}

func TestParseAtMost(t *testing.T) {
	for _, c := range []struct {
		at    string
		index arrow.DataType
		want  Span
	}{
		{"", i64, All},
		{"5", i64, Span{0, signed(5), false}},
		{`"1970-01-01T00:00:01.9Z"`, sUTC, Span{0, signed(1), false}},
		{`"1969-12-31T23:59:58.1Z"`, sUTC, Span{0, signed(-2), false}},
		{"-1", u64, Span{0, 0, true}},
		{"18446744073709551616", u64, Span{0, ^uint64(0), false}},
	} {
		if got, err := ParseAtMost("at", raw(c.at), c.index); err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", c.at, got, err, c.want)
		}
	}
	var invalid *tableerr.Invalid
	if _, err := ParseAtMost("at", raw(`"x"`), i64); !errors.As(err, &invalid) || invalid.Field != "at" {
		t.Errorf("got %v", err)
	}
}
