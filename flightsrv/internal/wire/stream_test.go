package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"

	"contrail/tablecore/bufpool"
	"contrail/tablecore/tableerr"
)

const limit = 3670016

// received decodes what a stream sent, as a client does.
func receivedTable(t *testing.T, messages []*flight.FlightData) (*arrow.Schema, []arrow.RecordBatch) {
	t.Helper()
	s := &stream{messages: messages, err: io.EOF}
	r, err := flight.NewRecordReader(s)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var list []arrow.RecordBatch
	for r.Next() {
		b := r.RecordBatch()
		b.Retain()
		list = append(list, b)
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return r.Schema(), list
}

func checkMessages(t *testing.T, messages []*flight.FlightData, most int) {
	t.Helper()
	for i, m := range messages {
		if len(m.DataHeader) == 0 {
			t.Errorf("message %d has no data header", i)
		}
		if size := len(m.DataHeader) + len(m.DataBody); size > most {
			t.Errorf("message %d has %d bytes, more than %d", i, size, most)
		}
	}
}

// sendAll writes batches and returns the messages and the rows that came back.
func sendAll(t *testing.T, schema *arrow.Schema, most int, batches ...arrow.RecordBatch) ([]*flight.FlightData, arrow.RecordBatch) {
	t.Helper()
	var out sent
	s := NewStream(&out, schema, most)
	if err := s.WriteSchema(); err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := s.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkMessages(t, out.messages, most)
	got, list := receivedTable(t, out.messages)
	if !got.Equal(schema) {
		t.Fatalf("schema arrived as %v, want %v", got, schema)
	}
	columns := make([]arrow.Array, schema.NumFields())
	var rows int64
	for i := range columns {
		parts := make([]arrow.Array, len(list))
		rows = 0
		for j, b := range list {
			parts[j] = plain(b.Column(i))
			rows += b.NumRows()
		}
		if len(parts) == 0 {
			return out.messages, nil
		}
		var err error
		if columns[i], err = array.Concatenate(parts, memory.NewGoAllocator()); err != nil {
			t.Fatal(err)
		}
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{Name: schema.Field(i).Name, Type: c.DataType(), Nullable: true}
	}
	return out.messages, array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, rows)
}

// plain turns a dictionary into its values, so that pieces with different
// dictionaries compare.
func plain(a arrow.Array) arrow.Array {
	d, ok := a.(*array.Dictionary)
	if !ok {
		return a
	}
	b := array.NewStringBuilder(memory.NewGoAllocator())
	defer b.Release()
	for i := range d.Len() {
		if d.IsNull(i) || d.Dictionary().IsNull(d.GetValueIndex(i)) {
			b.AppendNull()
		} else {
			b.Append(d.Dictionary().ValueStr(d.GetValueIndex(i)))
		}
	}
	return b.NewArray()
}

func equalColumns(t *testing.T, got arrow.RecordBatch, want ...arrow.Array) {
	t.Helper()
	for i, w := range want {
		if w = plain(w); !array.Equal(got.Column(i), w) {
			t.Errorf("column %d: got %.200v, want %.200v", i, got.Column(i), w)
		}
	}
}

func TestStreamEmpty(t *testing.T) {
	messages, batch := sendAll(t, weather, limit)
	if len(messages) != 1 || batch != nil {
		t.Errorf("an empty stream has %d messages", len(messages))
	}
	empty := weatherBatch(memory.NewGoAllocator(), 0, 0)
	if messages, _ = sendAll(t, weather, limit, empty); len(messages) != 1 {
		t.Errorf("a batch without rows makes %d messages", len(messages)-1)
	}
}

func TestStreamCuts(t *testing.T) {
	checked := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer checked.AssertSize(t, 0)
	batch := weatherBatch(checked, 0, 300_000) // 6.9 MB
	defer batch.Release()
	small := batch.NewSlice(7, 1007)
	defer small.Release()
	messages, got := sendAll(t, weather, limit, batch, small)
	equalColumns(t, got.NewSlice(0, 300_000), batch.Columns()...)
	equalColumns(t, got.NewSlice(300_000, 301_000), small.Columns()...)
	if n := len(messages); n < 6 || n > 11 {
		t.Errorf("7 MB came in %d messages of about 1 MiB", n)
	}
}

// Batches of another metadata, as Parquet readers make them, are sent on the
// one canonical schema.
func TestStreamCanonicalSchema(t *testing.T) {
	fields := weather.Fields()
	for i := range fields {
		fields[i].Metadata = arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"7"})
		fields[i].Nullable = true
	}
	batch := weatherBatch(memory.NewGoAllocator(), 0, 10)
	odd := array.NewRecordBatch(arrow.NewSchema(fields, nil), batch.Columns(), 10)
	_, got := sendAll(t, weather, limit, odd)
	equalColumns(t, got, batch.Columns()...)
}

func oneColumn(name string, column arrow.Array) (*arrow.Schema, arrow.RecordBatch) {
	schema := arrow.NewSchema([]arrow.Field{{Name: name, Type: column.DataType(), Nullable: true}}, nil)
	return schema, array.NewRecordBatch(schema, []arrow.Array{column}, int64(column.Len()))
}

func TestStreamUnevenRows(t *testing.T) {
	b := array.NewStringBuilder(memory.NewGoAllocator())
	for i := range 50_000 {
		switch i {
		case 0, 20_000, 20_001, 49_999:
			b.Append(strings.Repeat("x", 3_000_000))
		default:
			b.Append("y")
		}
	}
	schema, batch := oneColumn("s", b.NewArray())
	messages, got := sendAll(t, schema, limit, batch)
	equalColumns(t, got, batch.Column(0))
	if len(messages) > 40 {
		t.Errorf("%d messages", len(messages))
	}
}

func TestStreamRowTooLarge(t *testing.T) {
	b := array.NewStringBuilder(memory.NewGoAllocator())
	b.AppendValues([]string{"a", strings.Repeat("x", limit), "b"}, nil)
	schema, batch := oneColumn("s", b.NewArray())
	var out sent
	s := NewStream(&out, schema, limit)
	err := s.Write(batch)
	var large *tableerr.MessageTooLarge
	if !errors.As(err, &large) || large.LimitBytes != limit || large.Bytes <= limit {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "one row") {
		t.Errorf("the text is %q", err)
	}
	checkMessages(t, out.messages, limit)

	wide := arrow.NewSchema([]arrow.Field{{Name: strings.Repeat("n", 1000), Type: arrow.PrimitiveTypes.Int8}}, nil)
	if err := NewStream(&out, wide, 500).WriteSchema(); token(err) != tableerr.TokenMessageTooLarge {
		t.Errorf("a schema over the limit gives %v", err)
	}
}

func TestStreamViews(t *testing.T) {
	text := array.NewStringViewBuilder(memory.NewGoAllocator())
	raw := array.NewBinaryViewBuilder(memory.NewGoAllocator())
	for i := range 10_000 {
		if i%7 == 0 {
			text.AppendNull()
			raw.AppendNull()
			continue
		}
		v := strings.Repeat("v", i%200)
		text.Append(v)
		raw.Append([]byte(v))
	}
	for _, column := range []arrow.Array{text.NewArray(), raw.NewArray()} {
		schema, batch := oneColumn("v", column)
		_, got := sendAll(t, schema, limit, batch)
		equalColumns(t, got, column)
		slice := batch.NewSlice(5000, 5010)
		messages, got := sendAll(t, schema, limit, slice)
		equalColumns(t, got, slice.Column(0))
		if n := len(messages[1].DataBody); n > 4096 {
			t.Errorf("10 rows of %v take %d bytes", column.DataType(), n)
		}
	}
}

func TestStreamDictionaries(t *testing.T) {
	shared := dictionaryBatch("a", "b", "a", "c")
	messages, got := sendAll(t, shared.Schema(), limit, shared, shared.NewSlice(1, 3))
	equalColumns(t, got.NewSlice(0, 4), shared.Column(0))
	equalColumns(t, got.NewSlice(4, 6), shared.NewSlice(1, 3).Column(0))
	if len(messages) != 4 {
		t.Errorf("%d messages where schema, dictionary and two batches are due", len(messages))
	}
	var values []string
	for i := range 40_000 {
		values = append(values, strings.Repeat("d", 150)+string(rune('a'+i%26))+time.Duration(i).String())
	}
	large := dictionaryBatch(values...) // a dictionary of 6 MB
	messages, got = sendAll(t, large.Schema(), limit, large)
	equalColumns(t, got, large.Column(0))
	if len(messages) > 20 {
		t.Errorf("%d messages", len(messages))
	}
	tiny := large.NewSlice(20_000, 20_010)
	messages, got = sendAll(t, large.Schema(), limit, tiny)
	equalColumns(t, got, tiny.Column(0))
	if n := len(messages[1].DataBody); n > 4096 {
		t.Errorf("a dictionary of 10 values takes %d bytes", n)
	}
}

// Every index type and value type of a dictionary that is cut.
func TestCompactDictionary(t *testing.T) {
	mem := memory.NewGoAllocator()
	for _, index := range []arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64} {
		for _, value := range []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary} {
			typ := &arrow.DictionaryType{IndexType: index, ValueType: value}
			indices, _, err := array.FromJSON(mem, index, strings.NewReader(`[3, 0, null, 3, 1]`))
			if err != nil {
				t.Fatal(err)
			}
			words := `["p", "q", "r", null]`
			if value.ID() == arrow.BINARY {
				words = `["cA==", "cQ==", "cg==", null]`
			}
			dictionary, _, err := array.FromJSON(mem, value, strings.NewReader(words))
			if err != nil {
				t.Fatal(err)
			}
			whole := array.NewDictionaryArray(typ, indices, dictionary)
			slice := array.NewSlice(whole, 1, 5).(*array.Dictionary)
			got := compactDictionary(slice)
			if n := got.(*array.Dictionary).Dictionary().Len(); n != 3 {
				t.Errorf("%v keeps %d values of 3", typ, n)
			}
			for i := range slice.Len() {
				if got.ValueStr(i) != slice.ValueStr(i) {
					t.Errorf("%v row %d: %s, want %s", typ, i, got.ValueStr(i), slice.ValueStr(i))
				}
			}
		}
	}
	numbers := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Int8},
		array.MakeArrayOfNull(mem, arrow.PrimitiveTypes.Int8, 1), array.MakeArrayOfNull(mem, arrow.PrimitiveTypes.Int8, 1))
	if compactDictionary(numbers) != nil {
		t.Error("a dictionary of numbers is cut")
	}
}

// heldServer sends batches that it releases as soon as they are written; from
// then on only the transport holds them.
type heldServer struct {
	flight.BaseFlightServer
	mem memory.Allocator
}

const heldBatches, heldRows = 40, 20_000

func (s *heldServer) DoGet(_ *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	var w *Stream
	for i := range heldBatches {
		batch := weatherBatch(s.mem, i*heldRows, heldRows)
		if w == nil {
			w = NewStream(stream, batch.Schema(), limit)
			if err := w.WriteSchema(); err != nil {
				return err
			}
		}
		err := w.Write(batch)
		batch.Release()
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// Batches reach the client whole although their memory is overwritten when
// they are released, and all of it is released.
func TestStreamHoldsBatches(t *testing.T) {
	checked := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer checked.AssertSize(t, 0)
	pool := &bufpool.Pool{Poison: true}
	server := grpc.NewServer(grpc.ForceServerCodecV2(NewCodec(pool)), experimental.BufferPool(pool))
	defer server.GracefulStop()
	flight.RegisterFlightServiceServer(server, &heldServer{mem: bufpool.Poison(checked)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l) //nolint:errcheck // ends with the test
	client, err := flight.NewClientWithMiddleware(l.Addr().String(), nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	stream, err := client.DoGet(t.Context(), &flight.Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := flight.NewRecordReader(stream)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	rows := 0
	for reader.Next() {
		got := reader.RecordBatch()
		n := int(got.NumRows())
		want := weatherBatch(memory.DefaultAllocator, rows, n)
		if !array.RecordEqual(got, want) {
			t.Fatalf("%d rows from %d on are not those that were sent", n, rows)
		}
		rows += n
	}
	if err := reader.Err(); err != nil || rows != heldBatches*heldRows {
		t.Errorf("%d rows arrive, %v", rows, err)
	}
}

func TestStreamWrongBatch(t *testing.T) {
	var out sent
	s := NewStream(&out, weather, limit)
	if err := s.Write(dictionaryBatch("a")); err == nil {
		t.Error("a batch with too few columns is sent")
	}
	columns := weatherBatch(memory.NewGoAllocator(), 0, 1).Columns()
	wrong := arrow.NewSchema([]arrow.Field{weather.Field(1), weather.Field(0), weather.Field(2)}, nil)
	if err := s.Write(array.NewRecordBatch(wrong, []arrow.Array{columns[1], columns[0], columns[2]}, 1)); err == nil {
		t.Error("a batch with other types is sent")
	}
	if len(out.messages) != 0 {
		t.Errorf("%d messages went out", len(out.messages))
	}
}

type senderFunc func(any) error

func (f senderFunc) SendMsg(m any) error { return f(m) }

func TestWatch(t *testing.T) { synctest.Test(t, testWatch) }

func testWatch(t *testing.T) {
	ctx := context.Background()
	finished := make(chan struct{}, 1)
	done := func() { finished <- struct{}{} }
	send := func(_ context.Context, s Sender) error { return s.SendMsg(&Message{}) }

	for _, limit := range []time.Duration{0, time.Minute} {
		if err := Watch(ctx, limit, &Progress{}, senderFunc(func(any) error { return errCut }), done, send); err != errCut {
			t.Errorf("work's error arrives as %v", err)
		}
		<-finished
	}
	err := Watch(ctx, time.Minute, &Progress{}, nil, done, func(context.Context, Sender) error { panic("boom") })
	if <-finished; err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("a panic arrives as %v", err)
	}
	// Slow work is no stall.
	slow := func(context.Context, Sender) error { time.Sleep(30 * time.Millisecond); return nil }
	if err := Watch(ctx, 10*time.Millisecond, &Progress{}, nil, done, slow); err != nil {
		t.Errorf("slow work gives %v", err)
	}
	<-finished
	// Neither are many sends that take long together.
	short := senderFunc(func(any) error { time.Sleep(time.Millisecond); return nil })
	err = Watch(ctx, 500*time.Millisecond, &Progress{}, short, done, func(_ context.Context, s Sender) (err error) {
		for range 600 {
			err = errors.Join(err, s.SendMsg(nil))
		}
		return err
	})
	if err != nil {
		t.Errorf("600 sends of a millisecond give %v", err)
	}
	<-finished
	// A blocked send is, and work's context ends.
	rpc, endRPC := context.WithCancel(ctx)
	var workErr error
	err = Watch(ctx, 20*time.Millisecond, &Progress{}, senderFunc(func(any) error { <-rpc.Done(); return errCut }), done,
		func(ctx context.Context, s Sender) error {
			if err := s.SendMsg(&Message{}); err != errCut {
				return err
			}
			workErr = ctx.Err()
			return workErr
		})
	var timedOut *tableerr.TimedOut
	if !errors.As(err, &timedOut) || timedOut.Wait != waitStall || timedOut.LimitMS != 20 {
		t.Errorf("a blocked send gives %v", err)
	}
	endRPC()
	if <-finished; workErr == nil {
		t.Error("work's context goes on")
	}
}

// While a client reads one of its streams, the others are not stalled.
func TestWatchSharedProgress(t *testing.T) { synctest.Test(t, testWatchSharedProgress) }

func testWatchSharedProgress(t *testing.T) {
	const limit = 200 * time.Millisecond
	progress := &Progress{}
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				progress.note(time.Now())
				time.Sleep(time.Millisecond)
			}
		}
	}()
	release, ended := make(chan struct{}), make(chan struct{})
	blocked := senderFunc(func(any) error { <-release; return nil })
	result := make(chan error)
	go func() {
		result <- Watch(context.Background(), limit, progress, blocked, func() { close(ended) },
			func(_ context.Context, s Sender) error { return s.SendMsg(nil) })
	}()
	select {
	case err := <-result:
		t.Errorf("a stream behind another one gives %v", err)
	case <-time.After(3 * limit):
		close(stop)
		if err := <-result; token(err) != tableerr.TokenTimedOut {
			t.Errorf("when nothing moves, it gives %v", err)
		}
	}
	close(release)
	<-ended
}
