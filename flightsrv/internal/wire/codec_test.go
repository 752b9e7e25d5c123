package wire

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"contrail/tablecore/bufpool"
)

// cutInto returns data in pieces of n bytes.
func cutInto(data []byte, n int) mem.BufferSlice {
	var s mem.BufferSlice
	for len(data) > n {
		s = append(s, mem.SliceBuffer(data[:n]), mem.SliceBuffer(nil))
		data = data[n:]
	}
	return append(s, mem.SliceBuffer(data))
}

func TestCodecMarshal(t *testing.T) {
	c := NewCodec(&bufpool.Pool{})
	for _, body := range [][][]byte{nil, {nil, {}}, {[]byte("abc")}, {[]byte("a"), nil, bytes.Repeat([]byte("b"), 1<<21)}} {
		out, err := c.Marshal(&Message{Header: []byte("head"), Body: body})
		if err != nil {
			t.Fatal(err)
		}
		var got flight.FlightData
		if err := proto.Unmarshal(out.Materialize(), &got); err != nil {
			t.Fatal(err)
		}
		out.Free()
		if string(got.DataHeader) != "head" || !bytes.Equal(got.DataBody, bytes.Join(body, nil)) {
			t.Errorf("%d pieces arrive as a body of %d bytes", len(body), len(got.DataBody))
		}
	}
	if c.Name() != "proto" {
		t.Error("the codec has another name")
	}
	out, err := c.Marshal(&flight.Ticket{Ticket: []byte("t")})
	var ticket flight.Ticket
	if err != nil || c.Unmarshal(out, &ticket) != nil || string(ticket.Ticket) != "t" {
		t.Errorf("another message arrives as %v, %v", &ticket, err)
	}
}

// owner counts the references to a body.
type owner struct{ references int }

func (o *owner) Retain()  { o.references++ }
func (o *owner) Release() { o.references-- }

// A body with an owner is not copied, and its owner kept until the transport
// has let go of every piece; the bytes are those of the body that is copied.
func TestCodecHolds(t *testing.T) {
	c := NewCodec(&bufpool.Pool{Poison: true})
	small, large := bytes.Repeat([]byte("s"), heldPiece-1), bytes.Repeat([]byte("L"), heldPiece)
	for name, body := range map[string][][]byte{
		"nothing": nil, "small": {small, nil}, "large": {large}, "large, twice": {large, large},
		"mixed": {small, large, small[:8], small, large, small[:3]},
	} {
		copied, err := c.Marshal(&Message{Header: []byte("head"), Body: body})
		if err != nil {
			t.Fatal(err)
		}
		o := &owner{}
		held, err := c.Marshal(&Message{Header: []byte("head"), Body: body, Owner: o})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(copied.Materialize(), held.Materialize()) {
			t.Errorf("%s: the bytes differ", name)
		}
		want := 0
		for _, piece := range body {
			if len(piece) >= heldPiece {
				want++
			}
		}
		if o.references != want {
			t.Errorf("%s: the owner is held %d times, want %d", name, o.references, want)
		}
		held.Ref() // as the transport does
		held.Free()
		if o.references != want {
			t.Errorf("%s: let go too early", name)
		}
		held.Free()
		copied.Free()
		if o.references != 0 {
			t.Errorf("%s: the owner is held %d times at the end", name, o.references)
		}
	}
}

// FuzzCodec compares the short way with protobuf's own code.
func FuzzCodec(f *testing.F) {
	full, err := proto.Marshal(&flight.FlightData{FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"a", "b"}},
		DataHeader: []byte("header"), AppMetadata: []byte("meta"), DataBody: []byte("body")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full, 3)
	f.Add(append(full, full...), 1000)
	f.Add(append(full, 0x28, 1), 1)                // an unknown number
	f.Add(append(full, 0x2a, 1, 'x'), 1)           // an unknown text
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0x7f}, 2) // a length beyond the end
	f.Add(bytes.Repeat([]byte{0x80}, 12), 5)       // an endless number
	f.Add([]byte{0x0a, 2, 0x08, 0xff}, 5)          // a malformed descriptor
	f.Add([]byte{0x10, 1}, 5)                      // a header that is a number
	f.Add([]byte{0x02, 0}, 5)                      // field 0
	f.Add([]byte{0x92, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0}, 5)

	codec := NewCodec(&bufpool.Pool{})
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		var want, got flight.FlightData
		wantErr := proto.Unmarshal(data, &want)
		gotErr := codec.Unmarshal(cutInto(data, max(piece, 1)), &got)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("got error %v, want %v", gotErr, wantErr)
		}
		if wantErr == nil && !proto.Equal(&want, &got) {
			t.Fatalf("got %v, want %v", &got, &want)
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 1<<20)
	message := &Message{Header: make([]byte, 300), Body: [][]byte{body[:1<<19], body[1<<19:]}}
	c := NewCodec(&bufpool.Pool{})
	for name, o := range map[string]Owner{"copied": nil, "held": &owner{}} {
		b.Run("marshal/"+name, func(b *testing.B) {
			b.SetBytes(1 << 20)
			message.Owner = o
			for b.Loop() {
				out, err := c.Marshal(message)
				if err != nil {
					b.Fatal(err)
				}
				out.Free()
			}
		})
	}
	data, _ := proto.Marshal(&flight.FlightData{DataHeader: message.Header, DataBody: body})
	pieces := cutInto(data, 16<<10)
	for name, codec := range map[string]interface {
		Unmarshal(mem.BufferSlice, any) error
	}{"unmarshal": c, "unmarshal/stock": c.base} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(1 << 20)
			for b.Loop() {
				var m flight.FlightData
				if err := codec.Unmarshal(pieces, &m); err != nil {
					b.Fatal(err)
				}
				if name == "unmarshal" {
					c.pool.Put(&m.DataBody) // as a Put does
				}
			}
		})
	}
}
