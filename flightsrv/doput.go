package flightsrv

import (
	"context"
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"

	"contrail/descriptors"
	"contrail/flightsrv/internal/wire"
	"contrail/tablecore"
	"contrail/tablecore/tableerr"
)

// maxDictionaryBytes bounds the dictionaries that one put keeps in force.
const maxDictionaryBytes = 256 << 20

// DoPut appends the stream's rows to a table as one commit. What can be refused
// is refused on the first message, before rows are read; the one PutResult,
// the report, is sent when the stream has been read to its announced end.
func (s *Server) DoPut(stream flight.FlightService_DoPutServer) error {
	ctx := stream.Context()
	limit := s.opts.Limits.MaxReceiveMessageBytes
	put := wire.NewPut(putReceiver{wire.Receive(ctx, s.codec, limit, stream), limit}, s.putOptions())
	defer put.Close()
	descriptor, err := put.Descriptor(ctx)
	if err != nil {
		return err
	}
	request, err := appendOf(descriptor)
	if err != nil {
		return err
	}
	report, err := s.append(ctx, put, request)
	if err != nil {
		return tableerr.WithTable(err, nameOf(request.Table))
	}
	answer, err := json.Marshal(report)
	if err != nil {
		return err
	}
	return stream.Send(&flight.PutResult{AppMetadata: answer})
}

// append checks what can be checked without rows, and then appends them.
func (s *Server) append(ctx context.Context, put *wire.Put, r *descriptors.Append) (*tablecore.AppendReport, error) {
	table, err := s.table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	schema, err := put.Schema(ctx)
	if err != nil {
		return nil, err
	}
	o := tablecore.AppendOptions{ExpectedVersion: r.ExpectedVersion, RequestID: r.RequestID, Compression: r.Compression,
		MaxRowsPerRowGroup: r.MaxRowsPerRowGroup, MaxBytesPerRowGroup: r.MaxBytesPerRowGroup, TableID: r.TableID}
	if err := table.CheckAppend(ctx, schema, o); err != nil {
		return nil, err
	}
	leave, _, err := s.puts.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	put.Expect(wire.Ending{Rows: r.Rows, Marker: r.EndMarker})
	report, err := table.Append(ctx, putRows{put, schema}, o)
	if err != nil {
		return nil, err
	}
	return report, put.Drain(ctx)
}

// appendOf returns the append that a descriptor asks for.
func appendOf(d *flight.FlightDescriptor) (*descriptors.Append, error) {
	switch d.GetType() {
	case flight.DescriptorPATH:
		table, err := descriptors.TableOfPath(d.GetPath())
		if err != nil {
			return nil, err
		}
		return &descriptors.Append{Table: table}, nil
	case flight.DescriptorCMD:
		return descriptors.ParsePut(d.GetCmd())
	default:
		return nil, tableerr.InvalidField("descriptor", "the descriptor is neither a path nor a command")
	}
}

func (s *Server) putOptions() wire.PutOptions {
	l := s.opts.Limits
	return wire.PutOptions{
		Allocator: s.opts.Allocator, Bodies: s.bodies, Budget: s.decode,
		// Compression is at its best when a message unfolds to a few times its size.
		MaxMessageBytes: 4 * l.MaxReceiveMessageBytes, MaxDictionaryBytes: maxDictionaryBytes,
		FirstMessageTimeout: l.FirstMessageTimeout, StallTimeout: l.StallTimeout,
	}
}

// putReceiver gives errors of receiving their type.
type putReceiver struct {
	from  wire.Receiver
	limit int64
}

// Recv implements wire.Receiver.
func (r putReceiver) Recv() (*flight.FlightData, error) {
	m, err := r.from.Recv()
	if err != nil {
		err = receiveError(err, r.limit)
	}
	return m, err
}

// putRows makes a put a row reader of the core.
type putRows struct {
	*wire.Put
	schema *arrow.Schema
}

// Schema implements tablecore.RowReader.
func (r putRows) Schema() *arrow.Schema { return r.schema }
