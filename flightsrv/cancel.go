package flightsrv

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"contrail/descriptors"
	"contrail/tablecore/tableerr"
)

// streams holds the DoGet calls under way by connection and ticket, so that
// CancelFlightInfo finds them. Equal requests have equal tickets, so only the
// connection that reads a ticket may stop it. It is safe for concurrent use;
// the zero value is ready.
type streams struct {
	mu      sync.Mutex
	next    int
	running map[streamKey]map[int]context.CancelFunc
}

type streamKey struct{ connection, ticket string }

func connectionOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// join returns a context that cancel ends; leave must be called once.
func (s *streams) join(ctx context.Context, ticket []byte) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	key := streamKey{connectionOf(ctx), string(ticket)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = map[streamKey]map[int]context.CancelFunc{}
	}
	if s.running[key] == nil {
		s.running[key] = map[int]context.CancelFunc{}
	}
	s.next++
	id := s.next
	s.running[key][id] = cancel
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running[key], id)
		if len(s.running[key]) == 0 {
			delete(s.running, key)
		}
	}
}

// cancel ends what the caller's connection reads of a ticket.
func (s *streams) cancel(ctx context.Context, ticket []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.running[streamKey{connectionOf(ctx), string(ticket)}] {
		cancel()
	}
}

// cancelFlightInfo stops what the caller's connection reads of a FlightInfo. The
// server holds nothing else for one, so it is always cancelled then.
func (s *Server) cancelFlightInfo(ctx context.Context, body []byte) (proto.Message, error) {
	var request flight.CancelFlightInfoRequest
	if err := proto.Unmarshal(body, &request); err != nil || request.GetInfo() == nil {
		return nil, badMessage("CancelFlightInfoRequest with its info", err)
	}
	for _, e := range request.GetInfo().GetEndpoint() {
		if _, err := descriptors.ParseTicket(e.GetTicket().GetTicket()); err != nil {
			return nil, err
		}
	}
	for _, e := range request.GetInfo().GetEndpoint() {
		s.streams.cancel(ctx, e.GetTicket().GetTicket())
	}
	return &flight.CancelFlightInfoResult{Status: flight.CancelStatusCancelled}, nil
}

// renewFlightEndpoint answers an endpoint with the same ticket and a later
// expiration, if what the ticket reads is still there.
func (s *Server) renewFlightEndpoint(ctx context.Context, body []byte) (proto.Message, error) {
	var request flight.RenewFlightEndpointRequest
	if err := proto.Unmarshal(body, &request); err != nil || request.GetEndpoint() == nil {
		return nil, badMessage("RenewFlightEndpointRequest with its endpoint", err)
	}
	endpoint := request.GetEndpoint()
	ticket, err := descriptors.ParseTicket(endpoint.GetTicket().GetTicket())
	if err != nil {
		return nil, err
	}
	r, err := s.resolve(ctx, ticket)
	if err != nil {
		return nil, err
	}
	expires := s.opts.Clock().Add(s.opts.TicketLifetime)
	if old := endpoint.GetExpirationTime(); old.IsValid() && !expires.After(old.AsTime()) {
		expires = old.AsTime() // the clock stepped back
	}
	r.pin(expires)
	endpoint.ExpirationTime = timestamppb.New(expires)
	return endpoint, nil
}

func badMessage(due string, cause error) error {
	e := tableerr.InvalidField("body", "the body is no %s", due)
	e.Cause = cause
	return e
}
