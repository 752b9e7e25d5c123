package wire

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"contrail/tablecore/tableerr"
)

// Receive returns what receives a stream's messages and refuses one beyond
// limit with MESSAGE_TOO_LARGE. gRPC's own RecvMsg refuses it as well, but then
// ends the call by itself: with a text of its own, without the trailers that
// the handler is about to set. So the messages are read from the transport
// below it where that can be reached; otherwise through fallback.
//
// Errors but io.EOF and tableerr types mean that the client is gone.
func Receive(ctx context.Context, codec *Codec, limit int64, fallback Receiver) Receiver {
	if t, ok := grpc.ServerTransportStreamFromContext(ctx).(transport); ok {
		return &transportReceiver{transport: t, codec: codec, limit: limit}
	}
	return fallback
}

// transport is what gRPC's transport.ServerStream offers to the code above it,
// as of grpc-go 1.85.
type transport interface {
	// ReadMessageHeader fills the five bytes before a message; io.EOF after the
	// client's half-close.
	ReadMessageHeader([]byte) error
	// Read returns the next n bytes.
	Read(n int) (mem.BufferSlice, error)
}

type transportReceiver struct {
	transport transport
	codec     *Codec
	limit     int64
	head      [5]byte
}

// Recv implements Receiver.
// Framing: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
func (r *transportReceiver) Recv() (*flight.FlightData, error) {
	if err := r.transport.ReadMessageHeader(r.head[:]); err != nil {
		return nil, err
	}
	if r.head[0] != 0 {
		return nil, tableerr.InvalidField("stream", "a message is compressed by gRPC; compress the Arrow data instead")
	}
	size := int64(binary.BigEndian.Uint32(r.head[1:]))
	if size > r.limit {
		return nil, TooLarge(r.limit, size)
	}
	data, err := r.transport.Read(int(size))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	defer data.Free()
	m := &flight.FlightData{}
	if err := r.codec.Unmarshal(data, m); err != nil {
		e := tableerr.InvalidField("stream", "a message is no FlightData: %v", err)
		e.Cause = err
		return nil, e
	}
	return m, nil
}

// TooLarge refuses a received message; size is 0 where it is not known.
func TooLarge(limit, size int64) error {
	return &tableerr.MessageTooLarge{LimitBytes: limit, Bytes: size,
		Msg: fmt.Sprintf("a message is larger than %d bytes; send smaller batches, or raise limits.max_receive_message_bytes", limit)}
}
