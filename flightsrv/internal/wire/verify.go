package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Slots of the tables of Message.fbs
// (https://github.com/apache/arrow/tree/main/format).
const (
	messageHeaderType = 1
	messageHeader     = 2
	messageMetadata   = 4

	keyValueKey   = 0
	keyValueValue = 1

	batchLength      = 0
	batchNodes       = 1
	batchBuffers     = 2
	batchCompression = 3
	batchVariadic    = 4

	compressionCodec = 0
	codecLZ4Frame    = 0
	codecZstd        = 1

	dictionaryID    = 0
	dictionaryData  = 1
	dictionaryDelta = 2
)

// nodeSize and bufferSize are the sizes of the structs FieldNode and Buffer.
const nodeSize, bufferSize = 16, 16

// header is what the verified header of an IPC message says.
type header struct {
	kind ipc.MessageType
	// rows of a record batch or dictionary.
	rows int64
	// batch is the RecordBatch table, also of a dictionary.
	batch fbTable
	// expanded is the memory that all buffers of the message need once they
	// are decompressed. A message whose buffers overlap counts them all.
	expanded int64
	// dictionary is the id of a dictionary batch, delta that it adds to an
	// earlier one.
	dictionary int64
	delta      bool
}

// verify checks one IPC message by itself: the flatbuffer's structure, that
// every buffer lies inside the body, and what decompression would need. limit
// bounds expanded. Nothing is allocated from claimed lengths. Whether a batch
// fits its schema is for fits.
func verify(head, body []byte, limit int64) (header, error) {
	message, err := fbRoot(head)
	if err != nil {
		return header{}, err
	}
	kind, err := message.uint8(messageHeaderType)
	if err != nil {
		return header{}, err
	}
	content, ok, err := message.table(messageHeader)
	if err != nil {
		return header{}, err
	}
	if !ok {
		return header{}, errFlatbuffer
	}
	h := header{kind: ipc.MessageType(kind)}
	switch h.kind {
	case ipc.MessageSchema:
		return h, tabledef.CheckSchemaMessage(head)
	case ipc.MessageDictionaryBatch:
		return verifyDictionary(h, content, body, limit)
	case ipc.MessageRecordBatch:
		if err := verifyMetadata(message); err != nil {
			return h, err
		}
		h.batch = content
		h.rows, h.expanded, err = verifyBatch(content, body, limit)
		return h, err
	default:
		return h, fmt.Errorf("a message of kind %d has no place in a Flight stream", kind)
	}
}

// verifyMetadata bounds what the reader builds from the message's metadata.
// Offsets may lead many references to the same text, so a few bytes can unfold
// without limit; what an honest writer makes is about as large as its bytes.
func verifyMetadata(message fbTable) error {
	start, n, err := message.vector(messageMetadata, 4)
	if err != nil {
		return err
	}
	left := 4*len(message.buf) + 1024
	for i := range n {
		pair, err := message.follow(start + 4*i)
		if err != nil {
			return err
		}
		for _, slot := range [...]int{keyValueKey, keyValueValue} {
			_, size, err := pair.vector(slot, 1)
			if err != nil {
				return err
			}
			if left -= 4 + size; left < 0 {
				return errFlatbuffer
			}
		}
	}
	return nil
}

func verifyDictionary(h header, dictionary fbTable, body []byte, limit int64) (header, error) {
	var err error
	if h.dictionary, err = dictionary.int64(dictionaryID); err != nil {
		return h, err
	}
	delta, err := dictionary.uint8(dictionaryDelta)
	if err != nil {
		return h, err
	}
	h.delta = delta != 0
	var ok bool
	if h.batch, ok, err = dictionary.table(dictionaryData); err != nil || !ok {
		return h, errFlatbuffer
	}
	h.rows, h.expanded, err = verifyBatch(h.batch, body, limit)
	return h, err
}

// verifyBatch checks a RecordBatch table against its body.
func verifyBatch(batch fbTable, body []byte, limit int64) (rows, expanded int64, err error) {
	if rows, err = batch.int64(batchLength); err != nil {
		return 0, 0, err
	}
	if rows < 0 {
		return 0, 0, fmt.Errorf("it claims %d rows", rows)
	}
	if err := verifyNodes(batch); err != nil {
		return 0, 0, err
	}
	start, n, err := batch.vector(batchBuffers, bufferSize)
	if err != nil {
		return 0, 0, err
	}
	codec, err := compression(batch)
	if err != nil {
		return 0, 0, err
	}
	for i := range n {
		offset, length := batch.int64At(start+bufferSize*i), batch.int64At(start+bufferSize*i+8)
		if offset < 0 || length < 0 || offset > int64(len(body)) || length > int64(len(body))-offset {
			return 0, 0, fmt.Errorf("buffer %d lies at byte %d with %d bytes in a body of %d", i, offset, length, len(body))
		}
		size := length
		if codec != uncompressed {
			if size, err = expandedSize(codec, body[offset:offset+length]); err != nil {
				return 0, 0, fmt.Errorf("buffer %d: %w", i, err)
			}
		}
		if expanded = addSaturating(expanded, size); expanded > limit {
			return 0, 0, &tableerr.MessageTooLarge{LimitBytes: limit, Bytes: sumSizes(batch, start, n, body, codec),
				Msg: fmt.Sprintf("a message would need more than %d bytes once it is decompressed; send smaller batches", limit)}
		}
	}
	return rows, expanded, nil
}

// sumSizes is what all buffers claim together, for the error only.
func sumSizes(batch fbTable, start, n int, body []byte, codec int) int64 {
	var sum int64
	for i := range n {
		offset, length := batch.int64At(start+bufferSize*i), batch.int64At(start+bufferSize*i+8)
		if offset < 0 || length < 0 || offset > int64(len(body)) || length > int64(len(body))-offset {
			continue
		}
		size := length
		if codec != uncompressed && length >= 8 {
			size = max(0, int64(binary.LittleEndian.Uint64(body[offset:])))
		}
		sum = addSaturating(sum, size)
	}
	return sum
}

func addSaturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func verifyNodes(batch fbTable) error {
	start, n, err := batch.vector(batchNodes, nodeSize)
	if err != nil {
		return err
	}
	for i := range n {
		length, nulls := batch.int64At(start+nodeSize*i), batch.int64At(start+nodeSize*i+8)
		if length < 0 || nulls < 0 || nulls > length {
			return fmt.Errorf("array %d claims %d nulls in %d rows", i, nulls, length)
		}
	}
	return nil
}

// fits checks that a batch or dictionary has as many arrays and buffers as its
// schema needs.
func (h header) fits(l layout) error {
	_, nodes, err := h.batch.vector(batchNodes, nodeSize)
	if err != nil {
		return err
	}
	_, buffers, err := h.batch.vector(batchBuffers, bufferSize)
	if err != nil {
		return err
	}
	start, views, err := h.batch.vector(batchVariadic, 8)
	if err != nil {
		return err
	}
	if nodes < l.nodes || views < l.views {
		return fmt.Errorf("it has %d arrays and %d view arrays where the schema needs %d and %d", nodes, views, l.nodes, l.views)
	}
	due := int64(l.buffers)
	for i := range l.views {
		count := h.batch.int64At(start + 8*i)
		if count < 0 || count > int64(buffers) {
			return fmt.Errorf("view array %d claims %d of %d buffers", i, count, buffers)
		}
		due += count
	}
	if int64(buffers) < due {
		return fmt.Errorf("it has %d buffers where the schema needs %d", buffers, due)
	}
	return nil
}
