package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"contrail/cmd/internal/logging"
)

func TestSweeper(t *testing.T) {
	log := &lockedBuffer{}
	logger, err := logging.New(log, "info", "json")
	if err != nil {
		t.Fatal(err)
	}
	sweeps := make(chan int)
	n := 0
	s := startSweeper(context.Background(), time.Millisecond, func(ctx context.Context) (int, error) {
		n++
		select {
		case sweeps <- n:
		case <-ctx.Done():
			return 0, ctx.Err() // no warning: the sweeper is stopped
		}
		if n == 1 {
			return 0, errors.New("no such luck")
		}
		return n, nil
	}, logger)
	for want := 1; want <= 3; want++ {
		if got := <-sweeps; got != want {
			t.Errorf("sweep %d, want %d", got, want)
		}
	}
	s.stop()
	if text := log.String(); strings.Count(text, "no such luck") != 1 || !strings.Contains(text, `"tables":2`) || strings.Contains(text, "canceled") {
		t.Errorf("got %s", text)
	}
}
