package wire

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"contrail/tablecore/tableerr"
)

// Progress is when a client last took something, over all the streams that
// share it. The zero value is a client that has taken nothing yet.
type Progress struct{ at atomic.Pointer[time.Time] }

func (p *Progress) note(t time.Time) { p.at.Store(&t) }

// since returns how long ago the later of t and the last progress was.
func (p *Progress) since(t time.Time) time.Duration {
	if last := p.at.Load(); last != nil && last.After(t) {
		t = *last
	}
	return time.Since(t)
}

// Watch runs work, whose sends go through the given sender, and returns its
// error. A send that is blocked longer than limit, because the client does not
// read, ends it: Watch cancels work's context and returns TIMED_OUT at once,
// without waiting for work, since a blocked send ends only with the RPC, that
// is after the handler has returned. done is called when work has ended, in
// both cases. A limit of 0 watches nothing.
//
// Time that work spends between its sends does not count, nor does time in
// which another stream with the same progress moves: clients open the streams
// of all endpoints at once and read them one after the other.
func Watch(ctx context.Context, limit time.Duration, progress *Progress, sender Sender, done func(), work func(context.Context, Sender) error) error {
	if limit <= 0 {
		defer done()
		return work(ctx, sender)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := &watchedSender{sender: sender, progress: progress}
	result := make(chan error, 1)
	go func() {
		defer done()
		result <- guard(func() error { return work(ctx, watched) })
	}()
	ticker := time.NewTicker(max(limit/8, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case err := <-result:
			return err
		case <-ticker.C:
			if watched.blocked() > limit {
				return &tableerr.TimedOut{Wait: waitStall, LimitMS: limit.Milliseconds()}
			}
		}
	}
}

// guard turns a panic into an error: on a goroutine of our own nothing above
// would catch it, and it would end the process.
func guard(work func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return work()
}

// watchedSender notes when the send under way began.
type watchedSender struct {
	sender   Sender
	progress *Progress
	since    atomic.Pointer[time.Time]
}

// SendMsg implements Sender.
func (w *watchedSender) SendMsg(m any) error {
	now := time.Now()
	w.since.Store(&now)
	err := w.sender.SendMsg(m)
	w.since.Store(nil)
	w.progress.note(time.Now())
	return err
}

// blocked returns for how long the send under way and all others of the client
// have been so, 0 if none is under way.
func (w *watchedSender) blocked() time.Duration {
	since := w.since.Load()
	if since == nil {
		return 0
	}
	return w.progress.since(*since)
}
