package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"contrail/cmd/internal/config"
	"contrail/cmd/internal/serving"
	"contrail/flightsrv"
)

// asProgram makes the test binary the program itself, for tests that need a
// process.
const asProgram = "FLIGHT_ADMIN_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	// A question reads from a terminal, which nothing can cut.
	goleak.VerifyTestMain(m)
}

// place is where the tables of a test are: behind a server, or in a directory.
type place struct {
	name      string
	flag      string // --server or --warehouse
	target    string
	warehouse string // its directory
}

// places gives a fresh server and a fresh directory.
func places(t *testing.T) []place {
	t.Helper()
	return []place{serverPlace(t), embeddedPlace(t)}
}

func embeddedPlace(t *testing.T) place {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "warehouse")
	return place{"embedded", "--warehouse", dir, dir}
}

func serverPlace(t *testing.T) place {
	t.Helper()
	c := config.Defaults()
	c.Warehouse = filepath.Join(t.TempDir(), "warehouse")
	warehouse, err := serving.OpenWarehouse(context.Background(), c, zerolog.Nop(), true)
	if err != nil {
		t.Fatal(err)
	}
	server, err := flightsrv.New(serving.Options(c, warehouse, zerolog.Nop()))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := warehouse.Close(); err != nil {
			t.Error(err)
		}
	})
	return place{"server", "--server", listener.Addr().String(), c.Warehouse}
}

// outcome is what a command line leads to.
type outcome struct {
	status         int
	stdout, stderr string
}

// do runs a command line at a place.
func (p place) do(t *testing.T, args ...string) outcome {
	t.Helper()
	return p.doWith(t, strings.NewReader(""), args...)
}

func (p place) doWith(t *testing.T, stdin io.Reader, args ...string) outcome {
	t.Helper()
	return execute(t, stdin, nil, append(args, p.flag, p.target)...)
}

// must is do for command lines that succeed.
func (p place) must(t *testing.T, args ...string) string {
	t.Helper()
	o := p.do(t, args...)
	if o.status != exitOK || o.stderr != "" {
		t.Fatalf("%s: %v: status %d\n%s%s", p.name, args, o.status, o.stdout, o.stderr)
	}
	return o.stdout
}

// execute runs a command line in this process.
func execute(t *testing.T, stdin io.Reader, environ map[string]string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return executeIn(ctx, stdin, environ, args...)
}

func executeIn(ctx context.Context, stdin io.Reader, environ map[string]string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	status := run(ctx, args, surroundings{stdin: stdin, stdout: &stdout, stderr: &stderr, environ: func(name string) string { return environ[name] }})
	return outcome{status, stdout.String(), stderr.String()}
}

// differing matches what two tables made by the same commands differ in: ids,
// times of commits and, with them, sizes and the widths of columns.
var differing = []struct {
	match *regexp.Regexp
	by    string
}{
	{regexp.MustCompile(`\b[0-9a-f]{2}/[0-9a-f]{8}-`), "xx/xxxxxxxx-"},
	{regexp.MustCompile(`\b[0-9a-fx]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "ID"},
	{regexp.MustCompile(`\b202[0-9]-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`\b[0-9]{5,}\b`), "SIZE"},
	{regexp.MustCompile(`"queue_ms":[0-9]+`), `"queue_ms":N`},
	{regexp.MustCompile(` +`), " "},
}

// comparable is an output without what may differ. What names the place itself
// is taken out too.
func (p place) comparable(text string) string {
	text = strings.ReplaceAll(text, p.target, "PLACE")
	for _, d := range differing {
		text = d.match.ReplaceAllString(text, d.by)
	}
	return text
}

// write makes a file with this content and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// weatherCSV has n hourly rows of EWR from January 2013 on.
func weatherCSV(n int) string {
	var b strings.Builder
	b.WriteString("origin,time_hour,temp\n")
	start := time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		b.WriteString("EWR," + start.Add(time.Duration(i)*time.Hour).Format(time.RFC3339) + ",39.02\n")
	}
	return b.String()
}

// createWeather makes the table that weatherCSV is for, with its columns.
func (p place) createWeather(t *testing.T) {
	t.Helper()
	p.must(t, "create", "weather", "--index-column", "time_hour", "--index-granularity", "1h", "--entity-columns", "origin",
		"--column", "origin:string not null", "--column", "time_hour:timestamp[us, tz=UTC] not null", "--column", "temp:double")
}
