package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"contrail/cmd/internal/rowfile"
)

// example is one command line of a command's help.
type example struct{ command, line string }

// examplesOf lists the examples of all commands in the order of help, which is
// the order in which a newcomer would try them.
func examplesOf(t *testing.T, root *cobra.Command) []example {
	t.Helper()
	var list []example
	for _, cmd := range commandsOf(root) {
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, line := range strings.Split(strings.ReplaceAll(cmd.Example, "\\\n", " "), "\n") {
			list = append(list, example{cmd.CommandPath(), strings.TrimSpace(line)})
		}
	}
	return list
}

// commandsOf lists the program's own commands in the order of verbs.
func commandsOf(root *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, verb := range verbs {
		name := verb(&app{}).Name()
		for _, cmd := range root.Commands() {
			if cmd.Name() == name {
				list = append(list, withChildren(cmd)...)
			}
		}
	}
	return list
}

func withChildren(cmd *cobra.Command) []*cobra.Command {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	var list []*cobra.Command
	for _, child := range cmd.Commands() {
		list = append(list, withChildren(child)...)
	}
	return list
}

// Every example of --help runs, from a folder with the files that it names, at
// a server and on a directory, and does the same in both.
func TestExamples(t *testing.T) {
	examples := examplesOf(t, newRootCommand(&app{surroundings: surroundings{environ: func(string) string { return "" }}}))
	var outputs [2][]string
	var at [2]place
	for i, p := range places(t) {
		at[i] = p
		folder := exampleFolder(t)
		for _, e := range examples {
			outputs[i] = append(outputs[i], p.shell(t, folder, e.line))
		}
		if _, err := os.Stat(filepath.Join(folder, "rows.parquet")); err != nil {
			t.Error(err)
		}
	}
	for i, e := range examples {
		server, embedded := at[0].comparable(outputs[0][i]), at[1].comparable(outputs[1][i])
		if e.command == "flight-admin files" { // whose order is that of random names
			server, embedded = sortedLines(server), sortedLines(embedded)
		}
		if e.command == "flight-admin server-info" { // a server has counted the examples before this one
			server, embedded = counts.ReplaceAllString(server, "N"), counts.ReplaceAllString(embedded, "N")
		}
		if server == "" {
			t.Errorf("%s prints nothing", e.line)
		}
		if server != embedded {
			t.Errorf("%s\n-- at a server\n%s\n-- on a directory\n%s", e.line, server, embedded)
		}
	}
}

// counts matches what server-info counts, in every form that it takes here.
var counts = regexp.MustCompile(`\b(SIZE|[0-9]+)\b`)

func sortedLines(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "},\n", "}\n"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// shell runs a line as it stands in a real shell, with the program in the path
// and the place in the environment.
func (p place) shell(t *testing.T, folder, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = folder
	variable := map[string]string{"--server": envServer, "--warehouse": envWarehouse}[p.flag]
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(folder, "bin")+":"+os.Getenv("PATH"), asProgram+"=1", variable+"="+p.target)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%s: %s: %v\n%s%s", p.name, line, err, out, stderr.String())
	}
	return string(out)
}

// exampleFolder has the program and the files that the examples name: months of
// the weather of 2013.
func exampleFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(folder, "bin", "flight-admin")); err != nil {
		t.Fatal(err)
	}
	source := embeddedPlace(t)
	source.must(t, "create", "year", "--index-column", "time_hour", "--index-granularity", "1h", "--entity-columns", "origin")
	source.must(t, "append", "year", filepath.Join("..", "..", "integration", "testdata", "weather.parquet"))
	for name, month := range map[string]int{"july.parquet": 7, "august.csv": 8, "september.csv": 9, "october.jsonl": 10} {
		source.must(t, "scan", "year", "--start", fmt.Sprintf("2013-%02d-01T00:00:00Z", month), "--end", fmt.Sprintf("2013-%02d-01T00:00:00Z", month+1),
			"--output", filepath.Join(folder, name))
	}
	corrections := "origin,time_hour,temp\nEWR,2013-07-01T00:00:00Z,70.5\nJFK,2013-07-01T00:00:00Z,\n"
	if err := os.WriteFile(filepath.Join(folder, "corrections.csv"), []byte(corrections), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// The file that an example writes holds all rows of the table.
func TestScanIntoEachFormat(t *testing.T) {
	p := embeddedPlace(t)
	p.createWeather(t)
	p.must(t, "append", "weather", write(t, "a.csv", weatherCSV(100)))
	for _, format := range rowfile.Formats {
		path := filepath.Join(t.TempDir(), "rows."+string(format))
		p.must(t, "scan", "weather", "--output", path)
		copyTable := "copy" + string(format)
		p.must(t, "create", copyTable, "--index-column", "time_hour", "--index-granularity", "1h", "--entity-columns", "origin", "--schema-from", path)
		p.must(t, "append", copyTable, path)
		if got, want := p.must(t, "scan", copyTable, "--format", "jsonl"), p.must(t, "scan", "weather", "--format", "jsonl"); got != want {
			t.Errorf("%s: the copy differs", format)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%s: %v left, %v", format, left, err)
		}
		stream := p.must(t, "scan", "weather", "--format", string(format))
		if file := readFile(t, path); format != rowfile.Parquet && stream != file {
			t.Errorf("%s: standard output differs from the file", format)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
