package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/tableerr"
)

// errDisorder says that a file's rows do not lie as its directory says.
var errDisorder = errors.New("its rows are not in the order that its entity directory tells")

// sortedInput reads one sorted file, a batch after another.
type sortedInput struct {
	path string
	file *filecache.File
	rows *datafile.Rows
	runs derived.Directory // that have rows left

	batch    arrow.RecordBatch // held; nil before the first
	bytes    int64             // of batch
	first    int64             // number in the file of its first row
	ordinals []uint64          // index values of its rows
	at       int               // the next of them
	block    *mergeBlock       // that holds the batch, too, nil for none
	source   int               // its place there
}

// row is the number of the next row.
func (in *sortedInput) row() int64 { return in.first + int64(in.at) }

// next decodes the next batch, whose index column has a given place.
func (in *sortedInput) next(ctx context.Context, domain interval.Domain, index int) error {
	in.drop()
	batch, err := in.rows.Next(ctx)
	if err != nil {
		return in.damaged(err)
	}
	if in.ordinals, err = domain.AppendOrdinals(in.ordinals[:0], batch.Column(index)); err != nil {
		return in.damaged(err)
	}
	batch.Retain()
	in.batch, in.first, in.at, in.block = batch, in.rows.FirstRow(), 0, nil
	for _, c := range batch.Columns() {
		in.bytes += int64(c.Data().SizeInBytes())
	}
	return nil
}

// take passes over n rows of the first run.
func (in *sortedInput) take(n int) {
	in.at += n
	if in.row() == in.runs[0].End {
		in.runs = in.runs[1:]
	}
}

func (in *sortedInput) drop() {
	if in.batch != nil {
		in.batch.Release()
		in.batch, in.bytes = nil, 0
	}
}

func (in *sortedInput) close() {
	in.drop()
	if in.rows != nil {
		in.rows.Release()
	}
	if in.file != nil {
		_ = in.file.Close() // it was only read
	}
}

// damaged gives an error that tells of damage its type; others stay as they are.
func (in *sortedInput) damaged(err error) error {
	var typed tableerr.Error
	if errors.As(err, &typed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &tableerr.Corrupt{Path: in.path, Msg: fmt.Sprintf("its key columns: %v", err), Cause: err}
}
