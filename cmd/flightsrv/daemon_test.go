package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"contrail/cmd/internal/logging"
)

// patience is how long a busy machine may take for anything.
const patience = 2 * time.Minute

// server is a run of the daemon inside the test.
type server struct {
	address string
	signals chan os.Signal
	log     *lockedBuffer
	status  chan int
}

// lockedBuffer collects what several goroutines write.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// start runs the daemon on free ports until it accepts calls.
func start(t *testing.T, environ []string, args ...string) *server {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "address")
	s := &server{signals: make(chan os.Signal, 2), log: &lockedBuffer{}, status: make(chan int, 1)}
	args = append([]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--warehouse", filepath.Join(dir, "a", "warehouse"),
		"--ready-file", ready, "--log-format=json", "--log-level=debug"}, args...)
	go func() {
		s.status <- run(args, surroundings{environ: environ, stdout: s.log, stderr: s.log, signals: s.signals})
	}()
	s.address = awaitReady(t, ready)
	if !strings.HasPrefix(s.address, "127.0.0.1:") || strings.HasSuffix(s.address, ":0") {
		t.Fatalf("address %q", s.address)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(ready); err == nil {
			t.Error("the ready file stays behind")
		}
	})
	return s
}

// awaitReady waits for a ready file and returns the address in it.
func awaitReady(t *testing.T, path string) string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if raw, err := os.ReadFile(path); err == nil {
			return strings.TrimSuffix(string(raw), "\n")
		}
	}
	t.Fatal("no ready file")
	return ""
}

// end waits for the run's exit status.
func (s *server) end(t *testing.T) int {
	t.Helper()
	select {
	case status := <-s.status:
		return status
	case <-time.After(patience):
		t.Fatalf("the daemon goes on: %s", s.log)
		return -1
	}
}

// find returns the log entry with a message, nil for none.
func (s *server) find(message string) map[string]any {
	for line := range strings.Lines(s.log.String()) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) == nil && entry["message"] == message {
			return entry
		}
	}
	return nil
}

// entry is find for what must be there.
func (s *server) entry(t *testing.T, message string) map[string]any {
	t.Helper()
	entry := s.find(message)
	if entry == nil {
		t.Fatalf("no entry %q in %s", message, s.log)
	}
	return entry
}

// connect makes a client whose calls end with the test.
func connect(t *testing.T, address string) (context.Context, flight.Client) {
	t.Helper()
	client, err := flight.NewClientWithMiddleware(address, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(func() {
		cancel()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return ctx, client
}

// result runs an action and returns its last message.
func result(t *testing.T, ctx context.Context, client flight.Client, action, body string) string {
	t.Helper()
	stream, err := client.DoAction(ctx, &flight.Action{Type: action, Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for {
		message, err := stream.Recv()
		if err != nil {
			if last == "" {
				t.Fatal(err)
			}
			return last
		}
		last = string(message.Body)
	}
}

func TestServesUntilASignal(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		s := start(t, []string{"CONTRAIL_LIMITS__MAX_RECEIVE_MESSAGE_BYTES=1MiB"})
		listening := s.entry(t, "listening")
		if listening["address"] != s.address || !strings.HasSuffix(listening["warehouse"].(string), filepath.Join("a", "warehouse")) {
			t.Errorf("got %v", listening)
		}
		if code, _ := get(t, listening["admin_address"].(string), "/healthz", ""); code != http.StatusOK {
			t.Errorf("health: %d", code)
		}
		ctx, client := connect(t, s.address)
		if info := result(t, ctx, client, "server_info", ""); !strings.Contains(info, `"max_receive_message_bytes":1048576`) {
			t.Errorf("got %s", info)
		}
		s.signals <- signal
		if status := s.end(t); status != exitClean {
			t.Errorf("status %d: %s", status, s.log)
		}
		s.entry(t, "draining")
		s.entry(t, "stopped")
		if strings.Contains(s.log.String(), "anyone") {
			t.Error("loopback is warned about")
		}
	}
}

// openPut starts a put that does not end by itself, and waits until the server
// has begun it.
func (s *server) openPut(t *testing.T) {
	t.Helper()
	ctx, client := connect(t, s.address)
	if _, err := client.DoPut(ctx); err != nil {
		t.Fatal(err)
	}
	admin := s.entry(t, "listening")["admin_address"].(string)
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		_, stacks := get(t, admin, "/debug/pprof/goroutine?debug=1", "")
		if strings.Contains(stacks, "contrail/flightsrv.(*Server).DoPut") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the put does not begin: %s", stacks)
		}
	}
}

func TestDrainIsCutWhenItsTimeIsOver(t *testing.T) {
	s := start(t, []string{"CONTRAIL_DRAIN_GRACE=100ms", "CONTRAIL_LIMITS__FIRST_MESSAGE_TIMEOUT=1h"})
	s.openPut(t)
	s.signals <- syscall.SIGTERM
	if status := s.end(t); status != exitCut {
		t.Errorf("status %d: %s", status, s.log)
	}
	if e := s.entry(t, "cut running calls"); e["error"] != "drain_grace is over" {
		t.Errorf("got %v", e)
	}
}

func TestSecondSignalCutsAtOnce(t *testing.T) {
	s := start(t, []string{"CONTRAIL_DRAIN_GRACE=1h", "CONTRAIL_LIMITS__FIRST_MESSAGE_TIMEOUT=1h"})
	admin := s.entry(t, "listening")["admin_address"].(string)
	s.openPut(t)
	s.signals <- syscall.SIGTERM
	for code := 0; code != http.StatusServiceUnavailable; time.Sleep(5 * time.Millisecond) {
		code, _ = get(t, admin, "/healthz", "") // goes on being answered while it drains
	}
	s.signals <- syscall.SIGTERM
	if status := s.end(t); status != exitCut {
		t.Errorf("status %d: %s", status, s.log)
	}
}

func TestServersShareAWarehouse(t *testing.T) {
	warehouse := t.TempDir()
	a := start(t, nil, "--warehouse", warehouse)
	b := start(t, nil, "--warehouse", warehouse, "--admin-listen=")
	ctx, client := connect(t, a.address)
	result(t, ctx, client, "create_table", `{"table":"t","index_column":"i","index_type":"int64","index_granularity":1}`)
	ctx, client = connect(t, b.address)
	if tables := result(t, ctx, client, "list_tables", ""); !strings.Contains(tables, `"default.t"`) {
		t.Errorf("got %s", tables)
	}
	if e := b.entry(t, "listening"); e["admin_address"] != nil {
		t.Errorf("got %v", e)
	}
	for _, s := range []*server{a, b} {
		s.signals <- syscall.SIGTERM
		if status := s.end(t); status != exitClean {
			t.Errorf("status %d: %s", status, s.log)
		}
	}
}

func TestFailedStarts(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full := filepath.Join(dir, "full", "folder")
	if err := os.MkdirAll(full, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ flag, value, says string }{
		"listen address taken":        {"--listen", taken.Addr().String(), "listen: "},
		"listen address elsewhere":    {"--listen", "192.0.2.1:0", "listen: "},
		"admin address taken":         {"--admin-listen", taken.Addr().String(), "admin_listen: "},
		"warehouse is a file":         {"--warehouse", file, file},
		"warehouse below a file":      {"--warehouse", filepath.Join(file, "warehouse"), file},
		"ready file below a file":     {"--ready-file", filepath.Join(file, "address"), "ready file"},
		"ready file, absent folder":   {"--ready-file", filepath.Join(dir, "none", "address"), "ready file"},
		"ready file is a full folder": {"--ready-file", filepath.Dir(full), "ready file"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &lockedBuffer{}
			status := run([]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--warehouse", filepath.Join(dir, "warehouse"), c.flag, c.value},
				surroundings{stdout: log, stderr: log, signals: make(chan os.Signal)})
			if status != exitFailed || !strings.Contains(log.String(), c.says) {
				t.Errorf("status %d: %s", status, log)
			}
		})
	}
}

func TestListeningBeyondLoopbackIsWarnedAbout(t *testing.T) {
	var log bytes.Buffer
	logger, err := logging.New(&log, "info", "json")
	if err != nil {
		t.Fatal(err)
	}
	d := daemon{log: logger}
	if err := d.announce("192.0.2.1:8815", nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "anyone who reaches this address") {
		t.Errorf("got %s", log.String())
	}
}

func TestServicesThatEnd(t *testing.T) {
	var d daemon
	for name, end := range map[string]error{"fails": errors.New("no more"), "ends by itself": nil} {
		services := serviceGroup{ended: make(chan error, 1)}
		services.start(func() error { return end })
		if err := d.awaitEnd(context.Background(), &services); err == nil || end != nil && !errors.Is(err, end) {
			t.Errorf("%s: got %v", name, err)
		}
		if err := services.wait(); err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.awaitEnd(ctx, &serviceGroup{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The process itself: signals and exit statuses as an operator meets them.
func TestProcess(t *testing.T) {
	start := func(t *testing.T, grace string) (wait func() int, signal func(), log *lockedBuffer) {
		t.Helper()
		ready := filepath.Join(t.TempDir(), "address")
		if err := os.WriteFile(ready, []byte("stale"), 0o600); err != nil {
			t.Fatal(err)
		}
		stderr := &lockedBuffer{}
		cmd := program(t, []string{"CONTRAIL_DRAIN_GRACE=" + grace, "CONTRAIL_LIMITS__FIRST_MESSAGE_TIMEOUT=1h"}, "--listen=127.0.0.1:0",
			"--admin-listen=127.0.0.1:0", "--log-format=json", "--ready-file", ready)
		cmd.Stderr = stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		address := awaitReady(t, ready)
		for ; address == "stale"; address = awaitReady(t, ready) {
			time.Sleep(5 * time.Millisecond)
		}
		s := &server{address: address, log: stderr}
		for end := time.Now().Add(patience); s.find("listening") == nil && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond) // a pipe may be behind the file
		}
		s.openPut(t)
		return func() int {
				_ = cmd.Wait() // the status says it
				if t.Failed() {
					t.Log(stderr.String())
				}
				return cmd.ProcessState.ExitCode()
			}, func() {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			}, stderr
	}
	t.Run("drain time over", func(t *testing.T) {
		wait, signal, _ := start(t, "50ms")
		signal()
		if status := wait(); status != exitCut {
			t.Errorf("status %d", status)
		}
	})
	t.Run("second signal", func(t *testing.T) {
		wait, signal, log := start(t, "1h")
		signal()
		// Pending signals of one kind are one.
		for end := time.Now().Add(patience); !strings.Contains(log.String(), "draining"); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the first signal is not taken: %s", log)
			}
		}
		signal()
		if status := wait(); status != exitCut {
			t.Errorf("status %d", status)
		}
	})
}
