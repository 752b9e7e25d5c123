package scan

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/assemble"
)

// A run goes out by itself where it is long and ends its batch: a short one
// waits for more, and one that does not end its batch may grow.
func TestGoesAlone(t *testing.T) {
	batch := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 100)
	defer batch.Release()
	r := &Reader{most: 100}
	for name, c := range map[string]struct {
		runs []assemble.Run
		want bool
	}{
		"a whole batch":         {[]assemble.Run{{Start: 0, Len: 100}}, true},
		"its end":               {[]assemble.Run{{Start: 75, Len: 25}}, true},
		"a short end":           {[]assemble.Run{{Start: 76, Len: 24}}, false},
		"its middle":            {[]assemble.Run{{Start: 10, Len: 80}}, false},
		"behind another":        {[]assemble.Run{{Start: 0, Len: 10}, {Start: 20, Len: 80}}, false},
		"nothing that was kept": {nil, false},
	} {
		if got := r.goesAlone(&block{sources: []arrow.RecordBatch{batch}, runs: c.runs}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Batches that are given out hold about targetBytes, and never more rows than
// were asked for.
func TestMostRows(t *testing.T) {
	p := &Plan{query: &query{batchRows: 1000}}
	for _, c := range []struct {
		width int64
		want  int
	}{{1, 1000}, {targetBytes / 100, 100}, {targetBytes * 2, 1}} {
		if got := p.mostRows(c.width); got != c.want {
			t.Errorf("%d rows of %d bytes, want %d", got, c.width, c.want)
		}
	}
}
