// Package flightclient is the calling side of Contrail's protocol, for command
// lines: actions with their progress, puts that announce their end, reads of
// scans and listings, and errors with their token and fields.
//
// It knows the transport and the forms of messages, and no request: bodies and
// commands are the caller's. A Client is safe for concurrent use.
package flightclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Options say where to connect to and how.
type Options struct {
	// Address is HOST:PORT, or any text where Dialer leads somewhere itself.
	Address string
	// TLS encrypts the connection; nil means plain text.
	TLS *tls.Config
	// Token, when not empty, goes with every call as a bearer token.
	Token string
	// Dialer, when set, makes the connections (grpc.WithContextDialer).
	Dialer grpc.DialOption
	// Allocator is where batches that are read live; default Go's heap.
	Allocator memory.Allocator
}

// Client is a connection to a service. It connects with the first call.
type Client struct {
	conn   *grpc.ClientConn
	flight flight.Client
	memory memory.Allocator
}

const (
	// maxMessageBytes bounds what the service may send in one message; it
	// promises to stay below 4 MiB.
	maxMessageBytes = 64 << 20
	windowBytes     = 4 << 20
	// A server that vanished without a word is noticed after a minute.
	keepaliveTime    = 40 * time.Second
	keepaliveTimeout = 20 * time.Second
)

// Dial returns a client. It fails only for options that cannot be meant.
func Dial(o Options) (*Client, error) {
	transport := insecure.NewCredentials()
	if o.TLS != nil {
		transport = credentials.NewTLS(o.TLS)
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithInitialWindowSize(windowBytes),
		grpc.WithInitialConnWindowSize(windowBytes),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
	}
	target := o.Address
	if o.Dialer != nil {
		dial = append(dial, o.Dialer)
		target = "passthrough:///" + target
	}
	if o.Token != "" {
		dial = append(dial, grpc.WithPerRPCCredentials(bearer{token: o.Token, encrypted: o.TLS != nil}))
	}
	conn, err := grpc.NewClient(target, dial...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", o.Address, err)
	}
	if o.Allocator == nil {
		o.Allocator = memory.NewGoAllocator()
	}
	return &Client{conn: conn, flight: flight.NewClientFromConn(conn, nil), memory: o.Allocator}, nil
}

// Close ends the connection and what still runs on it.
func (c *Client) Close() error { return c.conn.Close() }

// bearer puts a token into the metadata of each call.
type bearer struct {
	token     string
	encrypted bool
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. Whether a
// token may go out in plain text is the caller's decision.
func (b bearer) RequireTransportSecurity() bool { return b.encrypted }

// errStreamEnded says that the service ended a stream without what was due.
var errStreamEnded = errors.New("the service ended the call without an answer")
