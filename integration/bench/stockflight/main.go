// Stockflight is the Flight server that one would write first with arrow-go:
// its Flight, its pqarrow, a folder of Parquet files for each table, one file
// an append. The benchmarks measure Contrail beside it.
//
//	stockflight FOLDER
//
// It listens on a free port of the loopback address, prints the port and runs
// until it is killed. The command of a put is {"table": "t"}; a ticket may add
// {"columns": ["a"]} and, for one of several readers, {"part": 0, "parts": 4}.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"google.golang.org/grpc"
)

const (
	groupRows     = 1 << 20
	batchRows     = 1 << 16
	maxMessage    = 64 << 20
	temporaryName = "arriving-*"
)

type server struct {
	flight.BaseFlightServer
	folder string
}

// request is the command of a put and the ticket of a get.
type request struct {
	Table   string   `json:"table"`
	Columns []string `json:"columns"`
	Part    int      `json:"part"`
	Parts   int      `json:"parts"`
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: stockflight FOLDER")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	grpcServer := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	flight.RegisterFlightServiceServer(grpcServer, &server{folder: os.Args[1]})
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(grpcServer.Serve(listener))
}

// DoPut stores the stream as one more file, synced before the answer.
func (s *server) DoPut(stream flight.FlightService_DoPutServer) error {
	reader, err := flight.NewRecordReader(stream)
	if err != nil {
		return err
	}
	defer reader.Release()
	var put request
	if err := json.Unmarshal(reader.LatestFlightDescriptor().GetCmd(), &put); err != nil {
		return err
	}
	folder := filepath.Join(s.folder, put.Table)
	out, err := os.CreateTemp(folder, temporaryName)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := write(out, reader); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	if err := os.Rename(out.Name(), out.Name()+".parquet"); err != nil {
		return err
	}
	if err := syncFolder(folder); err != nil {
		return err
	}
	return stream.Send(&flight.PutResult{AppMetadata: []byte("{}")})
}

// write stores all batches with the default settings, but for two that
// everybody changes: snappy, and no dictionary of floating-point values.
func write(out io.Writer, reader *flight.Reader) error {
	options := []parquet.WriterProperty{parquet.WithCompression(compress.Codecs.Snappy), parquet.WithMaxRowGroupLength(groupRows)}
	for _, f := range reader.Schema().Fields() {
		if arrow.IsFloating(f.Type.ID()) {
			options = append(options, parquet.WithDictionaryFor(f.Name, false))
		}
	}
	// The writer closes what it writes to, and the file is still to be synced.
	writer, err := pqarrow.NewFileWriter(reader.Schema(), struct{ io.Writer }{out}, parquet.NewWriterProperties(options...),
		pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	for reader.Next() {
		if err := writer.WriteBuffered(reader.RecordBatch()); err != nil {
			return err
		}
	}
	if err := reader.Err(); err != nil {
		return err
	}
	return writer.Close()
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// DoGet streams a table, file after file.
func (s *server) DoGet(ticket *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	var get request
	if err := json.Unmarshal(ticket.GetTicket(), &get); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(s.folder, get.Table, "*.parquet"))
	if err != nil {
		return err
	}
	var writer *flight.Writer
	begin := func(schema *arrow.Schema) *flight.Writer {
		if writer == nil {
			writer = flight.NewRecordWriter(stream, ipc.WithSchema(schema))
		}
		return writer
	}
	for _, name := range files {
		if err := read(stream.Context(), name, get, begin); err != nil {
			return err
		}
	}
	if writer == nil {
		return fmt.Errorf("table %q has no rows", get.Table)
	}
	return writer.Close()
}

// read writes the batches of one file; no columns are all columns, and a part is
// every parts-th row group.
func read(ctx context.Context, name string, get request, begin func(*arrow.Schema) *flight.Writer) error {
	pq, err := file.OpenParquetFile(name, false)
	if err != nil {
		return err
	}
	defer pq.Close()
	reader, err := pqarrow.NewFileReader(pq, pqarrow.ArrowReadProperties{BatchSize: batchRows, Parallel: true}, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	var indices []int
	for _, column := range get.Columns {
		indices = append(indices, pq.MetaData().Schema.ColumnIndexByName(column))
	}
	groups := []int{} // nil would be all
	for group := get.Part; group < pq.NumRowGroups(); group += max(1, get.Parts) {
		groups = append(groups, group)
	}
	batches, err := reader.GetRecordReader(ctx, indices, groups)
	if err != nil {
		return err
	}
	defer batches.Release()
	writer := begin(batches.Schema())
	for batches.Next() {
		if err := writer.Write(batches.RecordBatch()); err != nil {
			return err
		}
	}
	if err := batches.Err(); err != nil && err != io.EOF {
		return err
	}
	return nil
}
