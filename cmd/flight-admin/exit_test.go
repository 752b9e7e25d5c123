package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"contrail/descriptors"
)

// coreTokens lists the tokens of package tableerr.
func coreTokens(t *testing.T) []string {
	t.Helper()
	var tokens []string
	for name, value := range readErrorSource(t).values {
		if strings.HasPrefix(name, "Token") {
			tokens = append(tokens, value)
		}
	}
	if len(tokens) < 20 {
		t.Fatalf("found only %d tokens", len(tokens))
	}
	return tokens
}

// Every token has an exit status that is documented, and a line in the
// reference.
func TestEveryTokenHasAnExitStatus(t *testing.T) {
	documented := map[int]bool{}
	for i, s := range exitStatuses {
		if documented[s.code] || s.meaning == "" || i > 0 && s.code <= exitStatuses[i-1].code {
			t.Errorf("status %d is not in order", s.code)
		}
		documented[s.code] = true
	}
	used := map[int]bool{exitOK: true}
	for token, code := range tokenExits {
		if !documented[code] {
			t.Errorf("%s leads to %d, which is not documented", token, code)
		}
		used[code] = true
	}
	for code := range documented {
		if !used[code] {
			t.Errorf("nothing leads to %d", code)
		}
	}
	tokens := coreTokens(t)
	for _, e := range descriptors.Errors {
		tokens = append(tokens, e.Token)
	}
	for _, token := range tokens {
		if _, ok := tokenExits[token]; !ok {
			t.Errorf("%s has no exit status", token)
		}
		if info, ok := descriptors.ErrorInfoOf(token); !ok || info.Remedy == "" {
			t.Errorf("%s has no line in the reference of errors", token)
		}
	}
	if exitOf("SOMETHING_NEW") != exitInternal {
		t.Error("an unknown token has a status of its own")
	}
}

// Each class of errors, at a server and on a directory: the same status, the
// same line.
func TestExitStatuses(t *testing.T) {
	broken := write(t, "broken.csv", weatherCSV(3)+"EWR,2013-02-01T00:00:00Z,warm\n")
	twice := write(t, "twice.csv", weatherCSV(2)+"EWR,2013-01-01T00:00:00Z,1\n")
	whole := write(t, "whole.csv", weatherCSV(3))
	other := write(t, "other.csv", weatherCSV(4))
	cases := []struct {
		args   string
		status int
		line   string // begins with
	}{
		{"scan", exitInvalid, "INVALID: accepts 1 arg(s), received 0"},
		{"frobnicate", exitInvalid, "INVALID: unknown command"},
		{"scan weather --frobnicate", exitInvalid, "INVALID: unknown flag: --frobnicate"},
		{"scan weather --filter temp", exitInvalid, `INVALID: --filter: "temp" is not understood`},
		{"scan weather --filter nothing=1", exitInvalid, `INVALID table="default.weather" field="filter[0][0]"`},
		{"scan weather --entity EWR", exitInvalid, `INVALID: --entity: "EWR" is not COLUMN=VALUE`},
		{"scan weather --start yesterday", exitInvalid, `INVALID table="default.weather" field="start"`},
		{"scan weather --ignore-changes", exitInvalid, `INVALID table="default.weather" field="changes"`},
		{"scan weather --format xml", exitInvalid, `INVALID: "xml" is no format`},
		{"scan weather --json --format csv", exitInvalid, "INVALID: --json and --format do not go together"},
		{"scan weather --output rows.xml", exitInvalid, "INVALID: the name rows.xml does not tell the format"},
		{"scan weather --output /nowhere/rows.csv", exitInvalid, "INVALID: --output: open /nowhere/"},
		{"scan weather --as-of yesterday", exitInvalid, `INVALID: --as-of: "yesterday" is no time`},
		{"scan weather --comma ab", exitInvalid, "INVALID: --comma is one printable"},
		{"append weather nowhere.csv", exitInvalid, "INVALID: open nowhere.csv: no such file"},
		{"append weather -", exitInvalid, "INVALID: standard input needs --format"},
		{"append weather . --format csv", exitInvalid, "INVALID: . is no regular file"},
		{"append weather " + whole + " --format xml", exitInvalid, `INVALID: "xml" is no format`},
		{"append weather " + whole + " --request-id x --no-request-id", exitInvalid, "INVALID: --request-id and --no-request-id do not go"},
		{"append weather " + whole + " --assume-zone Mars", exitInvalid, `INVALID: --assume-zone: "Mars" is no zone`},
		{"append weather " + broken, exitInvalid, "INVALID: " + broken + `: line 5, column temp: "warm" is no number`},
		{"create t", exitInvalid, `INVALID: required flag(s) "index-column" not set`},
		{"create t --index-column a --column a", exitInvalid, `INVALID: --column: "a" is not NAME:TYPE`},
		{"create t --index-column a --column a:int64 --schema-from " + whole, exitInvalid, "INVALID: --column and --schema-from do not go"},
		{"create t --index-column a --column a:complex", exitInvalid, `INVALID table="default.t" field="columns[0].type"`},
		{"drop weather", exitInvalid, "INVALID: there is no terminal to ask on; --yes drops the table without"},
		{"rollback weather 0", exitInvalid, "INVALID: there is no terminal to ask on; --yes rolls the table back without"},
		{"rollback weather first --yes", exitInvalid, `INVALID: "first" is no version; history lists them`},
		{"rollback weather 1.5 --yes", exitInvalid, `INVALID: "1.5" is no version`},
		{"rollback weather 0 --release --yes", exitInvalid, `INVALID table="default.weather" field="release"`},
		{"optimize weather --layout tall", exitInvalid, `INVALID table="default.weather" field="layout" value="tall"`},
		{"optimize weather --target-file-bytes 0", exitInvalid, `INVALID table="default.weather" field="target_file_bytes"`},
		{"gaps weather --kind some", exitInvalid, "INVALID: --kind is missing, covered"},
		{"gaps weather --plot --json", exitInvalid, "INVALID: --plot draws on standard output"},
		{"gaps empty --plot", exitInvalid, "INVALID: there is no range to draw"},
		{"config set weather", exitInvalid, "INVALID: there is nothing to set"},
		{"config set weather team", exitInvalid, `INVALID: "team" is not KEY=VALUE`},
		{"config set weather team=a --unset team", exitInvalid, "INVALID: team is set and taken away at once"},
		{"config get weather nothing", exitInvalid, "INVALID: nothing is not set on default.weather"},
		{"config explain nothing", exitInvalid, "INVALID: nothing is no property"},
		{"update weather " + whole + " --expected-version newest", exitInvalid, "INVALID: --expected-version is a version"},
		{"scan nowhere", exitNotFound, `TABLE_NOT_FOUND table="default.nowhere"`},
		{"describe weather --version 99", exitNotFound, `VERSION_NOT_FOUND table="default.weather" version=99 current=1`},
		{"scan weather --since 9", exitNotFound, `VERSION_NOT_FOUND table="default.weather" version=9 current=1`},
		{"rollback nowhere 0 --yes", exitNotFound, `TABLE_NOT_FOUND table="default.nowhere"`},
		{"rollback weather 9 --dry-run", exitNotFound, `VERSION_NOT_FOUND table="default.weather" version=9 current=1`},
		{"create weather --index-column time_hour --index-granularity 1h", exitExists, `TABLE_EXISTS table="default.weather"`},
		{"append weather " + other + " --request-id first", exitExists, `REQUEST_ID_REUSED table="default.weather" request_id="first"`},
		{"append weather " + whole + " --expected-version 7", exitConflict, `VERSION_CONFLICT table="default.weather" expected=7 found=1`},
		{"optimize weather --expected-version 0", exitConflict, `VERSION_CONFLICT table="default.weather" expected=0 found=1`},
		{"optimize nowhere", exitNotFound, `TABLE_NOT_FOUND table="default.nowhere"`},
		{"rollback weather 0 --yes --expected-version 0", exitConflict, `VERSION_CONFLICT table="default.weather" expected=0 found=1`},
		{"append weather " + whole, exitRefused, `INTERVAL_OVERLAP table="default.weather" conflict_count=3`},
		{"append empty " + twice, exitRefused, `DUPLICATE_INTERVAL table="default.empty"`},
	}
	for _, p := range places(t) {
		p.createWeather(t)
		p.must(t, "create", "empty", "--index-column", "time_hour", "--index-granularity", "1h", "--entity-columns", "origin", "--schema-from", whole)
		p.must(t, "append", "weather", whole, "--request-id", "first")
		for _, c := range cases {
			o := p.do(t, strings.Fields(c.args)...)
			if asJSON := strings.Contains(c.args, "--json"); o.status != c.status || !asJSON && !strings.HasPrefix(o.stderr, "flight-admin: "+c.line) || o.stdout != "" {
				t.Errorf("%s: %s: status %d\n%s%s", p.name, c.args, o.status, o.stdout, o.stderr)
			}
			if lines := strings.Count(o.stderr, "\n"); lines > 2 {
				t.Errorf("%s: %s: %d lines\n%s", p.name, c.args, lines, o.stderr)
			}
			o = p.do(t, append(strings.Fields(c.args), "--json")...)
			var document struct {
				Error map[string]any `json:"error"`
			}
			if c.args != "scan weather --frobnicate" && (json.Unmarshal([]byte(o.stderr), &document) != nil ||
				document.Error["exit_status"] != float64(c.status) || document.Error["text"] == "") {
				t.Errorf("%s: %s --json: %s", p.name, c.args, o.stderr)
			}
		}
		if got := p.must(t, "scan", "weather", "--format", "csv"); got != weatherCSV(3) {
			t.Errorf("%s: something was stored:\n%s", p.name, got)
		}
	}
}

func TestDamagedDataHasItsStatus(t *testing.T) {
	for _, p := range places(t) {
		p.createWeather(t)
		p.must(t, "append", "weather", write(t, "a.csv", weatherCSV(3)))
		files, err := filepath.Glob(filepath.Join(p.warehouse, "default", "weather", "data", "*", "*.parquet"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		raw, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		for i := range raw[4 : len(raw)/2] {
			raw[4+i] ^= 0x40
		}
		if err := os.WriteFile(files[0], raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if o := p.do(t, "scan", "weather"); o.status != exitDamaged || !strings.Contains(o.stderr, "CORRUPT") {
			t.Errorf("%s: %+v", p.name, o)
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		if o := p.do(t, "scan", "weather"); o.status != exitDamaged || !strings.Contains(o.stderr, "FILE_MISSING") {
			t.Errorf("%s: %+v", p.name, o)
		}
	}
}

func TestWithoutAnybodyThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"tables"}, {"scan", "weather"}, {"drop", "weather", "--yes"}, {"append", "weather", write(t, "a.csv", weatherCSV(1))}} {
		o := execute(t, nil, nil, append(args, "--server", nobody)...)
		if o.status != exitUnavailable || !strings.HasPrefix(o.stderr, "flight-admin: UNREACHABLE: dial tcp "+nobody+": connect: connection refused\n") {
			t.Errorf("%v: %+v", args, o)
		}
	}
	o := execute(t, nil, nil, "tables", "--warehouse", filepath.Join(t.TempDir(), "typo"))
	if o.status != exitNotFound || !strings.HasPrefix(o.stderr, "flight-admin: NO_WAREHOUSE: there is no such warehouse: ") {
		t.Errorf("%+v", o)
	}
	o = execute(t, nil, nil, "tables", "--warehouse", write(t, "file", "a file"))
	if o.status != exitInvalid || !strings.HasPrefix(o.stderr, "flight-admin: INVALID: the warehouse ") {
		t.Errorf("%+v", o)
	}
}

// fakeServer answers with what a service of ours does not say by itself.
type fakeServer struct {
	flight.BaseFlightServer
	err     error
	trailer metadata.MD
	hold    chan struct{} // closed when a call has come
}

func (s *fakeServer) DoAction(_ *flight.Action, stream flight.FlightService_DoActionServer) error {
	if s.hold != nil {
		close(s.hold)
		<-stream.Context().Done()
		return status.FromContextError(stream.Context().Err()).Err()
	}
	stream.SetTrailer(s.trailer)
	return s.err
}

// DoPut takes the whole stream before it fails.
func (s *fakeServer) DoPut(stream flight.FlightService_DoPutServer) error {
	for {
		if _, err := stream.Recv(); err == io.EOF {
			return s.err
		} else if err != nil {
			return err
		}
	}
}

func startFake(t *testing.T, fake *fakeServer, options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	flight.RegisterFlightServiceServer(server, fake)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func TestStatusesOfTheTransport(t *testing.T) {
	incident := metadata.Pairs("x-contrail-error", "INTERNAL", "grpc-status-details-bin", `{"token":"INTERNAL","text":"look there","incident":"17"}`)
	for _, c := range []struct {
		args   string
		fake   fakeServer
		status int
		line   string
	}{
		{"tables", fakeServer{err: status.Error(codes.Unauthenticated, "who are you?")}, exitDenied, "UNAUTHENTICATED: who are you?"},
		{"tables", fakeServer{err: status.Error(codes.PermissionDenied, "not you")}, exitDenied, "PERMISSION_DENIED: not you"},
		{"tables", fakeServer{err: status.Error(codes.Internal, "INTERNAL incident=\"17\": look there"), trailer: incident}, exitInternal, `INTERNAL incident="17": look there`},
		{"tables", fakeServer{err: status.Error(codes.Unimplemented, "no such method")}, exitInternal, "INTERNAL: Unimplemented: no such method"},
		{"tables", fakeServer{}, exitInternal, "INTERNAL: action list_tables the service ended the call without an answer"},
		{"drop weather --yes", fakeServer{err: status.Error(codes.Unavailable, "gone")}, exitUnknown, "ANSWER_LOST: the answer was lost"},
		{"rollback weather 0 --yes --expected-version 1", fakeServer{err: status.Error(codes.Unavailable, "gone")}, exitUnknown, "ANSWER_LOST: the answer was lost"},
		{"append weather rows.arrows", fakeServer{err: status.Error(codes.Unavailable, "gone")}, exitUnknown, "ANSWER_LOST: all rows were sent"},
		{"append weather rows.arrows", fakeServer{}, exitInternal, "INTERNAL: the service ended the call without an answer"},
	} {
		t.Chdir(t.TempDir())
		p := embeddedPlace(t)
		p.createWeather(t)
		p.must(t, "append", "weather", write(t, "a.csv", weatherCSV(3)))
		p.must(t, "scan", "weather", "--output", "rows.arrows")
		address := startFake(t, &c.fake)
		o := execute(t, nil, nil, append(strings.Fields(c.args), "--server", address)...)
		if o.status != c.status || !strings.HasPrefix(o.stderr, "flight-admin: "+c.line) {
			t.Errorf("%s: %+v", c.args, o)
		}
	}
}

// A disk of ours that is full is no error inside; what a file says does not reach
// the terminal as a command to it.
func TestFailuresOfFiles(t *testing.T) {
	p := embeddedPlace(t)
	p.createWeather(t)
	p.must(t, "append", "weather", write(t, "a.csv", weatherCSV(3)))
	var stderr bytes.Buffer
	status := run(t.Context(), []string{"scan", "weather", p.flag, p.target},
		surroundings{stdin: strings.NewReader(""), stdout: fullDisk{}, stderr: &stderr, environ: func(string) string { return "" }})
	if status != exitUnavailable || !strings.HasPrefix(stderr.String(), "flight-admin: STORAGE_FULL: write rows.csv: no space left") {
		t.Errorf("%d %s", status, stderr.String())
	}
	if o := p.do(t, "append", "weather", write(t, "b.csv", "\x1b[2J,\xff\n")); o.status != exitInvalid || !strings.Contains(o.stderr, "column \uFFFD[2J: the table has no") {
		t.Errorf("%+v", o)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "rows.csv", Err: syscall.ENOSPC}
}

func TestInterrupt(t *testing.T) {
	for args, want := range map[string]int{"tables": exitInterrupted, "drop weather --yes": exitUnknown} {
		fake := &fakeServer{hold: make(chan struct{})}
		address := startFake(t, fake)
		ctx, interrupt := context.WithCancel(context.Background())
		go func() {
			<-fake.hold
			interrupt()
		}()
		o := executeIn(ctx, nil, nil, append(strings.Fields(args), "--server", address)...)
		if o.status != want {
			t.Errorf("%s: %+v", args, o)
		}
		interrupt()
	}
}
