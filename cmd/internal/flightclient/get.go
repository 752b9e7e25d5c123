package flightclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Reader reads the rows of a scan or listing, one endpoint after the other.
type Reader struct {
	client *Client
	info   *flight.FlightInfo
	schema *arrow.Schema
	cancel context.CancelFunc

	next   int // endpoint
	stream *recorded
	batch  *flight.Reader
	stats  json.RawMessage
}

// Get plans what a command asks for and returns a reader of its rows, which the
// caller closes. No row is asked for before Next.
func (c *Client) Get(ctx context.Context, command []byte) (*Reader, error) {
	var trailer metadata.MD
	descriptor := &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: command}
	info, err := c.flight.GetFlightInfo(ctx, descriptor, grpc.Trailer(&trailer))
	if err != nil {
		return nil, failed(err, trailer)
	}
	schema, err := flight.DeserializeSchema(info.GetSchema(), c.memory)
	if err != nil {
		return nil, err
	}
	return &Reader{client: c, info: info, schema: schema, cancel: func() {}}, nil
}

// Schema is the schema of the rows.
func (r *Reader) Schema() *arrow.Schema { return r.schema }

// Total is the number of rows, or -1 where it is not known beforehand.
func (r *Reader) Total() int64 { return r.info.GetTotalRecords() }

// Stats is the object that the service sent behind the last row, or nil.
func (r *Reader) Stats() json.RawMessage { return r.stats }

// Next returns the next batch, or io.EOF. A batch is valid until the next call.
func (r *Reader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		if r.batch == nil {
			if r.next == len(r.info.GetEndpoint()) {
				return nil, io.EOF
			}
			if err := r.open(ctx); err != nil {
				return nil, err
			}
		}
		if r.batch.Next() {
			return r.batch.RecordBatch(), nil
		}
		if err := r.end(); err != nil {
			return nil, err
		}
	}
}

func (r *Reader) open(ctx context.Context) error {
	ctx, r.cancel = context.WithCancel(ctx)
	stream, err := r.client.flight.DoGet(ctx, r.info.GetEndpoint()[r.next].GetTicket())
	if err != nil {
		return failed(err, nil)
	}
	r.next++
	r.stream = &recorded{FlightService_DoGetClient: stream}
	r.batch, err = flight.NewRecordReader(r.stream, ipc.WithAllocator(r.client.memory))
	if err != nil {
		r.batch = nil
		return r.stream.failure(err)
	}
	return nil
}

// end closes an endpoint that gave its last batch, and tells why it was the
// last.
func (r *Reader) end() error {
	err := r.batch.Err()
	r.batch.Release()
	r.batch = nil
	if err = r.stream.failure(err); err != nil {
		return err
	}
	if stats := r.stream.Trailer().Get(trailerStats); len(stats) == 1 {
		r.stats = json.RawMessage(stats[0])
	}
	r.cancel()
	return nil
}

// Close ends the reading, also before its end.
func (r *Reader) Close() {
	r.cancel()
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
}

// recorded remembers how its stream ended, which the reader of batches wraps
// beyond recognition.
type recorded struct {
	flight.FlightService_DoGetClient
	err error
}

// Recv implements flight.DataStreamReader.
func (s *recorded) Recv() (*flight.FlightData, error) {
	data, err := s.FlightService_DoGetClient.Recv()
	if err != nil {
		s.err = err
	}
	return data, err
}

// failure returns why the stream ended early; err is what the reader of
// batches says. It is nil after a proper end.
func (s *recorded) failure(err error) error {
	if s.err != nil && !errors.Is(s.err, io.EOF) {
		return failed(s.err, s.Trailer())
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
