package wire

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
)

// Ahead gives the batches of next to yield, in order, until next returns io.EOF
// or one of them fails. next runs on a goroutine of its own, one batch ahead, so
// that decoding a batch and sending the one before go on side by side; both have
// returned when Ahead does. A batch may be overwritten by the next call of next,
// unless it is retained, and is valid for yield until that returns.
func Ahead(ctx context.Context, next func(context.Context) (arrow.RecordBatch, error), yield func(arrow.RecordBatch) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan arrow.RecordBatch)
	result := make(chan error, 1)
	go func() {
		defer close(batches)
		result <- guard(func() error { return produce(ctx, next, batches) })
	}()
	var failed error
	for batch := range batches {
		if failed == nil {
			if failed = yield(batch); failed != nil {
				cancel()
			}
		}
		batch.Release()
	}
	if err := <-result; failed == nil {
		return err
	}
	return failed
}

// produce sends the batches of next until the last one, or ctx's end.
func produce(ctx context.Context, next func(context.Context) (arrow.RecordBatch, error), batches chan<- arrow.RecordBatch) error {
	for {
		batch, err := next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		batch.Retain()
		select {
		case batches <- batch:
		case <-ctx.Done():
			batch.Release()
			return context.Cause(ctx)
		}
	}
}
