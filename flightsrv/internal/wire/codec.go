package wire

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that Codec stands on
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"contrail/tablecore/bufpool"
)

// Fields of the message FlightData
// (https://github.com/apache/arrow/blob/main/format/Flight.proto).
const (
	fieldDescriptor = 1
	fieldHeader     = 2
	fieldMetadata   = 3
	fieldBody       = 1000
)

// Message is a FlightData on its way out whose body lies in several pieces.
// Codec writes it; the Message itself is free for reuse when SendMsg returns.
type Message struct {
	Header []byte
	Body   [][]byte
	// Owner keeps the memory of Body alive: the codec retains it until the
	// transport has written it, and does not copy it. Without an owner Body is
	// copied, and free for reuse like the Message.
	Owner Owner
}

// Owner counts the references to what it owns, as Arrow's values do.
type Owner interface {
	Retain()
	Release()
}

// Codec is gRPC's codec for protobuf with a short way for FlightData, which is
// nearly all that a Flight server sends and receives: no copy on the way out
// and one on the way in, in place of two or three, and no zeroing. The bytes on
// the wire are the same. It is safe for concurrent use.
type Codec struct {
	base encoding.CodecV2
	pool *bufpool.Pool
}

// pooledBody is the length from which on the body of a received FlightData lies
// in a buffer of the pool.
const pooledBody = 32 << 10

// heldPiece is the length from which on a piece of an owned body goes out from
// where it lies. gRPC puts shorter ones together to frames anyway, and tells
// nobody when it has let go of one of 1 KiB or less.
const heldPiece = 4 << 10

// NewCodec returns a codec whose outgoing messages lie in buffers of the pool,
// as do the larger bodies of received ones: a Put that knows the pool gives
// them back.
func NewCodec(pool *bufpool.Pool) *Codec {
	return &Codec{base: encoding.GetCodecV2("proto"), pool: pool}
}

// Name implements encoding.CodecV2.
func (c *Codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (c *Codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*Message)
	if !ok {
		return c.base.Marshal(v)
	}
	body, copied := 0, 0
	for _, piece := range m.Body {
		body += len(piece)
		if !m.held(piece) {
			copied += len(piece)
		}
	}
	size := protowire.SizeTag(fieldHeader) + protowire.SizeBytes(len(m.Header)) + copied
	if body > 0 {
		size += protowire.SizeTag(fieldBody) + protowire.SizeVarint(uint64(body))
	}
	buf := c.pool.Get(size)
	out := protowire.AppendTag((*buf)[:0], fieldHeader, protowire.BytesType)
	out = protowire.AppendBytes(out, m.Header)
	if body > 0 {
		out = protowire.AppendTag(out, fieldBody, protowire.BytesType)
		out = protowire.AppendVarint(out, uint64(body))
	}
	return m.interleave(buf, out, c.pool), nil
}

// held says whether a piece of the body goes out from where it lies.
func (m *Message) held(piece []byte) bool { return m.Owner != nil && len(piece) >= heldPiece }

// interleave returns the message as pieces that are held and, between them,
// what is copied behind out, the beginning of buf.
func (m *Message) interleave(buf *[]byte, out []byte, pool *bufpool.Pool) mem.BufferSlice {
	copies := mem.NewBuffer(buf, pool)
	defer copies.Free() // the slices keep it
	message := make(mem.BufferSlice, 0, 2*len(m.Body)+1)
	start := 0
	flush := func() {
		if len(out) > start {
			message = append(message, copies.Slice(start, len(out)))
			start = len(out)
		}
	}
	held := make([][]byte, 0, len(m.Body)) // one allocation for all the slices that gRPC wants pointers to
	for _, piece := range m.Body {
		if !m.held(piece) {
			out = append(out, piece...)
			continue
		}
		flush()
		m.Owner.Retain()
		held = append(held, piece)
		message = append(message, mem.NewBuffer(&held[len(held)-1], owned{m.Owner}))
	}
	flush()
	return message
}

// owned tells the owner of a piece when the transport has let go of it.
type owned struct{ owner Owner }

// Get implements mem.BufferPool; it is not called.
func (owned) Get(length int) *[]byte { b := make([]byte, length); return &b }

// Put implements mem.BufferPool.
func (o owned) Put(*[]byte) { o.owner.Release() }

// Unmarshal implements encoding.CodecV2.
func (c *Codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*flight.FlightData)
	if !ok {
		return c.base.Unmarshal(data, v)
	}
	m.Reset()
	err := c.unmarshal(&cursor{pieces: data, left: data.Len()}, m)
	if err == errUnusual {
		m.Reset()
		return c.base.Unmarshal(data, v)
	}
	return err
}

// errUnusual sends a message the long way: it has a field that FlightData has
// not, or one in another form.
var errUnusual = errors.New("not the usual FlightData")

func (c *Codec) unmarshal(from *cursor, m *flight.FlightData) error {
	for from.left > 0 {
		tag, err := from.varint()
		if err != nil {
			return err
		}
		number, kind := protowire.DecodeTag(tag)
		if kind != protowire.BytesType {
			return errUnusual
		}
		n, err := from.varint()
		if err != nil {
			return err
		}
		if n > uint64(from.left) {
			return errCutShort
		}
		var value []byte
		if number == fieldBody && n >= pooledBody {
			value = *c.pool.Get(int(n))
		} else {
			value = make([]byte, n)
		}
		from.read(value)
		switch number {
		case fieldDescriptor:
			if m.FlightDescriptor == nil {
				m.FlightDescriptor = &flight.FlightDescriptor{}
			}
			if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(value, m.FlightDescriptor); err != nil {
				return err
			}
		case fieldHeader:
			m.DataHeader = value
		case fieldMetadata:
			m.AppMetadata = value
		case fieldBody:
			m.DataBody = value
		default:
			return errUnusual
		}
	}
	return nil
}

var (
	errCutShort = errors.New("a field is longer than its message")
	errVarint   = errors.New("a number is longer than 64 bits")
)

// cursor reads a message that lies in several pieces.
type cursor struct {
	pieces mem.BufferSlice
	piece  []byte // what is left of the one before pieces
	left   int    // bytes in all
}

// fill makes piece not empty; left says that there is something.
func (c *cursor) fill() {
	for len(c.piece) == 0 {
		c.piece = c.pieces[0].ReadOnlyData()
		c.pieces = c.pieces[1:]
	}
}

func (c *cursor) varint() (uint64, error) {
	var raw [10]byte
	for i := range raw {
		if c.left == 0 {
			return 0, errCutShort
		}
		c.fill()
		raw[i], c.piece = c.piece[0], c.piece[1:]
		c.left--
		if raw[i] < 0x80 {
			v, n := protowire.ConsumeVarint(raw[:i+1])
			if n < 0 {
				return 0, errVarint
			}
			return v, nil
		}
	}
	return 0, errVarint
}

// read fills b, which is no longer than left.
func (c *cursor) read(b []byte) {
	c.left -= len(b)
	for len(b) > 0 {
		c.fill()
		n := copy(b, c.piece)
		b, c.piece = b[n:], c.piece[n:]
	}
}
