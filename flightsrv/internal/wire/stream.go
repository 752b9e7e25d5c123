package wire

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

const (
	// targetBytes is the size messages are cut to where rows allow: gRPC for Go
	// is fastest between 0.5 and 1 MiB.
	targetBytes = 1000 << 10
	// frameBytes covers the tags and lengths that protobuf puts around header
	// and body.
	frameBytes = 32
)

// Sender is the sending half of a DoGet stream on a connection with a Codec. It
// is given *Message; the Message is free for reuse when SendMsg returns, its
// body when its owner, if it has one, is released.
type Sender interface {
	SendMsg(m any) error
}

// Stream writes record batches of one schema as Flight messages, none larger
// than the limit and none without a data header. It is used by one goroutine.
type Stream struct {
	sender Sender
	schema *arrow.Schema
	limit  int
	target int

	options []ipc.Option // how bodies are encoded

	// dictionaries writes batches of a schema with dictionaries, which it keeps
	// track of; nil where the schema has none.
	dictionaries *ipc.Writer
	message      Message
}

// NewStream returns a stream of batches of schema. limit bounds each message,
// in bytes; options say how bodies are encoded, see Compressed. Nothing is sent
// before WriteSchema.
func NewStream(sender Sender, schema *arrow.Schema, limit int, options ...ipc.Option) *Stream {
	s := &Stream{sender: sender, schema: schema, limit: limit, target: min(targetBytes, limit), options: append(options, ipc.WithAllocator(scratch))}
	if hasDictionary(schema.Fields()) {
		s.dictionaries = ipc.NewWriterWithPayloadWriter(payloadWriter{s}, append(s.options, ipc.WithSchema(schema))...)
	}
	return s
}

// Compressed returns the options of a stream whose bodies are compressed: with
// "lz4" or "zstd", or not at all.
func Compressed(codec string) []ipc.Option {
	switch codec {
	case "lz4":
		return []ipc.Option{ipc.WithLZ4()}
	case "zstd":
		return []ipc.Option{ipc.WithZstd()}
	}
	return nil
}

// scratch is the allocator for what encoding adds to a batch's own buffers:
// small, and left to the garbage collector, since a payload's buffers cannot be
// retained beyond its release.
var scratch = memory.NewGoAllocator()

func hasDictionary(fields []arrow.Field) bool {
	for _, f := range fields {
		typ := f.Type
		if e, ok := typ.(arrow.ExtensionType); ok {
			typ = e.StorageType()
		}
		if typ.ID() == arrow.DICTIONARY {
			return true
		}
		if nested, ok := typ.(arrow.NestedType); ok && hasDictionary(nested.Fields()) {
			return true
		}
	}
	return false
}

// WriteSchema sends the schema. It is called once, before Write, and before
// anything that takes time: Python clients hold their lock until the first
// message has arrived.
func (s *Stream) WriteSchema() (err error) {
	defer recovered(&err)
	payload := ipc.GetSchemaPayload(s.schema, scratch)
	defer payload.Release()
	return s.sendPayload(&payload, nil)
}

// recovered turns a panic of the IPC writer into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("encode a record batch: %w", panicError(r))
	}
}

// Write sends a batch as one message or as several. The batch's columns have
// the types of the schema; its own names and metadata are ignored. It is not
// retained. A row that is larger than the limit is MESSAGE_TOO_LARGE.
func (s *Stream) Write(batch arrow.RecordBatch) (err error) {
	defer recovered(&err)
	rows := batch.NumRows()
	if rows == 0 {
		return nil
	}
	// Most batches fit as they are. The size of one that does not tells how many
	// rows a message may have on average.
	size, err := s.try(batch, 0, rows, false)
	if size == 0 || err != nil {
		return err
	}
	parts := int64(size)/int64(s.target) + 1
	share := max(1, (rows+parts-1)/parts)
	for at := int64(0); at < rows; {
		sent, err := s.writeFrom(batch, at, min(share, rows-at))
		if err != nil {
			return err
		}
		at += sent
	}
	return nil
}

// Close ends the use of the stream. It sends nothing.
func (s *Stream) Close() error {
	if s.dictionaries == nil {
		return nil
	}
	return s.dictionaries.Close()
}

// writeFrom sends one message of at most n rows from at on and returns how many
// it held.
func (s *Stream) writeFrom(batch arrow.RecordBatch, at, n int64) (int64, error) {
	for tries := 1; ; tries++ {
		// Rows are uneven: after the first try any size that is allowed will do.
		size, err := s.try(batch, at, n, n == 1 || tries > 1)
		switch {
		case err != nil:
			return 0, err
		case size == 0:
			return n, nil
		case n == 1:
			return 0, &tableerr.MessageTooLarge{LimitBytes: int64(s.limit), Bytes: int64(size),
				Msg: fmt.Sprintf("one row takes %d bytes, more than the %d a message may have; ask for fewer columns", size, s.limit)}
		}
		n /= 2
	}
}

// try encodes n rows and sends them if they are small enough, in a pinch up to
// the limit; size is then 0, else what the largest message would take. Encoding
// copies little besides validity bitmaps, so a try costs far less than the
// message.
func (s *Stream) try(batch arrow.RecordBatch, at, n int64, pinch bool) (size int, err error) {
	cut, err := s.cut(batch, at, n)
	if err != nil {
		return 0, err
	}
	defer cut.Release()
	payload, err := ipc.GetRecordBatchPayload(cut, s.options...)
	if err != nil {
		return 0, err
	}
	defer payload.Release()
	if size, err = measure(&payload); err != nil {
		return 0, err
	}
	dictionary, err := s.largestDictionary(cut)
	if err != nil {
		return 0, err
	}
	size = max(size, dictionary)
	if size > s.limit || size > s.target*3/2 && !pinch {
		return size, nil
	}
	if s.dictionaries != nil {
		return 0, s.dictionaries.Write(cut)
	}
	return 0, s.sendPayload(&payload, cut)
}

// cut returns n rows of the batch on the stream's schema. Its columns carry no
// bytes of other rows.
func (s *Stream) cut(batch arrow.RecordBatch, at, n int64) (arrow.RecordBatch, error) {
	if int(batch.NumCols()) != s.schema.NumFields() {
		return nil, fmt.Errorf("a batch of %d columns on a schema of %d", batch.NumCols(), s.schema.NumFields())
	}
	columns := make([]arrow.Array, batch.NumCols())
	defer func() {
		for _, c := range columns {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, c := range batch.Columns() {
		slice := array.NewSlice(c, at, at+n)
		columns[i] = s.compact(slice)
		slice.Release()
	}
	return array.NewRecordBatch(s.schema, columns, n), nil
}

// largestDictionary returns the size of the largest dictionary message that
// the batch may need.
func (s *Stream) largestDictionary(batch arrow.RecordBatch) (int, error) {
	if s.dictionaries == nil {
		return 0, nil
	}
	largest := 0
	for _, c := range batch.Columns() {
		if d, ok := c.(*array.Dictionary); ok {
			size, err := dictionarySize(d)
			if err != nil {
				return 0, err
			}
			largest = max(largest, size)
		}
	}
	return largest, nil
}

// dictionarySize measures the message of a dictionary.
func dictionarySize(d *array.Dictionary) (int, error) {
	values := d.Dictionary()
	schema := arrow.NewSchema([]arrow.Field{{Name: "dictionary", Type: values.DataType(), Nullable: true}}, nil)
	batch := array.NewRecordBatch(schema, []arrow.Array{values}, int64(values.Len()))
	defer batch.Release()
	payload, err := ipc.GetRecordBatchPayload(batch, ipc.WithAllocator(scratch))
	if err != nil {
		return 0, err
	}
	defer payload.Release()
	return measure(&payload)
}

// measure returns what a payload takes as a Flight message, without copying it.
func measure(p *ipc.Payload) (int, error) {
	head := p.Meta()
	defer head.Release()
	var body countingWriter
	if err := p.SerializeBody(&body); err != nil {
		return 0, err
	}
	return head.Len() + int(body) + frameBytes, nil
}

// countingWriter counts the bytes it is given.
type countingWriter int

func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}

// payloadWriter sends what the writer of batches with dictionaries makes,
// except its schema message, which WriteSchema has sent already.
type payloadWriter struct{ stream *Stream }

// Start implements ipc.PayloadWriter.
func (w payloadWriter) Start() error { return nil }

// Close implements ipc.PayloadWriter.
func (w payloadWriter) Close() error { return nil }

// WritePayload implements ipc.PayloadWriter.
func (w payloadWriter) WritePayload(p ipc.Payload) error {
	head := p.Meta()
	defer head.Release()
	message, err := fbRoot(head.Bytes())
	if err != nil {
		return err
	}
	kind, err := message.uint8(messageHeaderType)
	if err != nil || ipc.MessageType(kind) == ipc.MessageSchema {
		return err
	}
	return w.stream.sendPayload(&p, nil)
}

// sendPayload sends one IPC message. owner, if there is one, keeps alive what
// the message has not got from scratch.
func (s *Stream) sendPayload(p *ipc.Payload, owner Owner) error {
	head := p.Meta()
	defer head.Release()
	pieces := pieceWriter{pieces: s.message.Body[:0]}
	if err := p.SerializeBody(&pieces); err != nil {
		return err
	}
	s.message.Header, s.message.Body, s.message.Owner = head.Bytes(), pieces.pieces, owner
	size := head.Len() + pieces.size + frameBytes
	if size > s.limit {
		return &tableerr.MessageTooLarge{LimitBytes: int64(s.limit), Bytes: int64(size),
			Msg: fmt.Sprintf("a message of %d bytes cannot be cut below the %d a message may have", size, s.limit)}
	}
	if head.Len() == 0 {
		return fmt.Errorf("a message without a data header is never sent")
	}
	return s.sender.SendMsg(&s.message)
}

// pieceWriter collects the pieces of a body without copying them.
type pieceWriter struct {
	pieces [][]byte
	size   int
}

func (w *pieceWriter) Write(p []byte) (int, error) {
	w.pieces = append(w.pieces, p)
	w.size += len(p)
	return len(p), nil
}
