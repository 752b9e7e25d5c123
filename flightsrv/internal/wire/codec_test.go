package wire

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
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
	c := NewCodec(&Pool{})
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

	codec := NewCodec(&Pool{})
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

func TestPool(t *testing.T) {
	var p Pool
	for _, n := range []int{0, 1, 4096, 4097, 1 << 20, 1<<22 - 1, 1 << 22, 1<<22 + 1} {
		b := p.Get(n)
		if len(*b) != n {
			t.Fatalf("asked for %d bytes, got %d", n, len(*b))
		}
		*b = (*b)[:0] // as gRPC may give it back
		p.Put(b)
		if b = p.Get(n); len(*b) != n {
			t.Fatalf("asked for %d bytes again, got %d", n, len(*b))
		}
	}
	odd := make([]byte, 5000)
	p.Put(&odd) // not one of its own sizes: forgotten
	tiny := []byte{1}
	p.Put(&tiny)
}

func BenchmarkCodec(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 1<<20)
	message := &Message{Header: make([]byte, 300), Body: [][]byte{body[:1<<19], body[1<<19:]}}
	c := NewCodec(&Pool{})
	b.Run("marshal", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			out, _ := c.Marshal(message)
			out.Free()
		}
	})
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
