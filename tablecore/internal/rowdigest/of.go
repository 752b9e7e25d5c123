package rowdigest

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/tabledef"
)

// ErrOtherRows says that a stream cannot hold the rows of an earlier put,
// since the table would not take them.
var ErrOtherRows = errors.New("the rows do not fit the table")

// Fits says whether a table takes streams of a schema.
func Fits(schema *arrow.Schema, def *tabledef.Definition) bool {
	if def.Stored == nil {
		return false
	}
	_, err := convert.NewAligner(schema, def)
	return err == nil
}

// Rows is a stream of batches, as an append reads them.
type Rows interface {
	Schema() *arrow.Schema
	Next(ctx context.Context) (arrow.RecordBatch, error)
}

// Of reads a stream to its end without keeping anything and returns its
// digest, as Digest.Sum does. ErrOtherRows as soon as a row does not fit the
// table; errors of rows.Next come back as they are.
func Of(ctx context.Context, op string, def *tabledef.Definition, mem memory.Allocator, rows Rows) (string, error) {
	if def.Stored == nil {
		return "", ErrOtherRows
	}
	aligner, err := convert.NewAligner(rows.Schema(), def)
	if err != nil {
		return "", errors.Join(ErrOtherRows, err)
	}
	digest := New(op, def, aligner)
	for {
		batch, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return digest.Sum(), nil
		}
		if err != nil {
			return "", err
		}
		aligned, err := aligner.Align(mem, batch)
		if err != nil {
			return "", errors.Join(ErrOtherRows, err)
		}
		digest.Add(aligned)
		aligned.Release()
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
}
