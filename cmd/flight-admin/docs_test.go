package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"contrail/descriptors"
	"contrail/flightsrv"
)

var update = flag.Bool("update", false, "rewrite the generated pages")

// checkPage compares a generated page with its file, or rewrites that.
func checkPage(t *testing.T, path string, page []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, page) {
		t.Errorf("%s is not what the code says; run go test ./cmd/flight-admin -run Page -update", path)
	}
}

func TestCommandPage(t *testing.T) {
	checkPage(t, filepath.Join("docs", "flight-admin.md"), commandPage(newRootCommand(&app{})))
}

func commandPage(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString("# flight-admin\n\nMade from the commands (`go test ./cmd/flight-admin -run Page -update`); do not edit. Every example is run as a test.\n\n")
	fmt.Fprintf(&b, "```\n%s\n```\n\n## Flags of all commands\n\n", root.Long)
	flagTable(&b, root.PersistentFlags())
	b.WriteString("\n## Formats\n\n" + formatNotes)
	for _, cmd := range commandsOf(root) {
		fmt.Fprintf(&b, "\n## %s\n\n", strings.TrimPrefix(cmd.CommandPath(), "flight-admin "))
		long := cmd.Long
		if long == "" {
			long = cmd.Short + "."
		}
		fmt.Fprintf(&b, "```\n%s\n```\n\n%s\n\n```sh\n%s\n```\n", cmd.UseLine(), escaped(long), dedented(cmd.Example))
		if cmd.LocalNonPersistentFlags().HasAvailableFlags() {
			b.WriteByte('\n')
			flagTable(&b, cmd.LocalNonPersistentFlags())
		}
	}
	b.WriteString("\n## completion\n\n`flight-admin completion bash` (or `zsh`, `fish`, `powershell`) prints a script; its `--help` says where to put it. Names of tables are completed from the service.\n")
	return b.Bytes()
}

const formatNotes = `Files are CSV, JSON lines, Parquet and Arrow IPC (file or stream). Values in text look as they do in the protocol: times in RFC 3339
with ` + "`Z`" + `, binary in base64, ` + "`NaN`" + ` and ` + "`Infinity`" + ` by name, times of day and durations as integers of their unit, nested values as JSON, maps
as lists of pairs. The first line of CSV names the columns; the empty cell is null (` + "`--null`" + ` takes another text). CSV also takes a blank
for the ` + "`T`" + ` of a time, offsets such as ` + "`+02`" + `, and times of day such as ` + "`15:04:05`" + `. A time without a zone is refused for a column that has one,
unless ` + "`--assume-zone`" + ` says which is meant; one that the zone's clocks skip or show twice is refused even so. Nothing is rounded: a text that the type cannot hold exactly is refused with its line and column.
`

func dedented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}

// escaped is a text of help as Markdown.
func escaped(text string) string {
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "  ") { // a list
			name, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
			line = "- `" + name + "`: " + strings.TrimSpace(meaning)
		}
		b.WriteString(strings.ReplaceAll(line, "<", "\\<") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func flagTable(b *bytes.Buffer, flags *pflag.FlagSet) {
	b.WriteString("| flag | meaning |\n| --- | --- |\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			fmt.Fprintf(b, "| `--%s` | %s |\n", f.Name, strings.ReplaceAll(f.Usage, "|", "\\|"))
		}
	})
}

// The reference of errors is made of what the wire contract knows of each
// token, the service's status codes and the exit statuses.
func TestErrorsPage(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Errors\n\nMade from the code (`go test ./cmd/flight-admin -run Page -update`); do not edit.\n\n" +
		"`table` is a field of every error that concerns a table. [protocol.md](protocol.md) says how errors reach a client, and\n" +
		"[flight-admin.md](../../cmd/flight-admin/docs/flight-admin.md) what the exit statuses mean.\n\n" +
		"| token | gRPC code | exit status | fields | what to do |\n| --- | --- | --- | --- | --- |\n")
	for _, e := range descriptors.Errors {
		code, ok := flightsrv.CodeOf(e.Token)
		if !ok {
			continue // of an operation that this version does not offer
		}
		fields := "–"
		if len(e.Fields) > 0 {
			fields = "`" + strings.Join(e.Fields, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s | %s |\n", e.Token, code, exitOf(e.Token), fields, e.Remedy)
	}
	b.WriteString("\nflight-admin has some words of its own for what no service has told:\n\n| token | exit status |\n| --- | --- |\n")
	for _, token := range ownTokens() {
		fmt.Fprintf(&b, "| `%s` | %d |\n", token, exitOf(token))
	}
	checkPage(t, filepath.Join("..", "..", "flightsrv", "docs", "errors.md"), b.Bytes())
}

// ownTokens are those that the protocol does not have.
func ownTokens() []string {
	var tokens []string
	for token := range tokenExits {
		if _, ok := descriptors.ErrorInfoOf(token); !ok {
			tokens = append(tokens, token)
		}
	}
	slices.Sort(tokens)
	return tokens
}

// Every token of the core stands in the page.
func TestErrorsPageIsWhole(t *testing.T) {
	for _, token := range coreTokens(t) {
		if _, ok := flightsrv.CodeOf(token); !ok {
			t.Errorf("%s has no status code", token)
		}
	}
}
