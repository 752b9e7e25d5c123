package wire

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// SchemaBytes returns a schema as FlightInfo and SchemaResult carry it.
func SchemaBytes(schema *arrow.Schema) []byte { return flight.SerializeSchema(schema, scratch) }

// readSchema reads a verified schema message.
func readSchema(m *flight.FlightData) (*arrow.Schema, error) {
	queue := &messageQueue{}
	queue.push(m)
	reader, err := ipc.NewReaderFromMessageReader(queue, ipc.WithAllocator(scratch))
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	return reader.Schema(), nil
}
