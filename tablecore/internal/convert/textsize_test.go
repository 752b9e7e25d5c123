package convert

import (
	"encoding/binary"
	"errors"
	"math"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

func TestTextBeyond32BitOffsets(t *testing.T) {
	for _, typ := range []arrow.DataType{arrow.BinaryTypes.LargeString, arrow.BinaryTypes.LargeBinary} {
		long := tooLongRule(claimed(t, typ, 0, 5, 5+math.MaxInt32, 6+2*math.MaxInt32), 3)
		if long(0) || long(1) || !long(2) {
			t.Errorf("%s: the third value is too long, and no other", typ)
		}
		if tooLongRule(claimed(t, typ, 7, 7+math.MaxInt32), 1) != nil {
			t.Errorf("%s: 2 GiB less a byte are refused", typ)
		}
	}
	mem := memory.NewGoAllocator()
	huge := claimed(t, arrow.BinaryTypes.LargeString, 0, 10, math.MaxInt32+1)
	var tooLarge *BatchTooLargeError
	var invalid *tableerr.Invalid
	if _, err := settle(mem, huge, arrow.BinaryTypes.String); !errors.As(err, &tooLarge) || !errors.As(err, &invalid) {
		t.Errorf("got %v", err)
	}
	far := claimed(t, arrow.BinaryTypes.LargeString, math.MaxInt32+1, math.MaxInt32+10, math.MaxInt32+30)
	near, err := settle(mem, far, arrow.BinaryTypes.String)
	if err != nil {
		t.Fatal(err)
	}
	if offsets := near.(*array.String).ValueOffsets(); offsets[0] != 0 || offsets[2] != 29 {
		t.Errorf("offsets %v", offsets)
	}
}

// claimed makes texts whose bytes nobody can read, so that they take no memory.
func claimed(t *testing.T, typ arrow.DataType, offsets ...int64) arrow.Array {
	t.Helper()
	bytes, err := syscall.Mmap(-1, 0, int(offsets[len(offsets)-1]), syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(bytes) })
	var raw []byte
	for _, o := range offsets {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(o))
	}
	d := array.NewData(typ, len(offsets)-1, []*memory.Buffer{nil, memory.NewBufferBytes(raw), memory.NewBufferBytes(bytes)}, nil, 0, 0)
	defer d.Release()
	return array.MakeFromData(d)
}
