package wire

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"

	"contrail/tablecore/bufpool"
)

// ticks is a batch of n rows of the kind that benchmarks use.
func ticks(n int) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "ts", Type: arrow.FixedWidthTypes.Timestamp_us},
		{Name: "symbol", Type: arrow.BinaryTypes.String},
		{Name: "price", Type: arrow.PrimitiveTypes.Float64},
		{Name: "size", Type: arrow.PrimitiveTypes.Int64},
		{Name: "flag", Type: arrow.FixedWidthTypes.Boolean},
		{Name: "venue", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(i))
		b.Field(1).(*array.StringBuilder).Append("SYM" + string(rune('A'+i%26)))
		b.Field(2).(*array.Float64Builder).Append(float64(i) / 7)
		b.Field(3).(*array.Int64Builder).Append(int64(i % 1000))
		b.Field(4).(*array.BooleanBuilder).Append(i%3 == 0)
		if i%10 == 0 {
			b.Field(5).AppendNull()
		} else {
			b.Field(5).(*array.StringBuilder).Append("XNAS")
		}
	}
	return b.NewRecordBatch()
}

// benchServer sends and receives batches in memory, through this package or as
// arrow-go's Flight does by itself.
type benchServer struct {
	flight.BaseFlightServer
	batches []arrow.RecordBatch
	stock   bool
	codec   *Codec
	pool    *bufpool.Pool
}

func (s *benchServer) DoGet(_ *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	if s.stock {
		w := flight.NewRecordWriter(stream, ipc.WithSchema(s.batches[0].Schema()))
		defer w.Close()
		for _, b := range s.batches {
			if err := w.Write(b); err != nil {
				return err
			}
		}
		return nil
	}
	w := NewStream(stream, s.batches[0].Schema(), limit)
	if err := w.WriteSchema(); err != nil {
		return err
	}
	for _, b := range s.batches {
		if err := w.Write(b); err != nil {
			return err
		}
	}
	return w.Close()
}

func (s *benchServer) DoPut(stream flight.FlightService_DoPutServer) error {
	if s.stock {
		r, err := flight.NewRecordReader(stream)
		if err != nil {
			return err
		}
		defer r.Release()
		for r.Next() {
		}
		return r.Err()
	}
	o := testOptions()
	o.Bodies = s.pool
	ctx := stream.Context()
	p := NewPut(Receive(ctx, s.codec, 1<<26, stream), o)
	defer p.Close()
	if _, err := p.Descriptor(ctx); err != nil {
		return err
	}
	if _, err := p.Schema(ctx); err != nil {
		return err
	}
	for {
		if _, err := p.Next(ctx); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (s *benchServer) start(b *testing.B) flight.Client {
	opts := []grpc.ServerOption{grpc.MaxRecvMsgSize(1 << 26)}
	if !s.stock {
		s.pool = &bufpool.Pool{}
		s.codec = NewCodec(s.pool)
		opts = append(opts, grpc.ForceServerCodecV2(s.codec), experimental.BufferPool(s.pool), grpc.WriteBufferSize(512<<10),
			grpc.ReadBufferSize(256<<10), grpc.InitialWindowSize(4<<20), grpc.InitialConnWindowSize(4<<20))
	}
	server := grpc.NewServer(opts...)
	flight.RegisterFlightServiceServer(server, s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go server.Serve(l) //nolint:errcheck // ends with the benchmark
	client, err := flight.NewClientWithMiddleware(l.Addr().String(), nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<26)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close(); server.Stop() })
	return client
}

// BenchmarkFlight moves 64 MB in memory, with the same client against this
// package and against stock arrow-go Flight.
func BenchmarkFlight(b *testing.B) {
	batch := ticks(24_000) // 1 MB
	batches := make([]arrow.RecordBatch, 64)
	for i := range batches {
		batches[i] = batch
	}
	var bytes int64
	for _, m := range client(b, batch.Schema(), batches) {
		bytes += int64(len(m.DataBody))
	}
	ctx := context.Background()
	for _, stock := range []bool{true, false} {
		remote := (&benchServer{batches: batches, stock: stock}).start(b)
		name := map[bool]string{true: "stock", false: "ours"}[stock]
		b.Run("get/"+name, func(b *testing.B) {
			b.SetBytes(bytes)
			for b.Loop() {
				stream, err := remote.DoGet(ctx, &flight.Ticket{})
				for err == nil {
					_, err = stream.Recv()
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
		})
		b.Run("put/"+name, func(b *testing.B) {
			b.SetBytes(bytes)
			messages := client(b, batch.Schema(), batches)
			for b.Loop() {
				stream, err := remote.DoPut(ctx)
				for _, m := range messages {
					if err == nil {
						err = stream.Send(m)
					}
				}
				if err == nil {
					err = stream.CloseSend()
				}
				if err == nil {
					_, err = stream.Recv()
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
		})
	}
}
