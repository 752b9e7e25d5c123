package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"contrail/cmd/internal/flightclient"
)

// isTerminal tells whether a stream of the process is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// bar shows how far a step has come: its name, done and total, and the rate. A
// nil bar shows nothing.
type bar struct {
	container *mpb.Progress
	bar       *mpb.Bar
	done      atomic.Int64
	total     int64
}

// unitBytes is the unit that is shown in KiB, MiB and so on.
const unitBytes = "bytes"

// startBar shows a bar on standard error if that is a terminal. total below 0
// means that it is not known.
func (a *app) startBar(step string, total int64, unit string) *bar {
	if a.noProgress || !isTerminal(a.stderr) {
		return nil
	}
	b := &bar{container: mpb.New(mpb.WithOutput(a.stderr), mpb.WithAutoRefresh()), total: total}
	counters, current := decor.CountersNoUnit("%d / %d "+unit), decor.CurrentNoUnit("%d "+unit)
	if unit == unitBytes {
		counters, current = decor.CountersKibiByte("% .1f / % .1f"), decor.CurrentKibiByte("% .1f")
	}
	speed := rate(unit)
	name := mpb.PrependDecorators(decor.Name(step + " "))
	gap := decor.Name("  ")
	if total < 0 {
		b.bar = b.container.AddSpinner(0, name, mpb.AppendDecorators(current, gap, speed))
	} else {
		b.bar = b.container.AddBar(total, name, mpb.AppendDecorators(counters, gap, speed))
	}
	return b
}

// rate shows how much is done in a second, on average and also of work that is
// over at once.
func rate(unit string) decor.Decorator {
	const least = time.Millisecond
	start := time.Now()
	return decor.Any(func(s decor.Statistics) string {
		perSecond := float64(s.Current) / max(time.Since(start), least).Seconds()
		if unit == unitBytes {
			return fmt.Sprintf("% .1f/s", decor.SizeB1024(perSecond))
		}
		return fmt.Sprintf("%.0f %s/s", perSecond, unit)
	})
}

// add counts what was done since the last call. It may be called by several
// goroutines.
func (b *bar) add(n int64) {
	if b == nil {
		return
	}
	b.set(b.done.Add(n))
}

// set says what is done in all. What is read twice counts to the total only:
// the bar is full when finish says so.
func (b *bar) set(done int64) {
	if b == nil {
		return
	}
	if b.total >= 0 {
		done = min(done, max(0, b.total-1))
	}
	b.bar.SetCurrent(done)
}

// finish ends the bar: full, or taken away when the work failed.
func (b *bar) finish(failed bool) {
	if b == nil {
		return
	}
	switch {
	case failed:
		b.bar.Abort(true)
	case b.total < 0:
		b.bar.SetTotal(-1, true)
	default:
		b.bar.SetCurrent(b.total)
		b.bar.SetTotal(b.total, true)
	}
	b.container.Wait()
}

// steps shows the progress of an action, a bar for each step.
type steps struct {
	app     *app
	step    string
	current *bar
}

// tell shows a message of progress.
func (s *steps) tell(p flightclient.Progress) {
	if s.current == nil || p.Step != s.step {
		s.current.finish(false)
		total := int64(-1)
		if p.Total != nil {
			total = *p.Total
		}
		s.step, s.current = p.Step, s.app.startBar(p.Step, total, p.Unit)
	}
	s.current.set(p.Done)
}

func (s *steps) finish(failed bool) { s.current.finish(failed) }

// countedReader tells a bar what goes by.
type countedReader struct {
	io.Reader
	bar *bar
}

func (r countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.bar.add(int64(n))
	return n, err
}

// countedFile is countedReader for what is read at any place.
type countedFile struct {
	*os.File
	bar *bar
}

func (f countedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.bar.add(int64(n))
	return n, err
}

// ReadAt implements io.ReaderAt.
func (f countedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.bar.add(int64(n))
	return n, err
}
