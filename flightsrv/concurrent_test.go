package flightsrv

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/grpc/peer"
)

// Puts and scans side by side: each scan sees whole appends only, and in the
// end every acknowledged row is there.
func TestConcurrent(t *testing.T) {
	f := start(t, Limits{MaxConcurrentScans: 2, MaxConcurrentPuts: 3})
	f.must("create_table", createWeather, nil)
	const writers, rounds, rows = 4, 5, 100
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for round := range rounds {
				r, err := f.put(command(fmt.Sprintf(`{"op":"append","table":"weather","rows":%d}`, rows)), weatherRows(fmt.Sprintf("A%d", i), round*rows, rows))
				if err != nil || r.Rows != rows {
					t.Errorf("put gives %+v, %v", r, err)
				}
			}
		})
		wg.Go(func() {
			for range rounds {
				got, _, _, err := f.get(wholeScan)
				if err != nil || len(got)%rows != 0 {
					t.Errorf("scan gives %d rows, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
	got, _, _, err := f.get(wholeScan)
	if err != nil || len(got) != writers*rounds*rows {
		t.Errorf("in the end there are %d rows, %v", len(got), err)
	}
}

// A client that is gone when the end has been sent leaves all or nothing.
func TestPutGoneAtTheEnd(t *testing.T) {
	f := start(t, Limits{})
	f.must("create_table", createWeather, nil)
	const rows = 50
	for i := range 20 {
		c := f.dial()
		ctx, cancel := context.WithCancel(f.context())
		stream, err := c.DoPut(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range clientMessages(t, path("weather"), []arrow.RecordBatch{weatherRows("EWR", i*rows, rows)}) {
			if err := stream.Send(m); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		cancel()
		c.Close()
	}
	f.idle()
	// The last put may begin only now: the server reads what a client sent when
	// it comes to it. A version stays as it is.
	version := f.version()
	got, _, _, err := f.get(fmt.Sprintf(`{"op":"scan","table":"weather","version":%d}`, version))
	if err != nil || int64(len(got)) != version*rows {
		t.Errorf("at version %d there are %d rows, %v", version, len(got), err)
	}
}

func TestClients(t *testing.T) {
	var c clients
	on := func(port int) context.Context {
		return peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{Port: port}})
	}
	one, leave := c.join(on(1))
	again, leaveAgain := c.join(on(1))
	other, leaveOther := c.join(on(2))
	if one != again || one == other {
		t.Error("a connection has several progresses, or shares its own")
	}
	none, leaveNone := c.join(context.Background())
	if none == one {
		t.Error("a call without a peer has another's progress")
	}
	for _, leave := range []func(){leave, leaveAgain, leaveOther, leaveNone} {
		leave()
	}
	if len(c.reading) != 0 {
		t.Errorf("%d connections are left", len(c.reading))
	}
}
