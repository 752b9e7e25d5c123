package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"contrail/tablecore/bufpool"
	"contrail/tablecore/tableerr"
)

// bytesTransport is a transport that holds bytes, and then the half-close.
type bytesTransport struct{ r *bytes.Reader }

func (t bytesTransport) ReadMessageHeader(b []byte) error {
	_, err := io.ReadFull(t.r, b)
	return err
}

func (t bytesTransport) Read(n int) (mem.BufferSlice, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(t.r, b); err != nil {
		return nil, err
	}
	return cutInto(b, 7), nil
}

func frame(flag byte, message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(message))), message...)
}

func TestReceive(t *testing.T) {
	large := bytes.Repeat([]byte("b"), 2*pooledBody)
	message, err := proto.Marshal(&flight.FlightData{DataHeader: []byte("head"), DataBody: large})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		want  tableerr.Token
		text  string
	}{
		{"two messages", append(frame(0, message), frame(0, nil)...), "", "EOF"},
		{"half a header", []byte{0, 0}, "", "unexpected EOF"},
		{"half a message", frame(0, message)[:len(message)/2], "", "unexpected EOF"},
		{"header alone", frame(0, message)[:5], "", "unexpected EOF"},
		{"compressed", frame(1, message), tableerr.TokenInvalid, "compressed by gRPC"},
		{"garbage", frame(0, []byte{0xff}), tableerr.TokenInvalid, "no FlightData"},
		{"too large", []byte{0, 0xff, 0xff, 0xff, 0xff}, tableerr.TokenMessageTooLarge, "max_receive_message_bytes"},
	} {
		r := &transportReceiver{transport: bytesTransport{bytes.NewReader(c.bytes)}, codec: NewCodec(&bufpool.Pool{Poison: true}), limit: 1 << 20}
		for err = nil; err == nil; {
			var m *flight.FlightData
			if m, err = r.Recv(); err == nil && len(m.DataBody) > 0 && !bytes.Equal(m.DataBody, large) {
				t.Errorf("%s: another body arrives", c.name)
			}
		}
		if token(err) != c.want || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s gives %v", c.name, err)
		}
	}
	fallback := receiverFunc(nil)
	if got := Receive(context.Background(), nil, 1, fallback); got == nil || got.(receiverFunc) != nil {
		t.Error("without a transport the fallback is not taken")
	}
}
