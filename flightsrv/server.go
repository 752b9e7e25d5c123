package flightsrv

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"contrail/flightsrv/internal/admission"
	"contrail/flightsrv/internal/wire"
	"contrail/tablecore"
	"contrail/tablecore/bufpool"
	"contrail/tablecore/tabledef"
)

// Transport settings, measured for batches of about 1 MiB. Windows are for
// what clients send; what they receive depends on their own.
const (
	writeBufferBytes = 512 << 10
	readBufferBytes  = 256 << 10
	windowBytes      = 4 << 20

	// A client that vanished without a word is noticed after about a minute;
	// clients may ping themselves every ten seconds.
	keepaliveTime        = 40 * time.Second
	keepaliveTimeout     = 20 * time.Second
	keepaliveMinInterval = 10 * time.Second
	handshakeTimeout     = 20 * time.Second

	// flushTimeout is how long the last answers have to leave once all work is
	// done; health watchers, whose calls never end, would hold a drain up.
	flushTimeout = time.Second
)

// Server is an Arrow Flight service over one warehouse. Its methods are safe
// for concurrent use.
type Server struct {
	flight.BaseFlightServer

	opts    Options
	grpc    *grpc.Server
	health  *health.Server
	work    *work
	scans   *admission.Gate
	readers clients
	streams streams
	served  served
	puts    *admission.Gate
	decode  *wire.Budget
	bodies  *bufpool.Pool
	codec   *wire.Codec
}

// New returns a server that does not listen yet.
func New(opts Options) (*Server, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	l := opts.Limits
	s := &Server{opts: opts, health: health.NewServer(), work: newWork(),
		scans: admission.New(l.MaxConcurrentScans, l.QueueWait), puts: admission.New(l.MaxConcurrentPuts, l.QueueWait),
		decode: wire.NewBudget(l.DecodeMemoryBytes), bodies: &bufpool.Pool{}}
	s.codec = wire.NewCodec(s.bodies)
	s.grpc = grpc.NewServer(
		grpc.UnaryInterceptor(s.unaryCall),
		grpc.StreamInterceptor(s.streamCall),
		grpc.MaxRecvMsgSize(int(l.MaxReceiveMessageBytes)),
		grpc.MaxConcurrentStreams(uint32(l.MaxStreamsPerConnection)),
		grpc.WriteBufferSize(writeBufferBytes),
		grpc.ReadBufferSize(readBufferBytes),
		grpc.InitialWindowSize(windowBytes),
		grpc.InitialConnWindowSize(windowBytes),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinInterval, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.ForceServerCodecV2(s.codec),
		experimental.BufferPool(s.bodies),
	)
	flight.RegisterFlightServiceServer(s.grpc, s)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	return s, nil
}

// Serve accepts connections until Drain or Close, and then returns nil. It
// closes the listener. Several listeners may be served at a time.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Drain stops the server in this order: the health service says NOT_SERVING
// and new calls are refused; connections are told to go elsewhere; running
// calls may end until ctx does; what still runs is cut, as with Close. It
// returns ctx's error if something was cut. The warehouse is not used any more
// when it returns.
func (s *Server) Drain(ctx context.Context) error {
	s.health.Shutdown()
	idle := s.work.drain()
	flushed := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(flushed)
	}()
	var err error
	select {
	case <-idle:
		s.waitFlushed(ctx, flushed)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.Close()
	<-flushed
	return err
}

// waitFlushed lets the last answers leave.
func (s *Server) waitFlushed(ctx context.Context, flushed <-chan struct{}) {
	timer := time.NewTimer(flushTimeout)
	defer timer.Stop()
	select {
	case <-flushed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Close cuts every connection and waits for the calls to notice. A put past its
// commit point still finishes. The warehouse is not used any more when it
// returns. It may be called during Drain, and again.
func (s *Server) Close() {
	s.health.Shutdown()
	idle := s.work.drain()
	s.grpc.Stop()
	<-idle
}

// table returns the table of a request's name.
func (s *Server) table(ctx context.Context, text string) (*tablecore.Table, error) {
	name, err := tabledef.ParseName(text)
	if err != nil {
		return nil, err
	}
	return s.opts.Warehouse.Table(ctx, name)
}

// nameOf returns the table's name of a request that has been parsed, for
// errors that happen on the way to the table.
func nameOf(text string) string {
	name, err := tabledef.ParseName(text)
	if err != nil {
		return text
	}
	return name.String()
}
