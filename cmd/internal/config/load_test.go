package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// writeFile makes a configuration file.
func writeFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "contrail.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func flags(t testing.TB, args ...string) *pflag.FlagSet {
	t.Helper()
	set := pflag.NewFlagSet("flightsrv", pflag.ContinueOnError)
	AddFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestDefaultsAreTheDocumentedFile(t *testing.T) {
	l, err := Load(Sources{File: filepath.Join("testdata", "documented.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if want := Defaults(); !reflect.DeepEqual(l.Config, want) {
		t.Errorf("got %+v, want %+v", l.Config, want)
	}
	for _, s := range l.Settings() {
		fromFile := strings.HasPrefix(s.Source, "file ")
		if isLog := strings.HasPrefix(s.Key, "log."); fromFile == isLog {
			t.Errorf("%s comes from %s", s.Key, s.Source)
		}
	}
}

func TestDefaultsPassTheirOwnChecks(t *testing.T) {
	defaults := Defaults()
	for i := range keys {
		var c Config
		v := keys[i].kind.show(&defaults)
		if list, ok := v.([]string); ok {
			v = strings.Join(list, ",")
		}
		if n, ok := v.(int64); ok {
			v = int(n)
		}
		if err := keys[i].kind.read(&c, v); err != nil {
			t.Errorf("%s: %v", keys[i].name, err)
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	l, err := Load(Sources{
		File: writeFile(t, "listen: 127.0.0.1:1\nwarehouse: file\ndrain_grace: 1s\nlimits: {queue_wait: 1s, memory_bytes: 1GiB}\ntls:\nadvertise: [grpc://a:1, 'grpc+tls://b:2']\n"),
		Environ: []string{"PATH=/bin", "CONTRAIL_WAREHOUSE=environment", "CONTRAIL_LISTEN=127.0.0.1:2", "CONTRAIL_LIMITS__QUEUE_WAIT=2s",
			"CONTRAIL_LIMITS__MAX_CONCURRENT_PUTS=7", "CONTRAIL_ALLOW_EXTERNAL_PATHS=true", "CONTRAIL_ADMIN_LISTEN="},
		Flags: flags(t, "--listen", "127.0.0.1:3", "--log-format=json"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Listen, want.Warehouse, want.AdminListen = "127.0.0.1:3", "environment", ""
	want.DrainGrace, want.Limits.QueueWait = time.Second, 2*time.Second
	want.Limits.MemoryBytes, want.Limits.MaxConcurrentPuts = 1<<30, 7
	want.Advertise, want.AllowExternalPaths, want.Log.Format = []string{"grpc://a:1", "grpc+tls://b:2"}, true, "json"
	if !reflect.DeepEqual(l.Config, want) {
		t.Errorf("got %+v, want %+v", l.Config, want)
	}
	sources := map[string]string{}
	for _, s := range l.Settings() {
		sources[s.Key] = s.Source
	}
	for key, want := range map[string]string{
		"listen": "flag --listen", "warehouse": "environment CONTRAIL_WAREHOUSE", "limits.queue_wait": "environment CONTRAIL_LIMITS__QUEUE_WAIT",
		"limits.stall_timeout": "default", "log.level": "default", "admin_listen": "environment CONTRAIL_ADMIN_LISTEN",
	} {
		if sources[key] != want {
			t.Errorf("%s comes from %q, want %q", key, sources[key], want)
		}
	}
	if !strings.HasPrefix(sources["drain_grace"], "file ") {
		t.Errorf("drain_grace comes from %q", sources["drain_grace"])
	}
}

func TestBadFiles(t *testing.T) {
	cases := []struct{ name, text, key string }{
		{"unknown key", "listn: 127.0.0.1:1", "listn"},
		{"unknown key in a section", "limits: {queue_wate: 1s}", "limits.queue_wate"},
		{"unknown section", "metrics: {on: true}", "metrics"},
		{"dotted key", "limits.queue_wait: 1s", `"limits.queue_wait"`},
		{"dotted key in a section", "limits: {a.b: 1s}", `limits."a.b"`},
		{"key below a value", "listen: {host: a}", "listen"},
		{"value for a section", "limits: 5", "limits"},
		{"list for a section", "tls: [a]", "tls"},
		{"null value", "listen:", "listen"},
		{"number for text", "warehouse: 5", "warehouse"},
		{"no port", "listen: localhost", "listen"},
		{"named port", "listen: localhost:http", "listen"},
		{"large port", "listen: localhost:65536", "listen"},
		{"empty address", "listen: ''", "listen"},
		{"empty warehouse", "warehouse: ''", "warehouse"},
		{"warehouse elsewhere", "warehouse: s3://bucket", "warehouse"},
		{"NUL in the warehouse", `warehouse: "a\0b"`, "warehouse"},
		{"admin on all interfaces", "admin_listen: ':8816'", "admin_listen"},
		{"admin beyond loopback", "admin_listen: 192.0.2.1:8816", "admin_listen"},
		{"admin by name", "admin_listen: example.org:8816", "admin_listen"},
		{"admin without port", "admin_listen: '127.0.0.1'", "admin_listen"},
		{"certificate", "tls: {cert: server.pem}", "tls.cert"},
		{"key", "tls: {key: server.key}", "tls.key"},
		{"client authority", "tls: {client_ca: ca.pem}", "tls.client_ca"},
		{"tokens", "auth: {tokens_file: tokens.yaml}", "auth.tokens_file"},
		{"plaintext", "auth: {allow_plaintext: true}", "auth.allow_plaintext"},
		{"boolean as word", "allow_external_paths: 'yes'", "allow_external_paths"},
		{"fraction", "limits: {max_concurrent_scans: 1.5}", "limits.max_concurrent_scans"},
		{"zero", "limits: {max_concurrent_scans: 0}", "limits.max_concurrent_scans"},
		{"negative", "limits: {max_concurrent_puts: -1}", "limits.max_concurrent_puts"},
		{"too many", "limits: {max_streams_per_connection: 99999999999}", "limits.max_streams_per_connection"},
		{"boolean for a count", "limits: {max_concurrent_puts: true}", "limits.max_concurrent_puts"},
		{"size without number", "limits: {memory_bytes: MiB}", "limits.memory_bytes"},
		{"size in odd units", "limits: {memory_bytes: 5 miles}", "limits.memory_bytes"},
		{"size too small", "limits: {memory_bytes: 1KiB}", "limits.memory_bytes"},
		{"size beyond int64", "limits: {memory_bytes: 9999999999TiB}", "limits.memory_bytes"},
		{"negative size", "limits: {memory_bytes: -5GiB}", "limits.memory_bytes"},
		{"message size beyond int32", "limits: {max_receive_message_bytes: 4GiB}", "limits.max_receive_message_bytes"},
		{"duration without unit", "limits: {queue_wait: 10}", "limits.queue_wait"},
		{"duration without unit, as text", "limits: {queue_wait: '10'}", "limits.queue_wait"},
		{"negative duration", "drain_grace: -1s", "drain_grace"},
		{"memory below four messages", "limits: {memory_bytes: 255MiB}", "limits.memory_bytes"},
		{"no wait", "limits: {queue_wait: 0s}", "limits.queue_wait"},
		{"no time for the first message", "limits: {first_message_timeout: 0s}", "limits.first_message_timeout"},
		{"short tickets", "ticket_lifetime: 1ms", "ticket_lifetime"},
		{"staged rows that wait too long", "staged_lifetime: 145h", "staged_lifetime"},
		{"location without scheme", "advertise: ['localhost:8815']", "advertise"},
		{"location of another kind", "advertise: [5]", "advertise"},
		{"number for a list", "advertise: 5", "advertise"},
		{"unknown level", "log: {level: loud}", "log.level"},
		{"unknown format", "log: {format: xml}", "log.format"},
		{"key that is no text", "limits: {5: 6}", "limits.5"},
		{"time for text", "warehouse: 2026-11-30", "warehouse"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, c.text)
			_, err := Load(Sources{File: path})
			var bad *Error
			if !errors.As(err, &bad) {
				t.Fatalf("got %v", err)
			}
			if bad.Key != c.key || bad.Source != "file "+path || bad.Value == "" || bad.Msg == "" {
				t.Errorf("got %+v, want key %s", bad, c.key)
			}
			for _, part := range []string{bad.Key, bad.Source, bad.Value} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

func TestUnreadableFiles(t *testing.T) {
	for name, path := range map[string]string{
		"absent":          filepath.Join(t.TempDir(), "none.yaml"),
		"a directory":     t.TempDir(),
		"no YAML":         writeFile(t, "a: [1"),
		"a list":          writeFile(t, "- listen"),
		"a key twice":     writeFile(t, "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n"),
		"two documents":   writeFile(t, "listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2\n"),
		"a bad second":    writeFile(t, "listen: 127.0.0.1:1\n---\n[\n"),
		"a number as key": writeFile(t, "1: 2\n[a]: b\n"),
	} {
		if _, err := Load(Sources{File: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "limits:\n", "limits: {}\n"} {
		l, err := Load(Sources{File: writeFile(t, text)})
		if err != nil || !reflect.DeepEqual(l.Config, Defaults()) {
			t.Errorf("%q: got %+v, %v", text, l, err)
		}
	}
}

func TestBadEnvironment(t *testing.T) {
	for variable, key := range map[string]string{
		"CONTRAIL_LISTN=a":                       "CONTRAIL_LISTN",
		"CONTRAIL_LIMITS_QUEUE_WAIT=5s":          "CONTRAIL_LIMITS_QUEUE_WAIT",
		"CONTRAIL_limits__queue_wait=5s":         "CONTRAIL_limits__queue_wait",
		"CONTRAIL_LIMITS.QUEUE_WAIT=5s":          "CONTRAIL_LIMITS.QUEUE_WAIT",
		"CONTRAIL_=x":                            "CONTRAIL_",
		"CONTRAIL_LIMITS__QUEUE_WAIT=soon":       "limits.queue_wait",
		"CONTRAIL_TLS__CERT=server.pem":          "tls.cert",
		"CONTRAIL_ALLOW_EXTERNAL_PATHS=1":        "allow_external_paths",
		"CONTRAIL_LIMITS__MAX_CONCURRENT_PUTS=x": "limits.max_concurrent_puts",
		"CONTRAIL_ADVERTISE=grpc://a:1,":         "advertise",
	} {
		_, err := Load(Sources{Environ: []string{variable}})
		var bad *Error
		if !errors.As(err, &bad) || bad.Key != key || !strings.HasPrefix(bad.Source, "environment") {
			t.Errorf("%s: got %v", variable, err)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for flag, key := range map[string]string{
		"--listen=8815": "listen", "--warehouse=": "warehouse", "--admin-listen=0.0.0.0:1": "admin_listen", "--log-level=": "log.level",
	} {
		_, err := Load(Sources{Flags: flags(t, flag)})
		var bad *Error
		if !errors.As(err, &bad) || bad.Key != key || !strings.HasPrefix(bad.Source, "flag --") {
			t.Errorf("%s: got %v", flag, err)
		}
	}
}

// A mistake that another source would cover up is a mistake all the same.
func TestOverriddenMistakesStopTheStart(t *testing.T) {
	_, err := Load(Sources{File: writeFile(t, "listen: nowhere"), Flags: flags(t, "--listen=127.0.0.1:1")})
	var bad *Error
	if !errors.As(err, &bad) || bad.Key != "listen" {
		t.Errorf("got %v", err)
	}
}

func TestErrorsKeepTheirCause(t *testing.T) {
	_, err := Load(Sources{Environ: []string{"CONTRAIL_DRAIN_GRACE=x"}})
	if errors.Unwrap(err) == nil {
		t.Errorf("%v has no cause", err)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[any]int64{
		5: 5, "5": 5, "5B": 5, "2KiB": 2048, "3 MiB": 3 << 20, "4GiB": 4 << 30, "1TiB": 1 << 40, "2kB": 2000, "2KB": 2000, "3MB": 3e6, "4GB": 4e9, "5TB": 5e12,
	} {
		if got, ok := parseSize(text); !ok || got != want {
			t.Errorf("%v: got %d, %t", text, got, ok)
		}
	}
	for _, text := range []any{"", "B", "1.5GiB", "1gib", " 1", "1 0", "-1", true, 1.5, nil} {
		if got, ok := parseSize(text); ok {
			t.Errorf("%v: got %d", text, got)
		}
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.9.1:0": true, "[::1]:1": true, "localhost:1": true, "[::ffff:127.0.0.1]:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "192.0.2.1:1": false, "example.org:1": false, "127.0.0.1": false,
	} {
		if got := IsLoopback(address); got != want {
			t.Errorf("%s: got %t", address, got)
		}
	}
}

func FuzzFile(f *testing.F) {
	documented, err := os.ReadFile(filepath.Join("testdata", "documented.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(documented)
	for _, s := range []string{"", "a: &a [*a]", "? {a: 1}\n: b", "limits: {? [1] : 2}", "1: 2", "listen: !!binary aGk=", "<<: {listen: ':1'}"} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "contrail.yaml")
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Load(Sources{File: path})
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without text")
			}
			return
		}
		if l.Listen == "" || l.Limits.MaxConcurrentPuts < 1 || l.TLS != (TLS{}) {
			t.Errorf("accepted %q as %+v", raw, l.Config)
		}
	})
}
