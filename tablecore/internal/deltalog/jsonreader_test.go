package deltalog

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestJSONReaderValues(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`"a"`, "a"}, {` "\u00e9\n\"\\\/\b\f\r\t" `, "é\n\"\\/\b\f\r\t"},
		{`"\ud83d\ude00"`, "😀"}, {`"\ud83d"`, "\uFFFD"}, {`"\ud83dx"`, "\uFFFDx"},
		{`"\ud83d\u0041"`, "\uFFFDA"}, {`"\udE00"`, "\uFFFD"}, {`"é"`, "é"}, {`null`, ""},
	} {
		r := &jsonReader{data: []byte(c.in)}
		got, err := r.str()
		if err == nil {
			err = r.end()
		}
		if err != nil || got != c.want {
			t.Errorf("%s = %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{`"`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", "\"\\n\x01\"", `"\ud83d\u"`, `"\n`, `1`, ``} {
		if got, err := (&jsonReader{data: []byte(in)}).str(); err == nil {
			t.Errorf("%q read as %q", in, got)
		}
	}
}

func TestJSONReaderIntegersAreExact(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
	}{{"9223372036854775807", 1<<63 - 1}, {"-9223372036854775808", -1 << 63}, {"9007199254740993", 9007199254740993}, {"0", 0}, {"-0", 0}, {"null", 0}} {
		if got, err := (&jsonReader{data: []byte(c.in)}).whole(); err != nil || got != c.want {
			t.Errorf("%s = %d, %v", c.in, got, err)
		}
	}
	for _, in := range []string{"9223372036854775808", "1.0", "1e3", "-", "01x", `"1"`, "true", "", ".5", "1.", "1e", strings.Repeat("1", 100)} {
		r := &jsonReader{data: []byte(in)}
		_, err := r.whole()
		if err == nil {
			err = r.end()
		}
		if err == nil {
			t.Errorf("%q was read as a whole number", in)
		}
	}
}

func TestJSONReaderLimitsDepth(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := (&jsonReader{data: deep(maxDepth)}).skip(); err != nil {
		t.Error(err)
	}
	if err := (&jsonReader{data: deep(maxDepth + 1)}).skip(); err == nil {
		t.Error("too deep a value was read")
	}
}

func TestJSONReaderBooleans(t *testing.T) {
	for in, want := range map[string]bool{"true": true, "false": false, "null": false} {
		if got, err := (&jsonReader{data: []byte(in)}).boolean(); err != nil || got != want {
			t.Errorf("%s = %v, %v", in, got, err)
		}
	}
	if _, err := (&jsonReader{data: []byte("1")}).boolean(); err == nil {
		t.Error("1 read as a boolean")
	}
}

// FuzzJSONReader holds the reader against encoding/json: what one takes, the
// other takes.
func FuzzJSONReader(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,"x\u0041",null,true,{}],"b":{"c":false}}`, `[`, `{"a":}`, `01`, `-`, `"\ud800"`, ` [ ] `, `{"a" 1}`, `[1 2]`, `nul`, `{,}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) {
			return // callers refuse such input first
		}
		r := &jsonReader{data: data}
		err := r.skip()
		if err == nil {
			err = r.end()
		}
		if valid := json.Valid(data); valid != (err == nil) && (err == nil || !strings.Contains(err.Error(), "nested deeper")) {
			t.Fatalf("valid = %v, reader says %v", valid, err)
		}
	})
}
