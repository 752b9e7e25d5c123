package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// faultyScratch fails one operation on scratch files and counts the files that
// are open.
type faultyScratch struct {
	space scratch.Space
	fail  int64 // operation, counted from 0
	err   error
	ops   atomic.Int64
	open  atomic.Int64
}

func (s *faultyScratch) step() error {
	if s.ops.Add(1)-1 == s.fail {
		return s.err
	}
	return nil
}

func (s *faultyScratch) Create() (scratch.File, error) {
	if err := s.step(); err != nil {
		return nil, err
	}
	f, err := s.space.Create()
	if err == nil {
		s.open.Add(1)
	}
	return &faultyFile{f, s}, err
}

type faultyFile struct {
	scratch.File
	space *faultyScratch
}

// Write fails after a part was written.
func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.space.step(); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f *faultyFile) ReadAt(p []byte, at int64) (int, error) {
	if err := f.space.step(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, at)
}

func (f *faultyFile) Close() error {
	f.space.open.Add(-1)
	return f.File.Close()
}

// faultRows are rows that make three runs and four files.
func faultRows() []observation {
	var rows []observation
	for i := range 600 {
		rows = append(rows, observation{fmt.Sprintf("E%d", i%7), int64(i * 7 % 600), 0})
	}
	return rows
}

func faultConfig(t *testing.T) (Config, *faultyScratch) {
	cfg := start(t, weather(tabledef.UniqueReject))
	cfg.limits = limits{rows: 200, maxRows: 300, bytes: 1 << 40, maxBytes: 1 << 40, runRows: 250}
	space := &faultyScratch{space: scratch.Dir(t.TempDir()), fail: -1}
	cfg.Scratch = space
	return cfg, space
}

// TestScratchFaults fails every operation on scratch files in turn: nothing is
// left, in the store or in scratch.
func TestScratchFaults(t *testing.T) {
	broken := errors.New("broken")
	for name, failure := range map[string]error{"broken": broken, "full": fmt.Errorf("scratch space: %w", objstore.ErrNoSpace)} {
		t.Run(name, func(t *testing.T) {
			for at := int64(0); ; at++ {
				cfg, space := faultConfig(t)
				space.fail, space.err = at, failure
				result, err := Run(context.Background(), cfg, observations(faultRows(), 100))
				if space.open.Load() != 0 {
					t.Fatalf("operation %d: %d scratch files are open", at, space.open.Load())
				}
				if err == nil {
					if space.ops.Load() > at {
						t.Fatalf("operation %d failed and nobody noticed", at)
					}
					if len(result.Files) != 4 || at < 20 {
						t.Fatalf("%d files after %d operations", len(result.Files), at)
					}
					return
				}
				var full *tableerr.StorageFull
				var unavailable *tableerr.StoreUnavailable
				if want := name == "full"; errors.As(err, &full) != want || errors.As(err, &unavailable) == want || !errors.Is(err, failure) {
					t.Errorf("operation %d: %v", at, err)
				}
				if left := keys(t, cfg.Store); len(left) > 0 {
					t.Errorf("operation %d: the store holds %v", at, left)
				}
			}
		})
	}
}

// TestSpilledStoreFaults fails and stops the store at every operation of an
// append that has runs.
func TestSpilledStoreFaults(t *testing.T) {
	for _, kind := range faultstore.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			for at := 0; ; at++ {
				cfg, space := faultConfig(t)
				inner := cfg.Store
				faulty := faultstore.Wrap(inner, faultstore.Plan{At: at, Kind: kind})
				cfg.Store = faulty
				result, err := Run(context.Background(), cfg, observations(faultRows(), 100))
				if space.open.Load() != 0 {
					t.Fatalf("operation %d: %d scratch files are open", at, space.open.Load())
				}
				if err == nil {
					if faulty.Ops() > at {
						t.Fatalf("operation %d failed and nobody noticed: %v", at, faulty.Trace())
					}
					result.Discard(context.Background(), inner)
					if left := keys(t, inner); len(left) > 0 {
						t.Fatalf("after Discard the store holds %v", left)
					}
					return
				}
				var unavailable *tableerr.StoreUnavailable
				if !errors.As(err, &unavailable) && !errors.Is(err, context.Canceled) {
					t.Errorf("operation %d: %v", at, err)
				}
				if left := keys(t, inner); len(left) > 0 && !faulty.Stopped() {
					t.Errorf("operation %d: the store holds %v", at, left)
				}
			}
		})
	}
}

// TestSpilledStreamErrors ends a stream with an error, and the client's context,
// when there are runs.
func TestSpilledStreamErrors(t *testing.T) {
	cut := errors.New("cut")
	cfg, space := faultConfig(t)
	if _, err := Run(context.Background(), cfg, &broken{*observations(faultRows(), 100), cut}); !errors.Is(err, cut) {
		t.Errorf("got %v", err)
	}
	if space.ops.Load() == 0 || space.open.Load() != 0 {
		t.Errorf("%d operations, %d scratch files are open", space.ops.Load(), space.open.Load())
	}
	// The context ends at each step of the merge, and before.
	for at := int64(0); ; at++ {
		cfg, space := faultConfig(t)
		ctx, cancel := context.WithCancel(context.Background())
		space.space = cancelling{space.space, space, at, cancel}
		_, err := Run(ctx, cfg, observations(faultRows(), 100))
		cancel()
		if space.open.Load() != 0 {
			t.Fatalf("%d scratch files are open", space.open.Load())
		}
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("operation %d: got %v", at, err)
		}
		if left := keys(t, cfg.Store); len(left) > 0 {
			t.Errorf("operation %d: the store holds %v", at, left)
		}
	}
	cfg, _ = faultConfig(t)
	cfg.NewID = func() (string, error) { return "", cut }
	if _, err := Run(context.Background(), cfg, observations(faultRows(), 100)); !errors.Is(err, cut) {
		t.Errorf("got %v", err)
	}
}

// cancelling ends a context at an operation on scratch files.
type cancelling struct {
	scratch.Space
	counter *faultyScratch
	at      int64
	cancel  func()
}

func (c cancelling) Create() (scratch.File, error) {
	f, err := c.Space.Create()
	return cancellingFile{f, c}, err
}

type cancellingFile struct {
	scratch.File
	c cancelling
}

func (f cancellingFile) step() {
	if f.c.counter.ops.Load() > f.c.at {
		f.c.cancel()
	}
}

func (f cancellingFile) Write(p []byte) (int, error) {
	f.step()
	return f.File.Write(p)
}

func (f cancellingFile) ReadAt(p []byte, at int64) (int, error) {
	f.step()
	return f.File.ReadAt(p, at)
}

// TestScratchIsMissing refuses rows without memory where there is no scratch
// directory.
func TestScratchIsMissing(t *testing.T) {
	cfg, space := faultConfig(t)
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	space.space = scratch.Dir(file)
	var unavailable *tableerr.StoreUnavailable
	if _, err := Run(context.Background(), cfg, observations(faultRows(), 100)); !errors.As(err, &unavailable) {
		t.Errorf("got %v", err)
	}
}
