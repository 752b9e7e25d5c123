package flightsrv

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// healthPrefix is the health service, which answers also while the server
// drains and is not counted as work.
const healthPrefix = "/grpc.health.v1."

// unaryCall stands around every unary call: it counts it, turns a panic into an
// error, and an error into status and trailers.
func (s *Server) unaryCall(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
	if strings.HasPrefix(info.FullMethod, healthPrefix) {
		return handle(ctx, request)
	}
	err = s.call(info.FullMethod, func(md metadata.MD) { grpc.SetTrailer(ctx, md) }, func() error { //nolint:errcheck // fails only without a call
		answer, err = handle(ctx, request)
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// streamCall is unaryCall for streams.
func (s *Server) streamCall(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if strings.HasPrefix(info.FullMethod, healthPrefix) {
		return handle(server, stream)
	}
	return s.call(info.FullMethod, stream.SetTrailer, func() error { return handle(server, stream) })
}

// call runs one call and returns the error that gRPC is to send.
func (s *Server) call(method string, setTrailer func(metadata.MD), handle func() error) error {
	start := time.Now()
	err := s.work.begin()
	if err == nil {
		defer s.work.end()
		err = guard(handle)
	}
	if err == nil {
		s.opts.Logger.Debug().Str("method", method).Dur("duration", time.Since(start)).Msg("call")
		return nil
	}
	err = messageError(err, s.opts.Limits.MaxReceiveMessageBytes)
	f := failureOf(err)
	setTrailer(f.trailers())
	s.logFailure(method, time.Since(start), f, err)
	return f.err()
}

// guard turns a panic into an error that holds its stack: one broken request
// must not end the process.
func guard(handle func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return handle()
}

func (s *Server) logFailure(method string, took time.Duration, f failure, err error) {
	event := s.opts.Logger.Info()
	if f.serious() {
		event = s.opts.Logger.Error()
	}
	event = event.Str("method", method).Stringer("code", f.code).Dur("duration", took).Err(err)
	if f.token != "" {
		event = event.Str("token", f.token)
	}
	if f.incident != "" {
		event = event.Str("incident", f.incident)
	}
	event.Msg("call failed")
}
