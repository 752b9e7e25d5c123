package descriptors

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"contrail/tablecore/tableerr"
)

func TestMessageWithoutFields(t *testing.T) {
	message, detail := FormatError(&tableerr.Draining{})
	if want := "DRAINING: the server is stopping; repeat elsewhere or later"; message != want {
		t.Errorf("got %q, want %q", message, want)
	}
	if want := `{"token":"DRAINING","text":"the server is stopping; repeat elsewhere or later"}`; string(detail) != want {
		t.Errorf("got %s, want %s", detail, want)
	}
}

func TestNullFieldsAreSaid(t *testing.T) {
	message, _ := FormatError(&tableerr.StreamIncomplete{Rows: 3})
	if !strings.HasPrefix(message, "STREAM_INCOMPLETE expected_rows=null rows=3: ") {
		t.Errorf("got %q", message)
	}
}

func TestLongValuesAreCut(t *testing.T) {
	long := strings.Repeat("ä", 300)
	cases := []struct {
		name   string
		value  any
		prefix string
	}{
		{"text", long, `"ää`},
		{"escapes", strings.Repeat("\n", 300), `"\n\n`},
		{"object", tableerr.Values{{Name: "origin", Value: long}}, `"{\"origin\":\"ää`},
		{"list", make([]int, 300), `"[0,0`},
		{"number text", json.Number(strings.Repeat("9", 300)), `"999`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			message, detail := Format("TOKEN", "text", []tableerr.Field{{Key: "before", Value: 1}, {Key: "v", Value: c.value}})
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(detail, &fields); err != nil {
				t.Fatal(err)
			}
			v := string(fields["v"])
			if len(v) > maxValueBytes || len(v) < maxValueBytes-8 || !strings.HasPrefix(v, c.prefix) || !strings.HasSuffix(v, `…"`) {
				t.Errorf("cut to %d bytes: %s", len(v), v)
			}
			if want := "TOKEN before=1 v=" + v + ": text"; message != want {
				t.Errorf("got %q, want %q", message, want)
			}
		})
	}
}

func TestShortValuesAreNotCut(t *testing.T) {
	s := strings.Repeat("a", maxValueBytes-2)
	message, _ := Format("T", "t", []tableerr.Field{{Key: "v", Value: s}})
	if message != `T v="`+s+`": t` {
		t.Errorf("got %q", message)
	}
}

func TestValuesThatJSONCannotSay(t *testing.T) {
	message, detail := Format("T", "t", []tableerr.Field{{Key: "v", Value: math.NaN()}, {Key: "w", Value: "<&>"}})
	if message != `T v="NaN" w="<&>": t` || !json.Valid(detail) {
		t.Errorf("got %q, %s", message, detail)
	}
}

func TestTrailersStayBelowTheirLimit(t *testing.T) {
	long := strings.Repeat("日", 5_000)
	var fields []tableerr.Field
	for range 6 {
		fields = append(fields, tableerr.Field{Key: "conflict_count", Value: long})
	}
	checkFormat(t, "INTERVAL_OVERLAP", long, fields)
	for range 200 {
		fields = append(fields, tableerr.Field{Key: "conflict_count", Value: long})
	}
	message, _ := checkFormat(t, "INTERVAL_OVERLAP", long, fields)
	if !strings.HasPrefix(message, "INTERVAL_OVERLAP: 日") {
		t.Errorf("got %q", message)
	}
	checkFormat(t, "INVALID", "\xff\xfe", []tableerr.Field{{Key: "field", Value: "\xff"}})
}

// checkFormat asserts what must hold for every error.
func checkFormat(t *testing.T, token, text string, fields []tableerr.Field) (string, []byte) {
	t.Helper()
	message, detail := Format(token, text, fields)
	if n := trailerBytes(message, detail); n > maxTrailerBytes {
		t.Errorf("the trailers have %d bytes", n)
	}
	var said struct{ Token, Text string }
	if err := json.Unmarshal(detail, &said); err != nil {
		t.Fatalf("%s: %v", detail, err)
	}
	if said.Token != token || !strings.HasSuffix(message, ": "+said.Text) || !strings.HasPrefix(message, token) {
		t.Errorf("message %q, detail %s", message, detail)
	}
	if !utf8.ValidString(message) || !utf8.Valid(detail) {
		t.Errorf("%q and %q are no UTF-8", message, detail)
	}
	return message, detail
}
