// Package config gathers the daemon's configuration from its defaults, a YAML
// file, the environment and the command line, in this order, later ones
// winning.
//
// One list of keys drives reading, printing, environment names and flags.
// Whatever is not exactly understood stops the start with an *Error that names
// the key, where it came from and its value: unknown keys, values of another
// kind or out of range (also when a later source would override them), and keys
// that this version would have to ignore.
//
// The package is the only importer of koanf. Its functions are safe for
// concurrent use; a Config is a plain value.
package config

import (
	"fmt"
	"time"
)

// Config is the effective configuration of the daemon. Field names follow the
// keys of the file.
type Config struct {
	Listen      string // host:port; port 0 takes a free one
	Warehouse   string // directory of the tables
	Scratch     string // directory of scratch files, or "" for os.TempDir()
	AdminListen string // host:port on loopback, or "" for no admin listener

	TLS  TLS
	Auth Auth

	Limits Limits

	DrainGrace         time.Duration // how long running calls may go on after SIGTERM
	TicketLifetime     time.Duration // how long the tickets of a FlightInfo are good
	StagedLifetime     time.Duration // how long staged rows wait for their commit
	Maintenance        bool          // merge small files and drop old rows in the background
	Advertise          []string      // locations put into endpoints
	AllowExternalPaths bool

	Log Log
}

// TLS names the files of the server's certificate. Not supported yet.
type TLS struct {
	Cert, Key, ClientCA string
}

// Auth says who may call. Not supported yet.
type Auth struct {
	TokensFile     string
	AllowPlaintext bool
}

// Limits bound what clients can take of the server.
type Limits struct {
	MaxReceiveMessageBytes  int64
	MaxConcurrentScans      int
	MaxConcurrentPuts       int
	MaxStreamsPerConnection int
	QueueWait               time.Duration // longest wait for a place among concurrent scans or puts
	MemoryBytes             int64         // see AppendBytes, DecodeBytes and SeriesBytes
	FirstMessageTimeout     time.Duration
	StallTimeout            time.Duration
}

// AppendBytes is the part of the memory that appends may fill with rows.
func (l Limits) AppendBytes() int64 { return l.MemoryBytes / 2 }

// SeriesBytes is the part of the memory for what is kept of the tables' series.
func (l Limits) SeriesBytes() int64 { return l.MemoryBytes / 16 }

// DecodeBytes is the part of the memory for messages of all puts that the table
// core has not taken yet. It must hold at least one message.
func (l Limits) DecodeBytes() int64 { return l.MemoryBytes / 4 }

// Log says what is logged and how.
type Log struct {
	Level  string // trace, debug, info, warn, error
	Format string // console, json
}

// Defaults returns the configuration that holds when nothing is set.
func Defaults() Config {
	return Config{
		Listen:      "127.0.0.1:8815",
		Warehouse:   "./warehouse",
		AdminListen: "127.0.0.1:8816",
		Limits: Limits{
			MaxReceiveMessageBytes:  64 << 20,
			MaxConcurrentScans:      64,
			MaxConcurrentPuts:       32,
			MaxStreamsPerConnection: 256,
			QueueWait:               10 * time.Second,
			MemoryBytes:             4 << 30,
			FirstMessageTimeout:     30 * time.Second,
			StallTimeout:            60 * time.Second,
		},
		DrainGrace:     30 * time.Second,
		TicketLifetime: time.Hour,
		StagedLifetime: 24 * time.Hour,
		Maintenance:    true,
		Advertise:      []string{},
		Log:            Log{Level: "info", Format: "console"},
	}
}

// Error is a setting that stops the start.
type Error struct {
	Key    string // dotted, such as "limits.queue_wait"
	Source string // such as "file contrail.yaml" or "flag --listen"
	Value  string // as it was given, secrets masked
	Msg    string
	Cause  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("configuration key %s = %s (%s): %s", e.Key, e.Value, e.Source, e.Msg)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
