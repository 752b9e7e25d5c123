package flightclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"contrail/descriptors"
)

// Rows are what a put sends. Next returns io.EOF at the end; a batch is valid
// until the next call. Any other error means that nothing is to be stored.
type Rows interface {
	Schema() *arrow.Schema
	Next(ctx context.Context) (arrow.RecordBatch, error)
}

// Put sends rows under a command that announces the end marker, and returns the
// report. When rows fails, the call is broken off, so that the service stores
// nothing, and the error is rows' own. An error after the last row was sent for
// which Unclear holds leaves open whether the rows were stored.
func (c *Client) Put(ctx context.Context, command []byte, rows Rows) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.flight.DoPut(ctx)
	if err != nil {
		return nil, failed(err, nil)
	}
	w := flight.NewRecordWriter(stream, ipc.WithSchema(rows.Schema()), ipc.WithAllocator(c.memory))
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: command})
	count, err := c.send(ctx, w, rows)
	if err == nil {
		err = w.WriteMetadata(descriptors.EncodeMarker(count))
	}
	if err == nil {
		if err = w.Close(); err == nil {
			err = stream.CloseSend()
		}
	}
	// A service that has ended the call makes every Send return io.EOF; why it
	// did so comes with the answer.
	if err != nil && !errors.Is(err, io.EOF) {
		cancel()
		_, _ = stream.Recv() // waits until the call is over
		return nil, err
	}
	sent := err == nil
	answer, err := stream.Recv()
	switch {
	case err == io.EOF:
		return nil, errStreamEnded
	case err != nil:
		return nil, &putError{error: failed(err, stream.Trailer()), sent: sent}
	}
	return answer.GetAppMetadata(), nil
}

// send sends all batches and returns how many rows they held. The first message
// is a batch without rows: it brings schema and command at once, so that a
// refusal does not wait for the first rows.
func (c *Client) send(ctx context.Context, w *flight.Writer, rows Rows) (int64, error) {
	builder := array.NewRecordBuilder(c.memory, rows.Schema())
	empty := builder.NewRecordBatch()
	builder.Release()
	defer empty.Release()
	if err := w.Write(empty); err != nil {
		return 0, err
	}
	count := int64(0)
	for {
		batch, err := rows.Next(ctx)
		if err == io.EOF {
			return count, nil
		}
		if err != nil {
			return 0, err
		}
		if err := w.Write(batch); err != nil {
			return 0, err
		}
		count += batch.NumRows()
	}
}

// putError is a put that failed; sent tells whether all of it was.
type putError struct {
	error
	sent bool
}

// Unwrap returns the error of the call.
func (e *putError) Unwrap() error { return e.error }

// Unclear tells whether err is of a put whose rows were all sent and whose
// answer was lost on the way: they may be stored, or not.
func Unclear(err error) bool {
	var put *putError
	var call *Error
	return errors.As(err, &put) && put.sent && errors.As(err, &call) && call.Token == ""
}
