package datafile

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
)

// valueDecoder decodes the values of one leaf, page after page, and appends
// them to the buffers of an array in the making. A null takes a slot with zero
// in it. Whatever the pages hold, it returns errors and never panics.
type valueDecoder interface {
	// setDictionary takes the dictionary of the pages that follow. It keeps
	// nothing of body.
	setDictionary(values int, body []byte) error
	// setPage begins a page that has at most most values. body must stay valid
	// until the next page.
	setPage(encoding int, body []byte, most int) error
	// reserve makes room for slots more slots.
	reserve(slots int)
	// read appends slots slots, of which present hold a value: those whose bit
	// from position at of valid is set. valid is not read where all are.
	read(slots, present int, valid []byte, at int) error
	// skip passes over present values.
	skip(present int) error
	// slots returns the number of slots appended since take.
	slots() int
	// take gives up the buffers after the validity bitmap, in the layout of
	// arrowType, and starts anew.
	take() []*memory.Buffer
	// arrowType is the type of what take returns.
	arrowType() arrow.DataType
	// release frees everything.
	release()
}

// errBatchFull says that the values of a batch do not fit in its limit.
var errBatchFull = errors.New("the values of a batch are too long")

// newValueDecoder returns the decoder for a leaf. limit bounds the bytes of
// values of varying or unusual length that one array may hold.
func newValueDecoder(leaf *leafInfo, mem memory.Allocator, limit int64) (valueDecoder, error) {
	switch leaf.physical {
	case parquet.Types.Boolean:
		return &boolDecoder{mem: mem}, nil
	case parquet.Types.Int32:
		return newFixedDecoder[uint32](arrow.PrimitiveTypes.Int32, mem), nil
	case parquet.Types.Float:
		return newFixedDecoder[uint32](arrow.PrimitiveTypes.Float32, mem), nil
	case parquet.Types.Int64:
		return newFixedDecoder[uint64](arrow.PrimitiveTypes.Int64, mem), nil
	case parquet.Types.Double:
		return newFixedDecoder[uint64](arrow.PrimitiveTypes.Float64, mem), nil
	case parquet.Types.Int96, parquet.Types.FixedLenByteArray:
		return &blobDecoder{width: leaf.width, mem: mem, limit: limit}, nil
	case parquet.Types.ByteArray:
		return &bytesDecoder{mem: mem, limit: limit}, nil
	}
	return nil, fmt.Errorf("values of type %s are not supported", leaf.physical)
}

func errEncoding(encoding int, what string) error {
	return fmt.Errorf("encoding %d of %s is not supported", encoding, what)
}

func errTooFew(what string) error { return fmt.Errorf("a page holds too few %s", what) }

// dictionaryIndices begins the indices of a dictionary-encoded page.
func dictionaryIndices(body []byte) (hybrid, error) {
	if len(body) == 0 {
		return hybrid{}, nil // a page of nulls
	}
	if body[0] > 32 {
		return hybrid{}, fmt.Errorf("a page has dictionary indices of %d bits", body[0])
	}
	return newHybrid(body[1:], int(body[0])), nil
}

func errIndex(index uint32, values int) error {
	return fmt.Errorf("a page refers to value %d of a dictionary of %d", index, values)
}

// spread moves the first present elements of dst apart so that each lies where
// its bit in valid is set, and clears the others.
func spread[T any](dst []T, valid []byte, at, present int) {
	var zero T
	from := present - 1
	for to := len(dst) - 1; to > from; to-- {
		if from >= 0 && bitAt(valid, at+to) {
			dst[to] = dst[from]
			from--
		} else {
			dst[to] = zero
		}
	}
}

// growBuffer makes buf hold n bytes, with room to spare when it must grow.
func growBuffer(buf *memory.Buffer, n int) {
	if n > buf.Cap() {
		buf.Reserve(max(n, buf.Cap()+buf.Cap()/2))
	}
	buf.ResizeNoShrink(n)
}
