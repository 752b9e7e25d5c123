package wire

import (
	"context"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"contrail/tablecore/tableerr"
)

// Receiver is the receiving half of a DoPut stream. Recv returns io.EOF after
// the client's half-close.
type Receiver interface {
	Recv() (*flight.FlightData, error)
}

// What a server waits for, as TIMED_OUT names it.
const (
	waitFirstMessage = "first_message"
	waitStall        = "stall"
)

// pump receives on a goroutine of its own, one message ahead: Recv cannot be
// given a deadline, and reading ahead lets the transport work while the rows of
// the message before are ingested. The goroutine ends when the stream does,
// which for gRPC is at the latest when the RPC's handler has returned.
type pump struct {
	messages chan received
	stop     chan struct{}
	done     chan struct{}
}

type received struct {
	data *flight.FlightData
	err  error
}

func startPump(r Receiver) *pump {
	p := &pump{messages: make(chan received), stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for {
			var data *flight.FlightData
			err := guard(func() (err error) { data, err = r.Recv(); return err })
			select {
			case p.messages <- received{data, err}:
			case <-p.stop:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

// abandoned says that the caller stopped waiting: the stream is as it was.
type abandoned struct{ cause error }

func (e abandoned) Error() string { return e.cause.Error() }
func (e abandoned) Unwrap() error { return e.cause }

// next returns the next message, io.EOF at the end, TIMED_OUT when none came
// within the limit (0 = no limit), which is what the wait is called in the
// error, or an abandoned with the context's error.
func (p *pump) next(ctx context.Context, limit time.Duration, wait string) (*flight.FlightData, error) {
	var expired <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case m := <-p.messages:
		return m.data, m.err
	case <-ctx.Done():
		return nil, abandoned{context.Cause(ctx)}
	case <-p.done:
		// The goroutine has ended and its last result was taken before.
		return nil, io.ErrUnexpectedEOF
	case <-expired:
		return nil, &tableerr.TimedOut{Wait: wait, LimitMS: limit.Milliseconds()}
	}
}
