package flightclient

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Trailers of a failed call; see flightsrv/docs/protocol.md.
const (
	trailerToken  = "x-contrail-error"
	trailerDetail = "grpc-status-details-bin"
	trailerStats  = "x-contrail-stats"
)

// Error is a call that failed, as the service or the transport tells it.
type Error struct {
	// Token names the condition; "" where the service did not say one, because
	// the call failed on the way.
	Token string
	// Text is the sentence for people, without token and fields.
	Text string
	// Message is what stands in the status: TOKEN key=value …: text.
	Message string
	// Fields are the machine-readable parts in their order, the table first.
	Fields []Field
	Code   codes.Code
	// Cause is the error of the gRPC call.
	Cause error
}

// Field is one machine-readable part of an error.
type Field struct {
	Key   string
	Value json.RawMessage
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the error of the call.
func (e *Error) Unwrap() error { return e.Cause }

// failed makes an Error of what a call returned, with the trailers that came
// with it. It returns nil and io.EOF, the ends that are no failure, as they are.
func failed(err error, trailer metadata.MD) error {
	if err == nil || err == io.EOF {
		return err
	}
	s := status.Convert(err)
	e := &Error{Code: s.Code(), Message: s.Message(), Text: s.Message(), Cause: err}
	if token := trailer.Get(trailerToken); len(token) == 1 {
		e.Token = token[0]
	}
	if detail := trailer.Get(trailerDetail); len(detail) == 1 && e.Token != "" {
		e.readDetail([]byte(detail[0]))
	}
	if e.Token == "" {
		e.Text = transportText(s.Message())
	}
	return e
}

// readDetail takes text and fields out of the JSON object of an error, in
// their order. What is no such object is passed over.
func (e *Error) readDetail(detail []byte) {
	d := json.NewDecoder(bytes.NewReader(detail))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return
		}
		switch key {
		case "token":
		case "text":
			if json.Unmarshal(value, &e.Text) != nil {
				return
			}
		default:
			e.Fields = append(e.Fields, Field{key.(string), value})
		}
	}
}

// transportText takes gRPC's wrapping off the sentence of a connection that
// failed.
func transportText(text string) string {
	for _, wrapping := range []string{"connection error: desc = ", `"transport: `, "Error while dialing: ", "authentication handshake failed: "} {
		text = strings.TrimPrefix(text, wrapping)
	}
	return strings.TrimSuffix(text, `"`)
}
