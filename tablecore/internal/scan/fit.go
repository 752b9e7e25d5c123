package scan

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/assemble"
	"contrail/tablecore/internal/convert"
)

// fitting makes batches of runs of rows: one, or more where the rows are more
// than the arrays of one batch can hold (text beyond 2 GiB, more values than
// the indices of a dictionary can name). The caller releases them.
func (r *Reader) fitting(sources []arrow.RecordBatch, runs []assemble.Run) ([]arrow.RecordBatch, error) {
	batch, err := r.batch(sources, runs)
	if err == nil {
		return []arrow.RecordBatch{batch}, nil
	}
	var tooLarge *convert.BatchTooLargeError
	n := assemble.Rows(runs)
	if n < 2 || !errors.As(err, &tooLarge) && !errors.Is(err, assemble.ErrTooLarge) {
		return nil, err
	}
	first, second := halves(runs, n/2)
	batches, err := r.fitting(sources, first)
	if err != nil {
		return nil, err
	}
	more, err := r.fitting(sources, second)
	if err != nil {
		for _, b := range batches {
			b.Release()
		}
		return nil, err
	}
	return append(batches, more...), nil
}

// halves cuts runs after n rows.
func halves(runs []assemble.Run, n int) (first, second []assemble.Run) {
	for i, r := range runs {
		if r.Len < n {
			n -= r.Len
			continue
		}
		first = append(first, runs[:i]...)
		first = append(first, assemble.Run{Source: r.Source, Start: r.Start, Len: n})
		if r.Len > n {
			second = append(second, assemble.Run{Source: r.Source, Start: r.Start + n, Len: r.Len - n})
		}
		return first, append(second, runs[i+1:]...)
	}
	return runs, nil
}
