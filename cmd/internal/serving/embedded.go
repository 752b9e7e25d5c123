package serving

import (
	"context"
	"errors"
	"net"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"contrail/cmd/internal/config"
	"contrail/flightsrv"
	"contrail/tablecore"
)

// pipeBytes is how much one side of the connection inside the process may be
// ahead of the other.
const pipeBytes = 1 << 20

// Embedded is a Flight service inside this process. Only the connections that
// its DialOption makes lead to it.
type Embedded struct {
	warehouse *tablecore.Warehouse
	server    *flightsrv.Server
	listener  *bufconn.Listener
	served    chan error
}

// Embed opens the warehouse of c, as OpenWarehouse does, and serves it. The
// caller closes the service. It maintains no tables: it does not live long enough.
func Embed(ctx context.Context, c config.Config, log zerolog.Logger, create bool) (*Embedded, error) {
	c.Maintenance = false
	warehouse, err := OpenWarehouse(ctx, c, log, create)
	if err != nil {
		return nil, err
	}
	server, err := flightsrv.New(Options(c, warehouse, log))
	if err != nil {
		return nil, errors.Join(err, warehouse.Close())
	}
	e := &Embedded{warehouse: warehouse, server: server, listener: bufconn.Listen(pipeBytes), served: make(chan error, 1)}
	go func() { e.served <- server.Serve(e.listener) }()
	return e, nil
}

// DialOption makes a gRPC client connect to the service, whatever its address.
func (e *Embedded) DialOption() grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return e.listener.DialContext(ctx) })
}

// Close cuts what still runs, waits for it and closes the warehouse. A commit
// that has begun is finished.
func (e *Embedded) Close() error {
	e.server.Close()
	return errors.Join(<-e.served, e.warehouse.Close())
}
