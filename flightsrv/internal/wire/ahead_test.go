package wire

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// counter gives batches of one number each, counted by a checked allocator, and
// releases each when it is asked for the next, as a scan does.
type counter struct {
	mem     memory.Allocator
	next    int64
	last    int64 // given before end is returned
	end     error
	current arrow.RecordBatch
}

func (c *counter) Next(context.Context) (arrow.RecordBatch, error) {
	c.drop()
	if c.next == c.last {
		return nil, c.end
	}
	b := array.NewInt64Builder(c.mem)
	defer b.Release()
	b.Append(c.next)
	c.next++
	numbers := b.NewArray()
	defer numbers.Release()
	c.current = array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil), []arrow.Array{numbers}, 1)
	return c.current, nil
}

func (c *counter) drop() {
	if c.current != nil {
		c.current.Release()
		c.current = nil
	}
}

func TestAhead(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		end     error // of next, after ten batches
		failsAt int64 // yield's batch that fails, −1 = none
		want    error
		given   int64
	}{
		"to the end":  {io.EOF, -1, nil, 10},
		"next fails":  {broken, -1, broken, 10},
		"yield fails": {io.EOF, 3, broken, 4},
		"both fail":   {errors.New("later"), 9, broken, 10},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			from := &counter{mem: mem, last: 10, end: c.end}
			given := int64(0)
			err := Ahead(t.Context(), from.Next, func(batch arrow.RecordBatch) error {
				if n := batch.Column(0).(*array.Int64).Value(0); n != given {
					t.Errorf("batch %d stands where %d is due", n, given)
				}
				given++
				if given == c.failsAt+1 {
					return broken
				}
				return nil
			})
			from.drop()
			if !errors.Is(err, c.want) || given != c.given {
				t.Errorf("%d batches and %v, want %d and %v", given, err, c.given, c.want)
			}
		})
	}
}

// While a batch is on its way, the next one is made.
func TestAheadOverlaps(t *testing.T) {
	from := &counter{mem: memory.NewGoAllocator(), last: 2, end: io.EOF}
	made := make(chan struct{}, 2)
	err := Ahead(t.Context(), func(ctx context.Context) (arrow.RecordBatch, error) {
		batch, err := from.Next(ctx)
		if err == nil {
			made <- struct{}{}
		}
		return batch, err
	}, func(batch arrow.RecordBatch) error {
		if batch.Column(0).(*array.Int64).Value(0) == 0 {
			<-made
			<-made // comes only if the second one is not waited with
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAheadCancelled(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	from := &counter{mem: mem, last: 1000, end: io.EOF}
	defer from.drop()
	err := Ahead(ctx, from.Next, func(arrow.RecordBatch) error {
		cancel()
		time.Sleep(time.Millisecond)
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled scan ends with %v", err)
	}
}

func TestAheadPanics(t *testing.T) {
	err := Ahead(t.Context(), func(context.Context) (arrow.RecordBatch, error) { panic("lost") }, nil)
	if err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("a panic gives %v", err)
	}
}
