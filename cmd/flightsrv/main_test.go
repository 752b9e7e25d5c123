package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asProgram makes the test binary behave as the program itself.
const asProgram = "FLIGHTSRV_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// program is a process of the program.
func program(t *testing.T, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{asProgram + "=1"}, environ...)
	if testing.CoverMode() != "" { // else the process complains
		cmd.Env = append(cmd.Env, "GOCOVERDIR="+t.TempDir())
	}
	return cmd
}

// execute runs the program to its end.
func execute(t *testing.T, environ []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := program(t, environ, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

func TestRefusedCommandLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "contrail.yaml")
	if err := os.WriteFile(file, []byte("limits: {queue_wate: 1s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name    string
		environ []string
		args    []string
		says    []string
	}{
		{"unknown flag", nil, []string{"--lissten", "a"}, []string{"--lissten", "--help"}},
		{"flag without value", nil, []string{"--listen"}, []string{"--listen"}},
		{"unknown command", nil, []string{"serve"}, []string{"serve"}},
		{"argument for config", nil, []string{"config", "listen"}, []string{"listen"}},
		{"flag that version would ignore", nil, []string{"version", "--listen", "a:1"}, []string{"--listen"}},
		{"flag that config would ignore", nil, []string{"config", "--ready-file", "a"}, []string{"--ready-file"}},
		{"bad flag value", nil, []string{"--listen", "nowhere"}, []string{"listen", "flag --listen", `"nowhere"`}},
		{"unknown key in the file", nil, []string{"--config", file}, []string{"limits.queue_wate", file, `"1s"`}},
		{"unknown key, printing", nil, []string{"config", "--config", file}, []string{"limits.queue_wate", file}},
		{"absent file", nil, []string{"--config", file + ".none"}, []string{file + ".none"}},
		{"unknown variable", []string{"CONTRAIL_LISTN=a"}, nil, []string{"CONTRAIL_LISTN", "environment"}},
		{"key of a later version", []string{"CONTRAIL_TLS__CERT=server.pem"}, nil, []string{"tls.cert", "CONTRAIL_TLS__CERT", "server.pem", "not supported"}},
		{"admin beyond loopback", nil, []string{"--admin-listen", ":8816"}, []string{"admin_listen", "loopback"}},
		{"bad level", nil, []string{"--log-level", "loud"}, []string{"log.level", "loud"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := execute(t, c.environ, c.args...)
			if status != exitRefused || stdout != "" || !strings.HasPrefix(stderr, "flightsrv: ") {
				t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
			}
			for _, part := range c.says {
				if !strings.Contains(stderr, part) {
					t.Errorf("%q does not say %q", stderr, part)
				}
			}
		})
	}
}

func TestPrintedConfig(t *testing.T) {
	environ := []string{"CONTRAIL_LIMITS__FIRST_MESSAGE_TIMEOUT=5s", "CONTRAIL_ADVERTISE=grpc://user:hunter2@localhost:1"}
	status, stdout, stderr := execute(t, environ, "config", "--listen", "127.0.0.1:0")
	if status != exitClean || stderr != "" || strings.Contains(stdout, "hunter2") {
		t.Fatalf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	for _, part := range []string{`"127.0.0.1:0"`, "flag --listen", `"5s"`, "environment CONTRAIL_LIMITS__FIRST_MESSAGE_TIMEOUT", "limits.stall_timeout", `"1m0s"`, "default"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("%q does not say %q", stdout, part)
		}
	}
	status, stdout, stderr = execute(t, environ, "config", "--json", "--listen", "127.0.0.1:0")
	var settings []struct {
		Key    string
		Value  any
		Source string
	}
	if err := json.Unmarshal([]byte(stdout), &settings); err != nil || status != exitClean || stderr != "" {
		t.Fatalf("status %d, stdout %q, stderr %q: %v", status, stdout, stderr, err)
	}
	if s := settings[0]; s.Key != "listen" || s.Value != "127.0.0.1:0" || s.Source != "flag --listen" {
		t.Errorf("got %+v", s)
	}
}

func TestVersion(t *testing.T) {
	status, stdout, stderr := execute(t, nil, "version")
	if status != exitClean || stderr != "" || !strings.HasPrefix(stdout, "contrail 0.1.0, table format 0.3.0, protocol 1, go") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"config", "--help"}} {
		status, stdout, stderr := execute(t, nil, args...)
		if status != exitClean || stderr != "" || !strings.Contains(stdout, "Examples:") || !strings.Contains(stdout, "--admin-listen") {
			t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
		}
	}
}

// failingWriter is an output that is gone.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestOutputThatIsGone(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"config"}, {"config", "--json"}} {
		var stderr bytes.Buffer
		status := run(args, surroundings{stdout: failingWriter{}, stderr: &stderr})
		if status != exitFailed || !strings.Contains(stderr.String(), "broken pipe") {
			t.Errorf("%v: status %d, stderr %q", args, status, stderr.String())
		}
	}
}
