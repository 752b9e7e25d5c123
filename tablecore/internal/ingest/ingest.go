// Package ingest turns a stream of Arrow batches into sorted data files.
//
// Run aligns the stream's columns with the table's, checks each row, and
// buffers the rows column by column within a memory budget. At the end of the
// stream it cuts them into files by ranges of the index, sorts each file by
// (entity, index), refuses two rows in one interval or keeps the later one, as
// the table has it, and writes the files with their coverage and entity
// directory. Nothing of it is visible in the table until somebody commits what
// Run returns; after an error nothing is left.
//
// An Append wraps a Run with what the rest of the table has to do with it: the
// overlap with committed rows or, in a table that overwrites, their replacement.
//
// Rows that find no memory go to disk as runs in the order of the index. At the
// end the runs are cut by ranges of the index like rows in memory, and the rows
// of one file after another are read from all runs and go on as above: the
// files are those of an append in memory.
//
// Merge does the same with the rows of data files that are sorted but overlap. It
// walks their entities side by side, merges the rows of one after another, and
// hands them to all files at once, so that they need no sorting and most of them
// no memory.
//
// How it is fast: entities and short-listed texts become small numbers as they
// arrive; a file is brought into order by one counting sort over the entities,
// and only entities whose rows came late are sorted; columns are then gathered
// by plain loops, and text goes to the writer as dictionaries. See
// design/performance.md for the measurements behind it.
package ingest

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/rowdigest"
	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
)

// RowReader is a stream of batches.
type RowReader interface {
	// Schema returns the schema of all batches.
	Schema() *arrow.Schema
	// Next returns the next batch, or io.EOF. The batch is valid until the next
	// call.
	Next(ctx context.Context) (arrow.RecordBatch, error)
}

// Config is what Run works with.
type Config struct {
	Store objstore.Store // the table's own
	// Def is the table's definition. It must have a schema.
	Def    *tabledef.Definition
	Domain interval.Domain
	Mem    memory.Allocator
	// Rows is where the memory comes from that holds the rows until they are
	// written; default Mem.
	Rows memory.Allocator
	// MemoryBudget bounds the memory that holds the append's rows until they
	// are written, in bytes; 0 means DefaultMemoryBudget. The row groups that
	// are being encoded, at most two at once, come on top.
	MemoryBudget int64
	// Budget, when set, is shared with other appends, which together stay
	// below it.
	Budget *Budget
	// Scratch is where rows go that find no memory. Without it they are refused.
	Scratch scratch.Space
	Write   datafile.WriteOptions
	Now     func() time.Time
	// NewID returns a name for a data file, one that nobody uses.
	NewID func() (string, error)
	// Software names the writer in the files' tags.
	Software string
	// Aligner, when set, is a new one of Def and of the stream's schema.
	Aligner *convert.Aligner
	// Digest, when set, is given every aligned batch.
	Digest *rowdigest.Digest
	// Shape says how the rows are cut into files.
	Shape Shape

	limits limits // sizes of files; zero means the defaults
}

// Result describes what Run wrote.
type Result struct {
	Rows  int64          // that are stored, without those that a later one of the stream replaced
	Files []newfile.File // by range of the index
	// Coverage is what the rows cover together; nil for a table without a
	// granularity and for a stream without rows.
	Coverage *coverage.Set
}

// Run reads rows to their end and writes them as data files of the table. A
// stream without rows gives a Result without files.
//
// Errors of the rows are those of convert.Aligner, then
// *tableerr.DuplicateInterval with the smallest (entity, index) of all
// duplicates, or of those in the first run on disk that has one in itself; rows
// that find neither memory nor a scratch space, and one that finds no memory by
// itself, are *tableerr.MessageTooLarge; a store or scratch space that fails is
// *tableerr.StorageFull or *tableerr.StoreUnavailable. Errors of rows.Next come
// back as they are. After any error Run has removed what it wrote.
func Run(ctx context.Context, cfg Config, rows RowReader) (*Result, error) {
	cfg = cfg.withDefaults()
	began := cfg.Now()
	if cfg.Aligner == nil {
		var err error
		if cfg.Aligner, err = convert.NewAligner(rows.Schema(), cfg.Def); err != nil {
			return nil, err
		}
	}
	cfg.Aligner.LimitUnfolding(max(cfg.MemoryBudget, minUnfolding))
	in := &intake{cfg: cfg, aligner: cfg.Aligner, began: began}
	in.heap = &heap{mem: cfg.Rows, limit: cfg.MemoryBudget, budget: cfg.Budget}
	defer in.close()
	if err := in.receive(ctx, rows); err != nil {
		return nil, err
	}
	if in.runs != nil {
		return in.merge(ctx)
	}
	if in.s.rows == 0 {
		return &Result{}, nil
	}
	out, err := cfg.newFiles(began)
	if err != nil {
		return nil, err
	}
	w := &fileWriter{cfg: cfg, s: in.s, out: out}
	return w.run(ctx)
}

// withDefaults returns the configuration with all that was left out.
func (c Config) withDefaults() Config {
	if c.Mem == nil {
		c.Mem = memory.DefaultAllocator
	}
	if c.Rows == nil {
		c.Rows = c.Mem
	}
	if c.MemoryBudget <= 0 {
		c.MemoryBudget = DefaultMemoryBudget
	}
	if c.limits.rows == 0 {
		files := c.Shape.limits()
		files.runRows, files.mergeBytes, files.blockRows = c.limits.runRows, c.limits.mergeBytes, c.limits.blockRows
		c.limits = files
	}
	return c
}

// newFiles returns the writer of the files of an append.
func (c Config) newFiles(began time.Time) (*newfile.Writer, error) {
	write := c.Write
	write.Mem = c.Mem
	return newfile.NewWriter(newfile.Config{Store: c.Store, Def: c.Def, Write: write, NewID: c.NewID, Software: c.Software, Modified: began})
}

// minUnfolding is what the views and dictionaries of a batch may unfold to
// however small the budget is.
const minUnfolding = 64 << 20

// receive reads a stream to its end.
func (in *intake) receive(ctx context.Context, rows RowReader) error {
	if err := in.renew(); err != nil {
		return err
	}
	for {
		batch, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		aligned, err := in.aligner.Align(in.cfg.Mem, batch)
		if err != nil {
			return err
		}
		hashed := in.cfg.Digest.Begin(aligned)
		err = in.add(ctx, aligned)
		hashed()
		aligned.Release()
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
