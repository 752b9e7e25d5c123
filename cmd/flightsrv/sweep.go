package main

import (
	"context"
	"time"

	"github.com/rs/zerolog"
)

// sweepInterval is how often the trash is looked through.
const sweepInterval = 10 * time.Minute

// sweeper removes dropped tables from the trash once their grace time is over.
type sweeper struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// startSweeper sweeps at once and then at every interval until it is stopped.
// sweep returns how many tables it removed. A sweep that fails is repeated with
// the next: it costs nobody but the disk.
func startSweeper(ctx context.Context, every time.Duration, sweep func(context.Context) (int, error), log zerolog.Logger) *sweeper {
	ctx, cancel := context.WithCancel(ctx)
	s := &sweeper{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			removed, err := sweep(ctx)
			if err != nil && ctx.Err() == nil {
				log.Warn().Err(err).Msg("sweep the trash")
			}
			if removed > 0 {
				log.Info().Int("tables", removed).Msg("swept the trash")
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return s
}

// stop ends the sweeping and waits for a sweep under way to notice.
func (s *sweeper) stop() {
	s.cancel()
	<-s.ended
}
