package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// orphanFile is a file that a killed writer has left in the weather table.
const orphanFile = "data/ab/abababab-abab-abab-abab-abababababab.parquet"

// withOrphan makes the weather table with three rows and an orphan of a month
// ago.
func (p place) withOrphan(t *testing.T) string {
	t.Helper()
	p.createWeather(t)
	p.must(t, "append", "weather", write(t, "a.csv", weatherCSV(3)))
	path := filepath.Join(p.warehouse, "default", "weather", orphanFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	month := time.Now().Add(-30 * 24 * time.Hour)
	if err := os.Chtimes(path, month, month); err != nil {
		t.Fatal(err)
	}
	return path
}

// A dry run lists what would go, --all also what stays, --json everything in one
// document; --apply removes it.
func TestVacuum(t *testing.T) {
	for _, p := range places(t) {
		path := p.withOrphan(t)
		got := p.must(t, "vacuum", "weather")
		for _, part := range []string{"removable    invalid_or_unreadable_parquet        -      5  ", orphanFile + "\n", "default.weather: would remove 1 file (5 bytes) of 2 files ("} {
			if !strings.Contains(got, part) || strings.Contains(got, "retained") {
				t.Errorf("%s: no %q in %s", p.name, part, got)
			}
		}
		if got := p.must(t, "vacuum", "weather", "--all", "--older-than", "2000-01-01T00:00:00Z"); !strings.Contains(got, "retained     referenced_by_commit        1  ") ||
			!strings.Contains(got, "retained     within_retention            -  ") || !strings.Contains(got, "would remove 0 files (0 bytes) of 2 files") {
			t.Errorf("%s: %s", p.name, got)
		}
		var document struct {
			Artifacts []vacuumArtifact `json:"artifacts"`
			Result    vacuumReport     `json:"result"`
		}
		if err := json.Unmarshal([]byte(p.must(t, "vacuum", "weather", "--json", "--older-than", "10d")), &document); err != nil {
			t.Fatal(err)
		}
		if len(document.Artifacts) != 2 || document.Result.Removable != (fileCount{1, 5}) || document.Result.Apply {
			t.Errorf("%s: %+v", p.name, document)
		}
		if got := p.must(t, "vacuum", "weather", "--apply", "--yes", "--expire"); !strings.Contains(got, "default.weather: removed 1 file (5 bytes) of 2 files (") {
			t.Errorf("%s: %s", p.name, got)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: %v", p.name, err)
		}
		if got := p.must(t, "vacuum", "weather"); strings.Contains(got, "removable") || !strings.Contains(got, "would remove 0 files") {
			t.Errorf("%s: %s", p.name, got)
		}
	}
}

// With --apply it asks, on a terminal, and takes nothing but yes; nothing to
// remove is nothing to ask.
func TestVacuumAsks(t *testing.T) {
	for _, p := range places(t) {
		path := p.withOrphan(t)
		var stdout bytes.Buffer
		status, shown := onTerminal(t, "no\n", &stdout, "vacuum", "weather", "--apply", p.flag, p.target)
		if status != exitInvalid || !strings.Contains(shown, "Remove 1 file (5 bytes) from default.weather? Type yes: ") || !strings.Contains(shown, "INVALID: not vacuumed") {
			t.Errorf("%s: %d %s", p.name, status, shown)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		if status, shown = onTerminal(t, "yes\n", &stdout, "vacuum", "weather", "--apply", p.flag, p.target); status != exitOK || !strings.Contains(stdout.String(), "removed 1 file") {
			t.Errorf("%s: %d %s%s", p.name, status, stdout.String(), shown)
		}
		stdout.Reset()
		if status, shown = onTerminal(t, "no\n", &stdout, "vacuum", "weather", "--apply", p.flag, p.target); status != exitOK || strings.Contains(shown, "?") || !strings.Contains(stdout.String(), "removed 0 files") {
			t.Errorf("%s: %d %s%s", p.name, status, stdout.String(), shown)
		}
		if status, shown = onTerminal(t, "no\n", &stdout, "vacuum", "weather", "--apply", "--expire", p.flag, p.target); status != exitInvalid || !strings.Contains(shown, "and give up versions older than") {
			t.Errorf("%s: %d %s", p.name, status, shown)
		}
	}
}

func TestMomentAgo(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for text, want := range map[string]string{"": "", "12h": "2026-03-03T17:06:07Z", "2w": "2026-02-18T05:06:07Z", "2013-01-31T06:00:00+01:00": "2013-01-31T06:00:00+01:00"} {
		if got, err := momentAgo(text, now); err != nil || got != want {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"yesterday", "2013-01-31", "-1h", "4294967295w", "0d"} {
		if got, err := momentAgo(text, now); err == nil {
			t.Errorf("%q is %q", text, got)
		}
	}
}
