package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// onTerminal runs the program with a terminal for standard error, and for
// standard input if typed is not empty. It returns what the terminal shows.
func onTerminal(t *testing.T, typed string, stdout io.Writer, args ...string) (status int, shown string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	keyboard, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer keyboard.Close()
	if err := pty.Setsize(screen, &pty.Winsize{Rows: 24, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = stdout, screen
	if typed != "" {
		cmd.Stdin = screen
	}
	if err := errors.Join(cmd.Start(), screen.Close()); err != nil {
		t.Fatal(err)
	}
	if typed != "" {
		if _, err := keyboard.WriteString(typed); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if _, err := io.Copy(&out, keyboard); err != nil && !errors.Is(err, syscall.EIO) { // the end of a terminal
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// On a terminal an append shows its step, what is done of the total and the
// rate; the terminal gets no byte of it with --no-progress, and a pipe never.
func TestProgressOnATerminal(t *testing.T) {
	for _, p := range places(t) {
		p.createWeather(t)
		file := write(t, "a.csv", weatherCSV(20_000))
		var stdout bytes.Buffer
		status, shown := onTerminal(t, "", &stdout, "append", "weather", file, p.flag, p.target)
		if status != exitOK || stdout.String() != "default.weather: appended 20000 rows in 1 file as version 1\n" {
			t.Errorf("%s: %d %s%s", p.name, status, stdout.String(), shown)
		}
		for _, part := range []string{"digest ", "append ", "605.5 KiB / 605.5 KiB", "iB/s"} {
			if !strings.Contains(shown, part) {
				t.Errorf("%s: %q is not shown in %q", p.name, part, shown)
			}
		}
		stdout.Reset()
		if _, shown := onTerminal(t, "", &stdout, "scan", "weather", "--format", "csv", p.flag, p.target); !strings.Contains(shown, "20000 / 20000 rows") || stdout.String() != weatherCSV(20_000) {
			t.Errorf("%s: a scan shows %q", p.name, shown)
		}
		if status, shown := onTerminal(t, "", io.Discard, "append", "weather", file, "--no-progress", p.flag, p.target); status != exitOK || shown != "" {
			t.Errorf("%s: --no-progress shows %q", p.name, shown)
		}
		broken := write(t, "b.csv", weatherCSV(20_000)+"x\n")
		if status, shown := onTerminal(t, "", io.Discard, "append", "weather", broken, p.flag, p.target); status != exitInvalid || !strings.Contains(shown, "flight-admin: INVALID: ") {
			t.Errorf("%s: a failure shows %q", p.name, shown)
		}
	}
}

// drop asks on a terminal and takes nothing but yes.
func TestDropAsks(t *testing.T) {
	for _, p := range places(t) {
		p.createWeather(t)
		var stdout bytes.Buffer
		status, shown := onTerminal(t, "no\n", &stdout, "drop", "weather", p.flag, p.target)
		if status != exitInvalid || !strings.Contains(shown, "Drop default.weather (version 0, 0 files, 0 bytes)? Type yes: ") || !strings.Contains(shown, "INVALID: not dropped") {
			t.Errorf("%s: %d %s", p.name, status, shown)
		}
		p.must(t, "describe", "weather")
		status, shown = onTerminal(t, "yes\n", &stdout, "drop", "weather", p.flag, p.target)
		if status != exitOK || stdout.String() != "dropped default.weather (version 0, 0 files, 0 bytes)\n" {
			t.Errorf("%s: %d %s%s", p.name, status, stdout.String(), shown)
		}
	}
}

// rollback shows what it would undo and asks, on a terminal, and takes nothing
// but yes. Nothing to undo is nothing to ask.
func TestRollbackAsks(t *testing.T) {
	for _, p := range places(t) {
		p.createWeather(t)
		p.must(t, "append", "weather", write(t, "a.csv", weatherCSV(3)), "--request-id", "first")
		p.must(t, "add-columns", "weather", "--column", "note:string")
		var stdout bytes.Buffer
		status, shown := onTerminal(t, "no\n", &stdout, "rollback", "weather", "0", p.flag, p.target)
		for _, part := range []string{
			"version  operation    request_id", "      2  add_columns  ", "      1  append       first     ", "           3\r\nRoll default.weather back to version 0 (0 rows), which undoes 2 versions? Type yes: ", "INVALID: not rolled back",
		} {
			if status != exitInvalid || !strings.Contains(shown, part) {
				t.Errorf("%s: %d, no %q in %s", p.name, status, part, shown)
			}
		}
		status, shown = onTerminal(t, "yes\n", &stdout, "rollback", "weather", "1", p.flag, p.target)
		if want := "default.weather: rolled back to version 1 as version 3, 3 rows, 0 files added, 0 files removed, 1 version undone\n"; status != exitOK || stdout.String() != want {
			t.Errorf("%s: %d %s%s", p.name, status, stdout.String(), shown)
		}
		stdout.Reset()
		status, shown = onTerminal(t, "no\n", &stdout, "rollback", "weather", "3", p.flag, p.target)
		if status != exitOK || strings.Contains(shown, "?") || stdout.String() != "default.weather: nothing to undo; it stays at version 3\n" {
			t.Errorf("%s: %d %s%s", p.name, status, stdout.String(), shown)
		}
	}
}

// A dry run changes nothing and counts what the rollback then does; --json has
// the service's own report.
func TestRollback(t *testing.T) {
	for _, p := range places(t) {
		p.createWeather(t)
		p.must(t, "append", "weather", write(t, "a.csv", weatherCSV(3)), "--no-request-id")
		want := "version operation request_id rows_added\n 1 append - 3\n" +
			"would roll default.weather back to version 0, 0 rows, 0 files added, 1 file removed, 1 version undone\n"
		if got := p.comparable(p.must(t, "rollback", "weather", "0", "--dry-run")); got != want {
			t.Errorf("%s: %s", p.name, got)
		}
		if got := p.must(t, "rollback", "weather", "1", "--dry-run"); got != "default.weather: nothing to undo; it stays at version 1\n" {
			t.Errorf("%s: %s", p.name, got)
		}
		var report rollbackReport
		if err := json.Unmarshal([]byte(p.must(t, "rollback", "weather", "0", "--yes", "--json")), &report); err != nil {
			t.Fatal(err)
		}
		if report.StartingVersion != 1 || report.CommittedVersion != 2 || report.FilesRemoved != 1 || len(report.Undone) != 1 {
			t.Errorf("%s: %+v", p.name, report)
		}
		if got := p.must(t, "scan", "weather", "--format", "csv"); got != "origin,time_hour,temp\n" {
			t.Errorf("%s: %s", p.name, got)
		}
		p.must(t, "rollback", "weather", "1", "--yes")
		if got := p.must(t, "scan", "weather", "--format", "csv"); got != weatherCSV(3) {
			t.Errorf("%s: after a redo %s", p.name, got)
		}
	}
}

// Scripts are there for every shell, and names of tables are completed.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if o := execute(t, nil, nil, "completion", shell); o.status != exitOK || len(o.stdout) < 1000 {
			t.Errorf("%s: %d, %d bytes", shell, o.status, len(o.stdout))
		}
	}
	for _, p := range places(t) {
		p.createWeather(t)
		p.must(t, "create", "plant.sensors", "--index-column", "at", "--index-granularity", "1s")
		environ := map[string]string{map[string]string{"--server": envServer, "--warehouse": envWarehouse}[p.flag]: p.target}
		for words, want := range map[string]string{
			"scan ":                "weather\nplant.sensors\n",
			"append weather ":      ":0",
			"scan weather ":        ":4",
			"config set weather ":  "contrail.retention=",
			"config get weather ":  "contrail.index-column",
			"config set ":          "plant.sensors\n",
			"update weather a.csv": ":0",
		} {
			o := execute(t, nil, environ, append([]string{"__complete"}, strings.Split(words, " ")...)...)
			if !strings.Contains(o.stdout, want) {
				t.Errorf("%s: %s: %+v", p.name, words, o)
			}
		}
	}
	if o := execute(t, nil, map[string]string{envWarehouse: "/nowhere"}, "__complete", "scan", ""); o.status != exitOK || o.stdout != ":4\n" {
		t.Errorf("without a warehouse: %+v", o)
	}
}

func TestBashTakesTheCompletionScript(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Log("there is no bash here")
		return
	}
	script := execute(t, nil, nil, "completion", "bash").stdout
	cmd := exec.Command(bash, "-c", "source "+write(t, "completion", script)+" && complete -p flight-admin")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "__start_flight-admin") {
		t.Errorf("%v: %s", err, out)
	}
}
