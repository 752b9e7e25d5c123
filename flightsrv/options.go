// Package flightsrv serves the tables of a warehouse over Arrow Flight.
//
// It translates: descriptors, tickets and action bodies become calls of
// tablecore, reports become JSON, errors become gRPC statuses with trailers. It
// holds no table rule. One file holds one RPC; status.go is the only one that
// knows status codes. docs/protocol.md says what clients can rely on.
package flightsrv

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/rs/zerolog"

	"contrail/tablecore"
)

// Options configure a Server. Only Warehouse is required; the zero value of
// every other field means its default.
type Options struct {
	// Warehouse holds the tables. It is borrowed, and must stay open until the
	// server has stopped.
	Warehouse *tablecore.Warehouse
	// Allocator is where decompressed messages of clients live; default Go's
	// heap. It must leave memory that is never freed to the garbage collector.
	Allocator memory.Allocator
	// Logger gets one line for each call that fails, at debug level for each
	// that does not; the zero value logs nothing.
	Logger zerolog.Logger
	// Clock tells the time that tickets expire by; default time.Now.
	Clock func() time.Time
	// TicketLifetime is how long an endpoint's ticket is good; default 1 h.
	TicketLifetime time.Duration
	// Advertise are the locations of every endpoint; none means that clients
	// use the connection they have.
	Advertise []string
	Limits    Limits
}

// Limits bound what clients can make the server do. Zero means the default.
type Limits struct {
	// MaxReceiveMessageBytes bounds a received message; default 64 MiB.
	MaxReceiveMessageBytes int64
	// MaxSendMessageBytes bounds a message of a scan; default 3.5 MiB, since Go
	// and Rust clients refuse 4 MiB.
	MaxSendMessageBytes int64
	// MaxConcurrentScans and MaxConcurrentPuts bound how many run at a time;
	// default 64 and 32. QueueWait bounds the wait for a place; default 10 s.
	MaxConcurrentScans, MaxConcurrentPuts int
	QueueWait                             time.Duration
	// MaxStreamsPerConnection is told to clients, which hold calls beyond it
	// back; default 256.
	MaxStreamsPerConnection int
	// DecodeMemoryBytes bounds what all puts together hold of messages that the
	// core has not taken yet; default 1 GiB.
	DecodeMemoryBytes int64
	// FirstMessageTimeout bounds the wait for a put's descriptor and schema;
	// default 30 s. StallTimeout bounds the wait for each later message, and for
	// a client that does not read its scan; default 60 s.
	FirstMessageTimeout, StallTimeout time.Duration
}

// Defaults of Options and Limits.
const (
	DefaultTicketLifetime          = time.Hour
	DefaultMaxReceiveMessageBytes  = 64 << 20
	DefaultMaxSendMessageBytes     = 3670016
	DefaultMaxConcurrentScans      = 64
	DefaultMaxConcurrentPuts       = 32
	DefaultQueueWait               = 10 * time.Second
	DefaultMaxStreamsPerConnection = 256
	DefaultDecodeMemoryBytes       = 1 << 30
	DefaultFirstMessageTimeout     = 30 * time.Second
	DefaultStallTimeout            = 60 * time.Second
)

// withDefaults fills what was left out and refuses what makes no sense.
func (o Options) withDefaults() (Options, error) {
	if o.Warehouse == nil {
		return o, errors.New("flightsrv: Options.Warehouse is missing")
	}
	if o.Allocator == nil {
		o.Allocator = memory.NewGoAllocator()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	l := &o.Limits
	return o, errors.Join(
		setDefault("TicketLifetime", &o.TicketLifetime, DefaultTicketLifetime, math.MaxInt64),
		setDefault("MaxReceiveMessageBytes", &l.MaxReceiveMessageBytes, DefaultMaxReceiveMessageBytes, math.MaxInt32),
		setDefault("MaxSendMessageBytes", &l.MaxSendMessageBytes, DefaultMaxSendMessageBytes, math.MaxInt32),
		setDefault("MaxConcurrentScans", &l.MaxConcurrentScans, DefaultMaxConcurrentScans, math.MaxInt32),
		setDefault("MaxConcurrentPuts", &l.MaxConcurrentPuts, DefaultMaxConcurrentPuts, math.MaxInt32),
		setDefault("QueueWait", &l.QueueWait, DefaultQueueWait, math.MaxInt64),
		setDefault("MaxStreamsPerConnection", &l.MaxStreamsPerConnection, DefaultMaxStreamsPerConnection, math.MaxInt32),
		setDefault("DecodeMemoryBytes", &l.DecodeMemoryBytes, DefaultDecodeMemoryBytes, math.MaxInt64),
		setDefault("FirstMessageTimeout", &l.FirstMessageTimeout, DefaultFirstMessageTimeout, math.MaxInt64),
		setDefault("StallTimeout", &l.StallTimeout, DefaultStallTimeout, math.MaxInt64),
	)
}

// setDefault gives an option that was left out its default and refuses what is
// negative or beyond most.
func setDefault[T ~int | ~int64](name string, value *T, byDefault T, most int64) error {
	switch {
	case *value == 0:
		*value = byDefault
	case *value < 0 || int64(*value) > most:
		return fmt.Errorf("flightsrv: %s is %v, out of range", name, *value)
	}
	return nil
}
