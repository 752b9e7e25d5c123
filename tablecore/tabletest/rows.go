package tabletest

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
)

// Row holds one value for each column of a schema: nil, bool, int64 (also for
// int32 and timestamps, in the column's unit), uint64, float64 or string.
type Row []any

// String renders the values so that two rows have the same text only if every
// value is the same, bit for bit.
func (r Row) String() string {
	texts := make([]string, len(r))
	for i, v := range r {
		texts[i] = cellText(v)
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

func cellText(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(v)
	case float64:
		if math.IsNaN(v) {
			return fmt.Sprintf("NaN(%x)", math.Float64bits(v))
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// BatchOf builds a batch. The caller releases it. A value of another kind than
// its column's is an error.
func BatchOf(mem memory.Allocator, schema *arrow.Schema, rows []Row) (arrow.RecordBatch, error) {
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	for _, row := range rows {
		for i, f := range schema.Fields() {
			if err := appendCell(b.Field(i), row[i]); err != nil {
				return nil, fmt.Errorf("column %q: %w", f.Name, err)
			}
		}
	}
	return b.NewRecordBatch(), nil
}

func appendCell(b array.Builder, v any) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.LargeStringBuilder:
		b.Append(v.(string))
	case *array.Int32Builder:
		b.Append(int32(v.(int64)))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(int64)))
	case *array.Uint64Builder:
		b.Append(v.(uint64))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	default:
		return fmt.Errorf("no rows are built of type %s", b.Type())
	}
	return nil
}

// RowsOf returns the rows of a batch.
func RowsOf(batch arrow.RecordBatch) ([]Row, error) {
	rows := make([]Row, batch.NumRows())
	for i := range rows {
		rows[i] = make(Row, batch.NumCols())
		for c, column := range batch.Columns() {
			v, err := cellOf(column, i)
			if err != nil {
				return nil, fmt.Errorf("column %q: %w", batch.ColumnName(c), err)
			}
			rows[i][c] = v
		}
	}
	return rows, nil
}

func cellOf(arr arrow.Array, i int) (any, error) {
	if arr.IsNull(i) {
		return nil, nil
	}
	switch arr := arr.(type) {
	case *array.String:
		return strings.Clone(arr.Value(i)), nil
	case *array.LargeString:
		return strings.Clone(arr.Value(i)), nil
	case *array.Int32:
		return int64(arr.Value(i)), nil
	case *array.Int64:
		return arr.Value(i), nil
	case *array.Timestamp:
		return int64(arr.Value(i)), nil
	case *array.Uint64:
		return arr.Value(i), nil
	case *array.Float64:
		return arr.Value(i), nil
	case *array.Boolean:
		return arr.Value(i), nil
	default:
		return nil, fmt.Errorf("no rows are read of type %s", arr.DataType())
	}
}

// ScanRows runs a plan to its end and returns its rows in order.
func ScanRows(ctx context.Context, plan *tablecore.ScanPlan) ([]Row, error) {
	var rows []Row
	_, err := EachBatch(ctx, plan, func(batch arrow.RecordBatch) error {
		more, err := RowsOf(batch)
		rows = append(rows, more...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}
