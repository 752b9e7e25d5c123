package flightclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"contrail/cmd/internal/config"
	"contrail/cmd/internal/serving"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns a client of a real service with the table t, whose memory
// must be given back when the test ends.
func connect(t *testing.T) (*Client, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	checked := memory.NewCheckedAllocator(memory.NewGoAllocator())
	c := config.Defaults()
	c.Warehouse = filepath.Join(t.TempDir(), "warehouse")
	service, err := serving.Embed(ctx, c, zerolog.Nop(), true)
	if err != nil {
		t.Fatal(err)
	}
	client, err := Dial(Options{Address: "here", Dialer: service.DialOption(), Allocator: checked})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), service.Close()); err != nil {
			t.Error(err)
		}
		checked.AssertSize(t, 0)
		cancel()
	})
	body := `{"table":"t","index_column":"at","index_granularity":"1","columns":[{"name":"at","type":"int64","nullable":false}]}`
	if _, err := client.Action(ctx, "create_table", []byte(body), nil); err != nil {
		t.Fatal(err)
	}
	return client, ctx
}

var oneColumn = arrow.NewSchema([]arrow.Field{{Name: "at", Type: arrow.PrimitiveTypes.Int64}}, nil)

// someRows gives batches of 100 rows and then err.
type someRows struct {
	batches int
	err     error
	next    int64
	batch   arrow.RecordBatch
}

func (r *someRows) Schema() *arrow.Schema { return oneColumn }

func (r *someRows) Next(context.Context) (arrow.RecordBatch, error) {
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
	if r.batches == 0 {
		return nil, r.err
	}
	r.batches--
	b := array.NewRecordBuilder(memory.NewGoAllocator(), oneColumn)
	defer b.Release()
	for range 100 {
		b.Field(0).(*array.Int64Builder).Append(r.next)
		r.next++
	}
	r.batch = b.NewRecordBatch()
	return r.batch, nil
}

const appendCommand = `{"op":"append","table":"t","end":"marker"}`

func TestPutAndGet(t *testing.T) {
	c, ctx := connect(t)
	for _, batches := range []int{0, 3} {
		report, err := c.Put(ctx, []byte(appendCommand), &someRows{batches: batches, err: io.EOF})
		var r struct{ Rows int }
		if err != nil || json.Unmarshal(report, &r) != nil || r.Rows != batches*100 {
			t.Fatalf("%s, %v", report, err)
		}
	}
	in, err := c.Get(ctx, []byte(`{"op":"scan","table":"t"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if in.Total() != 300 || !in.Schema().HasField("at") {
		t.Errorf("%d rows of %v", in.Total(), in.Schema())
	}
	rows := int64(0)
	for {
		batch, err := in.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		rows += batch.NumRows()
	}
	if rows != 300 || !json.Valid(in.Stats()) {
		t.Errorf("%d rows, %s", rows, in.Stats())
	}
}

// Rows that fail leave nothing behind, and the error is theirs.
func TestPutOfRowsThatFail(t *testing.T) {
	c, ctx := connect(t)
	broken := errors.New("the disk is gone")
	for _, batches := range []int{0, 1, 50} {
		if _, err := c.Put(ctx, []byte(appendCommand), &someRows{batches: batches, err: broken}); !errors.Is(err, broken) || Unclear(err) {
			t.Errorf("after %d batches: %v", batches, err)
		}
	}
	result, err := c.Action(ctx, "describe_table", []byte(`{"table":"t"}`), nil)
	var d struct{ Version, Rows int }
	if err != nil || json.Unmarshal(result, &d) != nil || d.Version != 0 || d.Rows != 0 {
		t.Errorf("%s, %v", result, err)
	}
}

// A refusal has token, text and fields, at every kind of call.
func TestRefusals(t *testing.T) {
	c, ctx := connect(t)
	check := func(call string, err error, token string) {
		t.Helper()
		var e *Error
		if !errors.As(err, &e) || e.Token != token || e.Text == "" || len(e.Fields) == 0 || e.Fields[0].Key != "table" || Unclear(err) {
			t.Errorf("%s: %#v", call, err)
		}
	}
	_, err := c.Action(ctx, "describe_table", []byte(`{"table":"nowhere"}`), nil)
	check("action", err, "TABLE_NOT_FOUND")
	_, err = c.Get(ctx, []byte(`{"op":"scan","table":"nowhere"}`))
	check("get", err, "TABLE_NOT_FOUND")
	_, err = c.Put(ctx, []byte(`{"op":"append","table":"nowhere","end":"marker"}`), &someRows{batches: 2000, err: io.EOF})
	check("put", err, "TABLE_NOT_FOUND")
	if _, err := c.Put(ctx, []byte(appendCommand), &someRows{batches: 1, err: io.EOF}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Put(ctx, []byte(appendCommand), &someRows{batches: 1, err: io.EOF})
	check("put", err, "INTERVAL_OVERLAP")
}

// A reader may be closed before its end.
func TestGetIsBrokenOff(t *testing.T) {
	c, ctx := connect(t)
	if _, err := c.Put(ctx, []byte(appendCommand), &someRows{batches: 500, err: io.EOF}); err != nil {
		t.Fatal(err)
	}
	for _, batches := range []int{0, 1} {
		in, err := c.Get(ctx, []byte(`{"op":"scan","table":"t","batch_rows":10}`))
		if err != nil {
			t.Fatal(err)
		}
		for range batches {
			if _, err := in.Next(ctx); err != nil {
				t.Fatal(err)
			}
		}
		in.Close()
	}
}

// fake answers with what is told.
type fake struct {
	flight.BaseFlightServer
	action []string
	err    error
	end    metadata.MD
}

func (f *fake) DoAction(_ *flight.Action, stream flight.FlightService_DoActionServer) error {
	for _, message := range f.action {
		if err := stream.Send(&flight.Result{Body: []byte(message)}); err != nil {
			return err
		}
	}
	stream.SetTrailer(f.end)
	return f.err
}

func (f *fake) DoPut(stream flight.FlightService_DoPutServer) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return f.err
		}
	}
}

func dialFake(t *testing.T, f *fake) (*Client, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	flight.RegisterFlightServiceServer(server, f)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	client, err := Dial(Options{Address: listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		cancel()
	})
	return client, ctx
}

func TestProgressOfActions(t *testing.T) {
	c, ctx := dialFake(t, &fake{action: []string{
		`{"progress":{"step":"rewrite_files","done":3,"total":12,"unit":"files"}}`, `{"findings":[]}`,
		`{"progress":{"step":"wait","done":0,"total":null,"unit":"s"}}`, `{"result":{"a":1}}`}})
	var told []Progress
	result, err := c.Action(ctx, "optimize", nil, func(p Progress) { told = append(told, p) })
	if err != nil || string(result) != `{"a":1}` || len(told) != 2 || told[0].Done != 3 || *told[0].Total != 12 || told[1].Total != nil {
		t.Errorf("%s, %v, %+v", result, err, told)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, f := range []*fake{{}, {action: []string{"no JSON"}}, {action: []string{`{"progress":{"step":"x","done":1,"unit":"y"}}`}}} {
		c, ctx := dialFake(t, f)
		if result, err := c.Action(ctx, "x", nil, nil); err == nil {
			t.Errorf("%v gives %s", f.action, result)
		}
		if report, err := c.Put(ctx, []byte(appendCommand), &someRows{err: io.EOF}); err == nil {
			t.Errorf("a put gives %s", report)
		}
	}
}

// Only a put that was sent whole and failed on the way is unclear.
func TestUnclear(t *testing.T) {
	c, ctx := dialFake(t, &fake{err: status.Error(codes.Unavailable, "gone")})
	if _, err := c.Put(ctx, []byte(appendCommand), &someRows{batches: 1, err: io.EOF}); !Unclear(err) {
		t.Errorf("got %v", err)
	}
	if Unclear(errors.New("x")) || Unclear(&Error{}) || Unclear(nil) {
		t.Error("what is no put is unclear")
	}
}

// Details that are not what they should be are passed over.
func TestDetailsOfErrors(t *testing.T) {
	for detail, fields := range map[string]int{`{"token":"X","text":"t","a":1,"b":{"c":[2]}}`: 2, `{"text":5}`: 0, `[]`: 0, `{"a"`: 0, `{"a":1,`: 1} {
		c, ctx := dialFake(t, &fake{err: status.Error(codes.Aborted, "X a=1: t"), end: metadata.Pairs("x-contrail-error", "X", "grpc-status-details-bin", detail)})
		_, err := c.Action(ctx, "x", nil, nil)
		var e *Error
		if !errors.As(err, &e) || e.Token != "X" || e.Message != "X a=1: t" || len(e.Fields) != fields || e.Code != codes.Aborted {
			t.Errorf("%s: %+v", detail, e)
		}
	}
	for text, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`:    "dial tcp 127.0.0.1:1: connect: connection refused",
		`connection error: desc = "transport: authentication handshake failed: tls: first record does not look like one"`: "tls: first record does not look like one",
		"gone": "gone",
	} {
		if got := transportText(text); got != want {
			t.Errorf("got %s", got)
		}
	}
}
