package flightsrv

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const wholeScan = `{"op":"scan","table":"weather"}`

// fill puts n rows into the weather table.
func (f *fixture) fill(n int) {
	f.Helper()
	f.must("create_table", createWeather, nil)
	var batches []arrow.RecordBatch
	for at := 0; at < n; at += 50_000 {
		batches = append(batches, weatherRows("EWR", at, min(50_000, n-at)))
	}
	if r, err := f.put(path("weather"), batches...); err != nil || r.Rows != int64(n) {
		f.Fatalf("filling the table gives %+v, %v", r, err)
	}
}

// smallWindow makes a client that takes next to nothing before it is read.
func smallWindow() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithInitialWindowSize(1 << 16), grpc.WithInitialConnWindowSize(1 << 16), grpc.WithReadBufferSize(1 << 12)}
}

// Every message of a large scan is below the limit and has a data header.
func TestDoGetMessages(t *testing.T) {
	const most = 300_000
	f := start(t, Limits{MaxSendMessageBytes: most})
	f.fill(150_000)
	stream, err := f.client.DoGet(f.context(), &flight.Ticket{Ticket: []byte(wholeScan)})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; ; n++ {
		m, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(m.DataHeader) == 0 || len(m.DataHeader)+len(m.DataBody) > most {
			t.Errorf("message %d has %d and %d bytes", n, len(m.DataHeader), len(m.DataBody))
		}
	}
	if n < 10 {
		t.Errorf("3 MB came in %d messages", n)
	}
}

func TestDoGetRowTooLarge(t *testing.T) {
	f := start(t, Limits{MaxSendMessageBytes: 500})
	f.must("create_table", `{"table":"weather","index_column":"time_hour","index_granularity":"1h","entity_columns":["origin"],"index_type":"timestamp"}`, nil)
	if _, err := f.put(path("weather"), weatherRows(strings.Repeat("x", 1000), 0, 1)); err != nil {
		t.Fatal(err)
	}
	_, _, _, err := f.get(wholeScan)
	wantError(t, "a row over the limit", err, "MESSAGE_TOO_LARGE")
}

// A client that does not read is cut, and what the scan held is given back.
func TestDoGetStalled(t *testing.T) {
	f := start(t, Limits{StallTimeout: 3 * time.Second})
	f.fill(400_000)
	c := f.dial(smallWindow()...)
	defer c.Close()
	stream, err := c.DoGet(f.context(), &flight.Ticket{Ticket: []byte(wholeScan)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	f.idle()
	for err == nil {
		_, err = stream.Recv()
	}
	wantError(t, "a scan that nobody reads", withTrailer(err, stream.Trailer()), "TIMED_OUT")
}

func TestDoGetCancelled(t *testing.T) {
	f := start(t, Limits{MaxConcurrentScans: 1, QueueWait: time.Minute})
	f.fill(400_000)
	for range 5 {
		c := f.dial(smallWindow()...)
		ctx, cancel := context.WithCancel(f.context())
		stream, err := c.DoGet(ctx, &flight.Ticket{Ticket: []byte(wholeScan)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		cancel()
		f.idle()
		c.Close()
	}
}

func TestScanQueue(t *testing.T) {
	f := start(t, Limits{MaxConcurrentScans: 1, QueueWait: 50 * time.Millisecond})
	f.fill(400_000)
	c := f.dial(smallWindow()...)
	defer c.Close()
	ctx, cancel := context.WithCancel(f.context())
	defer cancel()
	first, err := c.DoGet(ctx, &flight.Ticket{Ticket: []byte(wholeScan)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the schema and a batch: the place is taken
		if _, err := first.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	second, err := f.client.DoGet(f.context(), &flight.Ticket{Ticket: []byte(wholeScan)})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := second.Recv(); err != nil || len(m.DataHeader) == 0 {
		t.Errorf("while it waits, a scan gets %v, %v in place of its schema", m, err)
	}
	_, err = second.Recv()
	err = withTrailer(err, second.Trailer())
	wantError(t, "a scan without a place", err, "QUEUE_TIMEOUT")
	if !strings.Contains(err.Error(), `table="default.weather" wait_ms=50`) {
		t.Errorf("got %v", err)
	}
	cancel()
	f.idle()
	if _, _, _, err := f.get(wholeScan); err != nil {
		t.Errorf("when the place is free, a scan gives %v", err)
	}
}

func TestPutQueue(t *testing.T) {
	f := start(t, Limits{MaxConcurrentPuts: 1, QueueWait: 50 * time.Millisecond})
	f.must("create_table", createWeather, nil)
	messages := clientMessages(t, path("weather"), []arrow.RecordBatch{weatherRows("EWR", 0, 5)})
	first, err := f.client.DoPut(f.context())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Send(messages[0]); err != nil {
		t.Fatal(err)
	}
	settle(t, "the first put's entry", func() bool {
		leave, _, err := f.server.puts.Enter(canceled())
		if err == nil {
			leave()
		}
		return err != nil
	})
	_, err = f.put(path("weather"), weatherRows("JFK", 0, 5))
	wantError(t, "a put without a place", err, "QUEUE_TIMEOUT")
	_, err = f.put(path("nothing"), weatherRows("JFK", 0, 5))
	wantError(t, "a bad put, which is not queued", err, "TABLE_NOT_FOUND")
	if err := first.Send(messages[1]); err != nil {
		t.Fatal(err)
	}
	if r, err := answerOf(first); err != nil || r.Rows != 5 {
		t.Errorf("the first put gives %+v, %v", r, err)
	}
}

// canceled returns a context that is over: whoever would have to wait does not.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A panic is an INTERNAL error of one call; the log tells the cause.
func TestPanic(t *testing.T) {
	f := start(t, Limits{})
	actions["test_panic"] = func(*Server, context.Context, []byte, messages) (any, error) { panic("secret cause") }
	actions["test_error"] = func(*Server, context.Context, []byte, messages) (any, error) { return nil, errors.New("secret cause") }
	actions["test_unencodable"] = func(*Server, context.Context, []byte, messages) (any, error) { return func() {}, nil }
	for _, name := range []string{"test_panic", "test_error", "test_unencodable"} {
		defer delete(actions, name)
		_, err := f.act(name, "")
		var e clientError
		if !errors.As(err, &e) || status.Code(e.error) != codes.Internal || strings.Contains(err.Error(), "secret") {
			t.Fatalf("%s gives %v", name, err)
		}
		if got := e.trailer.Get(trailerToken); len(got) != 1 || got[0] != tokenInternal {
			t.Errorf("%s has trailers %v", name, e.trailer)
		}
		_, rest, _ := strings.Cut(err.Error(), `incident="`)
		incident, _, _ := strings.Cut(rest, `"`)
		if log := f.log.String(); len(incident) != 16 || !strings.Contains(log, incident) {
			t.Errorf("incident %q is not in the log %s", incident, log)
		}
	}
	if log := f.log.String(); strings.Count(log, "secret cause") < 2 || !strings.Contains(log, "doget_test.go") {
		t.Errorf("the log lacks causes or the stack: %s", log)
	}
	f.must("server_info", "", nil)
}
