// Package parallel does the same to many things, a few at once.
package parallel

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Each calls do for 0 … n−1, at most limit of them at once, and waits for all. It
// returns the first error; that, or the end of ctx, ends the context of the calls
// that are under way, and no more are made. A single call runs on the caller's
// goroutine.
func Each(ctx context.Context, n, limit int, do func(ctx context.Context, i int) error) error {
	if n == 1 {
		return do(ctx, 0)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for i := range n {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}
