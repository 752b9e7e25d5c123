package config

import (
	"math"
	"strings"
	"time"
)

// key is one key of the configuration.
type key struct {
	name string // dotted
	flag string // its command-line flag, "" for none
	text string // what it means
	kind kind
	// later marks a key of the documented file that this version cannot act
	// on: it is accepted with its default value only.
	later bool
}

// keys lists all keys in the order of the documented file.
var keys = []key{
	{name: "listen", flag: "listen", text: "address of the Flight service, HOST:PORT; port 0 takes a free one",
		kind: textKind{func(c *Config) *string { return &c.Listen }, checkAddress}},
	{name: "warehouse", flag: "warehouse", text: "directory of the tables; made when it is not there",
		kind: textKind{func(c *Config) *string { return &c.Warehouse }, checkWarehouse}},
	{name: "scratch", text: "local directory for the rows of appends that find no memory; \"\" is the system's for temporary files",
		kind: textKind{func(c *Config) *string { return &c.Scratch }, checkScratch}},
	{name: "admin_listen", flag: "admin-listen", text: "loopback address of /healthz and /debug/pprof/, HOST:PORT; \"\" switches it off",
		kind: textKind{func(c *Config) *string { return &c.AdminListen }, checkAdminAddress}},

	{name: "tls.cert", text: "certificate file", later: true, kind: textKind{at: func(c *Config) *string { return &c.TLS.Cert }}},
	{name: "tls.key", text: "key file", later: true, kind: textKind{at: func(c *Config) *string { return &c.TLS.Key }}},
	{name: "tls.client_ca", text: "certificate authority of clients", later: true, kind: textKind{at: func(c *Config) *string { return &c.TLS.ClientCA }}},
	{name: "auth.tokens_file", text: "file of tokens and grants", later: true, kind: textKind{at: func(c *Config) *string { return &c.Auth.TokensFile }}},
	{name: "auth.allow_plaintext", text: "allow tokens without TLS beyond loopback", later: true, kind: boolKind{func(c *Config) *bool { return &c.Auth.AllowPlaintext }}},

	{name: "limits.max_receive_message_bytes", text: "largest message a client may send",
		kind: sizeKind{func(c *Config) *int64 { return &c.Limits.MaxReceiveMessageBytes }, 64 << 10, math.MaxInt32}},
	{name: "limits.max_concurrent_scans", text: "scans that run at once",
		kind: countKind{func(c *Config) *int { return &c.Limits.MaxConcurrentScans }, 1, 1 << 20}},
	{name: "limits.max_concurrent_puts", text: "puts that run at once",
		kind: countKind{func(c *Config) *int { return &c.Limits.MaxConcurrentPuts }, 1, 1 << 20}},
	{name: "limits.max_streams_per_connection", text: "calls that one connection may have under way",
		kind: countKind{func(c *Config) *int { return &c.Limits.MaxStreamsPerConnection }, 1, 1 << 20}},
	{name: "limits.queue_wait", text: "longest wait for a place among scans or puts",
		kind: durationKind{func(c *Config) *time.Duration { return &c.Limits.QueueWait }, time.Millisecond, 0}},
	{name: "limits.memory_bytes", text: "memory: half for the rows of appends, which go to scratch beyond that, a quarter for messages on the way, a sixteenth for coverage and newest rows; at least four messages",
		kind: sizeKind{func(c *Config) *int64 { return &c.Limits.MemoryBytes }, 16 << 20, 1 << 50}},
	{name: "limits.first_message_timeout", text: "longest wait for the first message of a put",
		kind: durationKind{func(c *Config) *time.Duration { return &c.Limits.FirstMessageTimeout }, time.Millisecond, 0}},
	{name: "limits.stall_timeout", text: "longest wait for a client that neither reads nor writes",
		kind: durationKind{func(c *Config) *time.Duration { return &c.Limits.StallTimeout }, time.Millisecond, 0}},

	{name: "drain_grace", text: "how long running calls may go on after SIGTERM",
		kind: durationKind{func(c *Config) *time.Duration { return &c.DrainGrace }, 0, 0}},
	{name: "ticket_lifetime", text: "how long tickets of a FlightInfo are good",
		kind: durationKind{func(c *Config) *time.Duration { return &c.TicketLifetime }, time.Second, 0}},
	{name: "staged_lifetime", text: "how long staged rows wait for their commit; at most 144h",
		kind: durationKind{func(c *Config) *time.Duration { return &c.StagedLifetime }, time.Second, maxStagedLifetime}},
	{name: "maintenance", text: "merge small files, and drop rows beyond contrail.retention, in the background after commits",
		kind: boolKind{func(c *Config) *bool { return &c.Maintenance }}},
	{name: "advertise", text: "locations put into endpoints, such as grpc+tcp://host:8815",
		kind: listKind{func(c *Config) *[]string { return &c.Advertise }, checkLocation}},
	{name: "allow_external_paths", text: "read data files outside a table's directory",
		kind: boolKind{func(c *Config) *bool { return &c.AllowExternalPaths }}},

	{name: "log.level", flag: "log-level", text: "least level that is logged: trace, debug, info, warn or error",
		kind: textKind{func(c *Config) *string { return &c.Log.Level }, oneOf("trace", "debug", "info", "warn", "error")}},
	{name: "log.format", flag: "log-format", text: "console for people, json for machines",
		kind: textKind{func(c *Config) *string { return &c.Log.Format }, oneOf("console", "json")}},
}

// maxStagedLifetime is tablecore.MaxStagedLifetime.
const maxStagedLifetime = 144 * time.Hour

// envPrefix begins the name of every environment variable of the daemon.
const envPrefix = "CONTRAIL_"

// clientVariables begin alike and are flight-admin's; an environment may well
// be shared.
var clientVariables = []string{"CONTRAIL_SERVER", "CONTRAIL_TOKEN"}

// env is the key's environment variable.
func (k *key) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(k.name, ".", "__"))
}

// lookup finds a key by its dotted name.
func lookup(name string) *key {
	return find(func(k *key) bool { return k.name == name })
}

func find(match func(*key) bool) *key {
	for i := range keys {
		if match(&keys[i]) {
			return &keys[i]
		}
	}
	return nil
}

// isSection tells whether name is a section of the file.
func isSection(name string) bool {
	return find(func(k *key) bool { return strings.HasPrefix(k.name, name+".") }) != nil
}
