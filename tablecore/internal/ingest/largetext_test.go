package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/tabledef"
)

// largeTexts is a stream of rows with long texts, of which each batch has but
// one that is its own.
type largeTexts struct {
	schema  *arrow.Schema
	left    int
	text    []byte
	current arrow.RecordBatch
}

func (l *largeTexts) Schema() *arrow.Schema { return l.schema }

func (l *largeTexts) Next(context.Context) (arrow.RecordBatch, error) {
	if l.current != nil {
		l.current.Release()
		l.current = nil
	}
	if l.left == 0 {
		return nil, io.EOF
	}
	l.left--
	copy(l.text, fmt.Sprintf("text %08d", l.left))
	b := array.NewRecordBuilder(memory.DefaultAllocator, l.schema)
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append("JFK")
	b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(int64(l.left) * hour))
	b.Field(2).(*array.LargeStringBuilder).Append(string(l.text))
	l.current = b.NewRecordBatch()
	return l.current, nil
}

// TestLongTexts appends texts that memory holds a small part of. With
// CONTRAIL_TEST_SPILL_TEXT (bytes, see make spill) they are more than 32-bit
// offsets address.
func TestLongTexts(t *testing.T) {
	total := int(envNumber(t, "CONTRAIL_TEST_SPILL_TEXT", 128<<20))
	length := total / 128
	const rows = 132
	def := weather(tabledef.UniqueReject, arrow.Field{Name: "body", Type: arrow.BinaryTypes.LargeString})
	store, err := localfs.Open(t.TempDir(), localfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	cfg := spilling(t, testConfig(t, def, memory.DefaultAllocator), 0)
	cfg.Store, cfg.Rows, cfg.MemoryBudget = store, OffHeap(), int64(total/16)
	result, err := Run(context.Background(), cfg, &largeTexts{schema: def.Schema(), left: rows, text: bytes.Repeat([]byte("abcdefgh"), length/8)})
	if err != nil {
		t.Fatal(err)
	}
	if result.Rows != rows || len(result.Files) < total/(192<<20) {
		t.Errorf("%d rows in %d files", result.Rows, len(result.Files))
	}
}
