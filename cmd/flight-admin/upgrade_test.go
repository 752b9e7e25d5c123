package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plainTable writes a Delta table without rows, as another writer would, into the
// warehouse of a place.
func (p place) plainTable(t *testing.T, name string) {
	t.Helper()
	log := filepath.Join(p.warehouse, "default", name, "_delta_log")
	if err := os.MkdirAll(log, 0o777); err != nil {
		t.Fatal(err)
	}
	commit := `{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"metaData":{"id":"p","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"at\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":[],"configuration":{}}}
`
	if err := os.WriteFile(filepath.Join(log, "00000000000000000000.json"), []byte(commit), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Upgrade goes through all tables, tells of each, and of one that it cannot
// upgrade at last.
func TestUpgrade(t *testing.T) {
	for _, p := range places(t) {
		p.createWeather(t)
		p.must(t, "append", "weather", write(t, "a.csv", weatherCSV(3)), "--no-request-id")
		p.plainTable(t, "plain")
		dry := p.comparable(p.must(t, "upgrade", "weather", "--dry-run"))
		for _, part := range []string{"build_derived_data - 1 ", "write_head - 1 ", "default.weather: current, format 0.3.0; only derived data would be written, and it would stay at version 1\n"} {
			if !strings.Contains(dry, part) {
				t.Errorf("%s: no %q in %q", p.name, part, dry)
			}
		}
		o := p.do(t, "upgrade", "--all")
		if o.status != exitInvalid || !strings.Contains(o.stdout, "default.weather: current, format 0.3.0; only derived data were written, and it stays at version 1\n") || !strings.Contains(o.stderr, `table="default.plain" field="index_column"`) {
			t.Errorf("%s: %+v", p.name, o)
		}
		if got := p.must(t, "upgrade", "weather"); got != "default.weather: current, format 0.3.0; it stays at version 1\n" {
			t.Errorf("%s: %s", p.name, got)
		}
		o = p.do(t, "upgrade", "plain", "weather", "nobody", "--dry-run", "--json", "--keep-snapshots", "2d", "--no-compact")
		var document struct {
			Tables []struct {
				Table  string
				Report *upgradeReport
				Error  struct {
					Token, Field string
					Status       int `json:"exit_status"`
				}
			}
		}
		if err := json.Unmarshal([]byte(o.stdout), &document); err != nil || len(document.Tables) != 3 {
			t.Fatalf("%s: %v, %+v", p.name, err, o)
		}
		plain, weather, nobody := document.Tables[0], document.Tables[1], document.Tables[2]
		if o.status != exitInvalid || !strings.HasPrefix(o.stderr, `{"error":{"token":"INVALID"`) || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", p.name, o)
		}
		if plain.Table != "default.plain" || plain.Report != nil || plain.Error.Token != "INVALID" || plain.Error.Field != "index_column" || plain.Error.Status != exitInvalid ||
			weather.Report == nil || !weather.Report.NoOp || weather.Error.Token != "" || nobody.Error.Token != "TABLE_NOT_FOUND" || nobody.Error.Status != exitNotFound {
			t.Errorf("%s: %+v", p.name, document)
		}
	}
}

func TestUpgradePlainTable(t *testing.T) {
	for _, p := range places(t) {
		p.createWeather(t)
		p.plainTable(t, "plain")
		adopt := []string{"upgrade", "plain", "--index-column", "at", "--index-granularity", "10", "--expected-version", "0"}
		if got, want := p.must(t, append(adopt, "--dry-run")...), "default.plain: would go from format 0.1.0 to 0.3.0; a rollback to version 0 would undo it\n"; !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", p.name, got)
		}
		got := p.comparable(p.must(t, adopt...))
		for _, part := range []string{"hold_snapshots 1 0 0\n", "record_format 1 0 0\n", "write_head - 1 ", "default.plain: format 0.3.0, version 1; a rollback to version 0 undoes it\n"} {
			if !strings.Contains(got, part) {
				t.Errorf("%s: no %q in %s", p.name, part, got)
			}
		}
		var document struct {
			Tables []struct {
				Table  string
				Report upgradeReport
			}
		}
		if err := json.Unmarshal([]byte(p.must(t, "upgrade", "plain", "weather", "--json")), &document); err != nil {
			t.Fatal(err)
		}
		if len(document.Tables) != 2 || document.Tables[0].Table != "default.plain" || !document.Tables[0].Report.NoOp || document.Tables[1].Report.ToFormat != "0.3.0" {
			t.Errorf("%s: %+v", p.name, document)
		}
		if o := p.do(t, adopt...); o.status != exitConflict {
			t.Errorf("%s: %+v", p.name, o)
		}
		for _, wrong := range [][]string{{"upgrade"}, {"upgrade", "plain", "--all"}, {"upgrade", "--all", "--index-column", "at"}} {
			if o := p.do(t, wrong...); o.status != exitInvalid {
				t.Errorf("%s: %v gives %+v", p.name, wrong, o)
			}
		}
	}
}

// TestUpgradeOutcome is what a table is told of that needs no newer format.
func TestUpgradeOutcome(t *testing.T) {
	r := upgradeReport{FromFormat: "0.3.0", ToFormat: "0.3.0", RollbackTo: 3, DryRun: true, Steps: []upgradeStep{{Step: "rewrite_files", Commits: true}, {Step: "write_head"}}}
	if got := r.outcome(); got != "would stay at format 0.3.0; a rollback to version 3 would undo it" {
		t.Error(got)
	}
}

// An interruption behind a table that was upgraded is no success: the next one was not.
func TestUpgradeInterrupted(t *testing.T) {
	for _, p := range places(t) {
		p.createWeather(t)
		ctx, interrupt := context.WithCancel(t.Context())
		var stderr bytes.Buffer
		stdout := &interrupting{interrupt: interrupt}
		status := run(ctx, []string{"upgrade", "weather", "weather", "nobody", p.flag, p.target},
			surroundings{stdin: strings.NewReader(""), stdout: stdout, stderr: &stderr, environ: func(string) string { return "" }})
		if status != exitUnknown || strings.Count(stdout.String(), "default.weather: ") != 1 || strings.Contains(stderr.String(), "nobody") {
			t.Errorf("%s: status %d, %s%s", p.name, status, stdout, &stderr)
		}
	}
}

// interrupting is an output that is interrupted at its first words.
type interrupting struct {
	bytes.Buffer
	interrupt context.CancelFunc
}

func (w *interrupting) Write(text []byte) (int, error) {
	w.interrupt()
	return w.Buffer.Write(text)
}
