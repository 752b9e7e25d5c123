package ingest

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/tableerr"
)

// intake takes in the rows of a stream: into a store, and from there to a run
// on disk whenever the store is full.
type intake struct {
	cfg     Config
	heap    *heap
	aligner *convert.Aligner
	began   time.Time
	s       *store
	runs    *runs // nil until there is one
}

// close gives back the memory and the scratch space.
func (in *intake) close() {
	if in.s != nil {
		in.s.free()
	}
	if in.runs != nil {
		in.runs.close()
	}
	in.heap.close()
}

// newStore returns an empty store for the stream's rows.
func (in *intake) newStore(h *heap) (*store, error) {
	return newStore(h, in.cfg.Def, in.aligner, in.began.UnixMicro())
}

// renew begins an empty store.
func (in *intake) renew() error {
	if in.s != nil {
		in.s.free()
	}
	var err error
	in.s, err = in.newStore(in.heap)
	return err
}

// add takes in a batch. Where a whole batch finds no memory even in an empty
// store it goes by smaller pieces.
func (in *intake) add(ctx context.Context, b *convert.Batch) error {
	size := b.Rows
	for at := 0; at < b.Rows; {
		piece := pieceOf(b, at, min(size, b.Rows-at, in.left()))
		before := in.s.rows
		err := in.s.add(piece)
		rows := piece.Rows
		piece.Release()
		at += int(in.s.rows - before)
		switch {
		case err == nil && in.left() > 0:
			continue
		case err != nil && !noRoom(err), err != nil && in.cfg.Scratch == nil:
			return err
		case in.s.rows > 0:
			err = in.spill(ctx)
		case rows == 1:
			return err
		default:
			size = (rows + 1) / 2
			err = in.renew()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// left returns how many rows the store may take before a test wants a run.
func (in *intake) left() int {
	if most := in.cfg.limits.runRows; most > 0 {
		return int(most - in.s.rows)
	}
	return math.MaxInt
}

// noRoom tells rows that found no memory from rows that are wrong.
func noRoom(err error) bool {
	var large *tableerr.MessageTooLarge
	return errors.As(err, &large)
}

// pieceOf returns rows [from, from+n) of a batch, to be released.
func pieceOf(b *convert.Batch, from, n int) *convert.Batch {
	piece := &convert.Batch{Rows: n, FirstRow: b.FirstRow + int64(from), Columns: make([]arrow.Array, len(b.Columns))}
	for i, arr := range b.Columns {
		switch {
		case arr == nil:
		case n == b.Rows:
			arr.Retain()
			piece.Columns[i] = arr
		default:
			piece.Columns[i] = array.NewSlice(arr, int64(from), int64(from+n))
		}
	}
	return piece
}

// spill makes a run of the store's rows and begins an empty store.
func (in *intake) spill(ctx context.Context) error {
	if in.runs == nil {
		var err error
		if in.runs, err = newRuns(in.cfg.Scratch, in.cfg.Mem); err != nil {
			return err
		}
	}
	if err := in.runs.spill(ctx, in.s, newRunChecker(in.cfg)); err != nil {
		return err
	}
	return in.renew()
}

// merge makes the files of an append that has runs.
func (in *intake) merge(ctx context.Context) (*Result, error) {
	if in.s.rows > 0 {
		if err := in.spill(ctx); err != nil {
			return nil, err
		}
	}
	in.s.free()
	out, err := in.cfg.newFiles(in.began)
	if err != nil {
		return nil, err
	}
	m := newMerger(in.cfg, in.runs, out)
	m.newStore = in.newStore
	m.capacity = max(mergeFloor, in.heap.settle(m.wanted()))
	if few := in.cfg.limits.mergeBytes; few > 0 {
		m.capacity = few
	}
	return m.run(ctx)
}
