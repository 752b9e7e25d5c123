package wire

import (
	"context"
	"encoding/binary"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A fuzzed stream is a list of messages, each its header, body and metadata,
// each a length of two bytes and the bytes.

func packMessages(list []*flight.FlightData) []byte {
	var b []byte
	for _, m := range list {
		for _, part := range [][]byte{m.DataHeader, m.DataBody, m.AppMetadata} {
			b = binary.LittleEndian.AppendUint16(b, uint16(len(part)))
			b = append(b, part...)
		}
	}
	return b
}

func unpackMessages(b []byte) []*flight.FlightData {
	part := func() []byte {
		if len(b) < 2 {
			b = nil
			return nil
		}
		n := min(int(binary.LittleEndian.Uint16(b)), len(b)-2)
		p := b[2 : 2+n : 2+n]
		b = b[2+n:]
		return p
	}
	var list []*flight.FlightData
	for len(b) > 0 {
		list = append(list, &flight.FlightData{DataHeader: part(), DataBody: part(), AppMetadata: part()})
	}
	if len(list) > 0 {
		list[0].FlightDescriptor = &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"t"}}
	}
	return list
}

// peakAllocator notes the largest sum of live bytes.
type peakAllocator struct {
	memory.Allocator
	live, peak int
}

func (a *peakAllocator) Allocate(n int) []byte {
	a.live += n
	a.peak = max(a.peak, a.live)
	return a.Allocator.Allocate(n)
}

func (a *peakAllocator) Reallocate(n int, b []byte) []byte {
	a.live += n - len(b)
	a.peak = max(a.peak, a.live)
	return a.Allocator.Reallocate(n, b)
}

func (a *peakAllocator) Free(b []byte) {
	a.live -= len(b)
	a.Allocator.Free(b)
}

// FuzzPut reads a hostile stream: it may be refused, but never panics, never
// takes more memory than allowed, and what it gives out can be read value by
// value.
func FuzzPut(f *testing.F) {
	text := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.BinaryTypes.StringView, Nullable: true},
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean}, {Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8)}}, nil)
	f.Add(packMessages(client(f, weather, goBatches(3, 0, 2))), int64(5), false)
	f.Add(packMessages(append(client(f, weather, goBatches(2), ipc.WithLZ4()), marker(2))), int64(-1), true)
	f.Add(packMessages(client(f, weather, goBatches(40), ipc.WithZstd())), int64(-1), false)
	f.Add(packMessages(client(f, dictionaryBatch("a").Schema(), []arrow.RecordBatch{dictionaryBatch("a", "b"), dictionaryBatch("a", "b", "c")},
		ipc.WithDictionaryDeltas(true))), int64(-1), false)
	f.Add(packMessages(client(f, text, []arrow.RecordBatch{viewBatch(text)})), int64(-1), false)
	f.Add([]byte{1, 0, 0, 0, 0}, int64(0), true)

	f.Fuzz(func(t *testing.T, data []byte, announced int64, marker bool) {
		const most = 1 << 20
		peak := &peakAllocator{Allocator: memory.NewGoAllocator()}
		o := PutOptions{Allocator: peak, Budget: NewBudget(4 * most), MaxMessageBytes: most, MaxDictionaryBytes: most}
		ctx := context.Background()
		p := NewPut(&stream{messages: unpackMessages(data), err: io.EOF}, o)
		defer func() {
			p.Close()
			if n := o.Budget.Used(); n != 0 {
				t.Errorf("%d bytes of the budget are still taken", n)
			}
			if peak.peak > 2*most {
				t.Errorf("%d bytes were allocated at once", peak.peak)
			}
		}()
		if _, err := p.Descriptor(ctx); err != nil {
			return
		}
		if _, err := p.Schema(ctx); err != nil {
			return
		}
		e := Ending{Marker: marker}
		if announced >= 0 && !marker {
			e.Rows = &announced
		}
		p.Expect(e)
		for {
			batch, err := p.Next(ctx)
			if err == io.EOF && e.Rows != nil && p.rows != announced {
				t.Errorf("the end is reported after %d rows of %d", p.rows, announced)
			}
			if err != nil {
				return
			}
			readEverything(batch)
		}
	})
}

// readEverything looks at every value that validate vouches for; it relies on
// nothing being out of range.
func readEverything(batch arrow.RecordBatch) {
	for _, c := range batch.Columns() {
		if leftToCore(c) {
			continue
		}
		for i := range min(c.Len(), 1<<12) {
			_ = c.ValueStr(i)
		}
	}
}

// leftToCore says whether validate checks the array's layout alone.
func leftToCore(a arrow.Array) bool {
	switch a := a.(type) {
	case *array.Dictionary:
		return leftToCore(a.Dictionary())
	case *array.StringView, *array.Struct, array.ListLike:
		return true
	}
	return false
}
