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

// DoPut appends the stream's rows to a table, or updates rows with them, as one
// commit, or stages them for a later one. What can be refused is refused on the
// first message, before rows are read; the one PutResult, the report, is sent
// when the stream has been read to its announced end.
func (s *Server) DoPut(stream flight.FlightService_DoPutServer) error {
	ctx := stream.Context()
	limit := s.opts.Limits.MaxReceiveMessageBytes
	put := wire.NewPut(putReceiver{wire.Receive(ctx, s.codec, limit, stream), limit}, s.putOptions())
	defer put.Close()
	descriptor, err := put.Descriptor(ctx)
	if err != nil {
		return err
	}
	request, err := putOf(descriptor)
	if err != nil {
		return err
	}
	var report any
	switch r := request.(type) {
	case *descriptors.Append:
		report, err = s.append(ctx, put, r)
	case *descriptors.UpdateRows:
		report, err = s.updateRows(ctx, put, r)
	case *descriptors.Stage:
		report, err = s.stage(ctx, put, r)
	}
	if err != nil {
		return tableerr.WithTable(err, nameOf(request.TableName()))
	}
	answer, err := json.Marshal(report)
	if err != nil {
		return err
	}
	return stream.Send(&flight.PutResult{AppMetadata: answer})
}

// append checks what can be checked without rows, and then appends them.
func (s *Server) append(ctx context.Context, put *wire.Put, r *descriptors.Append) (any, error) {
	o := tablecore.AppendOptions{ExpectedVersion: r.ExpectedVersion, RequestID: r.RequestID, Compression: r.Compression,
		MaxRowsPerRowGroup: r.MaxRowsPerRowGroup, MaxBytesPerRowGroup: r.MaxBytesPerRowGroup, TableID: r.TableID}
	return s.put(ctx, put, r.Table, wire.Ending{Rows: r.Rows, Marker: r.EndMarker},
		func(t *tablecore.Table, schema *arrow.Schema) error { return t.CheckAppend(ctx, schema, o) },
		func(t *tablecore.Table, rows tablecore.RowReader) (any, error) { return t.Append(ctx, rows, o) })
}

// updateRows checks what can be checked without rows, and then updates with
// them.
func (s *Server) updateRows(ctx context.Context, put *wire.Put, r *descriptors.UpdateRows) (any, error) {
	o := tablecore.UpdateOptions{Columns: r.Columns, ExpectedVersion: r.ExpectedVersion, RequestID: r.RequestID, TableID: r.TableID}
	return s.put(ctx, put, r.Table, wire.Ending{Rows: r.Rows, Marker: r.EndMarker},
		func(t *tablecore.Table, schema *arrow.Schema) error { return t.CheckUpdate(ctx, schema, o) },
		func(t *tablecore.Table, rows tablecore.RowReader) (any, error) { return t.UpdateRows(ctx, rows, o) })
}

// stage checks what can be checked without rows, and then writes them.
func (s *Server) stage(ctx context.Context, put *wire.Put, r *descriptors.Stage) (any, error) {
	o := tablecore.StageOptions{Compression: r.Compression, MaxRowsPerRowGroup: r.MaxRowsPerRowGroup, MaxBytesPerRowGroup: r.MaxBytesPerRowGroup, TableID: r.TableID}
	return s.put(ctx, put, r.Table, wire.Ending{Rows: r.Rows, Marker: r.EndMarker},
		func(t *tablecore.Table, schema *arrow.Schema) error { return t.CheckStage(ctx, schema, o) },
		func(t *tablecore.Table, rows tablecore.RowReader) (any, error) { return t.Stage(ctx, rows, o) })
}

// put reads a stream for a table: check is asked before there are rows, do reads
// them and returns the report.
func (s *Server) put(ctx context.Context, put *wire.Put, name string, end wire.Ending, check func(*tablecore.Table, *arrow.Schema) error,
	do func(*tablecore.Table, tablecore.RowReader) (any, error)) (any, error) {
	table, err := s.table(ctx, name)
	if err != nil {
		return nil, err
	}
	schema, err := put.Schema(ctx)
	if err != nil {
		return nil, err
	}
	if err := check(table, schema); err != nil {
		return nil, err
	}
	leave, _, err := s.puts.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	put.Expect(end)
	report, err := do(table, putRows{put, schema})
	if err != nil {
		return nil, err
	}
	return report, put.Drain(ctx)
}

// putOf returns the put that a descriptor asks for.
func putOf(d *flight.FlightDescriptor) (descriptors.Put, error) {
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
