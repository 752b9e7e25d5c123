package logging

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	log, err := New(&out, "info", "json")
	if err != nil {
		t.Fatal(err)
	}
	log.Debug().Msg("hidden")
	log.Warn().Str("table", "default.t").Msg("odd")
	var entry struct{ Level, Table, Message, Time string }
	if err := json.Unmarshal(out.Bytes(), &entry); err != nil {
		t.Fatalf("%s: %v", out.String(), err)
	}
	if entry.Level != "warn" || entry.Table != "default.t" || entry.Message != "odd" {
		t.Errorf("got %+v", entry)
	}
	if at, err := time.Parse(time.RFC3339, entry.Time); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("time %q: %v", entry.Time, err)
	}
}

func TestConsole(t *testing.T) {
	var out bytes.Buffer
	log, err := New(&out, "trace", "console")
	if err != nil {
		t.Fatal(err)
	}
	log.Trace().Int("n", 5).Msg("seen")
	line := out.String()
	if strings.Contains(line, "\x1b") || !strings.Contains(line, "Z TRC seen n=5") {
		t.Errorf("got %q", line)
	}
}

func TestBadSettings(t *testing.T) {
	for _, s := range [][2]string{{"loud", "json"}, {"", "json"}, {"info", ""}, {"info", "xml"}} {
		if _, err := New(&bytes.Buffer{}, s[0], s[1]); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func TestTerminals(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	if isTerminal(file) || isTerminal(&bytes.Buffer{}) {
		t.Error("a file or a buffer counts as a terminal")
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if isTerminal(file) {
		t.Error("a closed file counts as a terminal")
	}
}
