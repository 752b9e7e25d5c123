package flightsrv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"contrail/tablecore"
	"contrail/tablecore/bufpool"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a server on loopback over tables in memory, with a client.
type fixture struct {
	*testing.T
	server *Server
	addr   string
	client flight.Client
	log    *syncBuffer
	serve  chan error
}

// syncBuffer is a buffer that many goroutines write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start runs a server until the test ends. Everything that it allocates for
// Arrow must be given back then, but batches of scans.
func start(t *testing.T, limits Limits) *fixture {
	t.Helper()
	checked := memory.NewCheckedAllocator(memory.NewGoAllocator())
	// Batches on their way out are not counted: gRPC lets go of them, but forgets
	// those of a connection that breaks.
	batches := bufpool.Poison(memory.NewGoAllocator())
	w, err := tablecore.Open(context.Background(), tablecore.Options{Store: memstore.New(), Allocator: checked, Batches: batches})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, log: &syncBuffer{}, serve: make(chan error, 1)}
	f.server, err = New(Options{Warehouse: w, Allocator: checked, Limits: limits, Logger: zerolog.New(f.log).Level(zerolog.DebugLevel)})
	if err != nil {
		t.Fatal(err)
	}
	f.server.bodies.Poison = true
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	go func() { f.serve <- f.server.Serve(l) }()
	f.client = f.dial()
	t.Cleanup(func() {
		f.client.Close()
		f.server.Close()
		if err := <-f.serve; err != nil {
			t.Errorf("Serve returns %v", err)
		}
		if n := f.server.decode.Used(); n != 0 {
			t.Errorf("%d bytes of decoding memory are still taken", n)
		}
		if err := w.Close(); err != nil {
			t.Errorf("closing the warehouse: %v", err)
		}
		checked.AssertSize(t, 0)
	})
	return f
}

// dial returns a client, as arrow-go's users have it.
func (f *fixture) dial(opts ...grpc.DialOption) flight.Client {
	f.Helper()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	c, err := flight.NewClientWithMiddleware(f.addr, nil, nil, opts...)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// context bounds what a test waits for, on a slow machine, too.
func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	f.Cleanup(cancel)
	return ctx
}

var weather = arrow.NewSchema([]arrow.Field{
	{Name: "origin", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "time_hour", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
	{Name: "temp", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
}, nil)

const hour = 3600 * 1_000_000

// weatherRows has n rows for one airport, at hours from first on.
func weatherRows(origin string, first, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), weather)
	defer b.Release()
	for i := first; i < first+n; i++ {
		b.Field(0).(*array.StringBuilder).Append(origin)
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(i) * hour)
		b.Field(2).(*array.Float64Builder).Append(float64(i) / 2)
	}
	return b.NewRecordBatch()
}

const createWeather = `{"table":"weather","index_column":"time_hour","index_granularity":"1h","entity_columns":["origin"],
	"columns":[{"name":"origin","type":"string"},{"name":"time_hour","type":"timestamp[us, tz=UTC]"},{"name":"temp","type":"double"}]}`

// act runs an action and returns its result.
func (f *fixture) act(name, body string) (json.RawMessage, error) {
	stream, err := f.client.DoAction(f.context(), &flight.Action{Type: name, Body: []byte(body)})
	if err != nil {
		return nil, err
	}
	var last []byte
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, withTrailer(err, stream.Trailer())
		}
		last = m.Body
	}
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(last, &answer); err != nil {
		return nil, fmt.Errorf("answer %q: %w", last, err)
	}
	return answer.Result, nil
}

// must runs an action that succeeds and reads its result into v.
func (f *fixture) must(name, body string, v any) {
	f.Helper()
	result, err := f.act(name, body)
	if err != nil {
		f.Fatalf("%s: %v", name, err)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(result, v); err != nil {
		f.Fatalf("%s answers %s: %v", name, result, err)
	}
}

// version returns the weather table's version.
func (f *fixture) version() int64 {
	f.Helper()
	var d struct{ Version int64 }
	f.must("describe_table", `{"table":"weather"}`, &d)
	return d.Version
}

// putResult is what a client gets for a put.
type putResult struct {
	CommittedVersion int64 `json:"committed_version"`
	Rows             int64
}

func path(parts ...string) *flight.FlightDescriptor {
	return &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: parts}
}

func command(text string) *flight.FlightDescriptor {
	return &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(text)}
}

// put appends batches like a client's library.
func (f *fixture) put(d *flight.FlightDescriptor, batches ...arrow.RecordBatch) (putResult, error) {
	stream, err := f.client.DoPut(f.context())
	if err != nil {
		return putResult{}, err
	}
	schema := weather
	if len(batches) > 0 {
		schema = batches[0].Schema()
	}
	w := flight.NewRecordWriter(stream, ipc.WithSchema(schema))
	w.SetFlightDescriptor(d)
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			break // the answer says why
		}
	}
	w.Close()
	return answerOf(stream)
}

// answerOf ends a put and returns its one result.
func answerOf(stream flight.FlightService_DoPutClient) (r putResult, err error) {
	if err := stream.CloseSend(); err != nil {
		return r, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return r, withTrailer(err, stream.Trailer())
	}
	if err := json.Unmarshal(answer.AppMetadata, &r); err != nil {
		return r, err
	}
	if _, err := stream.Recv(); err != io.EOF {
		return r, fmt.Errorf("after the result comes %v", err)
	}
	return r, nil
}

// get reads a ticket to its end.
func (f *fixture) get(ticket string) (rows []string, schema *arrow.Schema, stats string, err error) {
	stream, err := f.client.DoGet(f.context(), &flight.Ticket{Ticket: []byte(ticket)})
	if err != nil {
		return nil, nil, "", err
	}
	r, err := flight.NewRecordReader(stream)
	if err != nil {
		return nil, nil, "", withTrailer(err, stream.Trailer())
	}
	defer r.Release()
	for r.Next() {
		b := r.RecordBatch()
		for i := range int(b.NumRows()) {
			values := make([]string, b.NumCols())
			for c := range values {
				values[c] = b.Column(c).ValueStr(i)
			}
			rows = append(rows, strings.Join(values, " "))
		}
	}
	if r.Err() != nil {
		return rows, r.Schema(), "", withTrailer(r.Err(), stream.Trailer())
	}
	return rows, r.Schema(), strings.Join(stream.Trailer().Get(trailerStats), ""), nil
}

// clientError is a failed call as a client sees it.
type clientError struct {
	error
	trailer metadata.MD
}

func (e clientError) Unwrap() error { return e.error }

func withTrailer(err error, md metadata.MD) error { return clientError{err, md} }

// wantError checks that an error has a token, its code and all its trailers.
func wantError(t *testing.T, what string, err error, token tableerr.Token) {
	t.Helper()
	var e clientError
	if err == nil {
		t.Errorf("%s succeeds, want %s", what, token)
		return
	}
	if !asClientError(err, &e) {
		t.Errorf("%s: %v has no trailers", what, err)
		return
	}
	s, _ := status.FromError(e.error)
	if s.Code() != codeOf[token] {
		t.Errorf("%s: code %s, want %s (%v)", what, s.Code(), codeOf[token], err)
	}
	if got := strings.Join(e.trailer.Get(trailerToken), ","); got != string(token) {
		t.Errorf("%s: token %q, want %s (%v)", what, got, token, err)
	}
	message, detail := strings.Join(e.trailer.Get(trailerArrowMessage), ""), strings.Join(e.trailer.Get(trailerDetail), "")
	if !strings.HasPrefix(message, string(token)+" ") && !strings.HasPrefix(message, string(token)+":") {
		t.Errorf("%s: message %q", what, message)
	}
	var fields struct{ Token, Text string }
	if err := json.Unmarshal([]byte(detail), &fields); err != nil || fields.Token != string(token) || !strings.HasSuffix(message, fields.Text) {
		t.Errorf("%s: detail %q of %q (%v)", what, detail, message, err)
	}
}

func asClientError(err error, e *clientError) bool {
	found, ok := err.(clientError)
	*e = found
	return ok
}

// settle waits until a condition holds.
func settle(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

// idle waits until nothing is under way in the server.
func (f *fixture) idle() {
	f.Helper()
	settle(f.T, "the end of all work", func() bool {
		f.server.work.mu.Lock()
		defer f.server.work.mu.Unlock()
		return f.server.work.running == 0
	})
}
