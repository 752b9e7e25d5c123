package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/descriptors"
	"contrail/tablecore/bufpool"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// PutOptions are the limits under which a put is read. All are required but
// the timeouts, where 0 means no limit.
type PutOptions struct {
	// Allocator is where decompressed buffers live. Its memory must be left to
	// the garbage collector when the reader forgets a buffer, as arrow's Go
	// allocator does.
	Allocator memory.Allocator
	// Bodies is the pool of the connection's Codec, which gets message bodies
	// back when the last array on them is released; nil where they are the
	// garbage collector's.
	Bodies *bufpool.Pool
	// Budget is shared by all puts of a server.
	Budget *Budget
	// MaxMessageBytes bounds what the buffers of one message may need once they
	// are decompressed, MaxDictionaryBytes what the dictionaries in force may.
	MaxMessageBytes, MaxDictionaryBytes int64
	// FirstMessageTimeout bounds the time until descriptor and schema have
	// arrived, StallTimeout the wait for each message after them.
	FirstMessageTimeout, StallTimeout time.Duration
}

// Ending is how a put has announced its end. The zero value announces nothing.
type Ending struct {
	// Rows is how many rows the stream must hold, nil when not announced.
	Rows *int64
	// Marker says that only a marker message ends the stream.
	Marker bool
}

// Put reads the messages of one DoPut: the descriptor first, then the schema,
// then record batches to the end. It is a row reader for the table core: Next
// returns io.EOF only where the stream ended as announced.
//
// A Put is used by one goroutine. Errors are final, except a context's.
type Put struct {
	opts     PutOptions
	pump     *pump
	deadline time.Time // of the first messages; zero = none
	mem      *cappedAllocator

	first  *flight.FlightData // until its header is taken
	queue  *messageQueue
	reader *ipc.Reader
	layout layouts
	unread error // why batches of the schema cannot be read

	ending       Ending
	marker       *int64 // rows of the marker, while it is the last message
	rows         int64
	messages     int64           // with a data header, for errors
	dictionaries map[int64]int64 // bytes in force, by dictionary id
	dictionary   int64           // their sum
	pending      int64           // bytes of dictionaries that the reader has not taken yet
	held         int64           // bytes of messages, as counted in the budget
	err          error           // final; io.EOF at the end
}

// NewPut starts reading from r. The caller must call Close.
func NewPut(r Receiver, opts PutOptions) *Put {
	p := &Put{opts: opts, pump: startPump(r), queue: &messageQueue{bodies: opts.Bodies}, dictionaries: map[int64]int64{},
		mem: newCappedAllocator(opts.Allocator, opts.MaxMessageBytes+opts.MaxDictionaryBytes, opts.Budget)}
	if opts.FirstMessageTimeout > 0 {
		p.deadline = time.Now().Add(opts.FirstMessageTimeout)
	}
	return p
}

// Close ends reading and releases the current batch. The goroutine behind it
// ends when the stream does.
func (p *Put) Close() {
	close(p.pump.stop)
	if p.reader != nil {
		p.reader.Release()
		p.reader = nil
	}
	p.queue.releaseCurrent()
	p.mem.close()
	p.opts.Budget.take(-p.held)
	p.held = 0
	if p.err == nil {
		p.err = errors.New("the put is closed")
	}
}

// Descriptor returns the descriptor of the first message.
func (p *Put) Descriptor(ctx context.Context) (*flight.FlightDescriptor, error) {
	m, err := p.receiveFirst(ctx)
	switch {
	case err == io.EOF:
		return nil, p.fail(tableerr.InvalidField("descriptor", "the stream holds no message"))
	case err != nil:
		return nil, p.fail(err)
	case m.FlightDescriptor == nil:
		return nil, p.fail(tableerr.InvalidField("descriptor", "the first message has no descriptor"))
	}
	p.first = m
	return m.FlightDescriptor, nil
}

// Schema returns the schema of the stream. It is called after Descriptor.
func (p *Put) Schema(ctx context.Context) (*arrow.Schema, error) {
	if p.reader != nil {
		return p.reader.Schema(), nil
	}
	m, err := p.firstHeader(ctx)
	if err == io.EOF {
		err = tableerr.InvalidField("schema", "the stream ended before a schema")
	}
	if err != nil {
		return nil, p.fail(err)
	}
	h, err := p.verify(m)
	if err != nil {
		return nil, p.fail(err)
	}
	if h.kind != ipc.MessageSchema {
		return nil, p.fail(p.malformed(fmt.Errorf("a %v stands where the schema is due", h.kind)))
	}
	p.queue.push(m)
	p.reader, err = ipc.NewReaderFromMessageReader(p.queue, ipc.WithAllocator(p.mem))
	if err != nil {
		return nil, p.fail(p.malformed(err))
	}
	p.layout, p.unread = layoutsOf(p.reader.Schema(), m.DataHeader)
	if p.unread != nil && !errors.Is(p.unread, errUnread) {
		return nil, p.fail(p.malformed(p.unread))
	}
	return p.reader.Schema(), nil
}

// firstHeader returns the first message that has a data header: as a rule the
// one with the descriptor.
func (p *Put) firstHeader(ctx context.Context) (m *flight.FlightData, err error) {
	m, p.first = p.first, nil
	for {
		if m != nil && len(m.DataHeader) > 0 {
			return m, nil
		}
		if m != nil {
			err = p.metadataOnly(m)
		}
		if err == nil {
			m, err = p.receiveFirst(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// Expect announces the end of the stream. It is called before Next.
func (p *Put) Expect(e Ending) { p.ending = e }

// Next returns the next batch that has rows. It is valid until the next Next
// and belongs to the put. The error is io.EOF at the announced end, a tableerr
// type where the client is to blame, what the transport returned where the
// stream broke, or ctx's error. Next is called after Schema.
func (p *Put) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for p.err == nil {
		m, h, err := p.receive(ctx)
		if err == io.EOF {
			if err = p.checkEnd(); err == nil {
				err = io.EOF
			}
		}
		if err != nil {
			return nil, p.fail(err)
		}
		switch h.kind {
		case ipc.MessageDictionaryBatch:
			err = p.addDictionary(h, m)
		case ipc.MessageRecordBatch:
			var batch arrow.RecordBatch
			if batch, err = p.decode(h, m); err == nil && batch.NumRows() > 0 {
				return batch, nil
			}
		default:
			err = p.schemaChange(m)
		}
		if err != nil {
			return nil, p.fail(err)
		}
	}
	return nil, p.err
}

// Drain reads and forgets what is left of the stream. A server that answers OK
// before the end loses the answer, or breaks the client's next write.
func (p *Put) Drain(ctx context.Context) error {
	for p.err == nil {
		if _, err := p.pump.next(ctx, p.opts.StallTimeout, waitStall); err != nil {
			return ignoreEOF(p.fail(err))
		}
	}
	return ignoreEOF(p.err)
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// fail makes an error final, unless it is only that the caller stopped waiting.
func (p *Put) fail(err error) error {
	var waiting abandoned
	if errors.As(err, &waiting) {
		return waiting.cause
	}
	if p.err == nil {
		p.err = err
	}
	return err
}

// malformed blames a message's bytes.
func (p *Put) malformed(cause error) error {
	var typed tableerr.Error
	if errors.As(cause, &typed) { // of the capped allocator, or of a check
		return typed
	}
	e := tableerr.InvalidField("stream", "message %d is no valid Arrow IPC message: %v", p.messages-1, cause)
	e.Cause = cause
	return e
}

// receiveFirst receives under the deadline of the first messages.
func (p *Put) receiveFirst(ctx context.Context) (*flight.FlightData, error) {
	if p.err != nil {
		return nil, p.err
	}
	limit := time.Duration(0)
	if !p.deadline.IsZero() {
		limit = max(time.Until(p.deadline), time.Nanosecond)
	}
	m, err := p.pump.next(ctx, limit, waitFirstMessage)
	var timedOut *tableerr.TimedOut
	if errors.As(err, &timedOut) { // the whole wait counts, not what was left of it
		timedOut.LimitMS = p.opts.FirstMessageTimeout.Milliseconds()
	}
	return m, err
}

// receive returns the next message that has a data header, verified.
func (p *Put) receive(ctx context.Context) (*flight.FlightData, header, error) {
	for {
		m, err := p.pump.next(ctx, p.opts.StallTimeout, waitStall)
		if err != nil {
			return nil, header{}, err
		}
		if len(m.DataHeader) == 0 {
			if err := p.metadataOnly(m); err != nil {
				return nil, header{}, err
			}
			continue
		}
		p.marker = nil // only the last message can be the marker
		h, err := p.verify(m)
		if err == nil {
			err = p.hold(m)
		}
		return m, h, err
	}
}

// metadataOnly takes a message without data header: it may be the marker, and
// is ignored otherwise.
func (p *Put) metadataOnly(m *flight.FlightData) error {
	if len(m.DataBody) > 0 {
		return tableerr.InvalidField("stream", "a message has a body of %d bytes and no data header", len(m.DataBody))
	}
	if !p.ending.Marker {
		return nil
	}
	rows, ok, err := descriptors.ParseMarker(m.AppMetadata)
	if ok {
		p.marker = &rows
	}
	return err
}

// verify checks a message before the reader sees it.
func (p *Put) verify(m *flight.FlightData) (header, error) {
	p.messages++
	h, err := verify(m.DataHeader, m.DataBody, p.opts.MaxMessageBytes)
	if err != nil {
		return h, p.malformed(err)
	}
	return h, nil
}

// hold counts the message and the dictionaries in the budget, in place of the
// message before.
func (p *Put) hold(m *flight.FlightData) error {
	now := int64(len(m.DataHeader)+len(m.DataBody)) + p.dictionary + p.pending
	if !p.opts.Budget.take(now - p.held) {
		return &tableerr.QueueTimeout{}
	}
	p.held = now
	return nil
}

// addDictionary hands a dictionary to the reader, within the bound on all that
// are in force.
func (p *Put) addDictionary(h header, m *flight.FlightData) error {
	if p.unread != nil {
		return p.malformed(p.unread)
	}
	layout, known := p.layout.dictionaries[h.dictionary]
	if !known {
		return p.malformed(fmt.Errorf("the schema has no dictionary %d", h.dictionary))
	}
	if err := h.fits(layout); err != nil {
		return p.malformed(err)
	}
	size := h.expanded + int64(len(m.DataHeader))
	if !h.delta {
		p.dictionary -= p.dictionaries[h.dictionary]
		p.dictionaries[h.dictionary] = 0
	}
	p.dictionaries[h.dictionary] += size
	p.dictionary += size
	p.pending += size
	if most := max(p.dictionary, p.pending); most > p.opts.MaxDictionaryBytes {
		return &tableerr.MessageTooLarge{LimitBytes: p.opts.MaxDictionaryBytes, Bytes: most,
			Msg: fmt.Sprintf("the stream's dictionaries take more than %d bytes; send plain columns", p.opts.MaxDictionaryBytes)}
	}
	p.queue.push(m)
	return nil
}

// decode turns a record batch message into a batch whose every value can be
// read without a check.
func (p *Put) decode(h header, m *flight.FlightData) (batch arrow.RecordBatch, err error) {
	defer func() {
		if r := recover(); r != nil {
			batch, err = nil, p.malformed(panicError(r))
		}
	}()
	if p.unread != nil {
		return nil, p.malformed(p.unread)
	}
	if err := h.fits(p.layout.batch); err != nil {
		return nil, p.malformed(err)
	}
	p.queue.push(m)
	if !p.reader.Next() {
		if err := p.reader.Err(); err != nil {
			return nil, p.malformed(err)
		}
		return nil, p.malformed(errors.New("a dictionary is missing"))
	}
	p.pending = 0
	batch = p.reader.RecordBatch()
	if err := validate(batch); err != nil {
		return nil, err
	}
	p.rows += batch.NumRows()
	if p.ending.Rows != nil && p.rows > *p.ending.Rows {
		return nil, &tableerr.StreamIncomplete{ExpectedRows: p.ending.Rows, Rows: p.rows}
	}
	return batch, nil
}

// panicError turns what was recovered from a panic into an error.
func panicError(recovered any) error {
	if err, ok := recovered.(error); ok {
		return err
	}
	return fmt.Errorf("%v", recovered)
}

// checkEnd compares the end of the stream with what was announced.
func (p *Put) checkEnd() error {
	expected := p.ending.Rows
	if p.ending.Marker {
		expected = p.marker
		if expected == nil {
			return &tableerr.StreamIncomplete{Rows: p.rows}
		}
	}
	if expected != nil && *expected != p.rows {
		return &tableerr.StreamIncomplete{ExpectedRows: expected, Rows: p.rows}
	}
	return nil
}

// schemaChange refuses a second schema and names the first column that differs.
func (p *Put) schemaChange(m *flight.FlightData) error {
	schema, err := readSchema(m)
	if err != nil {
		return p.malformed(err)
	}
	if column, expected, found, differ := firstDifference(p.reader.Schema(), schema); differ {
		return &tableerr.SchemaMismatch{Column: column, Expected: expected, Found: found,
			Msg: fmt.Sprintf("the schema changes in the stream, at column %q", column)}
	}
	return tableerr.InvalidField("stream", "message %d is a second schema", p.messages-1)
}

// firstDifference compares two schemas column by column; an empty type stands
// for a column that is not there.
func firstDifference(was, is *arrow.Schema) (column, expected, found string, differ bool) {
	for i := range max(was.NumFields(), is.NumFields()) {
		switch {
		case i >= was.NumFields():
			return is.Field(i).Name, "", tabledef.TypeName(is.Field(i).Type), true
		case i >= is.NumFields() || was.Field(i).Name != is.Field(i).Name:
			return was.Field(i).Name, tabledef.TypeName(was.Field(i).Type), "", true
		case !arrow.TypeEqual(was.Field(i).Type, is.Field(i).Type):
			return was.Field(i).Name, tabledef.TypeName(was.Field(i).Type), tabledef.TypeName(is.Field(i).Type), true
		}
	}
	return "", "", "", false
}

// messageQueue hands verified messages to an IPC reader. A message lives until
// the next is asked for, and its body until the last array on it is released.
type messageQueue struct {
	messages []*flight.FlightData
	bodies   *bufpool.Pool
	current  *ipc.Message
}

func (q *messageQueue) push(m *flight.FlightData) { q.messages = append(q.messages, m) }

// Message implements ipc.MessageReader.
func (q *messageQueue) Message() (*ipc.Message, error) {
	q.releaseCurrent()
	if len(q.messages) == 0 {
		return nil, io.EOF
	}
	m := q.messages[0]
	q.messages[0] = nil
	q.messages = q.messages[1:]
	body := memory.NewBufferBytes(m.DataBody)
	if q.bodies != nil && len(m.DataBody) >= pooledBody {
		body = memory.NewBufferWithAllocator(m.DataBody, q.bodies)
	}
	defer body.Release() // the message keeps it
	q.current = ipc.NewMessage(memory.NewBufferBytes(m.DataHeader), body)
	return q.current, nil
}

func (q *messageQueue) releaseCurrent() {
	if q.current != nil {
		q.current.Release()
		q.current = nil
	}
}

// Retain implements ipc.MessageReader.
func (q *messageQueue) Retain() {}

// Release implements ipc.MessageReader.
func (q *messageQueue) Release() {}
