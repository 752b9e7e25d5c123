package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"contrail/tablecore/tableerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stream is a DoPut as a client sends it: messages, then the half-close, or a
// cut, or silence until the test ends.
type stream struct {
	messages []*flight.FlightData
	err      error         // after the messages; io.EOF = half-close
	silence  chan struct{} // when set, Recv blocks on it after the messages
	mu       sync.Mutex
}

func (s *stream) Recv() (*flight.FlightData, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) == 0 {
		if s.silence != nil {
			<-s.silence
		}
		return nil, s.err
	}
	m := s.messages[0]
	s.messages = s.messages[1:]
	return m, nil
}

// sent collects what a writer sends.
type sent struct{ messages []*flight.FlightData }

func (s *sent) Send(m *flight.FlightData) error {
	s.messages = append(s.messages, &flight.FlightData{FlightDescriptor: m.FlightDescriptor, AppMetadata: m.AppMetadata,
		DataHeader: append([]byte(nil), m.DataHeader...), DataBody: append([]byte(nil), m.DataBody...)})
	return nil
}

// SendMsg implements Sender.
func (s *sent) SendMsg(m any) error {
	out := m.(*Message)
	return s.Send(&flight.FlightData{DataHeader: out.Header, DataBody: bytes.Join(out.Body, nil)})
}

// client encodes batches as a client's library does.
func client(tb testing.TB, schema *arrow.Schema, batches []arrow.RecordBatch, opts ...ipc.Option) []*flight.FlightData {
	tb.Helper()
	var out sent
	w := flight.NewRecordWriter(&out, append(opts, ipc.WithSchema(schema))...)
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"t"}})
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.messages
}

var weather = arrow.NewSchema([]arrow.Field{
	{Name: "origin", Type: arrow.BinaryTypes.String},
	{Name: "hour", Type: arrow.FixedWidthTypes.Timestamp_us},
	{Name: "temp", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
}, nil)

// weatherBatch has n rows that start at row first.
func weatherBatch(mem memory.Allocator, first, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, weather)
	defer b.Release()
	for i := first; i < first+n; i++ {
		b.Field(0).(*array.StringBuilder).Append([]string{"EWR", "JFK", "LGA"}[i%3])
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(i))
		if i%5 == 0 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.Float64Builder).Append(float64(i))
		}
	}
	return b.NewRecordBatch()
}

func goBatches(sizes ...int) []arrow.RecordBatch {
	var list []arrow.RecordBatch
	first := 0
	for _, n := range sizes {
		list = append(list, weatherBatch(memory.NewGoAllocator(), first, n))
		first += n
	}
	return list
}

func testOptions() PutOptions {
	return PutOptions{Allocator: memory.NewGoAllocator(), Budget: NewBudget(1 << 30), MaxMessageBytes: 1 << 26, MaxDictionaryBytes: 1 << 24}
}

// read reads a whole put and returns its rows' index values.
func read(r Receiver, ending Ending, opts PutOptions) (values []int64, err error) {
	ctx := context.Background()
	p := NewPut(r, opts)
	defer p.Close()
	if _, err := p.Descriptor(ctx); err != nil {
		return nil, err
	}
	schema, err := p.Schema(ctx)
	if err != nil {
		return nil, err
	}
	hour := schema.FieldIndices("hour")
	p.Expect(ending)
	for {
		batch, err := p.Next(ctx)
		if err == io.EOF {
			return values, p.Drain(ctx)
		}
		if err != nil {
			return values, err
		}
		if hour != nil {
			for _, v := range batch.Column(hour[0]).(*array.Timestamp).TimestampValues() {
				values = append(values, int64(v))
			}
		}
	}
}

func token(err error) tableerr.Token { return tableerr.TokenOf(err) }

var errCut = errors.New("transport: connection reset")

// viewBatch has a string view, a boolean and a list of bytes.
func viewBatch(schema *arrow.Schema) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	defer b.Release()
	for i, v := range []string{"short", "rather longer than twelve", ""} {
		b.Field(0).(*array.StringViewBuilder).Append(v)
		b.Field(1).(*array.BooleanBuilder).Append(i == 1)
		list := b.Field(2).(*array.ListBuilder)
		list.Append(true)
		list.ValueBuilder().(*array.Int8Builder).Append(int8(i))
	}
	return b.NewRecordBatch()
}
