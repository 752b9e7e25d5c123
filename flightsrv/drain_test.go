package flightsrv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"contrail/tablecore/tableerr"
)

func TestWork(t *testing.T) {
	w := newWork()
	if err := w.begin(); err != nil {
		t.Fatal(err)
	}
	w.extend()
	idle := w.drain()
	if err := w.begin(); tableerr.TokenOf(err) != tableerr.TokenDraining {
		t.Errorf("a draining server gives %v", err)
	}
	w.end()
	select {
	case <-idle:
		t.Error("idle too early")
	default:
	}
	w.end()
	<-idle
	<-w.drain()
	<-newWork().drain()
}

// health asks the health service on a connection of its own.
func (f *fixture) health() (healthpb.HealthClient, func()) {
	f.Helper()
	conn, err := grpc.NewClient(f.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		f.Fatal(err)
	}
	return healthpb.NewHealthClient(conn), func() { conn.Close() }
}

// A drain lets running work end, says NOT_SERVING and refuses new work. A health
// watcher does not hold it up.
func TestDrain(t *testing.T) {
	f := start(t, Limits{})
	f.must("create_table", createWeather, nil)
	health, done := f.health()
	defer done()
	watch, err := health.Watch(f.context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := watch.Recv(); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("a running server is %v, %v", r, err)
	}
	messages := clientMessages(t, path("weather"), []arrow.RecordBatch{weatherRows("EWR", 0, 5)})
	put, err := f.client.DoPut(f.context())
	if err != nil {
		t.Fatal(err)
	}
	if err := put.Send(messages[0]); err != nil {
		t.Fatal(err)
	}
	settle(t, "the put's start", func() bool {
		f.server.work.mu.Lock()
		defer f.server.work.mu.Unlock()
		return f.server.work.running == 1
	})
	drained := make(chan error)
	go func() { drained <- f.server.Drain(f.context()) }()
	if r, err := watch.Recv(); err != nil || r.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("a draining server is %v, %v", r, err)
	}
	settle(t, "the refusal of new work", func() bool {
		_, err := f.client.GetFlightInfo(f.context(), path("weather"))
		return status.Code(err) == codes.Unavailable
	})
	if err := put.Send(messages[1]); err != nil {
		t.Error(err)
	}
	if r, err := answerOf(put); err != nil || r.Rows != 5 {
		t.Errorf("the running put gives %+v, %v", r, err)
	}
	if err := <-drained; err != nil {
		t.Errorf("the drain gives %v", err)
	}
}

// What has not ended when the grace period has is cut.
func TestDrainCuts(t *testing.T) {
	f := start(t, Limits{})
	f.fill(400_000)
	c := f.dial(smallWindow()...)
	defer c.Close()
	get, err := c.DoGet(f.context(), &flight.Ticket{Ticket: []byte(wholeScan)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get.Recv(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if err := f.server.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the drain gives %v", err)
	}
	for err = nil; err == nil; {
		_, err = get.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the scan gives %v", err)
	}
}

// A second signal cuts a drain short.
func TestCloseDuringDrain(t *testing.T) {
	f := start(t, Limits{})
	f.must("create_table", createWeather, nil)
	put, err := f.client.DoPut(f.context())
	if err != nil {
		t.Fatal(err)
	}
	if err := put.Send(clientMessages(t, path("weather"), []arrow.RecordBatch{weatherRows("EWR", 0, 5)})[0]); err != nil {
		t.Fatal(err)
	}
	settle(t, "the put's start", func() bool {
		f.server.work.mu.Lock()
		defer f.server.work.mu.Unlock()
		return f.server.work.running == 1
	})
	drained := make(chan error)
	go func() { drained <- f.server.Drain(f.context()) }()
	time.Sleep(10 * time.Millisecond)
	f.server.Close()
	if err := <-drained; err != nil {
		t.Errorf("the drain gives %v", err)
	}
	if _, err := put.Recv(); err == nil {
		t.Error("the put goes on")
	}
}

func TestHealth(t *testing.T) {
	f := start(t, Limits{})
	health, done := f.health()
	defer done()
	r, err := health.Check(f.context(), &healthpb.HealthCheckRequest{})
	if err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("got %v, %v", r, err)
	}
}
