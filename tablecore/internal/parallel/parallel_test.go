package parallel

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 2, 20} {
		const limit = 3
		var now, most atomic.Int32
		calls := make([]atomic.Int32, n)
		err := Each(t.Context(), n, limit, func(_ context.Context, i int) error {
			at := now.Add(1)
			for before := most.Load(); at > before && !most.CompareAndSwap(before, at); before = most.Load() {
			}
			calls[i].Add(1)
			now.Add(-1)
			return nil
		})
		if err != nil || most.Load() > limit {
			t.Errorf("%d calls: %d at once, %v", n, most.Load(), err)
		}
		for i := range calls {
			if calls[i].Load() != 1 {
				t.Errorf("%d calls: number %d was made %d times", n, i, calls[i].Load())
			}
		}
	}
}

// TestEachStops makes no more calls after an error, and ends those under way.
func TestEachStops(t *testing.T) {
	failed := errors.New("failed")
	var calls atomic.Int32
	err := Each(t.Context(), 100, 2, func(ctx context.Context, i int) error {
		calls.Add(1)
		if i == 1 {
			return failed
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, failed) || calls.Load() > 2 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Each(ctx, 2, 2, func(context.Context, int) error { panic("called") }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
