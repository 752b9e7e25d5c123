package flightsrv_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"contrail/flightsrv"
	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
)

// A server over a warehouse in memory: it is started, asked for its tables, and
// drained before the warehouse is closed.
func Example() {
	ctx := context.Background()
	warehouse, err := tablecore.Open(ctx, tablecore.Options{Store: memstore.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer warehouse.Close()
	server, err := flightsrv.New(flightsrv.Options{Warehouse: warehouse})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()

	client, err := flight.NewClientWithMiddleware(listener.Addr().String(), nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	results, err := client.DoAction(ctx, &flight.Action{Type: "list_tables"})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := results.Recv()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(answer.Body))
	client.Close()

	grace, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	fmt.Println(server.Drain(grace), <-served)
	// Output:
	// {"result":{"tables":[]}}
	// <nil> <nil>
}
